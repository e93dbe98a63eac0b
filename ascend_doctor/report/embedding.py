"""The run inside its page, and what is cut of it to keep the page small enough to attach."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ascend_doctor.engine.findings import Note
from ascend_doctor.engine.run import Run, run_as_json
from ascend_doctor.report.bilingual import shortened
from ascend_doctor.report.words import words

LIMIT = 5_000_000
"""Bytes of a page, never more."""

EMBEDDED = 3_600_000
"""Characters of the run's document that leave room for the page around it."""

LEVELS = (4000, 1000, 400, 160)
"""Characters of one piece of evidence or log line, ever fewer."""

MOST = 2000
"""Findings of a page that is cut as far as it goes."""

KIND = "evidence-cut"
LONG = ("text", "template", "detail", "missing")
"""Keys of the document whose texts are what a host or a log says; in two languages they are ours, and stay."""

TOLD = ("found", "expected")
"""Texts of ours that hold what a host says."""


def slim(document: dict[str, Any]) -> dict[str, Any]:
    """Without the evidence of what passed: a third of the document, no page shows it, and the command's JSON has it."""
    findings = [{**one, "evidence": []} if one["verdict"] == "pass" else one for one in document["findings"]]
    return {**document, "findings": findings}


def ever_smaller(run: Run) -> Iterator[Run]:
    """The run; then, should its page be too large, the same with ever shorter evidence, and a note that says so."""
    document = slim(run_as_json(run))
    size = len(json.dumps(document, ensure_ascii=False))
    if size <= EMBEDDED:
        yield run
    from ascend_doctor.report.stored import run_of_document

    for level in LEVELS:
        smaller = _cut(document, level)
        left = len(json.dumps(smaller, ensure_ascii=False))
        if left <= EMBEDDED or level == LEVELS[-1]:
            if level == LEVELS[-1] and left > EMBEDDED:
                smaller = {**smaller, "findings": smaller["findings"][:MOST]}
                left = len(json.dumps(smaller, ensure_ascii=False))
            yield _noted(run_of_document(smaller), size - left)


def _noted(run: Run, cut: int) -> Run:
    note = Note(KIND, {language: words(language).count("cut", cut) for language in ("en", "zh")})
    return replace(run, notes=(*(one for one in run.notes if one.kind != KIND), note))


def _cut(value: Any, limit: int, key: str = "") -> Any:
    if isinstance(value, dict):
        told = key in TOLD
        return {name: _cut(part, limit, key if told else name) for name, part in value.items()}
    if isinstance(value, list):
        return [_cut(part, limit) for part in value]
    return shortened(value, limit) if isinstance(value, str) and key in (*LONG, *TOLD) else value


def digest(run: Run) -> str:
    """Twelve characters that name the run: the same findings of the same host at the same time have the same."""
    document = slim(run_as_json(run))
    core = {name: document[name] for name in ("kind", "host", "started", "counts", "verdict", "findings")}
    text = json.dumps(core, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
