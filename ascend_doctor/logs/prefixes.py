"""What others put before a log line: grep, docker compose, kubectl, CRI, journald, JSON loggers, vLLM, Ray, torchrun.

``unwrapped`` takes them off, one after the other, and keeps what they say: process, rank, host and time.
"""

from __future__ import annotations

import json
import re
from datetime import datetime

from ascend_doctor.logs import stamps


class Wrapping:
    """What the prefixes of one line say; ``kernel``: syslog says that the kernel printed it."""

    __slots__ = ("clock", "host", "kernel", "level", "pid", "rank", "repeated", "time", "utc_offset")

    def __init__(self) -> None:
        self.pid: int | None = None
        self.rank: int | None = None
        self.host = ""
        self.level = ""
        self.time: datetime | None = None
        self.clock = "none"
        self.utc_offset: int | None = None
        self.repeated = 1
        self.kernel = False


MOST = 8
"""Prefixes of one line: more is not a log but an attack."""

_WORD = r"[A-Za-z0-9][\w.@-]{0,100}"
_GREP = re.compile(
    r"((?:\.{0,2}/|[\w.-]{1,80}/)?[\w./@+:=-]{1,300}?\.(?:log|txt|err|out|stderr|stdout)[\w.]{0,20})([:-])(\d{1,9})\2"
)
_COMPOSE = re.compile(rf"{_WORD} {{1,60}}\| ")
_KUBECTL = re.compile(rf"\[pod/{_WORD}/{_WORD}\] ")
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) std(?:out|err) [FP] ")
_NANOS = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7,9}(?:Z|[+-]\d\d:\d\d)) ")
"""What ``kubectl logs --timestamps``, ``docker logs -t`` and build servers add; no logger writes so fine a time."""
_SYSLOG = re.compile(
    r"(?:<\d{1,3}>)?(?:([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)"
    r"|(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d))) "
    r"([\w.:-]{1,255}) ([\w./@-]{1,80})(?:\[(\d{1,10})\])?: "
)
_ACTOR = re.compile(r"\((\w[\w:.*-]{0,80})? ?pid=(\d{1,10})(?:, ip=([\w.:]{1,80}))?\) ?")
_RANK = re.compile(r"\[(?:rank|default)(\d{1,6})\]:? ?")
_REPEATED = re.compile(r" \[repeated (\d{1,9})x across cluster\][^\n]{0,300}$")
_JSON_TEXT = ("log", "msg", "message", "MESSAGE", "text", "event")
_JSON_TIME = ("time", "ts", "timestamp", "@timestamp", "asctime", "__REALTIME_TIMESTAMP")
_JSON_LEVEL = ("level", "levelname", "severity", "lvl")


def unwrapped(line: str, wrapping: Wrapping) -> str:
    """The line without its prefixes, which are told to ``wrapping``."""
    for _ in range(MOST):
        shorter = _without_one(line, wrapping)
        if shorter is None:
            break
        line = shorter
    if line.endswith("]") or "x across cluster]" in line[-200:]:
        found = _REPEATED.search(line, max(0, len(line) - 400))
        if found:
            wrapping.repeated = max(1, int(found[1]))
            line = line[: found.start()]
    return line


def _without_one(line: str, wrapping: Wrapping) -> str | None:
    first = line[:1]
    if first == "[":
        found = _RANK.match(line)
        if found:
            wrapping.rank = int(found[1])
            return line[found.end() :]
        found = _KUBECTL.match(line)
        return line[found.end() :] if found else None
    if first == "(":
        found = _ACTOR.match(line)
        if not found:
            return None
        wrapping.pid = int(found[2])
        wrapping.host = found[3] or wrapping.host
        return line[found.end() :]
    if first == "{":
        return _from_json(line, wrapping)
    return _without_word(line, wrapping)


def _without_word(line: str, wrapping: Wrapping) -> str | None:
    found = _CRI.match(line)
    if found:
        wrapping.time, wrapping.utc_offset = stamps.of_date(found[1]), stamps.utc_offset(found[1])
        wrapping.clock = "utc" if wrapping.utc_offset == 0 else "host"
        return line[found.end() :]
    found = _NANOS.match(line)
    if found:
        wrapping.time, wrapping.utc_offset = stamps.of_date(found[1]), stamps.utc_offset(found[1])
        wrapping.clock = "utc" if wrapping.utc_offset == 0 else "host"
        return line[found.end() :]
    found = _SYSLOG.match(line)
    if found:
        _syslog(found, wrapping)
        return line[found.end() :]
    found = _COMPOSE.match(line)
    if found:
        return line[found.end() :]
    found = _GREP.match(line)
    return line[found.end() :] if found else None


def _syslog(found: re.Match[str], wrapping: Wrapping) -> None:
    month, day, clock, iso, host, program, pid = found.groups()
    wrapping.host, wrapping.kernel, wrapping.clock = host, program == "kernel", "host"
    if iso:
        wrapping.time, wrapping.utc_offset = stamps.of_date(iso), stamps.utc_offset(iso)
        wrapping.clock = "utc" if wrapping.utc_offset == 0 else "host"
    else:
        wrapping.time = stamps.of_day(month, day, clock)
    if pid:
        wrapping.pid = int(pid)


def _from_json(line: str, wrapping: Wrapping) -> str | None:
    """The text in a line that is a JSON object, as docker and structured loggers write it."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    text = next((fields[key] for key in _JSON_TEXT if isinstance(fields.get(key), str)), None)
    if text is None:
        return None
    stamp = next((fields[key] for key in _JSON_TIME if isinstance(fields.get(key), str)), "")
    time = stamps.of_date(stamp)
    if time:
        wrapping.time, wrapping.utc_offset = time, stamps.utc_offset(stamp)
        wrapping.clock = "utc" if wrapping.utc_offset == 0 else "host"
    level = next((fields[key] for key in _JSON_LEVEL if isinstance(fields.get(key), str)), "")
    wrapping.level = level.upper() or wrapping.level
    pid = fields.get("pid", fields.get("process"))
    if isinstance(pid, int):
        wrapping.pid = pid
    extra = next((fields[key] for key in ("error", "exc_info", "stacktrace") if isinstance(fields.get(key), str)), "")
    return (f"{text}\n{extra}" if extra else str(text)).rstrip("\n")
