"""Findings and notes of a run over logs: an analysis in the words that the rules bring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ascend_doctor.engine.findings import Evidence, Finding, Localized, Note, RemedyStep
from ascend_doctor.engine.log_report import TEXT_LIMIT, shortened
from ascend_doctor.engine.rulebook import Rulebook
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.notes import note_text
from ascend_doctor.logs import Event, Incident
from ascend_doctor.logs.analysis import Analysis
from ascend_doctor.logs.clocks import Alignment
from ascend_doctor.logs.known import Knowledge as Knowledge

ROOT_CHECK = "logs.root-cause"
UNKNOWN = "not-in-the-catalogue"
LAYER_OF_FINDING = {"hardware": "hardware", "driver": "driver", "network": "access", "runtime": "libraries"}
"""The layers of findings are those of a host; what is not among them is of the launch."""

FAST = "hyperscan"
WORTH_A_FASTER_ENGINE = 64 << 20
"""Bytes of logs from which on it is worth a word that another engine is faster."""

FINDINGS_KEPT = 40
PROVING_LINES = 3
FOUND_LIMIT = 400


class Teller:
    """Puts an analysis into words that the rules bring."""

    def __init__(self, analysis: Analysis, known: Knowledge, rulebook: Rulebook) -> None:
        self.analysis, self.answer, self.known, self.rulebook = analysis, analysis.answer, known, rulebook
        self._told: dict[str, Any] = {}

    def titles(self) -> dict[str, Localized]:
        return {
            incident.signature: self._texts(incident.signature)["title"]
            for incident in self.answer.incidents
            if incident.signature
        }

    def findings(self) -> list[Finding]:
        verdict = self.analysis.verdict
        incidents, root = self.answer.incidents, self.answer.root
        if verdict == "clean":
            found = [self._plain("pass")]
        elif verdict == "no-logs":
            found = [self._plain("unknown", Missing(Reason.ABSENT, "", "logs"))]
        elif verdict == "evidence-missing" or root is None:
            found = [self._plain("unknown", Missing(Reason.NOT_COLLECTED, "", "logs.root_cause"))]
        else:
            found = [self._finding(incidents[root], "fail", incidents[root].severity)]
        cause = found[0].check
        told = {(incidents[root].signature if root is not None else "", True)}
        for incident in incidents:
            key = (incident.signature, incident.caused_by is not None)
            if incident.role == "harmless" or key in told or len(found) >= FINDINGS_KEPT:
                continue
            told.add(key)
            follows = incident.caused_by is not None and root is not None
            grave = verdict == "fault" and (follows or incident.why == "apart")
            severity = incident.severity if grave else _lesser(incident)
            finding = self._finding(incident, "fail", severity)
            found.append(replace(finding, because=cause if follows and found[0].verdict == "fail" else None))
        return [f for n, f in enumerate(found) if n == 0 or f.check != cause]

    def _plain(self, verdict: str, *missing: Missing) -> Finding:
        kind = {"clean": "log-none-found", "no-logs": "log-no-logs"}.get(self.analysis.verdict, "log-not-shown")
        return Finding(
            check=ROOT_CHECK,
            subject="host",
            verdict=verdict,
            severity=None,
            layer="launch",
            title=self._text(kind),
            required=verdict == "unknown",
            missing=missing,
        )

    def _finding(self, incident: Incident, verdict: str, severity: str) -> Finding:
        told = self._texts(incident.signature) if incident.signature else {}
        first = incident.first
        line = shortened(first.record.text, FOUND_LIMIT)
        return Finding(
            check=check_of(incident),
            subject=subject_of(incident),
            verdict=verdict,
            severity=severity,
            layer=LAYER_OF_FINDING.get(incident.layer, "launch"),
            title=told.get("title") or self._text("log-unknown-error"),
            found={"en": line, "zh": line},
            expected=None,
            why=told.get("meaning"),
            evidence=tuple(_evidence(event) for event in _proving(incident)),
            remedy=told.get("remedy", ()),
            verify=told.get("verify"),
            sources=told.get("sources", ()),
        )

    def _texts(self, name: str) -> dict[str, Any]:
        told: dict[str, Any] | None = self._told.get(name)
        if told is None:
            told = self._told[name] = self._read_texts(name)
        return told

    def _read_texts(self, name: str) -> dict[str, Any]:
        signature = self.known.signatures.of(name)
        if signature is not None:
            told = self.known.signatures.told(signature)
            return {
                "title": told.title,
                "meaning": told.meaning,
                "remedy": tuple(_step(step) for step in told.remedy),
                "verify": told.verify,
                "sources": told.sources,
            }
        code = self.known.codes.of(name.removeprefix("code:"))
        if code is None:
            return {"title": {"en": name, "zh": name}}
        says = code.meaning or {"en": code.name, "zh": code.name}
        return {
            "title": {language: f"{code.code}: {text}" for language, text in says.items()},
            "meaning": code.causes or None,
            "remedy": tuple(_step(step) for step in code.remedy),
            "sources": (code.source,),
        }

    def notes(self, engine: str) -> Iterable[Note]:
        answer, analysis = self.answer, self.analysis
        if analysis.interrupted:
            yield self._note("log-interrupted", files=sum(one.files for one in analysis.coverage))
        if engine not in ("", FAST) and sum(one.bytes for one in analysis.coverage) > WORTH_A_FASTER_ENGINE:
            yield self._note("log-engine", engine=engine)
        if analysis.unread:
            names = ", ".join(f"{one.path} ({one.skipped})" for one in analysis.unread[:3])
            more = ", …" if len(analysis.unread) > 3 else ""
            yield self._note("log-unread", count=len(analysis.unread), names=names + more)
        yield from self._clock_notes()
        for file, seconds in analysis.device_offsets:
            if seconds:
                yield self._note("log-clock-device", file=file, offset=_hours(-seconds))
        outside = [answer.incidents[i] for i in answer.outside if answer.incidents[i].role in ("root", "symptom")]
        if outside:
            names = ", ".join(dict.fromkeys(i.signature or "?" for i in outside[:5]))
            times = [i.until or i.at for i in outside if i.at]
            latest = max((t for t in times if t), default=None)
            yield self._note("log-outside", count=len(outside), names=names, latest=latest or "?")
        if analysis.left_out:
            yield self._note("log-left-out", count=analysis.left_out)
        if answer.ring:
            yield self._note("log-ring", ranks=", ".join(map(str, answer.ring)))

    def _clock_notes(self) -> Iterable[Note]:
        """One for each way in which a clock was moved, naming the first file of it."""
        ways: dict[tuple[Any, ...], list[Alignment]] = {}
        for one in self.analysis.alignments:
            if one.how != "reference":
                ways.setdefault((one.clock, one.how, one.offset), []).append(one)
        for group in ways.values():
            one = group[0]
            doubt = "?" if one.uncertainty is None else f"{one.uncertainty.total_seconds():.0f} s"
            known = one.offset is not None
            kind = "log-clock-boot" if known and one.clock == "boot" else "log-clock" if known else "log-clock-unknown"
            yield self._note(
                kind,
                file=one.file + (f" (+{len(group) - 1})" if len(group) > 1 else ""),
                clock=one.clock,
                offset=_hours(one.offset.total_seconds()) if one.offset is not None else "",
                doubt=doubt,
                how=one.how,
                started=_started(one.offset) if one.offset is not None else "",
            )

    def fetch(self) -> Iterable[Note]:
        """What would settle it, where the answer is not sure."""
        if self.analysis.verdict == "no-logs":
            yield self._note("log-fetch-where")
            return
        if self.analysis.verdict != "evidence-missing":
            return
        answer, kinds = self.answer, self.analysis.kinds
        root = None if answer.root is None else answer.incidents[answer.root]
        if answer.silent:
            yield self._note("log-fetch-ranks", ranks=", ".join(map(str, answer.silent)))
        elif root is not None and root.layer in ("communication", "network"):
            yield self._note("log-fetch-all-ranks")
        if "plog" not in kinds:
            yield self._note("log-fetch-plog")
        elif not answer.silent:
            pids = sorted(
                {i.first.record.pid for i in answer.incidents if i.first.record.pid and i.first.record.kind == "plog"}
            )
            if pids:
                yield self._note("log-fetch-earlier", pids=", ".join(map(str, pids[:8])))
        if "kernel" not in kinds:
            yield self._note("log-fetch-kernel")
        if "slog" not in kinds:
            yield self._note("log-fetch-device")

    def _note(self, kind: str, **values: object) -> Note:
        return Note(kind, self._text(kind, **values))

    def _text(self, kind: str, **values: object) -> Localized:
        return note_text(self.rulebook.rules, kind, values)


def check_of(incident: Incident) -> str:
    """``logs.hccl-socket-timeout``: the name of a finding, from that of a signature or a code."""
    name = incident.signature or UNKNOWN
    return "logs." + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def subject_of(incident: Incident) -> str:
    """Where it was: rank, device or process; host where none is known."""
    record = incident.first.record
    for name, number in (("rank", record.rank), ("device", record.device), ("pid", record.pid)):
        if number is not None and number >= 0:
            return f"{name}:{number}"
    return "host"


def _lesser(incident: Incident) -> str:
    """What is not the answer does not fail the run: an old event, a symptom, an error that nobody knows."""
    return "info" if incident.severity == "info" or incident.role in ("detail", "unknown") else "warning"


def _proving(incident: Incident) -> Sequence[Event]:
    return incident.events[:PROVING_LINES]


def _evidence(event: Event) -> Evidence:
    place = event.record.place
    return Evidence(f"log:{place.file}:{place.line}", shortened(event.record.text, TEXT_LIMIT))


def _step(step: Any) -> RemedyStep:
    return RemedyStep(step.text, step.command, step.needs_root, step.effect, step.undo)


def _hours(seconds: float) -> str:
    sign = "-" if seconds < 0 else "+"
    minutes = round(abs(seconds) / 60)
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def _started(offset: Any) -> str:
    return str((datetime(1970, 1, 1) + offset).replace(microsecond=0))
