"""From findings to one answer: what explains what, in which order to read, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ascend_doctor.engine.checks import LAYERS, SEVERITIES
from ascend_doctor.engine.findings import Finding
from ascend_doctor.records import dataclass

FAIL_ON = (*SEVERITIES, "never")
COUNTED = ("pass", *SEVERITIES, "unknown", "skip", "waived", "explained")
_RANK = {severity: rank for rank, severity in enumerate(SEVERITIES)}
_VERDICT_RANK = {"fail": 0, "waived": 1, "unknown": 2, "skip": 3, "pass": 4}
PASSED, FAILED, UNDECIDED = 0, 1, 3


@dataclass(frozen=True)
class Gate:
    """``fail_on``: the least severity that fails; ``strict``: any unknown leaves it undecided."""

    fail_on: str = "error"
    strict: bool = False


def explained(findings: Sequence[Finding], causes: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Marks what another check's finding explains; ``causes``: check -> its explained_by. Order is kept.

    A cause is an unwaived fail of no lower severity on the same subject, or where one of the two is the host.
    """
    failed: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.verdict == "fail":
            failed.setdefault(finding.check, []).append(finding)
    return [replace(f, because=_cause(f, causes.get(f.check, ()), failed)) for f in findings]


def _cause(finding: Finding, names: Sequence[str], failed: Mapping[str, Sequence[Finding]]) -> str | None:
    if finding.verdict not in ("fail", "unknown"):
        return None
    for name in names:
        for cause in failed.get(name, ()):
            same = cause.subject == finding.subject or "host" in (cause.subject, finding.subject)
            grave = finding.verdict == "unknown" or _RANK[cause.severity or ""] <= _RANK[finding.severity or ""]
            if same and grave:
                return name
    return None


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Worst first; below each what it explains; then what could not be judged, what did not apply, what passed."""
    by_cause: dict[str | None, list[Finding]] = {}
    for finding in sorted(findings, key=_reading_order):
        by_cause.setdefault(finding.because, []).append(finding)
    found: list[Finding] = []

    def below(cause: str | None) -> None:
        for finding in by_cause.pop(cause, ()):
            found.append(finding)
            if finding.verdict == "fail":
                below(finding.check)

    below(None)
    for cause in list(by_cause):  # its cause is itself explained by nothing that is here
        below(cause)
    return found


def _reading_order(finding: Finding) -> tuple[int, int, int, str, str]:
    severity = _RANK.get(finding.severity or "", len(_RANK))
    return (_VERDICT_RANK[finding.verdict], severity, LAYERS.index(finding.layer), finding.check, finding.subject)


def numbered(findings: Iterable[Finding]) -> list[Finding]:
    """A subject that a check gives twice keeps both findings: the second is ``subject#2``."""
    seen: dict[tuple[str, str], int] = {}
    found = []
    for finding in findings:
        key = (finding.check, finding.subject)
        seen[key] = seen.get(key, 0) + 1
        again = seen[key] > 1
        found.append(replace(finding, subject=f"{finding.subject}#{seen[key]}") if again else finding)
    return found


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """How many of each verdict, fails by severity; what is explained counts as that alone."""
    found = dict.fromkeys(COUNTED, 0)
    for finding in findings:
        word = finding.severity if finding.verdict == "fail" else finding.verdict
        found["explained" if finding.because else str(word)] += 1
    return found


def fails(finding: Finding, gate: Gate) -> bool:
    """Whether this finding makes the host not fit; ``never`` judges like ``error``."""
    limit = _RANK.get(gate.fail_on, _RANK["error"])
    return finding.verdict == "fail" and _RANK[finding.severity or ""] <= limit


def exit_code(findings: Iterable[Finding], gate: Gate) -> int:
    """0 fit, 1 not fit, 3 cannot say."""
    undecided = False
    for finding in findings:
        if fails(finding, gate):
            return FAILED
        undecided |= finding.verdict == "unknown" and (finding.required or gate.strict)
    return UNDECIDED if undecided else PASSED


def verdict(code: int) -> str:
    """The word for an exit code of the gate."""
    return {PASSED: "pass", FAILED: "fail", UNDECIDED: "undecided"}[code]
