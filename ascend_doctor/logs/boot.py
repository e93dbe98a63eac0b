"""When a kernel started: what places its log, whose stamps are seconds since then, on the clock of the others."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from ascend_doctor.records import dataclass

_FACT_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?\s{0,3}(Z\b|UTC\b|[+-]\d\d:?\d\d)?", re.ASCII
)
_FACT_UPTIME = re.compile(
    r"uptime\W{0,3}(\d{1,10}(?:\.\d{1,3})?)\s|^(\d{1,10}\.\d\d) \d{1,12}\.\d\d\s*$", re.ASCII | re.M
)


@dataclass(frozen=True)
class BootFact:
    """What a clock file or a live host tells: the wall clock and how long the kernel had run then."""

    wall: datetime
    uptime: float
    zone: timedelta | None
    how: str

    @property
    def started(self) -> datetime:
        return self.wall - timedelta(seconds=self.uptime)


def boot_fact(text: str) -> BootFact | None:
    """From a text with a date and /proc/uptime, as collectors write it; None where one of them is not in it."""
    date, uptime = _FACT_DATE.search(text), _FACT_UPTIME.search(text)
    if not date or not uptime:
        return None
    try:
        wall = datetime.fromisoformat(f"{date[1]}T{date[2]}")
    except ValueError:
        return None
    return BootFact(wall, float(uptime[1] or uptime[2]), _zone(date[3] or ""), "boot-facts")


def _zone(text: str) -> timedelta | None:
    if text in ("Z", "UTC"):
        return timedelta()
    if not text:
        return None
    digits = text[1:].replace(":", "")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if text[0] == "-" else size


def local_fact(now: datetime, uptime: float) -> BootFact:
    """Of a live host: ``now`` with its zone."""
    local = now.astimezone()
    return BootFact(local.replace(tzinfo=None), uptime, local.utcoffset() or timezone.utc.utcoffset(None), "live")
