"""A large file in parts, each read by a process of its own; the records come in the order of the file.

The processes are forked: they share the scanner and end with the parent. An interrupt ends them, and what they have
found by then is given. Parts meet where a record begins, so that none is cut.
"""

from __future__ import annotations

import codecs
import io
import os
import pickle
import re
import select
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO, cast

from ascend_doctor.logs import Coverage, Record
from ascend_doctor.logs.files import LogFile
from ascend_doctor.logs.flood import Flood
from ascend_doctor.logs.reading import CHUNK, is_binary
from ascend_doctor.logs.records import Records
from ascend_doctor.logs.scanning import QUIET, Scanner

PART = 64 << 20
MOST_WORKERS = 8
LOOK = 1 << 20
"""Bytes behind a border in which a record's beginning is looked for."""
BATCH = 128

_QUIET_LINE = re.compile(rb"\n(?=" + QUIET + rb")")
_DATED_LINE = re.compile(
    rb"\n(?=(?:\(\w[^)\n]{0,60}\) )?(?:INFO|DEBUG|WARNING) \d\d-\d\d |\[? {0,6}\d\d?|[A-Z][a-z]{2} [ \d]\d \d\d:)"
)
_ANY_LINE = re.compile(rb"\n(?=[^\s|+_<])")


def workers() -> int:
    """How many processes may read at once."""
    try:
        return min(MOST_WORKERS, len(os.sched_getaffinity(0)))
    except (AttributeError, OSError):
        return 1


def splits(file: LogFile) -> bool:
    """Whether a file is to be read in parts: not where threads run, since a fork would leave them behind.

    Only the beginning of a file tells that it is no text, such as a core dump, or of which encoding.
    """
    large = bool(file.real) and (file.size or 0) > PART
    if not large or workers() < 2 or threading.active_count() > 1 or not hasattr(os, "fork"):
        return False
    try:
        with open(file.real, "rb") as stream:
            head = stream.read(CHUNK)
    except OSError:
        return False
    return not is_binary(head) and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def borders(stream: BinaryIO, size: int, part: int = PART) -> list[int]:
    """Where the parts begin, and the end."""
    found = [0]
    for nominal in range(part, size, part):
        if nominal <= found[-1]:
            continue
        stream.seek(nominal)
        data = stream.read(LOOK)
        place = _QUIET_LINE.search(data) or _DATED_LINE.search(data) or _ANY_LINE.search(data)
        if place:
            found.append(nominal + place.end())
    return [*found, size]


class Range(io.RawIOBase):
    """A part of a file as a stream."""

    def __init__(self, stream: BinaryIO, start: int, end: int) -> None:
        self._stream, self._left = stream, end - start
        stream.seek(start)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Worker:
    """A process that reads a part: what it has sent, and whether it has ended."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid, self.pipe, self.ended = pid, pipe, False
        self.sent = bytearray()
        self.coverage: Coverage | None = None

    def receive(self) -> None:
        data = os.read(self.pipe, 1 << 20)
        if data:
            self.sent += data
            return
        os.close(self.pipe)
        self.ended = True
        os.waitpid(self.pid, 0)

    def messages(self) -> Iterator[Any]:
        while len(self.sent) >= 4:
            size = int.from_bytes(self.sent[:4], "big")
            if len(self.sent) < 4 + size:
                return
            message = bytes(self.sent[4 : 4 + size])
            del self.sent[: 4 + size]
            yield pickle.loads(message)

    def end(self) -> None:
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            os.close(self.pipe)
            os.waitpid(self.pid, 0)
            self.ended = True


class PartedRecords:
    """Like ``Records``: iterate once, then ask for the coverage."""

    def __init__(self, file: LogFile, scanner: Scanner, flood: Flood, part: int = PART) -> None:
        self._file, self._scanner, self._flood, self._part = file, scanner, flood, part
        self._coverages: list[Coverage] = []
        self._problem = ""

    def __iter__(self) -> Iterator[Record]:
        try:
            with open(self._file.real, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                places = borders(stream, size, self._part)
        except OSError as error:
            self._problem = f"cannot be opened: {error.strerror or error}"
            return
        ranges = list(zip(places, places[1:]))
        running: list[_Worker] = []
        started = line = 0
        share = Flood(max(1000, self._flood.left // max(1, len(ranges))))
        try:
            for number, (start, _) in enumerate(ranges):
                while started < len(ranges) and started < number + workers():
                    running.append(self._start(*ranges[started], share))
                    started += 1
                yield from self._of(running[number], running, line, start)
                coverage = running[number].coverage
                if coverage is None:
                    self._problem = f"the part from byte {start} on was not read to its end"
                else:
                    self._coverages.append(coverage)
                    line += coverage.lines
        finally:
            for worker in running:
                worker.end()

    def _start(self, start: int, end: int, flood: Flood) -> _Worker:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid:
            os.close(writing)
            return _Worker(pid, reading)
        try:
            os.close(reading)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._work(start, end, flood, writing)
        finally:
            os._exit(0)

    def _work(self, start: int, end: int, flood: Flood, pipe: int) -> None:
        def opener() -> BinaryIO:
            return cast(BinaryIO, Range(open(self._file.real, "rb", buffering=0), start, end))

        part = replace(self._file, open=opener)
        records = Records(part, self._scanner, flood, first=start == 0)
        batch: list[Record] = []
        for record in records:
            batch.append(record)
            if len(batch) >= BATCH:
                _send(pipe, batch)
                batch = []
        _send(pipe, batch)
        _send(pipe, records.coverage)

    def _of(self, worker: _Worker, running: list[_Worker], line: int, start: int) -> Iterator[Record]:
        """What one worker finds, while all are listened to, as a full pipe would stop them."""
        while True:
            for message in worker.messages():
                if isinstance(message, Coverage):
                    worker.coverage = message
                    continue
                for record in message:
                    self._flood.left -= 1
                    yield _moved(record, line, start)
            if worker.ended:
                return
            alive = {one.pipe: one for one in running if not one.ended}
            for pipe in select.select(list(alive), [], [])[0]:
                alive[pipe].receive()

    @property
    def coverage(self) -> Coverage:
        known = self._coverages
        times = [time for one in known for time in (one.first, one.last) if time]
        skipped = [self._problem, *(one.skipped for one in known)]
        encodings = {one.encoding for one in known}
        return Coverage(
            self._file.path,
            known[0].kind if known else "unknown",
            next(iter(encodings - {"utf-8"}), "utf-8") if known else "",
            sum(one.bytes for one in known),
            sum(one.lines for one in known),
            times[0] if times else None,
            times[-1] if times else None,
            "; ".join(dict.fromkeys(one for one in skipped if one)),
        )


def _send(pipe: int, message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    left = memoryview(len(data).to_bytes(4, "big") + data)
    while left:
        left = left[os.write(pipe, left) :]


def _moved(record: Record, line: int, start: int) -> Record:
    place = replace(record.place, line=record.place.line + line, offset=record.place.offset + start)
    return replace(record, place=place, block_lines=tuple(number + line for number in record.block_lines))
