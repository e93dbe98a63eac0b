"""What reports tell of logs beside findings, and its form as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ascend_doctor.engine.findings import Localized, Note
from ascend_doctor.logs import Coverage, Incident
from ascend_doctor.logs.analysis import Analysis
from ascend_doctor.logs.incidents import said
from ascend_doctor.records import dataclass

TEXT_LIMIT = 2000
TITLE_LIMIT = 160


@dataclass(frozen=True)
class LogReport:
    """What reports tell of logs beside findings. ``titles``: of each signature; ``chain``: consequences in order."""

    analysis: Analysis
    titles: Mapping[str, Localized]
    chain: tuple[int, ...]
    fetch: tuple[Note, ...]
    engine: str

    @property
    def root(self) -> Incident | None:
        found = self.analysis.answer.root
        return None if found is None else self.analysis.answer.incidents[found]

    def title(self, incident: Incident) -> Localized:
        text = shortened(said(told_text(incident)), TITLE_LIMIT)
        return self.titles.get(incident.signature) or {"en": text, "zh": text}


def logs_as_json(report: LogReport) -> dict[str, Any]:
    """The part of a run's document that is of logs."""
    answer = report.analysis.answer
    rows = [_incident(incident, i, report) for i, incident in enumerate(answer.incidents)]
    root = None if answer.root is None else {**rows[answer.root], "confidence": answer.confidence}
    if root is not None and root["role"] == "root" and len(answer.absent) == 1 and answer.suspects == answer.absent:
        root["rank"] = answer.absent[0]  # the one that never came, not the one that noticed
    return {
        "coverage": [_coverage(one) for one in report.analysis.coverage],
        "incidents": rows,
        "root_cause": root,
        "log_verdict": report.analysis.verdict,
        "chain": list(report.chain),
        "engine": report.engine,
        "fetch": [{"kind": note.kind, "text": dict(note.text)} for note in report.fetch],
        "suspects": {"ranks": list(answer.suspects), "silent": list(answer.silent), "absent": list(answer.absent)},
        "clocks": [
            {
                "file": one.file,
                "clock": one.clock,
                "offset_seconds": None if one.offset is None else one.offset.total_seconds(),
                "uncertainty_seconds": None if one.uncertainty is None else one.uncertainty.total_seconds(),
                "how": one.how,
            }
            for one in report.analysis.alignments
        ],
    }


def _incident(incident: Incident, index: int, report: LogReport) -> dict[str, Any]:
    record = incident.first.record
    return {
        "index": index,
        "signature": incident.signature or "unknown",
        "role": incident.role,
        "severity": incident.severity,
        "layer": incident.layer,
        "file": record.place.file,
        "line": record.place.line,
        "time": _iso(incident.at),
        "dated": incident.dated,
        "device": record.device,
        "rank": record.rank,
        "pid": record.pid,
        "host": record.host or None,
        "codes": list(incident.codes),
        "count": incident.count,
        "first": _iso(incident.at),
        "last": _iso(incident.until),
        "caused_by": incident.caused_by,
        "why": incident.why,
        "title": dict(report.title(incident)),
        "text": told_text(incident),
        "template": shortened(incident.template, TEXT_LIMIT),
    }


def told_text(incident: Incident) -> str:
    """The first line of an incident, as much of it as reports tell."""
    return shortened(incident.first.record.text, TEXT_LIMIT)


def _coverage(one: Coverage) -> dict[str, Any]:
    return {
        "path": one.path,
        "kind": one.kind,
        "encoding": one.encoding,
        "bytes": one.bytes,
        "lines": one.lines,
        "first": _iso(one.first),
        "last": _iso(one.last),
        "skipped": one.skipped,
        **({"files": one.files} if one.files > 1 else {}),
    }


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(sep="T")


def shortened(text: str, limit: int) -> str:
    """The beginning of a long text."""
    text = text.strip()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
