"""The parts of a snapshot, read in place from a folder or a tar archive that a stranger may have made.

Nothing is unpacked, no link is followed by the operating system, and every size is bounded before it is believed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Protocol

from ascend_doctor.records import dataclass

DOCUMENT = "snapshot.json"
FOLDERS = ("files", "commands", "observations", "extra")
"""extra/ holds bytes of paths that can be no name in a folder."""

MEMBER_COUNT = 20_000
MEMBER_BYTES = 64 << 20
TOTAL_BYTES = 512 << 20


class SnapshotError(Exception):
    """A snapshot that cannot be used: file, place, what to do."""


@dataclass(frozen=True)
class Member:
    """``target``: a symbolic link that points there, as written; ``offset``: its place in the stream of an archive."""

    size: int
    target: str | None = None
    offset: int = 0


class Members(Protocol):
    """``where``: the snapshot's path, for messages; ``index``: member names such as ``files/proc/meminfo``."""

    where: str

    @property
    def index(self) -> Mapping[str, Member]: ...

    def open(self, name: str) -> BinaryIO:
        """Raises OSError or SnapshotError where the bytes cannot be had."""


def open_members(path: Path) -> Members:
    """The snapshot at a path: a folder, the snapshot.json in it, or an archive. Raises SnapshotError."""
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        raise SnapshotError(f"{path}: {_strerror(error)}; give the path of a snapshot") from None
    if stat.S_ISREG(kind) and path.name == DOCUMENT:
        return FolderMembers(path.parent)
    if stat.S_ISDIR(kind):
        return FolderMembers(path)
    if stat.S_ISREG(kind):
        from ascend_doctor.host.archive import TarMembers

        return TarMembers(path)
    raise SnapshotError(f"{path}: neither a folder nor an archive; give the path of a snapshot")


def _strerror(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).lower()


class Counted:
    """An index that is built under the limits."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.index: dict[str, Member] = {}
        self.total = 0

    def add(self, name: str, member: Member) -> None:
        if len(self.index) >= MEMBER_COUNT:
            raise SnapshotError(f"{self.where}: more than {MEMBER_COUNT} members; no snapshot has as many")
        if member.size > MEMBER_BYTES:
            raise SnapshotError(f"{self.where}: {name}: larger than {MEMBER_BYTES >> 20} MiB; take it out")
        self.total += member.size
        if self.total > TOTAL_BYTES:
            raise SnapshotError(f"{self.where}: more than {TOTAL_BYTES >> 20} MiB together; take out the logs")
        self.index[name] = member


def without_escapes(where: str, index: Mapping[str, Member]) -> Mapping[str, Member]:
    """The index itself. Links stand for the host's links: only files/ has them, and that folder is their root."""
    for name, member in index.items():
        if member.target is None:
            continue
        top, *folders = name.split("/")[:-1] or [""]
        if top != "files":
            raise SnapshotError(f"{where}: {name}: a link; put the file itself there")
        depth = len(folders)
        for part in () if member.target.startswith("/") else member.target.split("/"):
            depth += -1 if part == ".." else part not in ("", ".")
            if depth < 0:
                raise SnapshotError(
                    f"{where}: {name}: the link to {member.target[:200]} leaves the snapshot; remove it"
                )
    return index


class FolderMembers:
    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        found = Counted(self.where)
        document = folder / DOCUMENT
        try:
            status = os.lstat(document)
            if not stat.S_ISREG(status.st_mode):
                raise SnapshotError(f"{document}: not a regular file; give a folder made by collect")
            found.add(DOCUMENT, Member(status.st_size))
            for name in FOLDERS:
                self._walk(name, found)
        except FileNotFoundError:
            raise SnapshotError(f"{folder}: no {DOCUMENT} in it; give a folder or archive made by collect") from None
        except OSError as error:
            raise SnapshotError(f"{error.filename or folder}: {_strerror(error)}") from None
        self.index = without_escapes(self.where, found.index)

    def _walk(self, top: str, found: Counted) -> None:
        if os.path.islink(f"{self.where}/{top}"):
            raise SnapshotError(f"{self.where}/{top}: a link; put the folder itself there")
        if not os.path.isdir(f"{self.where}/{top}"):
            return
        ahead = [top]
        while ahead:
            folder = ahead.pop()
            with os.scandir(f"{self.where}/{folder}") as entries:
                for entry in entries:
                    name = f"{folder}/{entry.name}"
                    if entry.is_symlink():
                        found.add(name, Member(0, os.readlink(entry.path)))
                    elif entry.is_dir(follow_symlinks=False):
                        ahead.append(name)
                    elif entry.is_file(follow_symlinks=False):
                        found.add(name, Member(entry.stat(follow_symlinks=False).st_size))
                    else:
                        raise SnapshotError(f"{self.where}/{name}: neither file, folder nor link; remove it")

    def open(self, name: str) -> BinaryIO:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.fdopen(os.open(f"{self.where}/{name}", flags), "rb")
