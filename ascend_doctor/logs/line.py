"""A line with its head taken apart, as the grammar builds it up."""

from __future__ import annotations

import re
from datetime import datetime

from ascend_doctor.logs import stamps

NOBODY = (None, None, "")


class Line:
    """A line with its head taken apart. ``text`` begins with its innermost head, ``body`` behind it.

    ``headed``: it has a head of its own. ``actor``: process, rank and host of its prefix; lines of several interleave.
    """

    __slots__ = (
        "actor",
        "body",
        "clock",
        "device",
        "headed",
        "host",
        "kind",
        "level",
        "module",
        "pid",
        "rank",
        "repeated",
        "source",
        "text",
        "thread",
        "time",
        "utc_offset",
    )

    def __init__(self, text: str) -> None:
        self.text = self.body = text
        self.kind = self.level = self.module = self.thread = self.host = self.source = ""
        self.clock = "none"
        self.time: datetime | None = None
        self.utc_offset: int | None = None
        self.pid: int | None = None
        self.rank: int | None = None
        self.device: int | None = None
        self.repeated = 1
        self.headed = False
        self.actor: tuple[int | None, int | None, str] = NOBODY


_WORDS = {
    "WARN": "WARNING",
    "WARNING": "WARNING",
    "ERROR": "ERROR",
    "EXCEPTION": "ERROR",
    "CRITICAL": "ERROR",
    "FATAL": "ERROR",
    "ERR": "ERROR",
    "FAIL": "ERROR",
    "INFO": "INFO",
    "NOTICE": "INFO",
    "DEBUG": "DEBUG",
    "TRACE": "TRACE",
    "EVENT": "EVENT",
    "SUCCESS": "INFO",
}


def level_of(word: str) -> str:
    """The level that a word stands for, "" for none."""
    return _WORDS.get(word.strip().upper(), "")


def behind(line: Line, found: re.Match[str]) -> None:
    line.body = line.body[found.end() :]


def set_time(line: Line, stamp: str) -> None:
    line.time, line.clock, line.utc_offset = stamps.of_date(stamp), "host", stamps.utc_offset(stamp)
    if line.utc_offset == 0:
        line.clock = "utc"
