"""Bytes of any log -> chunks of whole lines, in flat memory: whatever the encoding, however long a line.

A line longer than LONGEST comes in pieces, and of one line no more than MOST_OF_A_LINE is looked at.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

CHUNK = 256 << 10
LONGEST = 1 << 20
"""Bytes of a line that are looked at in one piece."""
MOST_OF_A_LINE = 16 << 20
FEW = 4096
"""Bytes in which line feeds are soon counted."""
OVERLAP = 512
"""Bytes that two pieces of a line share, so that no anchor falls between them."""

ANSI = re.compile(rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,16}[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)?|[@-Z\\-_])")
_TEXT = bytes(range(32, 127)) + b"\t\n\r\f\b\x1b\0" + bytes(range(128, 256))
_MAGIC = (b"\x7fELF", b"\x89PNG", b"SQLite format", b"PAR1", b"\x80\x04", b"%PDF")


class Chunk:
    """``data``: whole lines, without colours. ``offset``: of its first byte in the file. ``cut``: its line goes on."""

    __slots__ = ("_raw", "_starts", "cut", "data", "offset")

    def __init__(self, raw: bytes, offset: int, cut: bool = False) -> None:
        self._raw, self.offset, self.cut = raw, offset, cut
        self.data = ANSI.sub(b"", raw) if b"\x1b" in raw else raw
        self._starts: list[int] = []

    def offset_of(self, place: int, number: int) -> int:
        """Where in the file a line begins: at ``place`` of ``data``, as line ``number`` of it, from 0."""
        if self.data is self._raw:
            return self.offset + place
        if not self._starts:
            self._starts = [0, *(found.end() for found in re.finditer(rb"\n", self._raw))]
        return self.offset + self._starts[min(number, len(self._starts) - 1)]


class Lines:
    """Iterates a stream's chunks, and counts what it sees. ``problem``: why it ended early or left something out.

    ``first``: the stream begins where the file does.
    """

    def __init__(self, stream: BinaryIO, first: bool = True) -> None:
        self._stream, self._first = stream, first
        self.bytes = self.nuls = 0
        self.problem = ""
        self.encoding = "utf-8"
        self.binary = False

    def __iter__(self) -> Iterator[Chunk]:
        first = self._read()
        if not self._first:
            yield from self._whole_lines(self._blocks(first), 0)
            return
        if is_binary(first):
            self.binary, self.bytes, self.problem = True, len(first), "binary, not a text"
            return
        mark = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(first[:2])
        if mark:
            self.encoding = mark
            yield from self._whole_lines(self._recoded(first[2:], mark), 2)
            return
        start = 0
        if first.startswith(codecs.BOM_UTF8):
            self.encoding, first, start = "utf-8-sig", first[3:], 3
        yield from self._whole_lines(self._blocks(first), start)

    def _read(self) -> bytes:
        try:
            block = self._stream.read(CHUNK) or b""
        except (OSError, EOFError, ValueError) as error:
            self.problem = f"broken: {error}"[:200]
            return b""
        except Exception as error:  # decompressors have errors of their own
            self.problem = f"broken: {type(error).__name__}: {error}"[:200]
            return b""
        self.bytes += len(block)
        if b"\0" in block:
            self.nuls += block.count(b"\0")
        return block

    def _blocks(self, block: bytes) -> Iterator[bytes]:
        while block:
            yield block
            block = self._read()

    def _recoded(self, first: bytes, encoding: str) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        for block in self._blocks(first):
            yield decoder.decode(block).encode(errors="replace")

    def _whole_lines(self, blocks: Iterator[bytes], offset: int) -> Iterator[Chunk]:
        """``rest`` is a line of which the end has not come yet; ``seen`` how much of it was given already."""
        rest, seen = b"", 0
        for block in blocks:
            end = block.rfind(b"\n") + 1
            if end:
                seen = 0
                data = b"".join((rest, memoryview(block)[:end]))  # copied once
                yield Chunk(data, offset)
                offset, rest = offset + len(data), block[end:]
                continue
            rest += block
            if len(rest) < LONGEST:
                continue
            if seen < MOST_OF_A_LINE:
                yield Chunk(rest, offset, cut=True)
            else:
                self.problem = self.problem or f"of a line only the first {MOST_OF_A_LINE >> 20} MiB"
            seen += len(rest)
            offset, rest = offset + len(rest) - OVERLAP, rest[-OVERLAP:]
        if rest:
            yield Chunk(rest, offset)

    def text(self, raw: bytes) -> str:
        """A line as text; what is not UTF-8 is told by ``encoding``."""
        raw = raw.rstrip(b"\r\n")
        if b"\0" in raw:
            raw = raw.replace(b"\0", b"")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            pass
        try:
            text = raw.decode("gb18030")
            self.encoding = "gb18030"
            return text
        except UnicodeDecodeError:
            return raw.decode(errors="replace")


def line_feeds(data: bytes, start: int, end: int) -> int:
    """How many are in a part of the data. To take them out is three times as fast as to count them, byte by byte."""
    if end - start < FEW:
        return data.count(b"\n", start, end)
    part = data[start:end]
    return len(part) - len(part.replace(b"\n", b""))


def is_binary(data: bytes) -> bool:
    """Whether the start of a file is no text. Runs of NUL are what a power cut leaves in a log, and are text."""
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return False
    if data.startswith(_MAGIC):
        return True
    sample = data[:4096] + data[len(data) // 2 : len(data) // 2 + 4096]
    strange = len(sample.translate(None, _TEXT))
    if strange * 20 > len(sample):
        return True
    nuls = sample.count(b"\0")
    scattered = len(re.findall(rb"[^\0]\0{1,8}(?=[^\0])", sample))
    return nuls > 0 and scattered * 50 > len(sample)
