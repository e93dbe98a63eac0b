"""Finds the lines that matter in a pile of bytes: a chunk of whole lines in, one ``Hit`` for each such line out.

Two engines keep one meaning. A line is a hit where it holds an anchor (a literal text of a signature) or a mark (a word
that shows an error of any kind). Of CANN's INFO, EVENT and DEBUG lines, which are most of a log, only the few anchors
wanted there count, unless an ERROR record is glued to their end. The head of a CANN line, up to its time, holds no
anchor, and behind it no mark counts but ERROR's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ascend_doctor.records import dataclass

ERROR = "[ERROR]"
MARKS = (
    ERROR,
    "[error]",
    "[Error]",
    "ERROR:",
    "ERROR ",
    "[FATAL]",
    "[fatal]",
    "[CRITICAL]",
    "CRITICAL",
    "Traceback (most recent call last)",
    "TraceBack (most recent call last)",
    "Error: ",
    "Error:",
    "Exception: ",
    "Fatal Python error",
    "terminate called",
    "Segmentation fault",
    "Aborted (core dumped)",
    "Bus error",
    "EXCEPTION STREAM",
    "DEVICE[",
    "exitcode",
    "<exception_print>",
    "system exception code",
    "/proc/uptime",
    "[PID: ",
    *(f"[E{month}" for month in range(1, 10)),
)
"""What an error looks like whoever prints it; records.py decides what of it is one. CANN's lines say their level."""

QUIET = rb"\[(?:INFO|EVENT|DEBUG|TRACE)\] ?(?!KERNEL|TSCH|IMP)[A-Z][A-Z0-9_]{0,31}\("
"""How a line begins that holds nothing but what was asked for; the device's kernel and firmware log faults as EVENT."""

ALWAYS = ("Entry-HcclCommInit",)
"""Wanted on INFO lines too, whatever the signatures: it tells which process is which rank."""


@dataclass(frozen=True)
class Anchors:
    """``words`` are looked for everywhere; ``quiet``, some of them, also on INFO and EVENT lines of CANN."""

    words: tuple[str, ...]
    quiet: tuple[str, ...] = ALWAYS


class Hit(NamedTuple):
    """A line of a chunk, without its line feed, and the anchors in it, sorted."""

    start: int
    end: int
    anchors: tuple[str, ...]


class Scanner(Protocol):
    """``chunk`` is of whole lines; the last one may lack its line feed. Hits come in order, one for each line."""

    name: str

    def feed(self, chunk: bytes) -> list[Hit]: ...


HEAD = re.compile(rb"\[[A-Z]{4,7}\] ?[A-Z][A-Z0-9_]*\(-?\d+,[^)\n]*\):\s?\d{4}-\d\d-\d\d.\d\d:\d\d:\d\d\.\d\d\d")


def scanner(anchors: Anchors, fast: bool = True) -> Scanner:
    """The fast engine where its library is there, and the pure one else."""
    from ascend_doctor.logs.scanning_pure import PureScanner

    if fast:
        try:
            from ascend_doctor.logs.scanning_fast import FastScanner

            return FastScanner(anchors)
        except ImportError:
            pass
    return PureScanner(anchors)


def spelled(words: Iterable[str]) -> dict[bytes, str]:
    """The bytes of each word in the encodings that logs have."""
    found = {}
    for word in words:
        found[word.encode()] = word
        if not word.isascii():
            found[word.encode("gb18030")] = word
    return found
