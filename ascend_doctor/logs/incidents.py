"""Events -> incidents: the same thing of the same process is one incident, with count, first and last.

What is kept does not grow with the number of events: a group keeps its first and its last event and what they tell of
ranks. Errors that nobody knows are grouped by template: their text without its numbers, addresses and paths.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

from ascend_doctor.logs import Event, Incident, Record
from ascend_doctor.logs.clocks import Clocks, Evidence
from ascend_doctor.logs.waits import Process, WaitGraph, ranks_in

EPISODE = timedelta(hours=1)
"""An event that comes back after so long a silence is another incident: longer than any default of a timeout."""

EPISODES_KEPT = 20
GROUPS_KEPT = 5000
"""Beyond so many groups, errors of new templates are counted together: hostile input must not fill the memory."""

WAIT_ROLES = ("symptom", "cascade", "root", "detail")
TEMPLATE_LENGTH = 240
OTHERS = "(more kinds of errors than are kept apart)"

_VARIABLE = re.compile(
    r"0x[0-9a-fA-F]{1,32}|\d{4}-\d\d-\d\d[- T]\d\d:\d\d:\d\d[.,\d]*|(?:/[\w.@+-]{1,80}){2,40}"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}\b|\b[0-9a-fA-F]{8,64}\b|\d+",
    re.ASCII,
)
_KIND_FOLDER = re.compile(
    r"debug|run|security|plog|logs?|ascend|app|kernel|meta|mindie|framework|std(?:err|out)|slog|message|hisi_logs"
    r"|device-\d{1,4}|dev-os-\d{1,4}",
    re.ASCII | re.IGNORECASE,
)
_HEAD = re.compile(
    r"^\s*(?:\[?(?:ERROR|error|E|CRITICAL|FATAL)\]?[\s:]*)?(?:[A-Z][A-Z0-9_]*\(-?\d+,[^)]{0,64}\):\s?[\d:.-]{10,32}\s?)?"
)


def template(text: str) -> str:
    """A text without what differs from one time to the next."""
    return _VARIABLE.sub("#", said(text[: TEMPLATE_LENGTH * 2]))[:TEMPLATE_LENGTH].strip()


def said(text: str) -> str:
    """A line without its level, writer and stamp, where it has a head of CANN's form."""
    return _HEAD.sub("", text, count=1).strip()


class _Group:
    """What is kept of the events of one key and episode."""

    def __init__(self, event: Event, time: datetime | None, dated: bool, order: int) -> None:
        self.first = self.last = event
        self.first_time = self.last_time = time
        self.dated, self.order, self.count = dated, order, 0
        self.codes: dict[str, None] = {}

    def add(self, event: Event, time: datetime | None, dated: bool, order: int) -> None:
        self.count += max(1, event.record.repeated)
        if len(self.codes) < 16:
            self.codes.update(dict.fromkeys(event.codes))
        earlier = time is not None and (self.first_time is None or time < self.first_time)
        if earlier and (dated or not self.dated):
            self.first, self.first_time, self.dated, self.order = event, time, dated, order
        if self.last_time is None or (time is not None and time >= self.last_time):
            self.last, self.last_time = event, time


class Gathering:
    """Takes events as they come, file by file, and gives the incidents at the end."""

    def __init__(self) -> None:
        self.evidence = Evidence()
        self.waits = WaitGraph()
        self._groups: dict[Hashable, list[_Group]] = {}
        self._near: dict[str, tuple[datetime, str]] = {}
        self._undated: dict[str, list[_Group]] = {}
        self._printed: dict[Hashable, None] = {}
        self._order = 0
        self._ranks_of_file: dict[str, set[int]] = {}
        self._devices: dict[Process, set[int]] = {}

    def add(self, event: Event) -> None:
        """An event; of a file the events come in the order of its lines."""
        record = event.record
        self._order += 1
        if record.time is not None and self._is_repeat(record):
            return
        self.evidence.saw(record, _marks(event))
        near = self._near.get(record.place.file)
        self._told(event)
        dated = record.time is not None
        if record.time is not None:
            self._date_the_waiting(record.place.file, record.time, record.clock)
            if near and near[1] != record.clock:
                self.evidence.neighbours(record.place.file, near, (record.time, record.clock))
            self._near[record.place.file] = (record.time, record.clock)
        time = record.time if dated else near[0] if near else None
        clock = record.clock if dated else near[1] if near else "none"
        group = self._group(event, time, dated, clock)
        group.add(event, time, dated, self._order)
        if time is None and len(self._undated.setdefault(record.place.file, [])) < 64:
            self._undated[record.place.file].append(group)

    def seen(self, record: Record) -> None:
        """A record that names no event, but its process, its clock or its ranks may matter."""
        self.evidence.saw(record)
        ranks = ranks_in(record.text)
        if ranks:
            self.waits.told(process_of(record), ranks, is_wait=False)

    def incidents(self, clocks: Clocks) -> list[Incident]:
        """In aligned time; what has no time stands where it was read."""
        found: list[tuple[datetime, int, Incident]] = []
        for groups in self._groups.values():
            for group in groups:
                incident = self._incident(group, clocks)
                found.append((incident.at or datetime.max, group.order, incident))
        found.sort(key=lambda item: item[:2])
        return _merged([incident for _, _, incident in found])

    def _incident(self, group: _Group, clocks: Clocks) -> Incident:
        first = self._with_owner(group.first)
        clock, file = _clock_of(group.first, self._near), first.record.place.file
        return Incident(
            signature=first.signature,
            role=first.role,
            severity=first.severity,
            layer=first.layer,
            events=(first,) if group.first is group.last else (first, self._with_owner(group.last)),
            codes=tuple(group.codes),
            count=group.count,
            at=clocks.at(group.first_time, clock, file),
            until=clocks.at(group.last_time, clock, file),
            dated=group.dated,
            template="" if first.signature else template(first.record.text),
        )

    def _with_owner(self, event: Event) -> Event:
        """Rank and device that other lines of the same process name, or the only ones of the file."""
        record = event.record
        rank = record.rank if record.rank is not None and record.rank >= 0 else None
        device = record.device
        if rank is None:
            rank = self.waits.rank_of(process_of(record))
            if rank is None and record.pid is None:
                rank = _only(self._ranks_of_file.get(record.place.file))
        if device is None and record.kind in ("plog", "framework"):
            device = _only(self._devices.get(process_of(record)))
        if (rank, device) == (record.rank, record.device):
            return event
        return replace(event, record=replace(record, rank=rank, device=device))

    def _group(self, event: Event, time: datetime | None, dated: bool, clock: str) -> _Group:
        record = event.record
        name = event.signature or (record.module, template(record.text))
        key: Hashable = (
            name,
            event.codes,
            record.host,
            record.pid,
            record.rank,
            record.device,
            record.place.file,
            clock,
        )
        if key not in self._groups and len(self._groups) >= GROUPS_KEPT:
            key = (event.signature or OTHERS,)
        groups = self._groups.setdefault(key, [])
        if groups:
            last = groups[-1].last_time
            new = time is not None and last is not None and time - last > EPISODE and len(groups) < EPISODES_KEPT
            if not new:
                return groups[-1]
        groups.append(_Group(event, time, dated, self._order))
        return groups[-1]

    def _date_the_waiting(self, file: str, time: datetime, clock: str) -> None:
        """Undated events at the head of a file have the time of the first dated one, at the latest."""
        for group in self._undated.pop(file, ()):
            if group.first_time is None:
                group.first_time = time
            if group.last_time is None:
                group.last_time = time
        self._near.setdefault(file, (time, clock))

    def _is_repeat(self, record: Record) -> bool:
        """The same block printed again by the next wrapper."""
        if record.module or record.time is None or not record.time.microsecond:
            return False
        key = (record.pid, record.time, record.text[-200:])
        if key in self._printed:
            return True
        self._printed[key] = None
        if len(self._printed) > 2048:
            self._printed.pop(next(iter(self._printed)))
        return False

    def _told(self, event: Event) -> None:
        record = event.record
        process = process_of(record)
        rank = record.rank if record.rank is not None and record.rank >= 0 else None
        self.waits.saw(process, rank)
        if rank is not None and len(self._ranks_of_file.setdefault(record.place.file, set())) < 2:
            self._ranks_of_file[record.place.file].add(rank)
        if record.device is not None and record.device >= 0 and len(self._devices.setdefault(process, set())) < 2:
            self._devices[process].add(record.device)
        ranks = ranks_in(record.text)
        remote = event.values.get("remote_rank", "")
        if ranks is None and remote.isdigit():
            ranks = ranks_in(f"remote rank:[{remote}]")
        if ranks:
            self.waits.told(process, ranks, event.role in WAIT_ROLES)


def _only(numbers: set[int] | None) -> int | None:
    return next(iter(numbers)) if numbers and len(numbers) == 1 else None


def process_of(record: Record) -> Process:
    """Who wrote a record: its pid where it ran, else its file."""
    if record.pid is not None and record.pid > 0:
        return Process(record.host or origin_of(record.place.file), record.pid, None)
    return Process(record.place.file, -1, None)


@cache
def origin_of(path: str) -> str:
    """The folder that keeps the logs of one node or container: pods of one job have the same pids."""
    parts = path.replace("!", "/").split("/")[:-1]
    while parts and _KIND_FOLDER.fullmatch(parts[-1]):
        parts.pop()
    return "/".join(parts)


def _clock_of(event: Event, near: dict[str, tuple[datetime, str]]) -> str:
    if event.record.time is not None:
        return event.record.clock
    return near.get(event.record.place.file, (None, "none"))[1]


def _marks(event: Event) -> Iterator[Hashable]:
    """What another log may tell of the same event."""
    stream, task = event.values.get("stream"), event.values.get("task")
    if stream and task:
        yield ("task", stream, task)
    if event.signature and event.record.pid is not None and event.record.pid > 0:
        yield (event.signature, process_of(event.record))


def _merged(incidents: list[Incident]) -> list[Incident]:
    """One for what rotation or a second log of the same process spread over files."""
    found: dict[Hashable, int] = {}
    kept: list[Incident] = []
    for incident in incidents:
        record = incident.first.record
        name = incident.signature or (record.module, incident.template)
        owner = (process_of(record), record.rank, record.device)
        key = (name, incident.codes, owner) if record.pid else object()
        place = found.get(key)
        if place is None or _apart(kept[place], incident):
            found[key] = len(kept)
            kept.append(incident)
            continue
        known = kept[place]
        kept[place] = replace(
            known,
            events=(known.events[0], incident.events[-1]),
            codes=tuple(dict.fromkeys((*known.codes, *incident.codes))),
            count=known.count + incident.count,
            until=max((t for t in (known.until, incident.until) if t), default=None),
        )
    return kept


def _apart(known: Incident, incident: Incident) -> bool:
    if incident.at is None or known.until is None:
        return incident.first.record.place.file != known.first.record.place.file
    return incident.at - known.until > EPISODE
