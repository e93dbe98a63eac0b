"""What reports say of logs: the answer in words, the lines that prove it, what followed, and a time line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ascend_doctor.engine.log_report import LogReport, told_text
from ascend_doctor.logs import BOOT, Coverage, Incident
from ascend_doctor.records import dataclass
from ascend_doctor.report.words import Words

MOST_NAMED = 8
"""Ranks, processes or files that a sentence names."""

MOST_PROOF = 2
"""Lines beside that of the root that prove it."""

LANES = 16
WIDTH, LEFT, LANE, TOP = 840, 150, 26, 24
"""Of the time line, in the units of its drawing."""

_MARKED = ("root", "symptom", "cascade", "detail", "unknown")


def log_headline(report: LogReport, words: Words) -> str:
    """The answer in one line."""
    verdict, root = report.analysis.verdict, report.root
    said = words[f"log_{verdict.replace('-', '_')}"]
    if verdict in ("clean", "no-logs"):
        return said
    if root is None:
        first = next((i for i in report.analysis.answer.incidents if i.role != "harmless"), None)
        return said if first is None else f"{said}; {words['log_first_error']}: {report.title(first)[words.language]}"
    title = report.title(root)[words.language]
    return f"{said}: {title}" if verdict == "fault" else f"{said}; {words['log_first_sign']}: {title}"


def base_of(report: LogReport) -> str:
    """The folder that all files have in common, where that is long; reports name it once."""
    paths = [one.path for one in report.analysis.coverage]
    if len(paths) < 2:
        return ""
    low, high = min(paths), max(paths)
    size = next((n for n, (a, b) in enumerate(zip(low, high)) if a != b), min(len(low), len(high)))
    base = low[: low.rfind("/", 0, size + 1) + 1]
    return base if len(base) > 1 else ""


def where(incident: Incident, words: Words) -> str:
    """Rank, device and process: what of them the lines say."""
    record = incident.first.record
    named = (("log_rank", record.rank), ("log_device", record.device), ("log_pid", record.pid))
    parts = [f"{words[name]} {number}" for name, number in named if number is not None and number >= 0]
    parts += [f"{words['log_host']} {record.host}"] if record.host else []
    return " · ".join(parts)


def reached(report: LogReport, words: Words) -> str:
    """Ranks and devices that the root or what followed names, where the root itself names none."""
    root = report.root
    if root is None or root.first.record.rank is not None or root.first.record.device is not None:
        return ""
    incidents = report.analysis.answer.incidents
    records = [incident.first.record for incident in incidents if incident.caused_by is not None]
    found = []
    for name, numbers in (
        ("log_rank", sorted({r.rank for r in records if r.rank is not None and r.rank >= 0})),
        ("log_device", sorted({r.device for r in records if r.device is not None and r.device >= 0})),
    ):
        found += [f"{words[name]} {_listed(numbers)}"] if numbers else []
    return " · ".join(found)


def place(incident: Incident, base: str = "") -> str:
    """``FILE:LINE`` of its first line."""
    return f"{incident.first.record.place.file.removeprefix(base)}:{incident.first.record.place.line}"


def since(incident: Incident, words: Words) -> str:
    """First, how often, and last."""
    parts = [stamp(incident.at, words)]
    if incident.count > 1:
        parts.append(words.count("log_times", incident.count))
        if incident.until is not None and incident.until != incident.at:
            parts.append(f"{words['log_last']} {stamp(incident.until, words)}")
    return " · ".join(parts)


def stamp(time: datetime | None, words: Words) -> str:
    """To the millisecond where that is known; of a kernel whose start is not known, the seconds since then."""
    if time is None:
        return words["log_no_time"]
    if time.year == BOOT.year:
        return words["log_after_boot"].format(seconds=f"{(time - BOOT).total_seconds():.3f}")
    text = time.isoformat(sep=" ", timespec="milliseconds")
    return text.removesuffix(".000")


def ranks_said(report: LogReport, words: Words) -> list[str]:
    """Who is waited for, who is silent, who never came."""
    answer = report.analysis.answer
    found = []
    if answer.absent:
        found.append(words["log_absent"].format(ranks=_listed(answer.absent)))
    elif answer.silent:
        found.append(words["log_silent"].format(ranks=_listed(answer.silent)))
    elif answer.suspects:
        found.append(words["log_suspect"].format(ranks=_listed(answer.suspects)))
    return found


def _listed(numbers: Sequence[int]) -> str:
    more = ", …" if len(numbers) > MOST_NAMED else ""
    return ", ".join(map(str, numbers[:MOST_NAMED])) + more


def proof(report: LogReport, base: str = "") -> list[tuple[str, str]]:
    """(file:line, text) of the root, of what its own lines add, and of the first thing that followed."""
    root = report.root
    if root is None:
        return []
    incidents, index = report.analysis.answer.incidents, report.analysis.answer.root
    near = [i for i in incidents if i.caused_by == index and (i.why == "same-thing" or _details(i, root))]
    lines = (root, *near[:MOST_PROOF])
    return [(place(incident, base), told_text(incident)) for incident in lines]


def _details(incident: Incident, root: Incident) -> bool:
    return incident.role == "detail" and incident.first.record.pid == root.first.record.pid


def followed(report: LogReport) -> list[Incident]:
    """The consequences, in order."""
    return [report.analysis.answer.incidents[i] for i in report.chain]


def others(report: LogReport) -> dict[str, list[Incident]]:
    """What the answer does not explain, by why: one of each kind, the unknown ones first in time."""
    found: dict[str, list[Incident]] = {"log_apart": [], "log_unknown": [], "log_other": [], "log_outside": []}
    seen: set[tuple[str, str]] = set()
    for i, incident in enumerate(report.analysis.answer.incidents):
        if i == report.analysis.answer.root or incident.role == "harmless":
            continue
        name = _group(incident)
        key = (name, incident.signature or incident.template)
        if name and key not in seen:
            seen.add(key)
            found[name].append(incident)
    return {name: group for name, group in found.items() if group}


def _group(incident: Incident) -> str:
    if incident.why == "apart":
        return "log_apart"
    if incident.why == "outside":
        return "log_outside"
    if not incident.signature:
        return "log_unknown"
    return "" if incident.caused_by is not None else "log_other"


def sums(coverage: Sequence[Coverage], words: Words) -> str:
    """``4 files · 1,204 lines``."""
    read = [one for one in coverage if not one.skipped or one.lines]
    lines = sum(one.lines for one in read)
    files = sum(one.files for one in read)
    text = f"{words.count('log_files', files)} · {words.count('log_lines', lines)}"
    left = sum(one.files for one in coverage) - files
    return text + (f" · {left} {words['log_skipped']}" if left else "")


def span(one: Coverage, words: Words) -> str:
    if one.first is None and one.last is None:
        return ""
    return f"{stamp(one.first, words)} – {stamp(one.last, words)}"


@dataclass(frozen=True)
class Mark:
    """An incident in the drawing."""

    x: float
    y: float
    end: float
    role: str
    is_root: bool
    label: str
    target: int


@dataclass(frozen=True)
class Lane:
    y: float
    name: str


@dataclass(frozen=True)
class TimeLine:
    """Lanes of ranks, devices and the host; marks at their times; ``ticks``: (x, text)."""

    width: int
    height: float
    left: int
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    ticks: tuple[tuple[float, str], ...]
    more: int


def time_line(report: LogReport, words: Words) -> TimeLine | None:
    """None where fewer than two incidents have a time."""
    answer = report.analysis.answer
    dated = [(i, incident, incident.at) for i, incident in enumerate(answer.incidents) if incident.at is not None]
    shown = [(i, n, at) for i, n, at in dated if n.role in _MARKED and n.why != "outside"]
    if len(shown) < 2:
        return None
    begin = min(at for _, _, at in shown)
    end = max(n.until or at for _, n, at in shown)
    length = max((end - begin).total_seconds(), 0.001)
    names: dict[str, int] = {}
    for _, incident, _ in sorted(shown, key=lambda item: item[0] != answer.root):
        names.setdefault(_lane(incident, words), len(names))
    lanes = {name: n for name, n in names.items() if n < LANES}

    def x(time: datetime) -> float:
        return round(LEFT + 12 + (time - begin).total_seconds() / length * (WIDTH - LEFT - 36), 1)

    marks = [
        Mark(
            x=x(at),
            y=TOP + lanes[lane] * LANE + LANE / 2,
            end=x(incident.until or at),
            role=incident.role,
            is_root=i == answer.root,
            label=f"{stamp(at, words)} {report.title(incident)[words.language]} · {place(incident)}",
            target=i,
        )
        for i, incident, at in shown
        if (lane := _lane(incident, words)) in lanes
    ]
    marks.sort(key=lambda mark: mark.is_root)
    return TimeLine(
        width=WIDTH,
        height=TOP + len(lanes) * LANE + 30,
        left=LEFT,
        lanes=tuple(Lane(TOP + n * LANE + LANE / 2, name) for name, n in lanes.items()),
        marks=tuple(marks[-2000:]),
        ticks=tuple((x(time), _tick(time, length)) for time in (begin, begin + (end - begin) / 2, end)),
        more=len(names) - len(lanes),
    )


def _lane(incident: Incident, words: Words) -> str:
    record = incident.first.record
    for name, number in (("log_rank", record.rank), ("log_device", record.device), ("log_pid", record.pid)):
        if number is not None and number >= 0:
            return f"{words[name]} {number}"
    return record.host or words["log_host"]


def _tick(time: datetime, length: float) -> str:
    if length > timedelta(days=1).total_seconds():
        return time.strftime("%m-%d %H:%M")
    return time.strftime("%H:%M:%S") if length > 5 else time.strftime("%H:%M:%S.%f")[:-3]
