"""The incidents of logs on a time line: a lane for each rank or device, the root marked, arcs to what followed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from math import log10

from ascend_doctor.engine.log_report import LogReport
from ascend_doctor.logs import BOOT, Incident
from ascend_doctor.records import dataclass

LANES = 16
WIDTH, LEFT, RIGHT, LANE, TOP = 840, 120, 24, 30, 12
AXIS = 40
"""Height below the lanes: ticks and what the clock is."""

MERGED = 5.0
"""Marks of a lane that are nearer than this become one."""

MOST_ARCS = 60
SHOWN = ("root", "symptom", "cascade", "detail", "unknown")
ROLES = ("unknown", "detail", "cascade", "symptom", "root")
"""Of several in one mark the last of these names it."""


@dataclass(frozen=True)
class Mark:
    """Incidents of a lane at about one time. ``radius`` grows with ``count``; ``label`` is data: time, place, name."""

    x: float
    y: float
    end: float
    radius: float
    role: str
    is_root: bool
    count: int
    label: str


@dataclass(frozen=True)
class Lane:
    """``kind``: a word of words.yaml, ``number`` what it counts; a host has its name for a number."""

    y: float
    kind: str
    number: str


@dataclass(frozen=True)
class TimeLine:
    """``clock``: whose time the axis shows, ``doubt`` its uncertainty in seconds; ``more``: lanes that are left out."""

    width: int
    height: float
    left: int
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    arcs: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]
    axis: float
    clock: str
    doubt: str
    more: int


def time_line(report: LogReport) -> TimeLine | None:
    """None where fewer than two incidents have a time."""
    answer = report.analysis.answer
    shown = {
        i: incident
        for i, incident in enumerate(answer.incidents)
        if incident.at is not None and incident.role in SHOWN and incident.why != "outside"
    }
    if len(shown) < 2:
        return None
    drawing = _Drawing(report, shown)
    return drawing.done()


class _Drawing:
    def __init__(self, report: LogReport, shown: Mapping[int, Incident]) -> None:
        self.report, self.shown, self.root = report, shown, report.analysis.answer.root
        self.begin = min(_at(one) for one in shown.values())
        end = max(one.until or _at(one) for one in shown.values())
        self.length = max((end - self.begin).total_seconds(), 0.001)
        kernel = {one.path for one in report.analysis.coverage if one.kind == "kernel"}
        self.lane_of = {i: _lane(incident, kernel) for i, incident in shown.items()}
        names: dict[tuple[str, str], int] = {}
        for i in sorted(shown, key=lambda i: i != self.root):
            names.setdefault(self.lane_of[i], len(names))
        self.more = max(0, len(names) - LANES)
        self.lanes = {name: n for name, n in names.items() if n < LANES}

    def done(self) -> TimeLine:
        marks, at = self._marks()
        axis = TOP + len(self.lanes) * LANE + 8
        middle = self.begin + timedelta(seconds=self.length / 2)
        end = self.begin + timedelta(seconds=self.length)
        clock, doubt = self._clock()
        return TimeLine(
            width=WIDTH,
            height=axis + AXIS,
            left=LEFT,
            lanes=tuple(Lane(self._y(name), *name) for name in self.lanes),
            marks=tuple(marks),
            arcs=tuple(self._arcs(at)),
            ticks=tuple((self._x(time), _tick(time, self.length)) for time in (self.begin, middle, end)),
            axis=axis,
            clock=clock,
            doubt=doubt,
            more=self.more,
        )

    def _x(self, time: datetime) -> float:
        share = (time - self.begin).total_seconds() / self.length
        return round(LEFT + 14 + share * (WIDTH - LEFT - RIGHT - 14), 1)

    def _y(self, lane: tuple[str, str]) -> float:
        return TOP + self.lanes[lane] * LANE + LANE / 2

    def _marks(self) -> tuple[list[Mark], dict[int, Mark]]:
        """The marks, the root last so that it lies on top; and the mark of each incident."""
        groups: dict[tuple[str, str], list[list[int]]] = {name: [] for name in self.lanes}
        for i in sorted(self.shown, key=lambda i: _at(self.shown[i])):
            lane = self.lane_of[i]
            if lane not in groups:
                continue
            runs = groups[lane]
            near = runs and self._x(_at(self.shown[i])) - self._x(_at(self.shown[runs[-1][0]])) < MERGED
            if near and self.root not in (i, runs[-1][0]):
                runs[-1].append(i)
            else:
                runs.append([i])
        at: dict[int, Mark] = {}
        marks = []
        for lane, runs in groups.items():
            for run in runs:
                mark = self._mark(run, self._y(lane))
                marks.append(mark)
                at.update(dict.fromkeys(run, mark))
        marks.sort(key=lambda mark: mark.is_root)
        return marks, at

    def _mark(self, run: Sequence[int], y: float) -> Mark:
        incidents = [self.shown[i] for i in run]
        count = sum(incident.count for incident in incidents)
        first, is_root = incidents[0], self.root in run
        place = first.first.record.place
        label = f"{_stamp(_at(first))} {first.signature or '?'} {place.file.rpartition('/')[2]}:{place.line}"
        return Mark(
            x=self._x(_at(first)),
            y=y,
            end=max(self._x(one.until or _at(one)) for one in incidents),
            radius=round(4 + min(4.0, 1.6 * log10(count)), 1),
            role=max((one.role for one in incidents), key=ROLES.index),
            is_root=is_root,
            count=count,
            label=label,
        )

    def _arcs(self, at: Mapping[int, Mark]) -> list[str]:
        """Paths from a cause to what followed from it, each pair of marks once."""
        pairs = {
            (at[cause].x, at[cause].y, at[i].x, at[i].y): None
            for i in sorted(at)
            if (cause := self.shown[i].caused_by) is not None and cause in at and at[cause] is not at[i]
        }
        return [_arc(*pair) for pair in list(pairs)[:MOST_ARCS]]

    def _clock(self) -> tuple[str, str]:
        if self.begin.year == BOOT.year:
            return "boot", ""
        doubts = [one.uncertainty.total_seconds() for one in self.report.analysis.alignments if one.uncertainty]
        return "log", f"{max(doubts):g}" if doubts else ""


def _arc(x: float, y: float, to_x: float, to_y: float) -> str:
    """A curve that leaves sideways and arrives from the left."""
    bend = max(16.0, (to_x - x) / 2)
    return f"M{x} {y}C{round(x + bend, 1)} {y} {round(to_x - bend, 1)} {to_y} {to_x} {to_y}"


def _at(incident: Incident) -> datetime:
    assert incident.at is not None
    return incident.at


def _lane(incident: Incident, kernel: Collection[str]) -> tuple[str, str]:
    record = incident.first.record
    for name, number in (("log_rank", record.rank), ("log_device", record.device), ("log_pid", record.pid)):
        if number is not None and number >= 0:
            return name, str(number)
    if record.place.file in kernel:
        return "log_kernel", ""
    return ("log_host", record.host[:16]) if record.host else ("log_host", "")


def _stamp(time: datetime) -> str:
    if time.year == BOOT.year:
        return f"+{(time - BOOT).total_seconds():.3f} s"
    return time.isoformat(sep=" ", timespec="milliseconds")


def _tick(time: datetime, length: float) -> str:
    if time.year == BOOT.year:
        return f"+{(time - BOOT).total_seconds():.1f} s"
    if length > timedelta(days=1).total_seconds():
        return time.strftime("%m-%d %H:%M")
    return time.strftime("%H:%M:%S") if length > 5 else time.strftime("%H:%M:%S.%f")[:-3]
