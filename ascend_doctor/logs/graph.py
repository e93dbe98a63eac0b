"""What the causal graph is made of: incidents, what the knowledge says of them, and what time and place allow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from typing import Any, Callable

from ascend_doctor.logs import LAYERS, Incident
from ascend_doctor.logs.incidents import process_of
from ascend_doctor.logs.waits import Process, WaitGraph
from ascend_doctor.records import dataclass

SAME_TIME = timedelta(seconds=1)
"""Between processes and hosts, what is closer together has no order."""

HARDWARE_LATE = timedelta(seconds=60)
"""So late the kernel or the device may print a fault that the application met first."""

MOST_COMPARED = 200
"""Candidates that are compared with each other; more are those of a flood, whose first ones count."""

EXCEPTION = re.compile(
    r"(?:^|[\s:\]])(?!Warning)(?:[A-Za-z_]\w{0,60}\.){0,8}(?:[A-Z]\w{0,60})?(?:Error|Exception): (?=\S)|GGML_ASSERT\("
)
"""An exception of Python in a line that nobody knows: it ended what was going on, so it may be the cause."""

_HANDED_ON = re.compile(
    r"(?:NPU|OPS|HCCL|ACL)\w* (?:function )?(?:warning, )?error|ACL stream synchronize failed|runtime result = \d"
    r"|(?:^\s{0,16}|:)rt\w{3,60} execut(?:e|ion) failed, reason=|^\s{0,8}\[Error\]: "
)
"""How a framework or a higher layer hands on what a lower one met: the line of the lower one says more."""

ENDINGS = ("process-crash", "worker-died")
"""How processes end, which an exception before that explains."""

_LAYER_RANK = {layer: rank for rank, layer in enumerate(LAYERS)}


@dataclass(frozen=True)
class Known:
    """What is used of a signature: what it explains, and which thing it names."""

    cause: str = ""
    codes: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Context:
    """The incidents with what is known of them."""

    incidents: Sequence[Incident]
    known: Callable[[str], Known]
    waits: WaitGraph
    inside: frozenset[int] = field(default_factory=frozenset)
    able: tuple[int, ...] = ()
    earliest: Mapping[Process, int] = field(default_factory=dict)
    by_name: Mapping[str, Sequence[int]] = field(default_factory=dict)
    by_explained: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def explainers(self, index: int) -> list[int]:
        """Candidates that the knowledge names as causes of an incident, the latest first."""
        incident = self.incidents[index]
        known = self.known(incident.signature)
        names = [incident.signature, known.cause, *(f"code:{code}" for code in incident.codes)]
        found = {j for name in names if name for j in self.by_explained.get(name, ())}
        found |= {j for name in known.explained_by for j in self.by_name.get(name, ())}
        return sorted(found, reverse=True)

    def process(self, index: int) -> Process:
        return process_of(self.incidents[index].first.record)


def context_of(
    incidents: Sequence[Incident], known: Callable[[str], Known], waits: WaitGraph, inside: frozenset[int]
) -> Context:
    able = [i for i in sorted(inside) if strength(incidents[i]) is not None]
    earliest: dict[Process, int] = {}
    for i in sorted(inside):
        earliest.setdefault(process_of(incidents[i].first.record), i)
    strong = [i for i in able if strength(incidents[i]) in (0, 1)]
    kept = sorted({*strong[:MOST_COMPARED], *able[:MOST_COMPARED]})
    by_name: dict[str, list[int]] = {}
    by_explained: dict[str, list[int]] = {}
    for i in kept:
        name = incidents[i].signature
        one = known(name)
        for key in {name, one.cause} - {""}:
            by_name.setdefault(key, []).append(i)
        for key in {*one.explains, *(f"code:{code}" for code in one.codes)}:
            by_explained.setdefault(key, []).append(i)
    return Context(incidents, known, waits, inside, tuple(kept), earliest, by_name, by_explained)


def known_of(signatures: Mapping[str, Any]) -> Callable[[str], Known]:
    """What the signatures' book knows, by id; nothing of codes and unknown errors."""
    nothing = Known()
    found: dict[str, Known] = {}

    def known(name: str) -> Known:
        if name not in found:
            one = signatures.get(name)
            found[name] = Known(one.cause, one.codes, one.explains, one.explained_by) if one is not None else nothing
        return found[name]

    return known


def strength(incident: Incident) -> int | None:
    """0 a signature that names a cause, 1 a code that does, 2 a symptom, 3 a code or an exception that may be either.

    None: never a root.
    """
    is_code = incident.signature.startswith("code:")
    if incident.role == "root" and incident.severity == "error":
        return 1 if is_code else 0
    if incident.role == "symptom" and incident.severity != "info":
        return 2
    if incident.role == "unknown" and incident.severity == "error" and (is_code or is_exception(incident)):
        return 3
    return None


def is_exception(incident: Incident) -> bool:
    """Whether it is an exception that the catalogue does not have."""
    return not incident.signature and EXCEPTION.search(incident.first.record.text[:400]) is not None


def explains(context: Context, cause: int, effect: int) -> bool:
    """Whether the knowledge says so and time and place allow it."""
    a, b = context.incidents[cause], context.incidents[effect]
    known_a, known_b = context.known(a.signature), context.known(b.signature)
    names = {b.signature, known_b.cause, *(f"code:{code}" for code in b.codes)} - {""}
    said = bool(names & set(known_a.explains)) or bool({a.signature, known_a.cause} & set(known_b.explained_by) - {""})
    if not said and b.signature.startswith("code:"):
        said = b.signature[5:] in known_a.codes
    if not said and is_exception(a) and b.role == "symptom":
        waited = b.layer == "communication" and context.process(cause) != context.process(effect)
        said = (waited or known_b.cause in ENDINGS) and before(context, cause, effect)
    if not said:
        return False
    if a.at is not None and b.at is not None and a.at - b.at > HARDWARE_LATE:
        return False
    return related(a, b)


def related(a: Incident, b: Incident) -> bool:
    """False only where both name a card and the cards differ, and the processes do too."""
    first, second = a.first.record, b.first.record
    if first.pid is not None and first.pid == second.pid:
        return True
    if None in (first.device, second.device) or first.device == second.device:
        return True
    return "communication" in (a.layer, b.layer) or "network" in (a.layer, b.layer)


def before(context: Context, i: int, j: int) -> bool:
    a, b = context.incidents[i].at, context.incidents[j].at
    return i < j if a is None or b is None or a == b else a < b


def same(context: Context, a: int, b: int) -> bool:
    first, second = context.incidents[a].signature, context.incidents[b].signature
    return first == second or (context.known(first).cause == context.known(second).cause != "")


def rank(context: Context, i: int) -> tuple[int, int]:
    """Specific before generic, lower layer before higher."""
    incident = context.incidents[i]
    generic = (strength(incident) or 0) % 2 or int(bool(_HANDED_ON.search(incident.first.record.text[:400])))
    return generic, _LAYER_RANK.get(incident.layer, len(LAYERS))


def is_hardware(incident: Incident) -> bool:
    return incident.layer == "hardware"


def has_fraction(incident: Incident) -> bool:
    time = incident.first.record.time
    return time is not None and time.microsecond != 0
