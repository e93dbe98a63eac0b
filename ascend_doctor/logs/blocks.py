"""Which lines belong together: error-manager blocks, tracebacks, tables of HCCL, what the device's firmware dumps.

A ``Block`` is a record that may still grow. Lines of several processes interleave, so each actor has its own block.
"""

from __future__ import annotations

from typing import Callable

from ascend_doctor.logs.grammar import NOBODY, Line

MOST_LINES = 400
MOST_CHARACTERS = 64 << 10

TRACEBACK = "Traceback (most recent call last)"


class Block:
    """``numbers`` are the line numbers of ``texts``; ``finished``: a traceback's exception has come; ``times``:
    for how many records it stands."""

    __slots__ = (
        "anchors",
        "characters",
        "finished",
        "head",
        "number",
        "numbers",
        "offset",
        "pending",
        "shape",
        "texts",
        "times",
    )

    def __init__(self, head: Line, number: int, offset: int, anchors: set[str], times: int = 1) -> None:
        self.times = times
        self.head, self.number, self.offset, self.anchors = head, number, offset, anchors
        self.texts: list[str] = []
        self.numbers: list[int] = []
        self.pending: list[tuple[str, int]] = []
        self.characters = 0
        self.finished = False
        self.shape = shape_of(head)

    def takes(self, line: Line, number: int) -> bool:
        """Whether the line goes on with this record; then it is part of it."""
        text = line.body
        blank = not text.strip()
        if not self._continues(line, text, blank):
            return False
        if blank:
            self.pending.append((text, number))
            return len(self.pending) < 3
        for held in self.pending:
            self._add(*held)
        self.pending.clear()
        self._add(text, number)
        return True

    def takes_indented(self, raw: bytes, number: int, text: Callable[[bytes], str]) -> bool:
        """The commonest further line, without taking it apart: one that is indented and has no prefix."""
        simple = self.shape in ("traceback", "indented", "stream") and self.head.actor == NOBODY
        if not simple or self.pending or raw.isspace() or TRACEBACK.encode() in raw:
            return False
        if len(self.texts) < MOST_LINES:
            self._add(text(raw), number)
        return True

    def _add(self, text: str, number: int) -> None:
        self.characters += len(text)
        if len(self.texts) < MOST_LINES and self.characters < MOST_CHARACTERS:
            self.texts.append(text)
            self.numbers.append(number)

    def _continues(self, line: Line, text: str, blank: bool) -> bool:
        shape, head = self.shape, self.head
        if shape == "table":
            row = text.lstrip()[:1] in ("|", "_", "-")
            return row and (line.pid, line.thread, line.module) == (head.pid, head.thread, head.module)
        if shape == "firmware":
            return text.startswith("<exception_print>")
        if line.kind in ("plog", "slog", "kernel", "blackbox"):
            return False
        if line.headed and (line.source != head.source or line.level != head.level or not line.source):
            return False
        indented = text[:1] in (" ", "\t") or text[:2] in ("| ", "+ ")
        if shape == "traceback":
            return self._in_traceback(line, text, blank, indented)
        if shape == "stream" and text.startswith("EXCEPTION STREAM"):
            return True
        return (indented or blank) and not text.lstrip().startswith(TRACEBACK)

    def _in_traceback(self, line: Line, text: str, blank: bool, indented: bool) -> bool:
        if indented:
            return True
        if self.finished or TRACEBACK in text:
            return False
        if blank:
            return not self.texts
        self.finished = True
        return True


def shape_of(head: Line) -> str:
    """What kind of further lines a record may have; "" for those that have none."""
    if head.kind == "plog":
        return "table" if head.body.lstrip()[:1] in ("|", "_") else ""
    if head.kind == "slog":
        return "firmware"
    if head.kind in ("kernel", "blackbox"):
        return ""
    if TRACEBACK in head.body or (head.headed and head.body[:1] in (" ", "\t")):
        return "traceback"  # in the second case its beginning is not in the log
    if head.module == "exception-stream":
        return "stream"
    return "indented"
