"""Which incident is the root: of each process its first, then the first among processes, hardware before software."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from ascend_doctor.logs import Incident
from ascend_doctor.logs.graph import (
    HARDWARE_LATE,
    SAME_TIME,
    Context,
    before,
    explains,
    has_fraction,
    is_hardware,
    rank,
    related,
    strength,
)
from ascend_doctor.logs.incidents import EPISODE
from ascend_doctor.logs.waits import Process

FOLLOWS_WITHIN = timedelta(minutes=2)

LONE_BEFORE = timedelta(minutes=5)
"""An error that nothing follows for two minutes, five minutes before the next, is a failed attempt and no fault."""


def window_of(incidents: Sequence[Incident]) -> tuple[frozenset[int], tuple[datetime, datetime] | None]:
    """The incidents of the last failure: those that no silence of an hour parts from its end."""
    spans = sorted(
        (incident.at, incident.until or incident.at, i)
        for i, incident in enumerate(incidents)
        if incident.at is not None and incident.role != "harmless"
    )
    clusters: list[tuple[datetime, datetime, list[int]]] = []
    for begin, end, i in spans:
        if clusters and begin - clusters[-1][1] <= EPISODE:
            first, last, members = clusters[-1]
            clusters[-1] = (first, max(last, end), [*members, i])
        else:
            clusters.append((begin, end, [i]))
    undated = frozenset(i for i, incident in enumerate(incidents) if incident.at is None)
    failed = [c for c in clusters if any(incidents[i].role in ("root", "symptom", "cascade") for i in c[2])]
    if not clusters:
        return undated, None
    chosen = (failed or clusters)[-1]
    return undated | frozenset(chosen[2]), (chosen[0], chosen[1])


def root_of(context: Context) -> tuple[int, tuple[int, ...]] | None:
    """The root and those that could have been it as well."""
    for strengths in ((0, 1), (2, 3)):
        able = [i for i in context.able if strength(context.incidents[i]) in strengths]
        able = _unexplained(context, able)
        if able:
            return _first_of(context, able)
    return _first_wrapper(context)


def _first_wrapper(context: Context) -> tuple[int, tuple[int, ...]] | None:
    """A code that only hands a failure on, where nothing else is there: the first sign, if the log begins with it."""
    for i in sorted(context.inside):
        incident = context.incidents[i]
        if incident.severity == "error" and incident.role in ("root", "symptom", "cascade", "unknown"):
            known = context.known(incident.signature)
            names_it = bool(known.codes and known.cause != incident.signature) or incident.signature.startswith("code:")
            return (i, ()) if names_it and incident.role == "cascade" else None
    return None


def _unexplained(context: Context, candidates: Sequence[int]) -> list[int]:
    """Without those that another one explains; of two that explain each other the earlier stays."""
    kept = []
    for i in candidates:
        explained = False
        for j in candidates:
            if i != j and explains(context, j, i) and not (explains(context, i, j) and before(context, i, j)):
                explained = True
                break
        if not explained:
            kept.append(i)
    return kept or list(candidates)


def _first_of(context: Context, candidates: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """First the earliest of each process, then among processes."""
    by_process: dict[Process, list[int]] = {}
    for i in candidates:
        by_process.setdefault(context.process(i), []).append(i)
    heads = [_earliest_in_process(context, members) for members in by_process.values()]
    heads = _without_lone(context, heads)
    dated = [i for i in heads if context.incidents[i].at is not None]
    if not dated:
        best = min(heads, key=lambda i: (rank(context, i), i))
        return best, tuple(i for i in heads if i != best)
    begin = min(at for i in dated if (at := context.incidents[i].at) is not None)
    equal = [i for i in dated if (context.incidents[i].at or begin) - begin <= SAME_TIME]
    ends = {process for process, _ in context.waits.waited_for()}
    best = min(
        equal,
        key=lambda i: (
            not is_hardware(context.incidents[i]),
            context.process(i) not in ends,
            rank(context, i),
            context.incidents[i].at,
            i,
        ),
    )
    best = _hardware_instead(context, best, candidates)
    return best, tuple(i for i in heads if i != best)


def _earliest_in_process(context: Context, members: Sequence[int]) -> int:
    """By stamp; where stamps are equal or not their own: specific before generic, lower layer, position."""
    incidents = context.incidents
    dated = [i for i in members if incidents[i].at is not None]
    if not dated:
        return min(members, key=lambda i: (rank(context, i)[0], i))
    begin = min(at for i in dated if (at := incidents[i].at) is not None)
    first = next(i for i in dated if incidents[i].at == begin)
    near = [i for i in dated if (incidents[i].at or begin) - begin <= SAME_TIME]

    def key(i: int) -> tuple[Any, ...]:
        precise = incidents[i].dated and incidents[first].dated and has_fraction(incidents[i])
        time = incidents[i].at if precise else begin
        return (rank(context, i)[0], time, rank(context, i)[1], i)

    return min(near, key=key)


def _without_lone(context: Context, heads: Sequence[int]) -> list[int]:
    """A failed attempt long before the rest, after which all went on, is not what ended the run."""
    kept = [i for i in heads if not _is_lone(context, i, heads)]
    return kept or list(heads)


def _is_lone(context: Context, i: int, heads: Sequence[int]) -> bool:
    incident = context.incidents[i]
    at = incident.at
    of_kernel = incident.layer in ("hardware", "driver") or incident.first.record.kind == "kernel"
    if at is None or not incident.dated or of_kernel:
        return False
    later = [h for h in heads if (other := context.incidents[h].at) is not None and other - at > LONE_BEFORE]
    if not later:
        return False
    end = incident.until or at
    for j in context.inside:
        next_one = context.incidents[j]
        if j != i and next_one.at is not None and next_one.role != "harmless":
            begins = timedelta() <= next_one.at - at <= FOLLOWS_WITHIN
            goes_on = next_one.until is not None and at <= next_one.until and next_one.at <= end + FOLLOWS_WITHIN
            if begins or goes_on:
                return False
    return True


def _hardware_instead(context: Context, best: int, candidates: Sequence[int]) -> int:
    """A fault of the hardware that was printed a little later, or by a clock that cannot be compared."""
    chosen = context.incidents[best]
    if is_hardware(chosen):
        return best
    for i in candidates:
        incident = context.incidents[i]
        if is_hardware(incident) and related(incident, chosen):
            if incident.at is None:
                return i
            if chosen.at is not None and timedelta() <= incident.at - chosen.at <= HARDWARE_LATE:
                return i
    return best
