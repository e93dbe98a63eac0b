"""Log files in, one answer out: reads, names, groups, aligns and judges; an interrupt judges what was read so far."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from datetime import datetime
from typing import Any, BinaryIO, Callable, Protocol

from ascend_doctor.logs import Coverage, Incident, Record
from ascend_doctor.logs.boot import BootFact, boot_fact
from ascend_doctor.logs.causes import Answer, answer
from ascend_doctor.logs.clocks import Alignment, Clocks
from ascend_doctor.logs.covered import Covered
from ascend_doctor.logs.events import KnownSignatures, Namer, rank_of_path
from ascend_doctor.logs.graph import Known
from ascend_doctor.logs.incidents import Gathering, origin_of
from ascend_doctor.logs.waits import Process
from ascend_doctor.records import dataclass

CLOCK_FILE = re.compile(r"(?:^|[/!])[^/]{0,40}(?:clock|uptime|date)[^/]{0,20}$", re.IGNORECASE)
CLOCK_BYTES = 4096
NO_LOGS = ("no log by its name", "not a regular file")
"""How sources.py begins to say that a file was left alone on purpose."""


class File(Protocol):
    """What sources.py gives."""

    @property
    def path(self) -> str: ...

    def open(self) -> BinaryIO: ...


class Read(Protocol):
    """The records of one file, and after them what was read of it."""

    def __iter__(self) -> Iterator[Record]: ...

    @property
    def coverage(self) -> Coverage: ...


@dataclass(frozen=True)
class Wanted:
    """Which part of the logs is asked for; None: all. Records that do not say whose they are stay in."""

    since: datetime | None = None
    until: datetime | None = None
    pid: int | None = None
    rank: int | None = None
    device: int | None = None

    def takes(self, record: Record) -> bool:
        return all(
            asked is None or given is None or asked == given
            for asked, given in ((self.pid, record.pid), (self.rank, record.rank), (self.device, record.device))
        )

    def in_time(self, incident: Incident) -> bool:
        if incident.at is None:
            return True
        end = incident.until or incident.at
        return not (self.since and end < self.since) and not (self.until and incident.at > self.until)


ALL = Wanted()


@dataclass(frozen=True)
class Book:
    """What is known: signatures, codes, and what follows from what."""

    signatures: KnownSignatures
    code_of: Callable[[str], Any]
    known: Callable[[str], Known]


@dataclass(frozen=True)
class Analysis:
    """All that a report tells. ``left_out``: incidents outside --since and --until; ``named``: the user named files."""

    answer: Answer
    coverage: tuple[Coverage, ...]
    alignments: tuple[Alignment, ...]
    device_offsets: tuple[tuple[str, float], ...]
    interrupted: bool
    left_out: int
    named: bool
    kinds: frozenset[str] = field(default_factory=frozenset)

    @property
    def unread(self) -> tuple[Coverage, ...]:
        """What is a log for all we know, and could not be read."""
        return tuple(
            one for one in self.coverage if one.skipped and not one.bytes and not one.skipped.startswith(NO_LOGS)
        )

    @property
    def verdict(self) -> str:
        """fault, clean, evidence-missing, or no-logs: no log that is known was read, which is not nothing is wrong."""
        if not self.kinds - {"unknown"} and not self.answer.incidents:
            return "no-logs"
        if self.answer.verdict == "clean" and (self.interrupted or (self.named and self.unread)):
            return "evidence-missing"
        return self.answer.verdict


def analysed(
    files: Iterable[File],
    read: Callable[[Any], Read],
    book: Book,
    now: datetime,
    wanted: Wanted = ALL,
    live: BootFact | None = None,
    read_seen: Callable[[Coverage], None] | None = None,
    named: bool = True,
) -> Analysis:
    """``read``: a file's records; ``live``: the clock of the host where its own kernel log is among the files."""
    gathering = Gathering()
    namer = Namer(book.signatures, book.code_of)
    covered = Covered()
    interrupted = False
    try:
        for file in files:
            if CLOCK_FILE.search(file.path) and (fact := _clock_of(file)):
                gathering.evidence.facts.append(fact)
            records = read(file)
            try:
                for record in records:
                    if wanted.takes(record):
                        _taken(record, namer, gathering)
            finally:
                coverage = records.coverage
                covered.add(coverage)
            _ranks_without_errors(file.path, gathering)
            if read_seen:
                read_seen(coverage)
    except KeyboardInterrupt:
        interrupted = True
    if live is not None and not gathering.evidence.facts:
        gathering.evidence.facts.append(live)
    clocks = gathering.evidence.clocks(now)
    incidents = gathering.incidents(clocks)
    inside = [incident for incident in incidents if wanted.in_time(incident)]
    complete = not interrupted and not any(one.skipped and one.lines for one in covered)
    found = answer(inside, gathering.waits, book.known, complete and _all_aligned(clocks))
    return Analysis(
        answer=found,
        coverage=tuple(_on_the_line(one, clocks) for one in covered),
        alignments=tuple(clocks.alignments.values()),
        device_offsets=tuple((file, offset.total_seconds()) for file, offset in clocks.device_offsets().items()),
        interrupted=interrupted,
        left_out=len(incidents) - len(inside),
        named=named,
        kinds=frozenset(one.kind for one in covered if one.lines),
    )


def _taken(record: Record, namer: Namer, gathering: Gathering) -> None:
    named = False
    for event in namer.events(record):
        named = True
        gathering.add(event)
    if not named:
        gathering.seen(record)
    if record.kind == "framework":
        for text in (record.text, *record.block):
            gathering.evidence.device_time(record.place.file, text)


def _clock_of(file: File) -> BootFact | None:
    try:
        with file.open() as stream:
            return boot_fact(stream.read(CLOCK_BYTES).decode(errors="replace"))
    except (OSError, ValueError, EOFError):
        return None


def _ranks_without_errors(path: str, gathering: Gathering) -> None:
    """A rank whose folder is there has a log, even where that says nothing."""
    rank = rank_of_path(path)
    pid = re.search(r"-(\d{1,10})_\d{14,17}\.log", path)
    if rank is not None:
        gathering.waits.saw(Process(origin_of(path), int(pid[1]), None) if pid else Process(path, -1, None), rank)


def _on_the_line(one: Coverage, clocks: Clocks) -> Coverage:
    return replace(one, first=clocks.shown(one.first, one.path), last=clocks.shown(one.last, one.path))


def _all_aligned(clocks: Clocks) -> bool:
    return all(one.how not in ("guess", "unknown") for one in clocks.alignments.values())
