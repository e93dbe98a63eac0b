"""Files of the machine that we run on: every error becomes a reason, nothing blocks, nothing large is held."""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import BinaryIO, Protocol

from ascend_doctor.host import READ_LIMIT, Missing, Reason, Stat, StatVfs, kernel_ring
from ascend_doctor.host.reasons import NO_SUCH_FILE, NOT_A_FOLDER, NOT_A_LINK, NOT_ABSOLUTE, TOO_LARGE, not_a_file

_TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFCHR: "char",
    stat.S_IFBLK: "block",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}
_KNOWN = {
    errno.ENOENT: NO_SUCH_FILE,
    errno.ENOTDIR: NOT_A_FOLDER,
    errno.ELOOP: Missing(Reason.ABSENT, "too many links"),
    errno.EACCES: Missing(Reason.DENIED, "permission denied"),
    errno.EPERM: Missing(Reason.DENIED, "operation not permitted"),
}
_CHUNK = 1 << 20

OPENING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Files(Protocol):
    """What a host needs of its files; this module is one for ``/``."""

    def open_file(self, path: str) -> BinaryIO | Missing: ...

    def read(self, path: str) -> bytes | Missing: ...

    def names(self, path: str) -> tuple[str, ...] | Missing: ...

    def status(self, path: str) -> Stat | Missing: ...

    def file_system(self, path: str) -> StatVfs | Missing: ...

    def target(self, path: str) -> str | Missing: ...


def why(error: Exception) -> Missing:
    """The reason in an exception of the os module."""
    if not isinstance(error, OSError):
        return Missing(Reason.FAILED, f"no valid path: {error}")
    return _KNOWN.get(error.errno or 0) or Missing(Reason.FAILED, error.strerror or type(error).__name__)


def open_file(path: str) -> BinaryIO | Missing:
    """Regular files, and the kernel's log: opening a device may act on it, and reading a pipe may wait for ever."""
    try:
        if path == kernel_ring.PATH:
            said = kernel_ring.records()
            return said if isinstance(said, Missing) else io.BytesIO(said)
        kind = type_of(os.stat(path).st_mode)
        return regular(os.open(path, OPENING)) if kind == "file" else not_a_file(kind)
    except (OSError, ValueError) as error:
        return why(error)


def regular(descriptor: int) -> BinaryIO | Missing:
    """The stream of an open file that was a regular one a moment ago."""
    stream = os.fdopen(descriptor, "rb")
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return stream
    stream.close()
    return Missing(Reason.FAILED, "changed while it was opened")


def read(path: str) -> bytes | Missing:
    return whole(open_file(path))


def whole(stream: BinaryIO | Missing) -> bytes | Missing:
    """What is in a stream, which is closed."""
    if isinstance(stream, Missing):
        return stream
    with stream:
        try:
            if not isinstance(stream, io.BytesIO) and os.fstat(stream.fileno()).st_size > READ_LIMIT:
                return TOO_LARGE
            return _in_parts(stream)
        except OSError as error:
            return why(error)


def _in_parts(stream: BinaryIO) -> bytes | Missing:
    """Files of /proc say that their size is 0 and end when they end."""
    parts: list[bytes] = []
    size = 0
    while True:
        part = stream.read(_CHUNK)
        if part is None:
            return Missing(Reason.FAILED, "nothing to read yet")
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > READ_LIMIT:
            return TOO_LARGE


def names(path: str) -> tuple[str, ...] | Missing:
    try:
        return tuple(sorted(os.listdir(path)))
    except (OSError, ValueError) as error:
        return why(error)


def status(path: str) -> Stat | Missing:
    try:
        return status_of(os.stat(path))
    except (OSError, ValueError) as error:
        return why(error)


def status_of(found: os.stat_result) -> Stat:
    return Stat(type_of(found.st_mode), stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)


def type_of(mode: int) -> str:
    return _TYPES.get(stat.S_IFMT(mode), "other")


def file_system(path: str) -> StatVfs | Missing:
    """``free`` is what is left for users without privileges."""
    try:
        return file_system_of(os.statvfs(path))
    except (OSError, ValueError) as error:
        return why(error)


def file_system_of(found: os.statvfs_result) -> StatVfs:
    return StatVfs(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, found.f_favail)


def target(path: str) -> str | Missing:
    try:
        return os.readlink(path)
    except (OSError, ValueError) as error:
        return NOT_A_LINK if isinstance(error, OSError) and error.errno == errno.EINVAL else why(error)


def absolute(path: str) -> Missing | None:
    return None if path.startswith("/") else NOT_ABSOLUTE
