"""A snapshot in a tar archive, plain or gzip: searched once under the limits, then read in place."""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from ascend_doctor.host.members import (
    DOCUMENT,
    MEMBER_COUNT,
    TOTAL_BYTES,
    Counted,
    Member,
    SnapshotError,
    without_escapes,
)

EXPANSION = 200
SMALL_ARCHIVE_BYTES = 1 << 20
"""Up to here an archive may expand as it likes: one of a few empty files does."""

KEPT_MEMBER_BYTES, KEPT_TOTAL_BYTES = 1 << 20, 32 << 20
"""What is kept of an archive while it is searched; larger members are read again when asked for."""

_CHUNK = 1 << 20
_UNREADABLE = (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError, RecursionError, OSError)


class TarMembers:
    """The members of an archive; a single folder around all of them does not count as a part of their names."""

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._kept: dict[str, bytes] = {}
        self._kept_bytes = 0
        try:
            found = self._searched()
        except _UNREADABLE as error:
            raise SnapshotError(f"{path}: no whole tar archive: {str(error)[:200]}; collect it again") from None
        top = _folder_around(found)
        inside = {name[len(top) :]: member for name, member in found.index.items() if name.startswith(top)}
        self.index = without_escapes(self.where, inside)
        self._kept = {name[len(top) :]: data for name, data in self._kept.items() if name.startswith(top)}

    def open(self, name: str) -> BinaryIO:
        if name in self._kept:
            return io.BytesIO(self._kept[name])
        member = self.index[name]
        stream = _stream(self.where)
        stream.seek(member.offset)
        return io.BufferedReader(_Slice(stream, member.size))

    def _searched(self) -> Counted:
        found = Counted(self.where)
        with _stream(self.where) as stream:
            metered = _Metered(stream, self.where)
            archive = tarfile.TarFile(fileobj=cast(BinaryIO, metered))
            while True:
                entry = archive.next()
                if entry is None:
                    metered.finish()
                    return found
                self._take(entry, metered, found)

    def _take(self, entry: tarfile.TarInfo, metered: _Metered, found: Counted) -> None:
        name = _name_inside(entry.name, self.where)
        if entry.isdir() or not name:
            return
        if entry.issym():
            found.add(name, Member(0, entry.linkname))
            return
        if not entry.isreg() or entry.issparse():
            raise SnapshotError(f"{self.where}: {name}: neither file, folder nor symbolic link; remove it")
        found.add(name, Member(entry.size, None, entry.offset_data))
        self._kept.pop(name, None)
        if entry.size <= KEPT_MEMBER_BYTES and self._kept_bytes + entry.size <= KEPT_TOTAL_BYTES:
            metered.seek(entry.offset_data)
            self._kept[name] = metered.read(entry.size)
            self._kept_bytes += entry.size


def _folder_around(found: Counted) -> str:
    """``snapshot/`` where the document is ``snapshot/snapshot.json``, else nothing."""
    if DOCUMENT in found.index:
        return ""
    tops = [name[: -len(DOCUMENT)] for name in found.index if name.endswith(f"/{DOCUMENT}") and name.count("/") == 1]
    if len(tops) != 1:
        raise SnapshotError(f"{found.where}: no {DOCUMENT} in it; give a folder or archive made by collect")
    return tops[0]


def _name_inside(name: str, where: str) -> str:
    if name.startswith("/") or ".." in name.split("/"):
        raise SnapshotError(
            f"{where}: {name[:200]}: the name leaves the snapshot; this archive is not one of collect's"
        )
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _stream(where: str) -> BinaryIO:
    raw = open(where, "rb")  # noqa: SIM115 - the caller closes it
    if raw.peek(2)[:2] != b"\x1f\x8b":
        return raw
    raw.close()
    import gzip

    return cast(BinaryIO, gzip.open(where, "rb"))


class _Metered:
    """What tarfile reads from: only forward, in bounded pieces, and not more than a snapshot may hold."""

    def __init__(self, stream: BinaryIO, where: str) -> None:
        self._stream, self._where, self._at = stream, where, 0
        self._last = b""
        size = os.stat(where).st_size
        self._expanded = max(EXPANSION * size, SMALL_ARCHIVE_BYTES)
        self._most = TOTAL_BYTES + MEMBER_COUNT * 2048

    def tell(self) -> int:
        return self._at

    def seek(self, place: int) -> int:
        if place < self._at:
            raise tarfile.ReadError("a member that begins before its own header")
        while self._at < place and self.read(min(_CHUNK, place - self._at)):
            pass
        return self._at

    def finish(self) -> None:
        """The archive ended with its mark, and the checksum of the rest is right."""
        if self._last != tarfile.NUL * tarfile.BLOCKSIZE:
            raise tarfile.ReadError("unexpected end of data")
        while self.read(_CHUNK):
            pass

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _CHUNK:
            raise tarfile.ReadError("a header that is longer than 1 MiB")
        data = self._last = self._stream.read(size)
        self._at += len(data)
        if self._at > self._expanded:
            raise SnapshotError(
                f"{self._where}: expands more than {EXPANSION}-fold; this archive is not one of collect's"
            )
        if self._at > self._most:
            raise SnapshotError(f"{self._where}: more than {TOTAL_BYTES >> 20} MiB together; take out the logs")
        return data


class _Slice(io.RawIOBase):
    """One member of the stream."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self._stream.read(min(len(view), self._left))
        view[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()
