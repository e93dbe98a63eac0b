"""Which findings lie on which part of a picture: the gravest one marks it, and is where its link goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ascend_doctor.engine.findings import Finding
from ascend_doctor.records import dataclass

GRAVITY = ("error", "warning", "unknown", "info")
"""What marks a part, the gravest first."""


@dataclass(frozen=True)
class Trouble:
    """``mark``: a severity, or unknown; ``target``: the finding's place in the page."""

    mark: str
    target: str


def troubles(findings: Iterable[tuple[Finding, str]]) -> Mapping[str, Trouble]:
    """Subject -> its gravest finding; ``npu:5`` has those of ``npu:5/0`` too. Each finding comes with its target."""
    found: dict[str, Trouble] = {}
    for finding, target in findings:
        mark = str(finding.severity) if finding.verdict == "fail" else finding.verdict
        if mark not in GRAVITY:
            continue
        for subject in {finding.subject, finding.subject.partition("/")[0] if _is_chip(finding) else finding.subject}:
            known = found.get(subject)
            if known is None or GRAVITY.index(mark) < GRAVITY.index(known.mark):
                found[subject] = Trouble(mark, target)
    return found


def _is_chip(finding: Finding) -> bool:
    return finding.subject.startswith("npu:")


def gravest(*found: Trouble | None) -> Trouble | None:
    """The first of the gravest."""
    known = [one for one in found if one is not None]
    return min(known, key=lambda one: GRAVITY.index(one.mark)) if known else None
