"""Two runs compared: a run of the kind ``diff``, whose findings are what got worse, what nobody sees any more, and what
got better. The gate judges what got worse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ascend_doctor.engine import gate as gates
from ascend_doctor.engine.checks import SEVERITIES
from ascend_doctor.engine.fact_changes import FactChange, fact_changes
from ascend_doctor.engine.findings import Finding, Note
from ascend_doctor.engine.gate import Gate
from ascend_doctor.engine.run import BROKEN, Run
from ascend_doctor.knowledge.differences import Differences
from ascend_doctor.knowledge.notes import note_text
from ascend_doctor.records import dataclass

KINDS = ("worse", "unseen", "better", "changed")
"""Of a change: it fails now, or more gravely; it cannot be judged any more; it fails no more, or less gravely, or can
be judged again; something else of it changed."""

FACTS_OF_A_FINDING = 8
_GRADE = {severity: len(SEVERITIES) - rank for rank, severity in enumerate(SEVERITIES)}


class NotComparableError(Exception):
    """Two runs that answer different questions."""


@dataclass(frozen=True)
class Change:
    """One check on one subject; None: it was not asked there."""

    kind: str
    before: Finding | None
    after: Finding | None

    @property
    def finding(self) -> Finding:
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True)
class Side:
    """A run and what it was called."""

    name: str
    run: Run


def diff(
    before: Side,
    after: Side,
    known: Differences,
    rules: Sequence[Path],
    gate: Gate,
    areas_of: Callable[[str], Collection[str]] = lambda check: (),
) -> Run:
    """``areas_of``: the areas of facts that a check reads. Raises NotComparableError."""
    one, other = before.run, after.run
    if one.kind != other.kind:
        raise NotComparableError(
            f"{before.name} is a run of {one.kind}, {after.name} one of {other.kind}; compare two of a kind"
        )
    same_host = one.host.get("hostname") == other.host.get("hostname")
    found = changes(one.findings, other.findings, known)
    facts: list[FactChange] = []
    ignored = 0
    whole = one.facts is not None and other.facts is not None
    if one.facts is not None and other.facts is not None:
        facts, ignored = fact_changes(one.facts, other.facts, known, same_host)
    findings = gates.ordered(_told(found))
    code = gates.exit_code(findings, gate)
    final = gates.PASSED if gate.fail_on == "never" else code
    return replace(
        other,
        kind="diff",
        seconds=round(one.seconds + other.seconds, 3),
        verdict=gates.verdict(code),
        gate=gate,
        exit_code=BROKEN if BROKEN in (one.exit_code, other.exit_code) else final,
        counts=gates.counts(findings),
        notes=tuple(_notes(one, other, whole, rules)),
        findings=tuple(findings),
        collection=(),
        facts=None,
        rows={},
        parts={},
        logs=None,
        answer={
            "diff": {
                "of": one.kind,
                "before": _side(before),
                "after": _side(after),
                "same_host": same_host,
                "changes": [_change(change, facts, areas_of) for change in found],
                "same": len(_paired(one.findings, other.findings, known)) - len(found),
                "facts": [{"path": f.path, "before": f.before, "after": f.after} for f in facts],
                "facts_compared": whole,
                "facts_ignored": ignored,
            }
        },
        machine=None,
    )


def changes(before: Sequence[Finding], after: Sequence[Finding], known: Differences) -> list[Change]:
    """What differs between two runs, worst first."""
    found = []
    for one, other in _paired(before, after, known):
        kind = _kind(one, other)
        if kind:
            found.append(Change(kind, one, other))
    order = {id(f): n for n, f in enumerate(gates.ordered([change.finding for change in found]))}
    return sorted(found, key=lambda change: (KINDS.index(change.kind), order[id(change.finding)]))


def _paired(
    before: Sequence[Finding], after: Sequence[Finding], known: Differences
) -> list[tuple[Finding | None, Finding | None]]:
    """Findings of the same check on the same subject, side by side."""

    def keyed(findings: Sequence[Finding]) -> dict[tuple[str, str], Finding]:
        found: dict[tuple[str, str], Finding] = {}
        for finding in findings:
            passing = known.passing_subjects.match(finding.subject)
            found.setdefault((finding.check, "" if passing else finding.subject), finding)
        return found

    one, other = keyed(before), keyed(after)
    return [(one.get(key), other.get(key)) for key in dict.fromkeys((*other, *one))]


def _kind(before: Finding | None, after: Finding | None) -> str:
    """One of KINDS, or "" where nothing changed that anybody would want to know."""
    was, now = (finding.verdict if finding else "skip" for finding in (before, after))
    if now == "fail":
        grades = _grade(before), _grade(after)
        if was != "fail" or grades[1] > grades[0]:
            return "worse"
        if grades[1] < grades[0]:
            return "better"
        return "" if before and after and before.found == after.found else "changed"
    if now == "unknown":
        return "" if was in ("unknown", "skip") else "unseen"
    if was in ("fail", "unknown", "waived"):
        if now == "pass":
            return "better"
        return "" if was == "unknown" or was == now else "changed"
    return "changed" if now == "waived" else ""


def _grade(finding: Finding | None) -> int:
    return _GRADE.get(finding.severity or "", 0) if finding and finding.verdict == "fail" else 0


def _told(found: Sequence[Change]) -> list[Finding]:
    """The findings of a diff: what fails anew, what is not seen any more, what passes again."""
    kept = [change.after for change in found if change.after and _counts(change, change.after)]
    failing = {finding.check for finding in kept if finding.verdict == "fail"}
    return [finding if finding.because in failing else replace(finding, because=None) for finding in kept]


def _counts(change: Change, after: Finding) -> bool:
    return change.kind in ("worse", "unseen") or (change.kind == "better" and after.verdict == "pass")


def _notes(one: Run, other: Run, whole: bool, rules: Sequence[Path]) -> list[Note]:
    found = []
    if one.rules != other.rules:
        found.append(Note("diff-rules", note_text(rules, "diff-rules", {})))
    if not whole and one.kind == "preflight":
        found.append(Note("diff-facts", note_text(rules, "diff-facts", {})))
    redacted = [getattr(run, "redacted", "none") == "identity" for run in (one, other)]
    if redacted[0] != redacted[1]:
        found.append(Note("diff-redacted", note_text(rules, "diff-redacted", {})))
    return found


def _side(side: Side) -> dict[str, Any]:
    run = side.run
    return {
        "name": side.name,
        "host": run.host.get("hostname"),
        "started": run.started,
        "verdict": run.verdict,
        "counts": dict(run.counts),
        "version": run.version,
        "rules": run.rules,
    }


def _change(change: Change, facts: Sequence[FactChange], areas_of: Callable[[str], Collection[str]]) -> dict[str, Any]:
    finding = change.finding
    near = _near(finding, [fact for fact in facts if re.split(r"[.\[]", fact.path)[0] in areas_of(finding.check)])
    return {
        "change": change.kind,
        "check": finding.check,
        "subject": finding.subject,
        "layer": finding.layer,
        "title": dict(finding.title),
        "before": _state(change.before),
        "after": _state(change.after),
        "facts": [fact.path for fact in near[:FACTS_OF_A_FINDING]],
    }


def _near(finding: Finding, facts: Sequence[FactChange]) -> Sequence[FactChange]:
    """Of the facts of its areas what it is about: of its subject, or with a value that it names."""
    name = finding.subject.partition(":")[2]
    if name:
        return [fact for fact in facts if f"[{name}]" in fact.path]
    said = " ".join(texts.get("en", "") for texts in (finding.found, finding.expected) if texts)
    named = [fact for fact in facts if any(_is_named(value, said) for value in (fact.before, fact.after))]
    areas = {re.split(r"[.\[]", fact.path)[0] for fact in facts}
    return named or (facts if len(areas) == 1 else [])


def _is_named(value: str | None, said: str) -> bool:
    return value is not None and len(value) > 1 and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", said) is not None


def _state(finding: Finding | None) -> Mapping[str, Any] | None:
    if finding is None:
        return None
    return {
        "verdict": finding.verdict,
        "severity": finding.severity,
        "found": None if finding.found is None else dict(finding.found),
    }
