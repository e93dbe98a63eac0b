"""One time line for logs that were written by different clocks (docs: plog local, device often UTC, dmesg since boot).

Nothing is compared across clocks before the offset between them is known or said to be a guess: offsets between wall
clocks are whole quarters of an hour (time zones), found by events that both clocks saw; the boot clock is placed by the
uptime that was captured with the logs, by a syslog that prints both, or by the live host.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta

from ascend_doctor.logs import BOOT, NO_YEAR, Record
from ascend_doctor.logs.boot import BootFact
from ascend_doctor.records import dataclass

QUARTER = timedelta(minutes=15)
FARTHEST = 14 * 4
"""Quarters of an hour between two time zones, at most (one end to the other is less for hosts of one cluster)."""

SAME_EVENT = timedelta(seconds=30)
ZONE_NOISE = timedelta(minutes=5)
"""How far apart two lines of a log may be written that are next to each other."""

DRIFT = 20e-6
"""Seconds a second that a boot clock drifts from the wall clock, uncorrected."""

MARKS_KEPT = 4096
HOWS = ("reference", "boot-facts", "syslog", "live", "shared-ids", "zone", "guess", "unknown")

_BOOT_IN_SYSLOG = re.compile(r"^\[\s{0,12}(\d{1,10}\.\d{3,9})\]|kernel: \[\s{0,12}(\d{1,10}\.\d{3,9})\]", re.ASCII)
_DEVICE_TIME = re.compile(r"\b(?:time=|TIME:)(\d{4}-\d\d-\d\d)-(\d\d:\d\d:\d\d)\.(\d{3})", re.ASCII)

Domain = tuple[str, str]
"""(clock, file): files are written by processes of different zones, so each is its own clock until shown otherwise."""


@dataclass(frozen=True)
class Alignment:
    """How a clock was moved onto the time line; ``offset`` and ``uncertainty`` None: it could not be compared."""

    file: str
    clock: str
    offset: timedelta | None
    uncertainty: timedelta | None
    how: str


class Evidence:
    """What is collected of clocks while records pass by; bounded whatever their number."""

    def __init__(self) -> None:
        self.first: dict[Domain, datetime] = {}
        self.last: dict[Domain, datetime] = {}
        self._marks: dict[Hashable, dict[Domain, datetime]] = {}
        self._inline: dict[str, list[datetime]] = {}
        self._starts: list[datetime] = []
        self._zones: dict[str, list[timedelta]] = {}
        self._said: timedelta | None = None
        self.facts: list[BootFact] = []

    def saw(self, record: Record, marks: Iterable[Hashable] = ()) -> None:
        """A dated record, and names of the event that another clock may have seen too."""
        if record.time is None:
            return
        domain, time = (record.clock, record.place.file), record.time
        if domain not in self.first or time < self.first[domain]:
            self.first[domain] = time
        if domain not in self.last or time > self.last[domain]:
            self.last[domain] = time
        if record.utc_offset and record.clock == "host":
            self._said = timedelta(minutes=record.utc_offset)
        for mark in marks:
            if mark in self._marks or len(self._marks) < MARKS_KEPT:
                self._marks.setdefault(mark, {}).setdefault(domain, time)
        if record.kind == "kernel" and record.clock == "host" and len(self._starts) < 64:
            found = _BOOT_IN_SYSLOG.search(record.text)
            if found:
                self._starts.append(time - timedelta(seconds=float(found[1] or found[2])))

    def neighbours(self, file: str, one: tuple[datetime, str], other: tuple[datetime, str]) -> None:
        """Two stamps that follow each other in a file: a collector's in UTC and a process's own tell the zone."""
        pair = {one[1]: one[0], other[1]: other[0]}
        full = set(pair) == {"utc", "host"} and NO_YEAR not in (one[0].year, other[0].year)
        if full and len(self._zones.setdefault(file, [])) < 256:
            self._zones[file].append(pair["host"] - pair["utc"])

    def zone(self, file: str) -> timedelta | None:
        """Host minus UTC, by what most neighbours in this file say, or in any file, or by a stamp that names it."""
        for differences in (self._zones.get(file, ()), [d for found in self._zones.values() for d in found]):
            counts = [count for d in differences if (count := _quarters(d, ZONE_NOISE)) is not None]
            if counts and len(counts) * 2 > len(differences):
                return max(set(counts), key=counts.count) * QUARTER
        return self._said

    def device_time(self, file: str, text: str) -> None:
        """A device's own stamp inside a report that the host printed at about the same moment."""
        found = _DEVICE_TIME.search(text) if "ime=" in text or "TIME:" in text else None
        if found and len(self._inline.setdefault(file, [])) < 16:
            try:
                self._inline[file].append(datetime.fromisoformat(f"{found[1]}T{found[2]}.{found[3]}000"))
            except ValueError:
                return

    def clocks(self, now: datetime) -> Clocks:
        """The time line. ``now`` gives the year where no record has one."""
        return Clocks(self, now)

    def shared(self, domain: Domain) -> Iterable[tuple[Domain, datetime, datetime]]:
        """(other clock, its time, ours) for each event that both saw."""
        for seen in self._marks.values():
            if domain in seen:
                for other, time in seen.items():
                    if other != domain:
                        yield other, time, seen[domain]

    @property
    def started(self) -> BootFact | None:
        """When the kernel started, by what the logs or the host tell."""
        if self.facts:
            return self.facts[0]
        if self._starts:
            middle = sorted(self._starts)[len(self._starts) // 2]
            return BootFact(middle, 0.0, None, "syslog")
        return None

    def device_years(self) -> list[int]:
        return [stamp.year for stamps in self._inline.values() for stamp in stamps]

    def inline_offsets(self) -> dict[str, timedelta]:
        """File -> host minus device time, where a report of the device stands in a log of the host."""
        found = {}
        for file, stamps in self._inline.items():
            hosts = [edge[("host", file)] for edge in (self.first, self.last) if ("host", file) in edge]
            pairs = [(_in_year(h, stamp.year) if h.year == NO_YEAR else h, stamp) for stamp in stamps for h in hosts]
            quarters = {_quarters(host - stamp, ZONE_NOISE) for host, stamp in pairs} - {None}
            if len(quarters) == 1 and (only := quarters.pop()) is not None:
                found[file] = only * QUARTER
        return found


class Clocks:
    """The time line: ``at`` moves a record's time onto it."""

    def __init__(self, evidence: Evidence, now: datetime) -> None:
        self._evidence = evidence
        self._year = _year(evidence, now)
        self._now = now
        self.alignments: dict[Domain, Alignment] = {}
        walls = [domain for domain in evidence.first if domain[0] in ("host", "none")]
        for domain in walls:
            self.alignments[domain] = Alignment(domain[1], domain[0], timedelta(), timedelta(), "reference")
        self._correct_zones(walls)
        for domain in evidence.first:
            if domain not in self.alignments:
                self.alignments[domain] = self._placed(domain, bool(walls))

    def at(self, time: datetime | None, clock: str, file: str) -> datetime | None:
        """The time on the line; None for an undated record or a clock that cannot be compared."""
        alignment = self.alignments.get((clock, file))
        if time is None or alignment is None or alignment.offset is None:
            return None
        return self._dated(time) + alignment.offset

    def shown(self, time: datetime | None, file: str) -> datetime | None:
        """A time of a file whose clock is not told with it, such as the first and the last that coverage names."""
        if time is None:
            return None
        clock = "boot" if time.year == BOOT.year else None
        for domain in self.alignments:
            if domain[1] == file and clock in (None, domain[0]):
                return self.at(time, *domain)
        return None if clock else self._dated(time)

    def device_offsets(self) -> dict[str, timedelta]:
        return self._evidence.inline_offsets()

    def _dated(self, time: datetime) -> datetime:
        return _in_year(time, self._year) if time.year == NO_YEAR else time

    def _correct_zones(self, walls: list[Domain]) -> None:
        """Processes in another zone than the rest: their events are whole quarters of an hour away from its own.

        The clock that the host's clock file agrees with is right, else the first; the others are moved to it, and those
        that share nothing with it to the ones that were.
        """
        if len(walls) < 2:
            return
        fact = self._evidence.facts[0].wall if self._evidence.facts else None
        last = self._evidence.last
        settled = [min(walls, key=lambda d: (abs(fact - self._dated(last[d])) if fact else timedelta(), d))]
        for _ in range(2):
            for domain in walls:
                if domain in settled:
                    continue
                votes = self._votes(domain, settled)
                if votes:
                    best = max(votes, key=lambda count: (votes[count], count == 0))
                    settled.append(domain)
                    if best and not votes.get(0):
                        moved = Alignment(domain[1], domain[0], best * QUARTER, SAME_EVENT, "shared-ids")
                        self.alignments[domain] = moved

    def _votes(self, domain: Domain, others: Sequence[Domain]) -> dict[int, int]:
        """Quarters of an hour to add to a clock -> how many events that it shares with the others say so."""
        votes: dict[int, int] = {}
        for other, theirs, ours in self._evidence.shared(domain):
            placed = self.alignments.get(other) if other in others else None
            if placed is not None and placed.offset is not None:
                count = _quarters(self._dated(theirs) - self._dated(ours) + placed.offset, SAME_EVENT)
                if count is not None:
                    votes[count] = votes.get(count, 0) + 1
        return votes

    def _placed(self, domain: Domain, has_walls: bool) -> Alignment:
        clock, file = domain
        if clock == "boot":
            return self._boot(file, has_walls)
        votes = self._votes(domain, list(self.alignments))
        if votes:
            best = max(votes, key=lambda count: (votes[count], count == 0))
            return Alignment(file, clock, best * QUARTER, SAME_EVENT, "shared-ids")
        zone = self._evidence.zone(file)
        if zone is None and self._evidence.started:
            zone = self._evidence.started.zone
        if clock == "utc" and zone is not None:
            return Alignment(file, clock, zone, timedelta(seconds=1), "zone")
        if clock == "utc" and ("host", file) in self._evidence.first:
            return Alignment(file, clock, None, None, "unknown")
        if not has_walls:
            return Alignment(file, clock, timedelta(), timedelta(), "reference")
        offsets = set(self._evidence.inline_offsets().values())
        if clock == "device" and len(offsets) == 1:
            return Alignment(file, clock, offsets.pop(), timedelta(minutes=5), "shared-ids")
        return Alignment(file, clock, timedelta(), None, "guess")

    def _boot(self, file: str, has_walls: bool) -> Alignment:
        fact = self._evidence.started
        if fact is None:
            offset = None if has_walls else timedelta()
            return Alignment(
                file, "boot", offset, None if has_walls else timedelta(), "unknown" if has_walls else "reference"
            )
        start = self._dated(fact.started)
        return Alignment(file, "boot", start - BOOT, timedelta(seconds=1 + fact.uptime * DRIFT), fact.how)


def _quarters(difference: timedelta, tolerance: timedelta) -> int | None:
    """The whole quarters of an hour in a difference; None where it is none or too far."""
    count = round(difference / QUARTER)
    near = abs(difference - count * QUARTER) <= tolerance
    return count if near and abs(count) <= FARTHEST else None


def _year(evidence: Evidence, now: datetime) -> int:
    """The year of stamps without one: that of the dated records, else the last one that is not in the future."""
    years = [time.year for (clock, _), time in evidence.last.items() if clock != "boot" and time.year != NO_YEAR]
    years = years or evidence.device_years()
    if years:
        return max(set(years), key=years.count)
    if evidence.facts:
        return evidence.facts[0].wall.year
    latest = max((time for time in evidence.last.values() if time.year == NO_YEAR), default=None)
    if latest is None:
        return now.year
    return now.year if _in_year(latest, now.year) <= now + timedelta(days=1) else now.year - 1


def _in_year(time: datetime, year: int) -> datetime:
    try:
        return time.replace(year=year)
    except ValueError:
        return time.replace(year=year, day=28)
