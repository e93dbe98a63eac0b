"""Where ld.so looks for a library, and what it makes of the files that it meets on the way.

Source: glibc elf/dl-load.c (_dl_map_object, open_path, open_verify) and elf/dl-cache.c.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from ascend_doctor.host import Missing
from ascend_doctor.host.elf.reader import Elf, ElfError, FileSource, ForeignError
from ascend_doctor.host.resolve import resolved, tidy
from ascend_doctor.records import dataclass

CACHE = "/etc/ld.so.cache"
CACHE_LIMIT = 16 << 20
X86_64, AARCH64 = 62, 183
MACHINE_OF = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
LOADERS = {X86_64: "/lib64/ld-linux-x86-64.so.2", AARCH64: "/lib/ld-linux-aarch64.so.1"}
_CACHE_FLAGS = {X86_64: 0x0303, AARCH64: 0x0A03}
_TRIPLETS = {X86_64: "x86_64-linux-gnu", AARCH64: "aarch64-linux-gnu"}
_PLATFORMS = {X86_64: "x86_64", AARCH64: "aarch64"}
_SYSTEM_FOLDERS = re.compile(rb"\0((?:/(?:usr/)?lib[\w./-]*/\0){2,8})")
_LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
}
NOT_FOUND = "cannot open shared object file: No such file or directory"


@dataclass(frozen=True)
class Fault:
    """Something that a library, or the search for it, does not give.

    ``kind``: one of the words that facts/libraries.py explains. ``fatal``: the loader stops here; ``says``: with these
    words, empty where it says nothing or dies.
    """

    kind: str
    library: str
    path: str
    needed_by: str
    says: str
    fatal: bool
    detail: str = ""


class Files:
    """Files of the machine, or of one that is mounted at ``root``: links are then followed inside it."""

    def __init__(self, root: str = "/") -> None:
        self._root = root.rstrip("/")
        self._folders: dict[str, bool] = {}

    def place(self, path: str) -> str:
        """The path to hand to the kernel. Raises OSError for a loop of links."""
        if not self._root:
            return path
        inside = resolved(tidy(path), self._target)
        if isinstance(inside, Missing):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return self._root + inside

    def _target(self, path: str) -> str | None:
        try:
            return os.readlink(self._root + path)
        except OSError:
            return None

    def open(self, path: str) -> FileSource:
        """Regular files only. Raises OSError; IsADirectoryError for a folder."""
        descriptor = os.open(self.place(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind == stat.S_IFREG:
            return FileSource(descriptor)
        os.close(descriptor)
        number = errno.EISDIR if kind == stat.S_IFDIR else errno.ENODEV
        raise OSError(number, os.strerror(number))

    def read(self, path: str, limit: int) -> bytes:
        """The beginning of a file; nothing where it cannot be read."""
        try:
            source = self.open(path)
        except (OSError, ValueError):
            return b""
        try:
            return source.at(0, limit)
        except OSError:
            return b""
        finally:
            source.close()

    def has_folder(self, path: str) -> bool:
        """Remembered, as the loader does: most folders of a search are not there."""
        if path not in self._folders:
            try:
                self._folders[path] = stat.S_ISDIR(os.stat(self.place(path)).st_mode)
            except (OSError, ValueError):
                self._folders[path] = False
        return self._folders[path]

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.place(path)))
        except (OSError, ValueError):
            return []

    def real(self, path: str) -> str:
        """Without links; as given where it leads nowhere."""
        try:
            return self.place(path) if self._root else os.path.realpath(path)
        except OSError:
            return path

    def dangling(self, path: str) -> str:
        """The first part of a path that is a link to nowhere, and where it points; empty where there is none."""
        names = path.split("/")
        for count in range(2, len(names) + 1):
            part = "/".join(names[:count])
            target = self._target(part)
            if target is None:
                continue
            try:
                os.stat(self.place(part))
            except FileNotFoundError:
                return f"{part} -> {target}"
            except OSError:
                return ""
        return ""


@dataclass(frozen=True)
class Loader:
    """How one process finds libraries: machine, LD_LIBRARY_PATH, cache and default folders."""

    files: Files
    machine: int
    library_path: tuple[str, ...] = ()
    cache: Mapping[str, str] = field(default_factory=dict)
    system_folders: tuple[str, ...] = ()
    subfolders: tuple[str, ...] = ()

    def expanded(self, folders: Sequence[str], owner: str) -> list[str]:
        """Folders with $ORIGIN, $LIB and $PLATFORM replaced; an empty entry is the current folder."""
        return [self._expanded(folder, owner).rstrip("/") if folder else "." for folder in folders]

    def _expanded(self, text: str, owner: str) -> str:
        if "$" not in text:
            return text
        multiarch = any(_TRIPLETS.get(self.machine, "?") in folder for folder in self.system_folders)
        words = {
            "ORIGIN": os.path.dirname(owner),
            "LIB": f"lib/{_TRIPLETS[self.machine]}" if multiarch else "lib64",
            "PLATFORM": _PLATFORMS.get(self.machine, ""),
        }
        return re.sub(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)\b)", lambda m: words[m[1] or m[2]], text)

    def found(self, name: str, lists: Sequence[Sequence[str]], owner: str, no_defaults: bool) -> Search:
        """The first usable file of that name: in lists of folders, in the cache, in the default folders."""
        search = Search(self, name, owner)
        for folders in lists:
            if search.through(self._candidates(folders, name)):
                return search
        cached = self.cache.get(name)
        if cached and not (no_defaults and cached.startswith(self.system_folders)) and search.through([cached]):
            return search
        if not no_defaults:
            search.through(self._candidates([folder.rstrip("/") for folder in self.system_folders], name))
        if search.elf is None and not search.ended:
            search.explain([folder for folders in lists for folder in folders])
        return search

    def _candidates(self, folders: Sequence[str], name: str) -> Iterator[str]:
        for folder in folders:
            if not self.files.has_folder(folder):
                continue
            for sub in self.subfolders:
                if self.files.has_folder(f"{folder}/{sub}"):
                    yield f"{folder}/{sub}{name}"
            yield f"{folder}/{name}"


@dataclass
class Search:
    """One search: the file that it ended with, or not, and every file that it passed."""

    loader: Loader
    name: str
    owner: str
    elf: Elf | None = None
    faults: list[Fault] = field(default_factory=list)
    ended: bool = False

    def through(self, paths: Iterator[str] | Sequence[str]) -> bool:
        """Whether the search ends in this list, be it with a library or with a fatal error."""
        for path in paths:
            try:
                self.elf = opened(self.loader.files, path, self.loader.machine)
            except ForeignError as error:
                self._note(error.kind, path, "", False, error.text if error.kind == "foreign_machine" else "")
            except ElfError as error:
                self._note(error.kind, path, error.text, True)
            except OSError as error:
                if self._passes(path, error):
                    continue
                return self.ended
            except ValueError:
                continue
            if self.elf is not None or self.ended:
                self.ended = True
                return True
        return False

    def _passes(self, path: str, error: OSError) -> bool:
        """Whether the loader tries the next folder of the list after this error."""
        if error.errno == errno.EISDIR:
            self._note("directory", path, "cannot read file data: Is a directory", True)
        elif error.errno == errno.EACCES:
            self._note("denied", path, "", False)
        elif error.errno == errno.ELOOP:
            self._note("loop", path, "", False)
            return False
        elif error.errno in (errno.EMFILE, errno.ENFILE):
            raise error  # says something about us, not about the file
        elif error.errno in (errno.ENOENT, errno.ENOTDIR):
            self._note_dangling(path)
        else:
            self._note("unreadable", path, f"cannot read file data: {error.strerror}", True, error.strerror or "")
        return not self.ended

    def explain(self, folders: Sequence[str]) -> None:
        """Nothing was found: a folder of the search may be a link to nowhere."""
        for folder in folders:
            if not self.loader.files.has_folder(folder):
                self._note_dangling(folder)

    def _note_dangling(self, path: str) -> None:
        where = self.loader.files.dangling(path)
        if where:
            link, _, target = where.partition(" -> ")
            self._note("dangling", link, "", False, target)

    def _note(self, kind: str, path: str, text: str, fatal: bool, detail: str = "") -> None:
        says = f"{path}: {text}" if text else ""
        self.faults.append(Fault(kind, self.name, path, self.owner, says, fatal, detail))
        self.ended = self.ended or fatal

    @property
    def failure(self) -> str:
        """What the loader says when nothing was found."""
        wrong_class = any(fault.kind == "elf32" for fault in self.faults)
        return f"{self.name}: wrong ELF class: ELFCLASS32" if wrong_class else f"{self.name}: {NOT_FOUND}"


def opened(files: Files, path: str, machine: int = 0) -> Elf:
    """The file at a path. Raises OSError, ElfError."""
    source = files.open(path)
    try:
        return Elf(source, path, machine)
    except (ElfError, struct.error, OSError):
        source.close()
        raise


def loader_of(files: Files, machine: int, library_path: str, program: str, interpreter: str = "") -> Loader:
    """The loader of a process: ``program`` is its executable, ``interpreter`` the PT_INTERP of that."""
    folders = _system_folders(files, machine, interpreter or LOADERS.get(machine, ""))
    plain = Loader(files, machine, (), read_cache(files.read(CACHE, CACHE_LIMIT), machine), folders)
    entries = re.split("[:;]", library_path) if library_path else []
    return Loader(
        files, machine, tuple(plain.expanded(entries, program)), plain.cache, folders, _subfolders(files, machine)
    )


def _system_folders(files: Files, machine: int, interpreter: str) -> tuple[str, ...]:
    """As they are compiled into ld.so, else as upstream and Debian have them."""
    found = _SYSTEM_FOLDERS.search(files.read(interpreter, 4 << 20))
    if found:
        return tuple(dict.fromkeys(folder.decode() for folder in found[1].split(b"\0") if folder))
    triplet = _TRIPLETS.get(machine, "")
    debian = (f"/lib/{triplet}/", f"/usr/lib/{triplet}/") if triplet else ()
    return (*debian, "/lib64/", "/usr/lib64/", "/lib/", "/usr/lib/")


def _subfolders(files: Files, machine: int) -> tuple[str, ...]:
    """The glibc-hwcaps folders that this processor may use, best first."""
    if machine != X86_64:
        return ()
    found = re.search(rb"(?m)^flags\s*:(.*)$", files.read("/proc/cpuinfo", 1 << 16))
    flags = set(found[1].decode(errors="replace").split()) if found else set()
    levels: list[str] = []
    for level in reversed(_LEVELS):
        if not _LEVELS[level] <= flags:
            break
        levels.insert(0, f"glibc-hwcaps/{level}/")
    return tuple(levels)


def read_cache(data: bytes, machine: int) -> dict[str, str]:
    """Name -> path of /etc/ld.so.cache, for one machine; the entries for special processors are left out."""
    start = data.find(b"glibc-ld.so.cache1.1")
    wanted = _CACHE_FLAGS.get(machine)
    if start < 0 or wanted is None or len(data) < start + 48:
        return {}
    (count,) = struct.unpack_from("<I", data, start + 20)
    found: dict[str, str] = {}
    for number in range(min(count, (len(data) - start - 48) // 24)):
        flags, key, value, _, special = struct.unpack_from("<IIIIQ", data, start + 48 + 24 * number)
        if flags == wanted and not special:
            found.setdefault(_text(data, start + key), _text(data, start + value))
    return found


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at)
    return data[at : end if end >= 0 else at].decode(errors="surrogateescape")
