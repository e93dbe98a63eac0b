"""Finds what to read: what the user names, or the places where Ascend hosts keep their logs.

Nothing is passed over in silence: what cannot be read is given too, and says so when it is opened.
"""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Callable, cast

from ascend_doctor.host import Host
from ascend_doctor.logs.archives import members
from ascend_doctor.logs.files import LogFile, hint_of, unreadable

MOST_FILES = 200_000
DEEPEST = 40
NO_LOG = re.compile(
    r"\.(?:py|pyc|pyi|c|cc|cpp|h|hpp|ts|js|css|html|md|rst|yaml|yml|toml|ini|proto|class|jar|so|a|o|whl|rpm|deb|run"
    r"|safetensors|pt|pth|npy|npz|onnx|om|air|png|jpe?g|gif|svg|pdf)$",
    re.IGNORECASE,
)
"""Names of files that are no logs: found in a folder they are left alone, named by the user they are read."""

_NUMBER = re.compile(r"\d+")
_ROTATED = re.compile(r"^(.*?\.log|.*?)[.-](\d{1,3})((?:\.log)?(?:\.gz|\.xz|\.bz2)?)$")


def found(paths: Sequence[str], host: Host | None = None) -> Iterator[LogFile]:
    """What there is to read, in the order in which it was written. Read each before you ask for the next."""
    if not paths:
        if host is not None:
            from ascend_doctor.logs.live_places import live_files

            yield from live_files(host)
        return
    seen: set[tuple[int, int]] = set()
    for path in paths:
        for file in _of_argument(path, seen):
            yield from members(file)


def of_path(path: str) -> LogFile:
    """A plain file, as it is."""
    return LogFile(path, lambda: _opened(path), hint_of(os.path.abspath(path)), real=path)


def _of_argument(path: str, seen: set[tuple[int, int]]) -> Iterator[LogFile]:
    if path == "-":
        yield _standard_input()
        return
    names = [path]
    if glob.has_magic(path) and not os.path.lexists(path):
        names = sorted(glob.glob(path, recursive=True), key=rotation)
        if not names:
            yield unreadable(path, "no file of that pattern")
    for name in names:
        if os.path.isdir(name):
            yield from _of_folder(name, seen)
        else:
            file = _of_file(name, seen)
            if file is not None:
                yield file


def _of_folder(top: str, seen: set[tuple[int, int]]) -> Iterator[LogFile]:
    """All files below a folder, each once; links to folders are not followed."""
    folders = [(top, 0)]
    count = 0
    while folders:
        folder, depth = folders.pop()
        try:
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: rotation(entry.name))
        except OSError as error:
            yield unreadable(folder, error.strerror or "cannot be listed")
            continue
        below = []
        for entry in inside:
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                linked = not is_folder and entry.is_symlink() and entry.is_dir()
            except OSError:
                is_folder = linked = False
            if is_folder:
                below.append((entry.path, depth + 1))
            elif not linked:
                count += 1
                if count > MOST_FILES:
                    yield unreadable(top, f"more than {MOST_FILES} files: the rest is not read")
                    return
                file = _of_file(entry.path, seen, walked=True)
                if file is not None:
                    yield file
        if depth < DEEPEST:
            folders.extend(reversed(below))
        elif below:
            yield unreadable(folder, f"folders deeper than {DEEPEST} are not read")


def _of_file(path: str, seen: set[tuple[int, int]], walked: bool = False) -> LogFile | None:
    """None for a file that was given already under another name."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return unreadable(path, getattr(error, "strerror", None) or "no valid path")
    if not stat.S_ISREG(status.st_mode):
        if walked or not stat.S_ISFIFO(status.st_mode):
            return unreadable(path, "not a regular file")
        return _once(path, lambda: open(path, "rb"))
    if walked and NO_LOG.search(path):
        return unreadable(path, "no log by its name; name it to have it read")
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return None
    seen.add(identity)
    return LogFile(
        path,
        lambda: _opened(path),
        hint_of(os.path.abspath(path)),
        status.st_mtime,
        status.st_size,
        os.path.abspath(path),
    )


def _opened(path: str) -> BinaryIO:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    return os.fdopen(descriptor, "rb", buffering=0)


def _standard_input() -> LogFile:
    return _once("-", lambda: cast(BinaryIO, sys.stdin.buffer))


def _once(path: str, opener: Callable[[], BinaryIO]) -> LogFile:
    """What can be read once only; opened twice it begins again with its head, so that its kind can be told."""
    stream = _Kept(opener)
    return LogFile(path, lambda: cast(BinaryIO, stream.again()))


class _Kept:
    """A stream that cannot be sought in: what was read of it is kept until it is opened for the second time."""

    def __init__(self, opener: Callable[[], BinaryIO]) -> None:
        self._opener = opener
        self._stream: BinaryIO | None = None
        self._head = b""

    def again(self) -> _Keeping:
        if self._stream is None:
            self._stream = self._opener()
        return _Keeping(self._stream, self)

    head = property(lambda self: self._head)


class _Keeping:
    """One reading of a ``_Kept`` stream: up to 64 KiB of what it reads can be read again."""

    def __init__(self, stream: BinaryIO, kept: _Kept) -> None:
        self._stream, self._kept, self._at = stream, kept, 0

    def read(self, size: int = -1) -> bytes:
        head = self._kept._head
        if self._at < len(head):
            data = head[self._at :] if size < 0 else head[self._at : self._at + size]
            self._at += len(data)
            return data
        data = self._stream.read(size)
        if self._at == len(head) and len(head) < 64 << 10 and self._at + len(data) <= 64 << 10:
            self._kept._head = head + data
            self._at += len(data)
        return data

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """The stream is the process's own."""

    def __enter__(self) -> _Keeping:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def rotation(name: str) -> tuple[object, ...]:
    """An order in which what was written first comes first: ``x.log.2.gz``, ``x.log.1``, ``x.log.old``, ``x.log``."""
    base, turned = name, 0
    found = _ROTATED.match(name)
    if found and not found[1].endswith(tuple("0123456789")):
        base, turned = found[1] + found[3].replace(".gz", ""), int(found[2])
    elif name.endswith((".old", ".bak")):
        base, turned = name[:-4], 1
    parts = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in _split(base))
    return (parts, -turned)


def _split(name: str) -> list[str]:
    """Digits and what is between them: numbers are compared as numbers."""
    found, at = [], 0
    for number in _NUMBER.finditer(name):
        found += [name[at : number.start()], number[0][:30]]
        at = number.end()
    return [*found, name[at:]]
