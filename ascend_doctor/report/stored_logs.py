"""The part of a stored run that is of logs: incidents, the answer, and what was read."""

from __future__ import annotations

from datetime import timedelta

from ascend_doctor.engine.findings import Note
from ascend_doctor.engine.log_report import LogReport
from ascend_doctor.logs import ROLES, Coverage, Event, Incident, Place, Record
from ascend_doctor.logs.analysis import Analysis
from ascend_doctor.logs.causes import Answer
from ascend_doctor.logs.clocks import Alignment
from ascend_doctor.report.fields import Field

UNKNOWN = "unknown"
"""How a document names an incident that no signature knows."""

VERDICTS = ("fault", "clean", "evidence-missing", "no-logs")


def log_report(root: Field) -> LogReport:
    """Of a whole document. Raises StoredError."""
    rows = list(root["incidents"].items())
    incidents = tuple(_incident(row, len(rows)) for row in rows)
    cause, suspects = root["root_cause"], root["suspects"]
    answer = Answer(
        incidents=incidents,
        root=cause.or_none(lambda one: _index(one["index"], len(rows))),
        confidence=cause.or_none(lambda one: one["confidence"].one_of(("high", "medium", "low"))) or "low",
        verdict=root["log_verdict"].one_of(VERDICTS),
        suspects=suspects["ranks"].each(Field.whole),
        silent=suspects["silent"].each(Field.whole),
        absent=suspects["absent"].each(Field.whole),
    )
    coverage = root["coverage"].each(_coverage)
    return LogReport(
        analysis=Analysis(
            answer=answer,
            coverage=coverage,
            alignments=root["clocks"].each(_alignment),
            device_offsets=(),
            interrupted=False,
            left_out=0,
            named=False,
            kinds=frozenset(one.kind for one in coverage if one.lines),
        ),
        titles={
            incident.signature: row["title"].texts() for incident, row in zip(incidents, rows) if incident.signature
        },
        chain=root["chain"].each(lambda one: _index(one, len(rows))),
        fetch=root["fetch"].each(_note),
        engine=root["engine"].text(),
    )


def _note(field: Field) -> Note:
    return Note(field["kind"].text(), field["text"].texts())


def _index(field: Field, size: int) -> int:
    number = field.whole()
    if not 0 <= number < size:
        raise field.error(f"the index of one of {size} incidents")
    return number


def _incident(field: Field, size: int) -> Incident:
    signature = field["signature"].text()
    known = "" if signature == UNKNOWN else signature
    role, severity = field["role"].one_of(ROLES), field["severity"].one_of(("error", "warning", "info"))
    layer, codes, at = field["layer"].text(), field["codes"].each(Field.text), field["time"].or_none(Field.moment)
    record = Record(
        place=Place(field["file"].text(), field["line"].whole(), 0),
        kind="",
        level="",
        module="",
        time=at,
        clock="host",
        pid=field["pid"].or_none(Field.whole),
        thread="",
        rank=field["rank"].or_none(Field.whole),
        device=field["device"].or_none(Field.whole),
        text=field["text"].text(),
        host=field["host"].or_none(Field.text) or "",
    )
    return Incident(
        signature=known,
        role=role,
        severity=severity,
        layer=layer,
        events=(Event(record, known, role, severity, layer, codes, {}),),
        codes=codes,
        caused_by=field["caused_by"].or_none(lambda one: _index(one, size)),
        count=field["count"].whole(),
        at=at,
        until=field["last"].or_none(Field.moment),
        dated=field["dated"].flag(),
        template=field["template"].text(),
        why=field["why"].text(),
    )


def _coverage(field: Field) -> Coverage:
    return Coverage(
        path=field["path"].text(),
        kind=field["kind"].text(),
        encoding=field["encoding"].text(),
        bytes=field["bytes"].whole(),
        lines=field["lines"].whole(),
        first=field["first"].or_none(Field.moment),
        last=field["last"].or_none(Field.moment),
        skipped=field["skipped"].text(),
    )


def _alignment(field: Field) -> Alignment:
    def length(one: Field) -> timedelta:
        try:
            return timedelta(seconds=one.number())
        except OverflowError:
            raise one.error("a number of seconds") from None

    offset, doubt = field["offset_seconds"].or_none(length), field["uncertainty_seconds"].or_none(length)
    return Alignment(field["file"].text(), field["clock"].text(), offset, doubt, field["how"].text())
