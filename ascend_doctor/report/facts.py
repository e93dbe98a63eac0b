"""Facts for a reader: one a line, under the path by which checks name it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ascend_doctor.facts.tree import children
from ascend_doctor.host import Missing
from ascend_doctor.report.console import printable


def fact_lines(value: object, path: str) -> Iterator[str]:
    """``npu.chips[0].health = "OK"``; what is not known with its reason in parentheses."""
    if isinstance(value, Missing):
        yield printable(f"{path} = ({value.reason.value}{f': {value.detail}' if value.detail else ''})")
        return
    parts = list(children(value, path))
    for inner, part in parts:
        yield from fact_lines(part, inner)
    if not parts:
        shown: object = value if isinstance(value, (str, int, float, bool)) else [] if isinstance(value, tuple) else {}
        yield printable(f"{path} = {json.dumps(shown, ensure_ascii=False)}")
