"""A log file -> the records that matter, and what was read of it.

Given are records that hold an anchor of a signature or say that they are errors, each with its block. Of a flood the
first ones of each kind are given, then ever fewer, each saying for how many it stands; nothing is lost from the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from ascend_doctor.logs import Coverage, Place, Record
from ascend_doctor.logs.blocks import Block
from ascend_doctor.logs.files import LogFile
from ascend_doctor.logs.flood import FileFlood, Flood
from ascend_doctor.logs.grammar import NOBODY, Line, lines_of
from ascend_doctor.logs.kinds import kind_of, span_of
from ascend_doctor.logs.reading import Chunk, Lines, line_feeds
from ascend_doctor.logs.scanning import HEAD, MARKS, Hit, Scanner

if TYPE_CHECKING:
    from ascend_doctor.logs.parts import PartedRecords

PATIENCE = 60
"""Lines of others after which a block is over."""
MOST_OPEN = 64
LONGEST_TEXT = 16 << 10
"""Characters of a line that are parsed; of a longer one those around its first anchor."""

_MARKS = frozenset(MARKS)
_DIGITS = str.maketrans("123456789", "0" * 9)


class _Held(NamedTuple):
    """A line of a flood that was not parsed."""

    raw: bytes
    anchors: tuple[str, ...]
    number: int
    offset: int


class Records:
    """Iterates over the records of a file, once; ``coverage`` is whole after that.

    ``first``: the file is read from its beginning, so that its first bytes may tell what it is.
    """

    def __init__(self, file: LogFile, scanner: Scanner, flood: Flood | None = None, first: bool = True) -> None:
        self._file, self._scanner, self._first = file, scanner, first
        self._flood: FileFlood[Block | _Held] = FileFlood(flood or Flood())
        self._open: dict[object, tuple[Block, int]] = {}
        self._number = 1
        self._reader: Lines | None = None
        self._kind, self._told, self._skipped = "unknown", "", ""
        self._lines = 0
        self._span: tuple[datetime | None, datetime | None] = (None, None)

    def __iter__(self) -> Iterator[Record]:
        try:
            stream = self._file.open()
        except (OSError, ValueError) as error:
            self._skipped = f"cannot be opened: {getattr(error, 'strerror', None) or error}"
            return
        with stream:
            self._reader = Lines(stream, self._first)
            before, last = b"", None
            for chunk in self._reader:
                if last is None:
                    self._begin(chunk)
                before, last = last.data if last else b"", chunk
                yield from self._walk(chunk, self._scanner.feed(chunk.data))
            if last is not None:
                self._end(before[-(64 << 10) :] + last.data[-(64 << 10) :])
        yield from self._closed(list(self._open))
        yield from self._rest()

    @property
    def coverage(self) -> Coverage:
        reader = self._reader
        skipped = self._skipped or (reader.problem if reader else "")
        if reader and reader.nuls and not reader.binary:
            nuls = f"{reader.nuls} NUL bytes"
            skipped = f"{skipped}; {nuls}" if skipped else nuls
        return Coverage(
            self._file.path,
            self._told or self._kind,
            reader.encoding if reader else "",
            reader.bytes if reader else 0,
            self._lines,
            self._span[0],
            self._span[1],
            skipped,
        )

    def _begin(self, chunk: Chunk) -> None:
        assert self._reader is not None
        self._kind = kind_of(chunk.data[: 64 << 10], self._reader.text)
        self._span = span_of(chunk.data[: 64 << 10], self._reader.text)

    def _end(self, data: bytes) -> None:
        assert self._reader is not None
        if self._kind == "unknown":
            self._told = kind_of(data, self._reader.text, last=True)
        last = span_of(data, self._reader.text, last=True)[1]
        self._span = (self._span[0], last or self._span[1])
        self._lines = self._number - (1 if data.endswith(b"\n") else 0)

    def _walk(self, chunk: Chunk, hits: list[Hit]) -> Iterator[Record]:
        """Hits in order; between them the lines that may belong to a block which is open."""
        data = chunk.data
        first, counted, at = self._number, 0, 0
        for start, end, anchors in hits:
            while self._open and at < start:
                stop = data.find(b"\n", at)
                self._number += line_feeds(data, counted, at)
                counted = at
                yield from self._between(data[at:stop])
                at = stop + 1
            self._number += line_feeds(data, counted, start)
            counted = start
            at = end + 1
            yield from self._hit(data[start:end], anchors, chunk.offset_of(start, self._number - first))
        while self._open and at < len(data):
            stop = data.find(b"\n", at)
            stop = len(data) if stop < 0 else stop
            self._number += line_feeds(data, counted, at)
            counted = at
            yield from self._between(data[at:stop])
            at = stop + 1
        self._number += line_feeds(data, counted, len(data))

    def _between(self, raw: bytes) -> Iterator[Record]:
        """A line without an anchor, which an open block may take."""
        if HEAD.match(raw) and not self._rows_wanted():
            yield from self._closed(list(self._open))
            return
        if raw[:1] in (b" ", b"\t") and len(self._open) == 1:
            (key, (block, _)) = next(iter(self._open.items()))
            if block.takes_indented(raw, self._number, self._text):
                self._open[key] = (block, self._number)
                return
        for line in lines_of(self._text(raw, ())):
            key = self._key(line)
            held = self._open.get(key)
            if held and held[0].takes(line, self._number):
                self._open[key] = (held[0], self._number)
            elif held:
                yield from self._closed([key])
        yield from self._closed([key for key, (_, seen) in self._open.items() if self._number - seen > PATIENCE])

    def _hit(self, raw: bytes, anchors: tuple[str, ...], offset: int) -> Iterator[Record]:
        times = 1
        head = HEAD.match(raw)
        if head and not self._rows_wanted():
            yield from self._closed(list(self._open))
            times = self._times_of_plog(raw, head.end(), anchors, offset)
            if not times:
                return
        yield from self._parsed(raw, anchors, offset, times)

    def _times_of_plog(self, raw: bytes, end: int, anchors: tuple[str, ...], offset: int) -> int:
        """Whether to parse a CANN line at all: those of a flood are told by the source that they name."""
        place = raw.find(b" [", end, end + 8)
        source = raw[place : raw.find(b"]", place, place + 160)] if place >= 0 else b""
        held = _Held(raw, anchors, self._number, offset)
        return self._flood.times((source, anchors), not _MARKS.issuperset(anchors), held)

    def _parsed(self, raw: bytes, anchors: tuple[str, ...], offset: int, times: int) -> Iterator[Record]:
        lines = lines_of(self._text(raw, anchors))
        for line in lines:
            own = {anchor for anchor in anchors if len(lines) == 1 or anchor in line.text}
            key = self._key(line)
            held = self._open.get(key)
            if held:
                if held[0].takes(line, self._number):
                    held[0].anchors |= own
                    self._open[key] = (held[0], self._number)
                    continue
                yield from self._closed([key])
            block = Block(line, self._number, offset, own, times)
            if block.shape:
                if len(self._open) >= MOST_OPEN:
                    yield from self._closed(list(self._open)[:1])
                self._open[key] = (block, self._number)
            else:
                yield from self._given(block)

    def _rows_wanted(self) -> bool:
        """Whether a block is open that a line with a CANN head may go on with."""
        return any(block.shape == "table" for block, _ in self._open.values())

    def _key(self, line: Line) -> object:
        if line.kind == "plog":
            return (line.pid, line.thread, "plog")
        device = line.kind != "framework" or line.body.startswith("<exception_print>")
        return (NOBODY, "device") if device else line.actor

    def _text(self, raw: bytes, anchors: tuple[str, ...] = ()) -> str:
        assert self._reader is not None
        text = self._reader.text(raw)
        if len(text) <= LONGEST_TEXT:
            return text
        places = [text.find(anchor) for anchor in anchors if anchor not in _MARKS] or [text.find(a) for a in anchors]
        start = max(0, min(places, default=0) - 1024)
        return text[start : start + LONGEST_TEXT]

    def _closed(self, keys: Iterable[object]) -> Iterator[Record]:
        for key in keys:
            yield from self._given(self._open.pop(key)[0])

    def _given(self, block: Block) -> Iterator[Record]:
        """The record of a block that is complete, unless it is none that matters or one of a flood."""
        wanted = block.anchors - _MARKS
        if not wanted and (block.head.level != "ERROR" or not (block.texts or block.head.body.strip())):
            return
        times = block.times
        if block.head.kind not in ("plog", "slog"):
            line = block.head
            key = (line.source or line.body[:120].translate(_DIGITS), line.level, tuple(sorted(wanted)))
            times = self._flood.times(key, bool(wanted), block)
        if times:
            yield self._record(block, times)

    def _rest(self) -> Iterator[Record]:
        for held, times in self._flood.rest():
            if isinstance(held, Block):
                yield self._record(held, times)
                continue
            for line in lines_of(self._text(held.raw, held.anchors))[:1]:
                block = Block(line, held.number, held.offset, set(held.anchors), times)
                if block.anchors - _MARKS or line.level == "ERROR":
                    yield self._record(block, times)

    def _record(self, block: Block, times: int) -> Record:
        line, hint = block.head, self._file.hint
        numbers = tuple(block.numbers)
        kind = line.kind
        if kind == "framework" and self._kind == "unknown" and not line.headed:
            kind = "unknown"
        return Record(
            Place(self._file.path, block.number, block.offset),
            kind,
            line.level,
            line.module,
            line.time,
            line.clock,
            line.pid if line.pid is not None else hint.pid if kind != "kernel" else None,
            line.thread,
            line.rank if line.rank is not None else hint.rank,
            line.device if line.device is not None else hint.device,
            line.text.rstrip(),
            tuple(block.texts),
            line.host,
            max(times, line.repeated),
            () if numbers == tuple(range(block.number + 1, block.number + 1 + len(numbers))) else numbers,
            line.source,
            line.utc_offset,
            tuple(sorted(block.anchors - _MARKS)),
        )


def records_of(file: LogFile, scanner: Scanner, flood: Flood | None = None) -> Records | PartedRecords:
    """The records of a file; iterate once, then ask for its ``coverage``. A large file is read by several processes."""
    from ascend_doctor.logs import parts

    flood = flood or Flood()
    return parts.PartedRecords(file, scanner, flood) if parts.splits(file) else Records(file, scanner, flood)
