"""What a check found on a subject: the unit of every report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ascend_doctor.host import Missing
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.remedies import RemedyStep as RemedyStep
from ascend_doctor.records import dataclass

Localized = Mapping[str, str]
"""Language -> text."""

VERDICTS = ("pass", "fail", "unknown", "skip", "waived")


@dataclass(frozen=True)
class Evidence:
    """What shows it: ``source`` as in Answer, ``text`` the deciding lines."""

    source: str
    text: str


@dataclass(frozen=True)
class WaiverUsed:
    """Who answers for a waived finding, why, until which day, and how many days are left."""

    reason: str
    owner: str
    expires: str
    days_left: int


@dataclass(frozen=True)
class Note:
    """Something to know about a run that is no finding."""

    kind: str
    text: Localized


@dataclass(frozen=True)
class Finding:
    """A verdict with what it rests on. ``because`` names the check whose finding explains this one."""

    check: str
    subject: str
    verdict: str
    severity: str | None
    layer: str
    title: Localized
    required: bool = False
    found: Localized | None = None
    expected: Localized | None = None
    why: Localized | None = None
    because: str | None = None
    reason: str | None = None
    missing: tuple[Missing, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    remedy: tuple[RemedyStep, ...] = ()
    verify: str | None = None
    sources: tuple[Source, ...] = ()
    components: tuple[str, ...] = ()
    waiver: WaiverUsed | None = None


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding as reports/schema.json has it."""
    return {
        "check": finding.check,
        "subject": finding.subject,
        "verdict": finding.verdict,
        "severity": finding.severity,
        "layer": finding.layer,
        "required": finding.required,
        "title": dict(finding.title),
        "found": _texts(finding.found),
        "expected": _texts(finding.expected),
        "why": _texts(finding.why),
        "because": finding.because,
        "reason": finding.reason,
        "missing": [{"path": m.path, "reason": m.reason.value, "detail": m.detail} for m in finding.missing],
        "evidence": [{"source": e.source, "text": e.text} for e in finding.evidence],
        "remedy": [
            {
                "text": dict(step.text),
                "command": step.command,
                "needs_root": step.needs_root,
                "effect": step.effect,
                "undo": step.undo,
            }
            for step in finding.remedy
        ],
        "verify": finding.verify,
        "sources": [{"title": s.title, "url": s.url, "confidence": s.confidence} for s in finding.sources],
        "components": list(finding.components),
        **({"waiver": _waiver(finding.waiver)} if finding.waiver else {}),
    }


def _waiver(waiver: WaiverUsed) -> dict[str, Any]:
    return {
        "reason": waiver.reason,
        "owner": waiver.owner,
        "expires": waiver.expires,
        "days_left": waiver.days_left,
    }


def _texts(texts: Localized | None) -> dict[str, str] | None:
    return None if texts is None else dict(texts)
