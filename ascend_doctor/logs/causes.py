"""Which incident is the root, and what followed from it.

The expert's order (docs of HCCL's fault diagnosis): earliest on the common time line, lowest layer, specific before
generic, hardware before the text of an operator, and whoever everybody waits for. Symptoms (a timeout of a wait) are
never a root: where only they are seen, the answer is that evidence is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Callable

from ascend_doctor.logs import Incident
from ascend_doctor.logs.graph import (
    HARDWARE_LATE,
    SAME_TIME,
    Context,
    Known,
    before,
    context_of,
    explains,
    has_fraction,
    is_hardware,
    rank,
    related,
    same,
    strength,
)
from ascend_doctor.logs.roots import root_of, window_of
from ascend_doctor.logs.waits import WaitGraph
from ascend_doctor.records import dataclass

WHYS = ("root", "explained", "after", "waits", "same-thing", "outside", "apart", "lone")
_FAULTY = ("root", "symptom", "cascade", "detail", "unknown")


@dataclass(frozen=True)
class Answer:
    """``root``: index of the incident, None where none can be named; ``suspects``: ranks that others wait for.

    ``silent``: those of them that say nothing; ``absent``: ranks that never came; ``outside``: incidents before the
    window of this failure; ``apart``: other roots that seem to have nothing to do with it.
    """

    incidents: tuple[Incident, ...]
    root: int | None
    confidence: str
    verdict: str
    suspects: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    ring: tuple[int, ...] = ()
    outside: tuple[int, ...] = ()
    apart: tuple[int, ...] = ()
    window: tuple[datetime, datetime] | None = None


def answer(incidents: Sequence[Incident], waits: WaitGraph, known: Callable[[str], Known], complete: bool) -> Answer:
    """``complete``: all that was found could be read; a log that was cut gives less confidence."""
    incidents = _calmed(incidents, known)
    inside, window = window_of(incidents)
    context = context_of(incidents, known, waits, inside)
    chosen = root_of(context)
    if chosen is None:
        return _without_root(context, window)
    root, rivals = chosen
    is_root = strength(incidents[root]) in (0, 1)
    marked, apart = _followed(context, root, rivals, is_root)
    role = "root" if is_root else "symptom" if incidents[root].signature else "unknown"
    marked[root] = replace(marked[root], role=role, caused_by=None, why="root")
    suspects, silent, ring = _suspects(context, root)
    confidence = _confidence(context, root, rivals, complete) if is_root else "low"
    absent = waits.absent()
    if absent and is_root and _tells_of_absence(incidents[root]):
        suspects = absent
    return Answer(
        incidents=tuple(marked),
        root=root,
        confidence=confidence,
        verdict="fault" if is_root else "evidence-missing",
        suspects=suspects,
        silent=silent,
        absent=absent,
        ring=ring,
        outside=tuple(i for i in range(len(incidents)) if i not in inside and incidents[i].role != "harmless"),
        apart=apart,
        window=window,
    )


def _calmed(incidents: Sequence[Incident], known: Callable[[str], Known]) -> list[Incident]:
    """What an ordinary end of a process explains (it was stopped by hand) is as harmless as that end."""
    calm = [
        i for i, incident in enumerate(incidents) if incident.role == "harmless" and known(incident.signature).explains
    ]
    if not calm:
        return list(incidents)
    context = Context(incidents, known, WaitGraph())
    return [
        replace(incident, role="harmless", severity="info")
        if incident.role in ("cascade", "detail") and any(explains(context, c, i) for c in calm)
        else incident
        for i, incident in enumerate(incidents)
    ]


def _without_root(context: Context, window: tuple[datetime, datetime] | None) -> Answer:
    """Cascades and unknown errors alone: something is wrong, but what did it is not here."""
    incidents = [
        replace(incident, why="" if i in context.inside else "outside") for i, incident in enumerate(context.incidents)
    ]
    wrong = any(incident.role in _FAULTY and incident.severity == "error" for incident in incidents)
    return Answer(
        incidents=tuple(incidents),
        root=None,
        confidence="low",
        verdict="evidence-missing" if wrong else "clean",
        outside=tuple(i for i in range(len(incidents)) if i not in context.inside and incidents[i].role != "harmless"),
        window=window,
    )


def _followed(
    context: Context, root: int, rivals: Sequence[int], is_root: bool
) -> tuple[list[Incident], tuple[int, ...]]:
    """Each incident with what it follows from; roots that the answer does not explain stay apart."""
    incidents = context.incidents
    top = incidents[root]
    marked, apart = [], []
    for i, incident in enumerate(incidents):
        if i == root or incident.role == "harmless":
            marked.append(incident)
            continue
        if i not in context.inside:
            marked.append(replace(incident, why="outside"))
            continue
        if not _could_follow(context, root, i):
            marked.append(replace(incident, why="lone" if incident.role in ("root", "symptom") else ""))
            continue
        if i in rivals and is_root and not _shares(context, root, i):
            apart.append(i)
            marked.append(replace(incident, why="apart"))
            continue
        by, why = _cause_of(context, root, i)
        is_same = context.known(incident.signature).cause and (
            context.known(incident.signature).cause == context.known(top.signature).cause
        )
        role = incident.role if incident.role in ("detail", "unknown") else "detail" if is_same else "cascade"
        if not is_root and incident.role == "symptom":
            role = "symptom"
        marked.append(replace(incident, role=role, caused_by=by, why="same-thing" if is_same else why))
    return marked, tuple(apart)


def _could_follow(context: Context, root: int, i: int) -> bool:
    """By time: what one process says has an order, what two say only where more than a second lies between."""
    top, other = context.incidents[root], context.incidents[i]
    if top.at is None or other.at is None or not other.dated or other.at >= top.at:
        return True
    if is_hardware(top):
        return top.at - other.at <= HARDWARE_LATE
    precise = has_fraction(top) and has_fraction(other) and context.process(root) == context.process(i)
    return top.at - other.at <= SAME_TIME and (not precise or explains(context, root, i))


def _shares(context: Context, root: int, i: int) -> bool:
    """Whether a second root is close enough to the first to be a consequence of it."""
    a, b = context.incidents[root], context.incidents[i]
    if context.process(root) == context.process(i) or same(context, root, i) or explains(context, root, i):
        return True
    if (
        a.at is not None
        and b.at is not None
        and b.at - a.at <= SAME_TIME
        and rank(context, root)[1] == rank(context, i)[1]
    ):
        return False
    return related(a, b)


def _cause_of(context: Context, root: int, i: int) -> tuple[int, str]:
    """The nearest cause: what explains it, the one it waits for, or the root."""
    if explains(context, root, i):
        return root, "explained"
    for j in context.explainers(i):
        if j not in (i, root) and before(context, j, i) and explains(context, j, i):
            return j, "explained"
    for target in context.waits.waits_of(context.process(i)):
        j = context.earliest.get(target, i)
        if j != i and before(context, j, i):
            return j, "waits"
    return root, "after"


def _suspects(context: Context, root: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Ranks at the end of the waits, those of them without any word, and a ring of ranks that wait for each other."""
    waits = context.waits
    ends = waits.waited_for()
    most = [end for end, count in ends if count == ends[0][1]] if ends else []
    ranks = tuple(sorted({rank for end in most if (rank := waits.rank_of(end)) is not None}))
    silent = tuple(sorted({rank for end in most if end.pid is None and (rank := waits.rank_of(end)) is not None}))
    ring = tuple(rank for process in waits.cycle() if (rank := waits.rank_of(process)) is not None)
    if waits.accused and not ranks:
        ranks = tuple(sorted(waits.accused))
    return ranks[:64], silent[:64], ring[:64]


def _tells_of_absence(incident: Incident) -> bool:
    return incident.layer in ("communication", "network")


def _confidence(context: Context, root: int, rivals: Sequence[int], complete: bool) -> str:
    """high: a specific line, and nothing contends; medium: a code alone, a contender, or a guessed clock."""
    incident = context.incidents[root]
    if strength(incident) != 0 or not complete:
        return "medium"
    if incident.at is None and any(i.at is not None for i in context.incidents):
        return "medium"
    for rival in rivals:
        other = context.incidents[rival]
        close = other.at is None or incident.at is None or abs(other.at - incident.at) <= SAME_TIME
        if (
            close
            and not explains(context, root, rival)
            and other.layer == incident.layer
            and not same(context, root, rival)
        ):
            return "medium"
    early = [
        i
        for i in context.inside
        if i != root
        and context.incidents[i].role in ("symptom", "unknown")
        and context.incidents[i].dated
        and (at := context.incidents[i].at) is not None
        and incident.at is not None
        and timedelta(seconds=5) < incident.at - at
    ]
    return "medium" if early else "high"


def chain(incidents: Sequence[Incident], root: int | None) -> list[int]:
    """The consequences in the order in which they came, one for each kind of event."""
    if root is None:
        return []
    seen: set[str] = set()
    found = []
    for i, incident in enumerate(incidents):
        name = incident.signature or incident.template
        follows = incident.caused_by is not None and incident.why != "same-thing" and incident.signature
        if follows and name not in seen:
            seen.add(name)
            found.append(i)
    return found
