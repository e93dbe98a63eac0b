"""The level of a line that has no head of a known logger, from what it says."""

from __future__ import annotations

import re

from ascend_doctor.logs.line import Line

_UNKNOWN_HEAD = re.compile(
    r"(?:[\[(<][^\[\]()<>\n]{0,60}[\])>][ :]{0,2}|[\d:.,/TZ+-]{1,30}(?: |(?=\[))){0,5}"
    r"(?:\[(?:ERROR|Error|error|FATAL|Fatal|fatal|CRITICAL|critical)\]|(?:ERROR|FATAL|CRITICAL)(?=[\s:|]))"
)
"""The level of a logger whose head nobody knows, behind brackets and stamps."""
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_][\w]{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Warning|Failure|Timeout)(?:: |:?$)"
)
EXCEPTION_LEVEL = re.compile(r"(?!Warning)\w.{0,300}?(?:Error|Exception|Failure|Timeout)(?:: |:?$)")
_CRASHES = ("terminate called", "Fatal Python error", "Segmentation fault", "Killed", "Bus error")


def level_of_text(line: Line) -> None:
    if line.level:
        return
    body = line.body
    if "Traceback (most recent call last)" in body or (EXCEPTION_LEVEL.match(body[:400]) and _EXCEPTION.match(body)):
        line.level = "WARNING" if body.split(":", 1)[0].endswith("Warning") else "ERROR"
    elif body.startswith(_CRASHES) or _UNKNOWN_HEAD.match(body[:400]):
        line.level = "ERROR"
