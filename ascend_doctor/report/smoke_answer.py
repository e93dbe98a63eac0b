"""What a smoke run says beside its findings, as a part of the run's document; reports tell it from there (smoke.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ascend_doctor.derive.smoke_summary import StageSeen, Summary
from ascend_doctor.engine.findings import Finding, Note
from ascend_doctor.engine.run import Run
from ascend_doctor.engine.texts import LANGUAGES
from ascend_doctor.host import Missing
from ascend_doctor.report.words import Words, words

ROWS = "smoke_summary.runs"
GRAVEST = ("error", "warning", "unknown", "info", "waived", "pass", "skip")
"""Of several findings on a stage the first of these is its outcome."""


def answered(run: Run, kind: str) -> Run:
    """The run with what the smoke says beside findings, under its name in the document."""
    rows = run.rows.get(ROWS)
    found = tuple(one for one in rows if isinstance(one, Summary)) if isinstance(rows, tuple) else ()
    notes = list(run.notes)
    if found and not any(one.kind == "npu" for one in found):
        notes.append(Note("no-npu-tested", {language: words(language)["smoke_no_npu"] for language in LANGUAGES}))
    answer: dict[str, Any] = dict(run.answer or {})
    devices = [_of_device(one, run) for one in found]
    answer["smoke"] = {**devices[0], "devices": devices} if devices else None
    return replace(run, kind=kind, answer=answer, notes=tuple(notes))


def _of_device(summary: Summary, run: Run) -> dict[str, Any]:
    needed = summary.needed
    return {
        "sentence": {language: _sentence(summary, words(language)) for language in LANGUAGES},
        "device": summary.device,
        "kind": summary.kind,
        "name": summary.name,
        "dtype": summary.dtype,
        "size": summary.size,
        "ranks": summary.ranks,
        "refused": summary.refused,
        "config": _plain(summary.config),
        "cards_needed": {
            "model": needed.model,
            "card": needed.card,
            "card_bytes": _known(needed.card_bytes),
            "weights_bytes": _known(needed.weights_bytes),
            "usable_fraction": needed.fraction,
            "cards": _known(needed.cards),
        },
        "stages": [_of_stage(stage, summary, run) for stage in summary.stages],
        "latency": {**summary.latency, "samples_ms": list(summary.samples_ms)} if summary.latency else None,
        "memory": {
            "predicted_bytes": dict(summary.predicted),
            "measured_bytes": dict(summary.memory),
            "slope_bytes": _known(summary.slope),
        },
    }


def _sentence(summary: Summary, words: Words) -> str:
    """``DeepSeek-V4 architecture smoke, reduced: ...``; never that the real model runs."""
    if summary.ranks:
        return words["smoke_ranks_sentence"].format(count=summary.ranks)
    config = summary.config
    ratios = config.get("ratios", ())
    return words["smoke_sentence"].format(
        size=summary.size,
        layers=len(ratios) if isinstance(ratios, (tuple, list)) else "?",
        hidden=config.get("hidden", "?"),
        experts=config.get("experts", "?"),
    )


def _of_stage(stage: StageSeen, summary: Summary, run: Run) -> dict[str, Any]:
    """With the gravest of its findings on this device."""
    subjects = (summary.device, "host")
    mine = [f for f in run.findings if f.check == f"smoke.{stage.id}" and _subject(f) in subjects]
    graded = [(str(f.severity) if f.verdict == "fail" else f.verdict, f) for f in mine]
    outcome, reason = "skip", ""
    if graded:
        outcome, finding = min(graded, key=lambda pair: GRAVEST.index(pair[0]))
        reason = next((m.detail for m in finding.missing if m.detail), finding.reason or "")
    return {
        "number": stage.number,
        "name": stage.id,
        "title": dict(stage.name),
        "outcome": outcome,
        "reached": stage.reached,
        "seconds": stage.seconds,
        "deadline": stage.deadline,
        "reason": reason,
    }


def _subject(finding: Finding) -> str:
    """The device: an operator may follow it, and a number where it comes twice."""
    return finding.subject.partition(" ")[0].partition("#")[0]


def _plain(config: Mapping[str, object]) -> dict[str, object]:
    return {name: [int(v) for v in value] if isinstance(value, tuple) else value for name, value in config.items()}


def _known(value: object) -> object:
    return None if isinstance(value, Missing) else value
