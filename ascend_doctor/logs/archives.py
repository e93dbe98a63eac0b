"""Looks into .gz, .xz, .bz2, .tar, .tar.gz and .zip as streams: nothing is unpacked to disk, names are names only.

What a file is, its first bytes tell. Bounded: depth, number of members, and how often its size an archive may grow.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Callable, cast

from ascend_doctor.logs.files import Hint, LogFile, hint_of, unreadable

DEPTH = 3
MOST_MEMBERS = 100_000
EXPANSION = 500
"""Times its size: text of logs reaches 20 to 200; beyond this, from FREE bytes on, it is a bomb."""
FREE = 256 << 20
IN_MEMORY = 64 << 20
"""Bytes of a .zip inside another archive, or of a .zip from a pipe: it has to be held to be read."""
KEPT = 1 << 20
"""Bytes of a member that are kept, so that it can be opened again without reading the archive again."""

GZIP, BZIP2, XZ, ZIP = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"PK\x03\x04"
BROKEN = (
    OSError,
    EOFError,
    ValueError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
)


class Bomb(OSError):
    """An archive that grows too much."""


class Watched(io.RawIOBase):
    """A stream of what comes out of a decompressor, stopped where it is too much for what went in."""

    def __init__(self, stream: BinaryIO, packed: Callable[[], int]) -> None:
        self._stream, self._packed, self._out = stream, packed, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._stream.read(size if size >= 0 else FREE)
        except OSError:
            raise
        except Exception as error:  # each decompressor has errors of its own
            raise OSError(f"{type(error).__name__}: {error}") from None
        self._out += len(data)
        if self._out > FREE and self._out > EXPANSION * max(1, self._packed()):
            raise Bomb(f"unpacks to more than {EXPANSION} times its size: not read further")
        return data

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def members(file: LogFile, depth: int = 0) -> Iterator[LogFile]:
    """The file itself, or, where it is an archive, what is in it."""
    try:
        stream = file.open()
    except (OSError, ValueError):
        yield file  # opened again by its reader, who says why not
        return
    try:
        with stream:
            head = stream.read(512)
    except BROKEN:
        yield file
        return
    if head[:4] == ZIP and (file.size or 0) >= 0:
        yield from _zip(file, depth)
    elif is_tar(head):
        yield from _tar(file, depth, lambda: file.open())
    elif head[:2] == GZIP or head[:3] == BZIP2 or head[:6] == XZ:
        yield from _packed(file, head, depth)
    else:
        yield file


def is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def _packed(file: LogFile, head: bytes, depth: int) -> Iterator[LogFile]:
    """One compressed stream: a tar, or a log."""
    if depth >= DEPTH:
        yield unreadable(file.path, f"packed more than {DEPTH} times")
        return

    def opener() -> BinaryIO:
        raw = file.open()
        return cast(BinaryIO, Watched(unpacked(raw, head), _position(raw, file.size)))

    try:
        with opener() as stream:
            inner = stream.read(512)
    except BROKEN as error:
        yield unreadable(file.path, f"broken: {error}")
        return
    if is_tar(inner):
        yield from _tar(file, depth + 1, opener)
    elif inner[:2] == GZIP or inner[:4] == ZIP:
        yield from members(LogFile(file.path, opener, file.hint, file.modified), depth + 1)
    else:
        yield LogFile(file.path, opener, file.hint, file.modified)


def _position(raw: BinaryIO, size: int | None) -> Callable[[], int]:
    """How many packed bytes have been read, as far as the stream tells."""

    def position() -> int:
        try:
            return raw.tell()
        except (OSError, ValueError):
            return size or 0

    return position


def unpacked(raw: BinaryIO, head: bytes) -> BinaryIO:
    """A stream of what is in a compressed one; isal, of the extra ``fast``, does it several times faster."""
    if head[:3] == BZIP2:
        import bz2

        return cast(BinaryIO, bz2.BZ2File(raw))
    if head[:6] == XZ:
        import lzma

        return cast(BinaryIO, lzma.LZMAFile(raw))
    try:
        from isal import igzip

        return cast(BinaryIO, cast(Any, igzip).IGzipFile(fileobj=raw))
    except ImportError:
        import gzip

        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))


class _Member:
    """A member of a tar that is read while the archive is; opened again later, the archive is read again."""

    def __init__(self, tar: tarfile.TarFile, info: tarfile.TarInfo, again: Callable[[], BinaryIO]) -> None:
        self._tar, self._info, self._again = tar, info, again
        self._kept: bytes | None = None
        self._used = False

    def open(self) -> BinaryIO:
        if self._kept is None and not self._used:
            self._used = True
            stream = self._tar.extractfile(self._info)
            if stream is None:
                raise OSError("not a file")
            if self._info.size > KEPT:
                return cast(BinaryIO, stream)
            self._kept = stream.read()
        if self._kept is not None:
            return io.BytesIO(self._kept)
        return self._reopened()

    def _reopened(self) -> BinaryIO:
        tar = tarfile.open(fileobj=self._again(), mode="r|", errorlevel=1)  # noqa: SIM115
        for info in tar:
            if info.offset == self._info.offset:
                stream = tar.extractfile(info)
                if stream is not None:
                    return cast(BinaryIO, stream)
        raise OSError("no longer in the archive")


def _tar(file: LogFile, depth: int, opener: Callable[[], BinaryIO]) -> Iterator[LogFile]:
    if depth > DEPTH:
        yield unreadable(file.path, f"packed more than {DEPTH} times")
        return
    try:
        with opener() as stream, tarfile.open(fileobj=stream, mode="r|", errorlevel=1) as tar:
            for number, info in enumerate(tar):
                if number >= MOST_MEMBERS:
                    yield unreadable(file.path, f"more than {MOST_MEMBERS} members: the rest is not read")
                    return
                name = f"{file.path}!{info.name}"
                if info.isfile() and not info.issparse():
                    member = _Member(tar, info, opener)
                    one = LogFile(name, member.open, _hint(file, name), float(info.mtime), info.size)
                    yield from _inner(one, member, depth)
                elif not info.isdir() and not info.issym() and not info.islnk():
                    yield unreadable(name, "not a regular file")
    except BROKEN as error:
        yield unreadable(file.path, f"broken: {error}"[:200])


def _inner(one: LogFile, member: _Member, depth: int) -> Iterator[LogFile]:
    """A member that may be an archive itself is looked into; a large one is given as it is, as it is read only once."""
    if (one.size or 0) <= KEPT:
        yield from members(one, depth + 1) if depth < DEPTH else iter((one,))
        return
    stream = member.open()
    head = stream.read(512)
    if head[:2] == GZIP or head[:4] == ZIP or is_tar(head):
        if (one.size or 0) > IN_MEMORY:
            yield unreadable(one.path, f"an archive of more than {IN_MEMORY >> 20} MiB inside another")
            return
        data = head + stream.read()
        yield from members(LogFile(one.path, lambda: io.BytesIO(data), one.hint, one.modified, len(data)), depth + 1)
        return
    first = [cast(BinaryIO, _Rejoined(head, stream))]
    yield LogFile(one.path, lambda: first.pop() if first else member.open(), one.hint, one.modified, one.size)


class _Rejoined(io.RawIOBase):
    """A stream of which the head has been read already."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._stream.read(size)
        data, self._head = (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()


def _zip(file: LogFile, depth: int) -> Iterator[LogFile]:
    if depth >= DEPTH:
        yield unreadable(file.path, f"packed more than {DEPTH} times")
        return
    try:
        with _seekable(file) as stream, zipfile.ZipFile(stream) as archive:
            for number, info in enumerate(archive.infolist()):
                if number >= MOST_MEMBERS:
                    yield unreadable(file.path, f"more than {MOST_MEMBERS} members: the rest is not read")
                    return
                name = f"{file.path}!{info.filename}"
                if info.is_dir():
                    continue
                if info.flag_bits & 1:
                    yield unreadable(name, "encrypted")
                    continue
                yield from members(
                    LogFile(name, _zip_opener(archive, info), _hint(file, name), None, info.file_size), depth + 1
                )
    except BROKEN as error:
        yield unreadable(file.path, f"broken: {error}"[:200])


def _zip_opener(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], BinaryIO]:
    def opener() -> BinaryIO:
        try:
            return cast(BinaryIO, Watched(cast(BinaryIO, archive.open(info)), lambda: info.compress_size))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise OSError(f"broken: {error}") from None

    return opener


def _seekable(file: LogFile) -> BinaryIO:
    stream = file.open()
    if stream.seekable() and not isinstance(stream, Watched):
        return stream
    with stream:
        data = stream.read(IN_MEMORY + 1)
    if len(data) > IN_MEMORY:
        raise OSError(f"a .zip of more than {IN_MEMORY >> 20} MiB that cannot be sought in")
    return io.BytesIO(data)


def _hint(file: LogFile, name: str) -> Hint:
    found = hint_of(name.replace("!", "/"))
    own = file.hint
    return Hint(
        found.pid if found.pid is not None else own.pid,
        found.device if found.device is not None else own.device,
        found.rank if found.rank is not None else own.rank,
    )
