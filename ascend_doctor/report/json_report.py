"""A run as JSON, in the form of reports/schema.json. Same findings, same bytes (times aside)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ascend_doctor.engine.run import Run, run_as_json


def as_text(run: Run) -> str:
    """JSON that keeps Chinese readable, one finding a line: for programs, and for grep and diff."""
    return "".join(_lines(run_as_json(run)))


def _lines(document: dict[str, Any]) -> Iterator[str]:
    # by hand, since json's own indenting runs in pure Python and costs as much as judging
    for number, (key, value) in enumerate(document.items()):
        yield f"{'{' if number == 0 else ','}\n{_text(key)}: "
        if isinstance(value, list) and value:
            yield "[\n" + ",\n".join(f" {_text(item)}" for item in value) + "\n]"
        else:
            yield _text(value)
    yield "\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
