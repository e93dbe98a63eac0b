"""What the logs of a child say, which were written while a step failed: one line, the root cause."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, cast

from ascend_doctor.facts.smoke import Step
from ascend_doctor.knowledge.log_book import LogBook
from ascend_doctor.knowledge.remedies import RemedyStep, Texts
from ascend_doctor.logs.analysis import analysed
from ascend_doctor.logs.files import LogFile, hint_of
from ascend_doctor.logs.known import load
from ascend_doctor.logs.records import records_of
from ascend_doctor.logs.scanning import scanner
from ascend_doctor.records import dataclass

LINE = 300
"""Characters of the line that is quoted."""
NOWHERE = datetime(2000, 1, 1)
"""The clock against which records without a year are put in order; all of them are of one process."""


@dataclass(frozen=True)
class Cause:
    """``signature``: its id, or a code; ``line``: as it stands in the log."""

    signature: str
    title: Texts
    line: str
    remedy: tuple[RemedyStep, ...]


def cause(step: Step, book: LogBook) -> Cause | None:
    """None where the step left no log, or one that names no cause."""
    files = list(_files(step))
    if not files:
        return None
    known = load(book.folders)
    scan = scanner(known.anchors())
    found = analysed(files, lambda file: records_of(file, scan), known.book(), NOWHERE).answer
    if found.root is None or not found.incidents[found.root].signature:
        return None
    incident = found.incidents[found.root]
    line = incident.first.record.text[:LINE]
    signature = known.signatures.of(incident.signature)
    if signature is not None:
        told = known.signatures.told(signature)
        return Cause(incident.signature, told.title, line, told.remedy)
    code = known.codes.of(incident.signature.removeprefix("code:"))
    if code is None:
        return Cause(incident.signature, {"en": incident.signature, "zh": incident.signature}, line, ())
    says = code.meaning or {"en": code.name, "zh": code.name}
    title = {language: f"{code.code}: {text}" for language, text in says.items()}
    return Cause(incident.signature, title, line, tuple(code.remedy))


OF_THE_INTERPRETER = re.compile(r"(?m)^(?:Fatal Python error: |Timeout \()")
"""From here on stderr has where Python stood; that the process crashed or hung is known."""


def _files(step: Step) -> Iterator[LogFile]:
    printed = OF_THE_INTERPRETER.split(step.stderr, maxsplit=1)[0].strip()
    texts = {**step.logs, **({"stderr": printed} if printed else {})}
    said = "\n".join(f"{error.type}: {error.text}" for error in step.errors)
    if said:
        texts["exception"] = said
    for name, text in texts.items():
        data = text.encode(errors="replace")
        yield LogFile(name, lambda data=data: cast(BinaryIO, io.BytesIO(data)), hint_of(name), size=len(data))  # type: ignore[misc]
