"""What a file is and which time it spans, told from its content."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Callable

from ascend_doctor.logs.grammar import Line, lines_of

SAMPLE = 60
"""Lines that are looked at."""


def _sample(data: bytes, text: Callable[[bytes], str], last: bool = False) -> list[Line]:
    """The first lines of some data, or the last ones of it."""
    parts = data.rsplit(b"\n", SAMPLE)[-SAMPLE:] if last else data.split(b"\n", SAMPLE)[:SAMPLE]
    found: list[Line] = []
    for raw in parts:
        if raw.strip():
            found.extend(lines_of(text(raw[:2000])))
    return found


def kind_of(data: bytes, text: Callable[[bytes], str], last: bool = False) -> str:
    """The commonest kind of the first or last lines that have a head of their own; unknown where none has."""
    lines = _sample(data, text, last)
    kinds = Counter(line.kind for line in lines if line.headed and (line.level or line.kind != "framework"))
    if kinds:
        return max(kinds, key=lambda kind: (kinds[kind], kind))
    words = ("Traceback", "Error", "error", "failed", ">>> ", "llama_", "ggml_")
    return "framework" if any(word in line.text for line in lines for word in words) else "unknown"


def span_of(data: bytes, text: Callable[[bytes], str], last: bool = False) -> tuple[datetime | None, datetime | None]:
    """The first and the last time in a part of a file."""
    times = [line.time for line in _sample(data, text, last) if line.time]
    return (times[0], times[-1]) if times else (None, None)
