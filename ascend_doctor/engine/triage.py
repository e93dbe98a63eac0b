"""A host as it is and its logs in one run: the single most probable cause, and what to do about it first.

What the host is like and what its logs say are joined where they are the same thing; else what stands lower explains
what stands higher, and evidence of a failure that happened counts more than a setting that might cause one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ascend_doctor.engine import gate as gates
from ascend_doctor.engine.checks import SEVERITIES
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.gate import Gate
from ascend_doctor.engine.log_findings import ROOT_CHECK, check_of, subject_of
from ascend_doctor.engine.log_report import LogReport
from ascend_doctor.engine.run import BROKEN, Run
from ascend_doctor.knowledge.triage import Triage, Way
from ascend_doctor.logs import Incident
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Cause:
    """What is named. ``finding``: of the host or of the logs; ``with_it``: the other side where they are the same."""

    way: Way
    confidence: str
    finding: Finding
    with_it: Finding | None = None
    explained: Finding | None = None


def triage(
    host: Run,
    logs: Run,
    known: Triage,
    gate: Gate,
    block: Sequence[dict[str, Any]] = (),
    probes: Sequence[Run] = (),
) -> Run:
    """One run of both; ``block``: what maintainers ask for; ``probes``: runs that tried the host, judged like it."""
    assert logs.logs is not None
    now = [finding for run in (host, *probes) for finding in run.findings]
    told = [_of_logs(finding, logs.logs) for finding in logs.findings]
    cause = most_probable(now, told, logs.logs, known)
    findings = _in_order([*now, *told], cause)
    code = gates.exit_code(findings, gate)
    final = gates.PASSED if gate.fail_on == "never" else code
    notes = {(note.kind, note.text.get("en")): note for run in (host, *probes, logs) for note in run.notes}
    return replace(
        host,
        kind="triage",
        seconds=round(sum(run.seconds for run in (host, *probes, logs)), 3),
        verdict=gates.verdict(code),
        gate=gate,
        exit_code=BROKEN if BROKEN in [run.exit_code for run in (host, *probes)] else final,
        counts=gates.counts(findings),
        notes=tuple(notes.values()),
        findings=tuple(findings),
        facts=None,
        logs=logs.logs,
        answer={**_answers((host, logs, *probes)), "triage": {"cause": _cause(cause), "block": list(block)}},
    )


def _answers(runs: Sequence[Run]) -> dict[str, Any]:
    return {name: part for run in runs for name, part in (run.answer or {}).items()}


def _of_logs(finding: Finding, report: LogReport) -> Finding:
    """No logs at all leave a host that is fit no less fit."""
    if finding.check == ROOT_CHECK and report.analysis.verdict == "no-logs":
        return replace(finding, required=False)
    return finding


def most_probable(host: Sequence[Finding], logs: Sequence[Finding], report: LogReport, known: Triage) -> Cause | None:
    """None where nothing was found that could be one."""
    return next(_candidates(host, logs, report, known), None)


def _candidates(host: Sequence[Finding], logs: Sequence[Finding], report: LogReport, known: Triage) -> Iterator[Cause]:
    failed = [f for f in host if f.verdict == "fail" and not f.because and f.severity != "info"]
    errors = [f for f in failed if f.severity == "error"]
    root = report.root
    of_root = None if root is None else next((f for f in logs if f.check == check_of(root)), None)
    is_fault = report.analysis.verdict == "fault"
    for way in known.order:
        confidence = report.analysis.answer.confidence if way.confidence == "log" else way.confidence
        if way.id == "same" and root is not None:
            for finding in _nearest([f for f in failed if known.are_same(f.check, root.signature)], root):
                yield Cause(way, confidence, finding, with_it=of_root)
        elif way.id == "nothing-runs" and not report.analysis.named:
            for finding in (f for f in errors if f.check in known.nothing_runs):
                yield Cause(way, confidence, finding)
        elif way.id == "host-explains" and root is not None and is_fault:
            layers = [f for f in errors if root.layer in known.explains.get(f.layer, ())]
            for finding in _nearest(layers, root):
                yield Cause(way, confidence, finding, explained=of_root)
        elif way.id == "log-root" and is_fault and of_root is not None:
            yield Cause(way, confidence, of_root)
        elif way.id == "log-symptom" and (sign := _first_sign(report)) is not None:
            yield Cause(way, confidence, _finding_of(sign, logs, report))
        elif way.id in ("host-error", "host-warning"):
            for finding in errors if way.id == "host-error" else failed:
                yield Cause(way, confidence, finding)


def _nearest(findings: Sequence[Finding], root: Incident) -> list[Finding]:
    """Those on the device that the logs name before the others."""
    device = root.first.record.device
    begins = () if device is None else (f"npu:{device}/", f"npu:{device}#")
    return sorted(findings, key=lambda finding: not finding.subject.startswith(begins))


def _first_sign(report: LogReport) -> Incident | None:
    """Of logs that show that something failed but not what."""
    if report.root is not None or report.analysis.verdict != "evidence-missing":
        return report.root
    return next((one for one in report.analysis.answer.incidents if one.role != "harmless"), None)


def _finding_of(sign: Incident, logs: Sequence[Finding], report: LogReport) -> Finding:
    """The finding that tells of it; where there are too many to tell of all, one in its place."""
    check, subject = check_of(sign), subject_of(sign)
    for finding in logs:
        if (finding.check, finding.subject) == (check, subject):
            return finding
    return Finding(check, subject, "unknown", None, "launch", report.title(sign))


def _in_order(findings: Sequence[Finding], cause: Cause | None) -> list[Finding]:
    """As any run reads, but the cause first; what it explains stands below it, unless that is graver than the cause."""
    if cause is None:
        return gates.ordered(findings)
    top, other = cause.finding, cause.with_it or cause.explained
    if other is not None and _rank(top) <= _rank(other):
        findings = [replace(f, because=top.check) if _is(f, other) else f for f in findings]
    ordered = gates.ordered(findings)
    first = _group(ordered, top)
    if other is not None:
        first += [finding for finding in _group(ordered, other) if finding not in first]
    return [*first, *(finding for finding in ordered if finding not in first)]


def _group(ordered: Sequence[Finding], head: Finding) -> list[Finding]:
    """A finding and what stands below it."""
    found: list[Finding] = []
    named: set[str] = set()
    for finding in ordered:
        if _is(finding, head) or (found and finding.because in named):
            found.append(finding)
            named.add(finding.check)
    return found


def _rank(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity) if finding.severity in SEVERITIES else len(SEVERITIES)


def _is(finding: Finding, other: Finding) -> bool:
    return (finding.check, finding.subject) == (other.check, other.subject)


def _cause(cause: Cause | None) -> dict[str, Any] | None:
    if cause is None:
        return None
    finding = cause.finding
    from_logs = finding.check.startswith("logs.")
    text = finding.title if from_logs or finding.found is None else finding.found
    return {
        "way": cause.way.id,
        "why": dict(cause.way.why),
        "confidence": cause.confidence,
        "check": finding.check,
        "subject": finding.subject,
        "text": dict(text),
        "with": [{"check": f.check, "subject": f.subject} for f in (cause.with_it, cause.explained) if f],
    }
