"""One run: a host, the chosen checks, and everything a report tells."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from ascend_doctor import __version__
from ascend_doctor.derive.machine import machine
from ascend_doctor.engine import gate as gates
from ascend_doctor.engine.checks import Check
from ascend_doctor.engine.findings import Finding, Note, as_json
from ascend_doctor.engine.gate import Gate
from ascend_doctor.engine.judge import judge
from ascend_doctor.engine.notes import Noter
from ascend_doctor.engine.rulebook import Rulebook
from ascend_doctor.engine.situation import WORKERS, Situation
from ascend_doctor.engine.waivers import Waiver, waived
from ascend_doctor.facts.tree import facts_as_json
from ascend_doctor.host import Collected, Host, Missing
from ascend_doctor.host.collection_log import CollectionLog, Question
from ascend_doctor.knowledge.profile import Profile
from ascend_doctor.records import dataclass

if TYPE_CHECKING:
    from ascend_doctor.engine.log_report import LogReport

SCHEMA = "ascend-doctor/report/1"
BROKEN = 4


@dataclass(frozen=True)
class Run:
    """What every report renders. ``exit_code`` already knows of our own faults."""

    kind: str
    host: Mapping[str, Any]
    started: str
    seconds: float
    verdict: str
    gate: Gate
    exit_code: int
    counts: Mapping[str, int]
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...]
    collection: tuple[Question, ...]
    rules: str
    facts: Mapping[str, Any] | None = None
    rows: Mapping[str, object] = field(default_factory=dict)
    parts: Mapping[str, object] = field(default_factory=dict)
    answer: Mapping[str, Any] | None = None
    """What a verb answers beside findings, by its own name in the document: ``memory``, ``numa``."""
    machine: Mapping[str, Any] | None = None
    """What the pictures are drawn from, as derive/machine.py gives it."""
    logs: LogReport | None = None
    """Of a run over logs: what reports tell beside findings; ``answer`` has it for the document."""
    redacted: str = "none"
    """What was hidden of it: none, secrets, or identity, which is hosts, users and addresses as well."""
    version: str = __version__
    """Of the ascend-doctor that judged; a stored run may be told by a newer one."""


@dataclass(frozen=True)
class Asked:
    """What a run is asked: the chosen checks, by which rules, and how strictly; ``given``: areas known beforehand."""

    checks: tuple[Check, ...]
    rulebook: Rulebook
    gate: Gate = Gate()
    profile: Profile = field(default_factory=Profile)
    waivers: tuple[Waiver, ...] = ()
    with_facts: bool = False
    workers: int = WORKERS
    given: tuple[Collected[Any], ...] = ()
    rows: tuple[str, ...] = ()
    """Row sets that the verb shows as they are."""
    parts: tuple[str, ...] = ()
    """Parts of the rules that the verb shows, as the rows were made from them."""


def preflight(host: Host, asked: Asked) -> Run:
    """Judges a host. Raises RuleError for rules that cannot be read."""
    begun = time.perf_counter()
    log = CollectionLog(host)
    situation = Situation(log, asked.rulebook.rules, asked.workers, asked.profile, asked.given)
    areas = sorted({area for check in asked.checks for area in check.areas})
    situation.collect(areas)
    found = gates.numbered(each_judged(asked.checks, situation))
    found = [replace(f, required=True) if f.check in asked.profile.required else f for f in found]
    names, today = [check.id for check in asked.checks], host.now().date()
    found, waiver_notes = waived(found, asked.waivers, today, names, asked.rulebook.rules)
    findings = read_in_order(found, asked.checks)
    code = gates.exit_code(findings, asked.gate)
    final = gates.PASSED if asked.gate.fail_on == "never" else code
    noter = Noter(asked.rulebook)
    drawn = _machine(situation)
    return Run(
        kind="preflight",
        host={**host_words(host), "container": _container(situation)},
        started=host.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=round(time.perf_counter() - begun, 3),
        verdict=gates.verdict(code),
        gate=asked.gate,
        exit_code=BROKEN if situation.broken else final,
        counts=gates.counts(findings),
        notes=(*noter.notes(situation, findings, host), *waiver_notes),
        findings=tuple(findings),
        collection=log.questions(),
        rules=asked.rulebook.fingerprint(),
        facts=facts_as_json({area: situation.facts(area) for area in areas}) if asked.with_facts else None,
        rows={name: situation.rows(name) for name in asked.rows},
        parts={name: situation.need(name) for name in asked.parts},
        machine=drawn,
    )


def judged(checks: Sequence[Check], situation: Situation) -> list[Finding]:
    """All findings of the checks, explained and in reading order."""
    return read_in_order(gates.numbered(each_judged(checks, situation)), checks)


def each_judged(checks: Sequence[Check], situation: Situation) -> Iterator[Finding]:
    """The findings of each check, in the order of the checks."""
    for check in checks:
        yield from judge(check, situation)


def read_in_order(findings: Sequence[Finding], checks: Sequence[Check]) -> list[Finding]:
    """Findings with what explains them, as they are read."""
    causes = {check.id: check.explained_by for check in checks}
    return gates.ordered(gates.explained(findings, causes))


def host_words(host: Host) -> dict[str, Any]:
    """The host's identity as a report names it; None for what is not known."""
    identity = host.identity
    words = {name: getattr(identity, name) for name in ("hostname", "arch", "kernel", "uid", "gids")}
    known = {name: None if isinstance(value, Missing) else value for name, value in words.items()}
    gids = known["gids"]
    return {**known, "gids": None if gids is None else list(gids), "origin": host.origin}


def _machine(situation: Situation) -> Mapping[str, Any] | None:
    found = situation.guarded("derive/machine", "machine", lambda: machine(situation))
    return None if isinstance(found, Missing) else found


def _container(situation: Situation) -> str | None:
    """The kind of container that the run was in, "" outside of one, None where that is not known."""
    container = situation.facts("container")
    inside = getattr(container, "inside", None)
    if not isinstance(inside, bool):
        return None
    kind = getattr(container, "kind", "")
    return (kind if isinstance(kind, str) and kind else "container") if inside else ""


def run_as_json(run: Run) -> dict[str, Any]:
    """A run as reports/schema.json has it."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": run.kind,
        "tool": {"version": run.version, "rules": run.rules},
        "redacted": run.redacted,
        "host": dict(run.host),
        "started": run.started,
        "seconds": run.seconds,
        "verdict": run.verdict,
        "gate": {"fail_on": run.gate.fail_on, "strict": run.gate.strict, "exit_code": run.exit_code},
        "counts": dict(run.counts),
        "notes": [{"kind": note.kind, "text": dict(note.text)} for note in run.notes],
        "findings": [as_json(finding) for finding in run.findings],
        "collection": [{"source": q.source, "seconds": q.seconds, "missing": q.missing} for q in run.collection],
    }
    if run.facts is not None:
        document["facts"] = run.facts
    if run.machine is not None:
        document["machine"] = run.machine
    document.update(run.answer or {})
    return document
