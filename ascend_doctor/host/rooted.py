"""A live host that is mounted below a folder, such as /host in a container: nothing outside of the folder is read.

A path is opened part by part, each in the folder that the part before it opened, and links are followed by us: so no
link and nobody who changes one meanwhile leads out. Sources: path_resolution(7), proc(5), chroot(2).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Callable, TypeVar, Union

from ascend_doctor.host import Answer, Extent, Identity, Missing, Output, Python, Reason, Stat, StatVfs, decoded, files
from ascend_doctor.host.commands import ALSO_SEARCHED, Commands, Start, found_program, not_started
from ascend_doctor.host.files import Files
from ascend_doctor.host.interpreter import target_python
from ascend_doctor.host.live import COLLECTION_SECONDS, KnownEnv, LiveHost
from ascend_doctor.host.reasons import NOT_A_LINK, not_a_file
from ascend_doctor.host.resolve import LINK_STEPS
from ascend_doctor.records import dataclass

T = TypeVar("T")

PATH = ":".join(ALSO_SEARCHED)

SIGNS_OF_A_SYSTEM = ("etc", "usr", "proc")

KERNEL_FOLDERS = {"proc": "self", "sys": "kernel", "dev": "null", "run": ""}
"""What the running kernel puts there, by a name that is in it ("": any): without it, nothing is mounted."""

ITSELF = {"self": "1", "thread-self": "1/task/1"}
"""Links of /proc that would lead to us: who asks is the host's first process."""

_HERE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_PATH = 4096


class RootError(Exception):
    """A folder that is no host: where, why, what to do."""


@dataclass(frozen=True)
class _Found:
    """A place, open without being read; ``above`` is the open folder that has it as ``name``."""

    place: int
    above: int
    name: str
    path: str

    @property
    def kind(self) -> str:
        return files.type_of(os.fstat(self.place).st_mode)


class RootedFiles:
    """Files below a folder, by their paths there. Raises RootError for what is no folder of a Linux system."""

    def __init__(self, root: Path) -> None:
        try:
            self._root = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise RootError(f"{root}: {str(why).lower()}; give the folder where the host is mounted") from None
        self._not_mounted: dict[str, Missing] = {}
        if all(isinstance(self.status(f"/{name}"), Missing) for name in SIGNS_OF_A_SYSTEM):
            raise RootError(
                f"{root}: neither {' nor '.join(SIGNS_OF_A_SYSTEM)} in it; give the folder where the host is mounted"
            )
        for name, sign in KERNEL_FOLDERS.items():
            if not self._is_mounted(name, sign):
                self._not_mounted[name] = Missing(Reason.NOT_COLLECTED, f"the host's /{name} is not mounted there")

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            os.close(self._root)

    def _is_mounted(self, name: str, sign: str) -> bool:
        if not sign:
            return self.names(f"/{name}") != ()
        found = self.target(f"/{name}/{sign}")
        return not (isinstance(found, Missing) and found.reason is Reason.ABSENT)

    def open_file(self, path: str) -> BinaryIO | Missing:
        return self._asked(path, _stream)

    def read(self, path: str) -> bytes | Missing:
        return files.whole(self.open_file(path))

    def names(self, path: str) -> tuple[str, ...] | Missing:
        return self._asked(path, _names)

    def status(self, path: str) -> Stat | Missing:
        return self._asked(path, lambda found: files.status_of(os.fstat(found.place)))

    def file_system(self, path: str) -> StatVfs | Missing:
        return self._asked(path, lambda found: files.file_system_of(os.fstatvfs(found.place)))

    def target(self, path: str) -> str | Missing:
        return self._asked(path, _target, follow=False)

    def real(self, path: str) -> str:
        """The path without links; as it is where it leads nowhere."""
        found = self._asked(path, lambda found: found.path)
        return path if isinstance(found, Missing) else found

    def runnable(self, path: str) -> str | Missing:
        """The path of a program, where anybody may execute it."""
        found = self.status(path)
        if isinstance(found, Missing):
            return Missing(Reason.ABSENT, "no such program") if found.reason is Reason.ABSENT else found
        if found.type != "file":
            return Missing(Reason.FAILED, f"{path}: not a program")
        return path if found.mode & 0o111 else Missing(Reason.DENIED, f"{path}: not executable for this user")

    def _asked(self, path: str, ask: Callable[[_Found], Union[T, Missing]], follow: bool = True) -> Union[T, Missing]:
        try:
            with contextlib.ExitStack() as opened:
                found = self._place(path, follow, opened)
                return found if isinstance(found, Missing) else ask(found)
        except (OSError, ValueError) as error:
            return files.why(error)

    def _place(self, path: str, follow: bool, opened: contextlib.ExitStack) -> _Found | Missing:
        if len(os.fsencode(path)) >= _LONGEST_PATH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        folders, ahead, steps = [self._root], _parts(path), 0
        names: list[str] = []
        while ahead:
            part = ahead.pop()
            if part == "..":
                if not stat.S_ISDIR(os.fstat(folders[-1]).st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                if names:
                    folders.pop()
                    names.pop()
                continue
            if not names and part in self._not_mounted:
                return self._not_mounted[part]
            place = os.open(part, _HERE, dir_fd=folders[-1])
            opened.callback(os.close, place)
            if stat.S_ISLNK(os.fstat(place).st_mode) and (ahead or follow):
                steps += 1
                if steps > LINK_STEPS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = _link(place, names, part)
                if target.startswith("/"):
                    del folders[1:], names[:]
                ahead += _parts(target)
                continue
            folders.append(place)
            names.append(part)
        above = folders[-2] if len(folders) > 1 else self._root
        return _Found(folders[-1], above, names[-1] if names else ".", "/" + "/".join(names))


def _parts(path: str) -> list[str]:
    """The last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _link(place: int, names: Sequence[str], part: str) -> str:
    if list(names) == ["proc"] and part in ITSELF:
        return ITSELF[part]
    return os.readlink("", dir_fd=place)


def _stream(found: _Found) -> BinaryIO | Missing:
    kind = found.kind
    if kind != "file":
        return not_a_file(kind)
    return files.regular(os.open(found.name, files.OPENING | os.O_NOFOLLOW, dir_fd=found.above))


def _names(found: _Found) -> tuple[str, ...]:
    folder = os.open(found.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=found.above)
    try:
        return tuple(sorted(os.listdir(folder)))
    finally:
        os.close(folder)


def _target(found: _Found) -> str | Missing:
    if not stat.S_ISLNK(os.fstat(found.place).st_mode):
        return NOT_A_LINK
    return _link(found.place, found.path.split("/")[1:-1], found.name)


_NO_CHROOT = "cannot start below the root: "
_LAUNCHER = f"""
import os, sys
try:
    os.chroot(sys.argv[1])
    os.chdir("/")
    os.execv(sys.argv[2], sys.argv[3:])
except OSError as error:
    os.write(2, f"{_NO_CHROOT}{{error.errno}}".encode())
    os._exit(127)
"""
_CAP_SYS_CHROOT = 18


class Chroot:
    """Programs of the mounted host, with that host's files and none of our environment."""

    def __init__(self, root: Path, tree: RootedFiles) -> None:
        self._root, self._tree = os.path.realpath(root), tree

    def program(self, name: str) -> str | Missing:
        found = found_program(name, "", self._tree.runnable)
        if isinstance(found, Missing) or _may_chroot():
            return found
        return Missing(Reason.DENIED, "needs root: chroot")

    def start(self, program: str, argv: Sequence[str]) -> Start:
        python = sys.executable or "/usr/bin/python3"
        return Start(
            python,
            [python, "-I", "-S", "-c", _LAUNCHER, self._root, program, *argv],
            {"PATH": PATH, "LC_ALL": "C", "HOME": "/"},
        )

    def answer(self, program: str, output: Output) -> Output | Missing:
        said = re.fullmatch(rb"%s(\d+)" % _NO_CHROOT.encode(), output.stderr)
        if not said or output.rc != 127 or output.stdout:
            return output
        return not_started(program, OSError(int(said[1]), os.strerror(int(said[1]))))


def _may_chroot() -> bool:
    with contextlib.suppress(OSError), open("/proc/self/status", "rb") as status:
        found = re.search(rb"^CapEff:\s*([0-9a-f]+)$", status.read(), re.MULTILINE)
        if found:
            return bool(int(found[1], 16) >> _CAP_SYS_CHROOT & 1)
    return os.geteuid() == 0


class _Below:
    """Where interpreters of the mounted host are looked for."""

    def __init__(self, tree: RootedFiles) -> None:
        self.files: Files = tree
        self._tree = tree

    def is_runnable(self, path: str) -> bool:
        return isinstance(self._tree.runnable(path), str)

    def real(self, path: str) -> str:
        return self._tree.real(path)

    def is_ours(self, executable: str) -> bool:
        return False


class RootedHost(LiveHost):
    """As LiveHost, of another root. Its environment is nobody's, and what runs there is not measured from here."""

    def __init__(
        self,
        root: Path,
        timeout: float = COLLECTION_SECONDS,
        python: str | None = None,
        extent: Extent = Extent(),  # noqa: B008 - it is frozen
    ) -> None:
        super().__init__(KnownEnv(), timeout, python, extent)
        self._files = self._tree = RootedFiles(root)
        self._commands = Commands(timeout, Chroot(root, self._tree))

    def env(self, name: str) -> Answer[str]:
        return Answer(f"env:{name}", _NOT_ASKED)

    def env_names(self) -> Answer[tuple[str, ...]]:
        return Answer("env", _NOT_ASKED)

    def observed(self, area: str, measure: Callable[[], object]) -> Answer[object]:
        return Answer(f"observed:{area}", Missing(Reason.NOT_COLLECTED, "not measured below another root"))

    @property
    def identity(self) -> Identity:
        found: Identity = self._answers.of("identity", lambda: _identity(self._tree))
        return found

    @property
    def python(self) -> Answer[Python]:
        found: Answer[Python] = self._answers.of(
            "python", lambda: Answer("python", target_python(self._given_python, {"PATH": PATH}, _Below(self._tree)))
        )
        return found


_NOT_ASKED = Missing(Reason.NOT_COLLECTED, "no environment is known below another root")


def _identity(tree: RootedFiles) -> Identity:
    """Of the first process; where no /proc is mounted, files alone tell neither kernel nor machine."""
    kernel = _line(tree.read("/proc/sys/kernel/osrelease"))
    status = tree.read("/proc/1/status")
    uids, gids, groups = (_numbers(status, name) for name in (b"Uid", b"Gid", b"Groups"))
    return Identity(
        hostname=_line(tree.read("/etc/hostname")),
        arch=kernel if isinstance(kernel, Missing) else os.uname().machine,
        kernel=kernel,
        uid=uids if isinstance(uids, Missing) else uids[0],
        gids=gids
        if isinstance(gids, Missing)
        else tuple(sorted({gids[0], *(groups if isinstance(groups, tuple) else ())})),
    )


def _line(text: bytes | Missing) -> str | Missing:
    if isinstance(text, Missing):
        return text
    return decoded(text).strip().partition("\n")[0] or Missing(Reason.FAILED, "an empty file")


def _numbers(status: bytes | Missing, name: bytes) -> tuple[int, ...] | Missing:
    """Of a line of /proc/PID/status; the first number of Uid and Gid is the real one."""
    if isinstance(status, Missing):
        return status
    found = re.search(rb"^%s:((?:[ \t]+\d{1,10})+)[ \t]*$" % name, status, re.MULTILINE)
    return tuple(map(int, found[1].split())) if found else Missing(Reason.FAILED, f"no {name.decode()} in the status")
