"""A run read back from what reports wrote of it: its JSON document, or the page that carries one.

The same dataclasses as of a run that was just made, so that it is told again in the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Callable

from ascend_doctor.engine.checks import EFFECTS, LAYERS, SEVERITIES
from ascend_doctor.engine.findings import VERDICTS, Evidence, Finding, Note, RemedyStep, WaiverUsed
from ascend_doctor.engine.gate import COUNTED, FAIL_ON, Gate
from ascend_doctor.engine.run import SCHEMA, Run
from ascend_doctor.host import Missing, Reason
from ascend_doctor.host.collection_log import Question
from ascend_doctor.knowledge.reading import CONFIDENCES, Source
from ascend_doctor.report.fields import Field, StoredError, sound

KINDS = ("preflight", "logs", "smoke", "memory", "numa", "versions", "triage", "diff", "fleet")
LARGEST = 256 << 20
"""Bytes of a document; what is larger is none that we wrote."""

_CORE = (
    *("schema", "kind", "tool", "host", "started", "seconds", "verdict", "gate", "counts", "notes", "findings"),
    "collection",
)
REDACTED = ("none", "secrets", "identity")

_OF_RUN: Mapping[str, Callable[[Field], Any]] = {
    "facts": lambda field: field.or_none(Field.mapping),
    "machine": lambda field: field.or_none(Field.mapping),
    "redacted": lambda field: field.one_of(REDACTED),
}
"""Keys that are fields of a Run by the same name, where there are any; all others are its ``answer``."""

_EMBEDDED = re.compile(r'<script type="application/json" id="run">(.*?)</script>', re.DOTALL)


def run_of_bytes(content: bytes) -> Run:
    """A run from a .json or .html report. Raises StoredError."""
    return run_of_document(document_of(content))


def document_of(content: bytes) -> dict[str, Any]:
    """The document in a .json or .html report. Raises StoredError."""
    if content[:2] == b"\x1f\x8b":
        raise StoredError("compressed; unpack it, or judge a snapshot with preflight --snapshot")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StoredError(f"no UTF-8 text at byte {error.start}; expected a .json or .html report") from None
    if text.lstrip()[:1] == "<":
        found = _EMBEDDED.search(text)
        if not found:
            raise StoredError("a page without a run in it; expected one that ascend-doctor wrote")
        text = found[1]
    try:
        document = json.loads(text, parse_constant=_refused)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise StoredError(f"{place}: no valid JSON: {error.msg}; expected a .json or .html report") from None
    except RecursionError:
        raise StoredError("nested too deep; no run is") from None
    except ValueError as error:
        raise StoredError(str(error)) from None
    if not isinstance(document, dict) or "schema" not in document:
        raise StoredError("no report of ascend-doctor: it has no schema; write one with -o report.json")
    return document


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no number of JSON")


def run_of_document(document: dict[str, Any]) -> Run:
    """Raises StoredError."""
    sound(document)
    root = Field(document)
    schema = root["schema"].text()
    if schema.startswith("ascend-doctor/snapshot/"):
        raise StoredError("the index of a snapshot; judge its folder: ascend-doctor preflight --snapshot FOLDER")
    if schema != SCHEMA:
        raise StoredError(f"schema: {schema[:60]} is not {SCHEMA}, which this ascend-doctor reads")
    known = {field.name for field in fields(Run)}
    parts = {name: read(root[name]) for name, read in _OF_RUN.items() if name in document and name in known}
    answer = {key: value for key, value in document.items() if key not in (*_CORE, *parts)}
    gate = root["gate"]
    run = Run(
        kind=root["kind"].one_of(KINDS),
        host=_host(root["host"]),
        started=root["started"].text(),
        seconds=root["seconds"].number(),
        verdict=root["verdict"].one_of(("pass", "fail", "undecided")),
        gate=Gate(gate["fail_on"].one_of(FAIL_ON), gate["strict"].flag()),
        exit_code=gate["exit_code"].whole(),
        counts={name: root["counts"][name].whole() for name in COUNTED},
        notes=root["notes"].each(_note),
        findings=root["findings"].each(_finding),
        collection=root["collection"].each(_question),
        rules=root["tool"]["rules"].text(),
        version=root["tool"]["version"].text(),
        answer=answer or None,
        logs=_logs(root),
        **parts,
    )
    _checked(run)
    return run


def _logs(root: Field) -> Any:
    if root["log_verdict"].value is None:
        return None
    from ascend_doctor.report.stored_logs import log_report

    return log_report(root)


def _checked(run: Run) -> None:
    """What renderers take for granted of a kind's own part. Raises StoredError."""
    from ascend_doctor.report.answers import answer_text
    from ascend_doctor.report.words import words

    answer_text(run, words("en"), verbose=True)


def _host(field: Field) -> dict[str, Any]:
    if not {"hostname", "arch", "kernel", "uid", "gids"} <= field.mapping().keys():
        raise field.error("hostname, arch, kernel, uid and gids, each of them known or null")
    for name in ("hostname", "arch", "kernel"):
        field[name].or_none(Field.text)
    field["uid"].or_none(Field.whole)
    field["gids"].or_none(lambda gids: gids.each(Field.whole))
    return dict(field.mapping())


def _note(field: Field) -> Note:
    return Note(field["kind"].text(), field["text"].texts())


def _question(field: Field) -> Question:
    return Question(field["source"].text(), field["seconds"].number(), field["missing"].or_none(Field.text))


def _finding(field: Field) -> Finding:
    verdict = field["verdict"].one_of(VERDICTS)
    fails = verdict in ("fail", "waived")
    return Finding(
        check=field["check"].text(),
        subject=field["subject"].text(),
        verdict=verdict,
        severity=field["severity"].one_of(SEVERITIES) if fails else field["severity"].or_none(Field.text),
        layer=field["layer"].one_of(LAYERS),
        title=field["title"].texts(),
        required=field["required"].or_none(Field.flag) or False,
        found=field["found"].or_none(Field.texts),
        expected=field["expected"].or_none(Field.texts),
        why=field["why"].or_none(Field.texts),
        because=field["because"].or_none(Field.text),
        reason=field["reason"].or_none(Field.text),
        missing=field["missing"].each(_missing),
        evidence=field["evidence"].each(_evidence),
        remedy=field["remedy"].each(_step),
        verify=field["verify"].or_none(Field.text),
        sources=field["sources"].each(_source),
        components=field["components"].each(Field.text),
        waiver=field["waiver"].or_none(_waiver),
    )


def _missing(field: Field) -> Missing:
    reason = Reason(field["reason"].one_of([reason.value for reason in Reason]))
    return Missing(reason, field["detail"].text(), field["path"].text())


def _evidence(field: Field) -> Evidence:
    return Evidence(field["source"].text(), field["text"].text())


def _step(field: Field) -> RemedyStep:
    return RemedyStep(
        field["text"].texts(),
        field["command"].or_none(Field.text),
        field["needs_root"].flag(),
        field["effect"].one_of(EFFECTS),
        field["undo"].or_none(Field.text),
    )


def _source(field: Field) -> Source:
    return Source(field["title"].text(), field["url"].link(), field["confidence"].one_of(CONFIDENCES))


def _waiver(field: Field) -> WaiverUsed:
    return WaiverUsed(
        field["reason"].text(), field["owner"].text(), field["expires"].text(), field["days_left"].whole()
    )
