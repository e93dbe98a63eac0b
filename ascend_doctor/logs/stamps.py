"""Times as Ascend logs write them: text -> datetime without zone, None where the text is no date.

A boot clock's seconds are counted from 1970 (BOOT), so that they have an order; clocks.py moves them.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from ascend_doctor.logs import BOOT, NO_YEAR

DATE = r"\d{4}[-/]\d\d[-/]\d\d[-T_ ]{1,2}\d\d:\d\d:\d\d"
"""2025-03-01-00:00:00, 2025-03-01 00:00:00, 2025-03-01T00:00:00, 2024/01/10 03:30:38."""

_MONTHS = {
    "Jan": 1,
    "Feb": 2,
    "Mar": 3,
    "Apr": 4,
    "May": 5,
    "Jun": 6,
    "Jul": 7,
    "Aug": 8,
    "Sep": 9,
    "Oct": 10,
    "Nov": 11,
    "Dec": 12,
}
_ZONE = re.compile(r"(?:(Z)|([+-])(\d\d):?(\d\d))$")
_IN_CHINESE = re.compile(r"(\d{1,2})月")


def of_date(text: str) -> datetime | None:
    """``DATE`` with any fraction: ``.mmm.uuu``, ``.uuuuuu``, ``,mmm``; nanoseconds are cut."""
    try:
        tail = 20 if text[19:20] in (".", ",") else 0
        start = 1 if text[11:12] == " " else 0  # two blanks between date and time
        return datetime(
            int(text[0:4]),
            int(text[5:7]),
            int(text[8:10]),
            int(text[11 + start : 13 + start]),
            int(text[14 + start : 16 + start]),
            int(text[17 + start : 19 + start]),
            _micros(text[tail:]) if tail else 0,
        )
    except ValueError:
        return None


def _micros(fraction: str) -> int:
    digits = fraction.replace(".", "")
    end = 0
    while end < len(digits) and end < 6 and digits[end].isdigit():
        end += 1
    return int(digits[:end].ljust(6, "0")) if end else 0


def of_unpadded(text: str, fraction: str) -> datetime | None:
    """ATB writes microseconds without their leading zeros: ``.64217`` is 64,217 us."""
    whole = of_date(text)
    return whole and whole + timedelta(microseconds=int(fraction[:6]))


def utc_offset(text: str) -> int | None:
    """Minutes that a stamp's clock is before UTC, as its end says: ``Z``, ``+08:00``, ``+0800``."""
    found = _ZONE.search(text)
    if not found:
        return None
    if found[1]:
        return 0
    minutes = int(found[3]) * 60 + int(found[4])
    return -minutes if found[2] == "-" else minutes


def of_day(month: str, day: str, clock: str, year: int = NO_YEAR) -> datetime | None:
    """A stamp without a year: ``08-05 19:37:15``, ``904 09:50:12.024``, ``Aug  1 08:38:31``."""
    try:
        number = _MONTHS.get(month) or int(month)
        fraction = _micros(clock[9:]) if len(clock) > 9 else 0
        return datetime(year, number, int(day), int(clock[0:2]), int(clock[3:5]), int(clock[6:8]), fraction)
    except ValueError:
        return None


def of_words(text: str) -> datetime | None:
    """``Mon Aug 11 09:12:40 2025``, in any locale that writes the month as Aug or as 8月."""
    words = text.split()
    chinese = _IN_CHINESE.search(text)
    month = chinese[1] if chinese else next((word for word in words if word in _MONTHS), "")
    clock = next((word for word in words if len(word) >= 8 and word[2] == word[5] == ":"), "")
    year = next((word for word in words if len(word) == 4 and word.isascii() and word.isdigit()), "")
    days = [word for word in words if word.isascii() and word.isdigit() and len(word) <= 2]
    if not (month and clock and year and days):
        return None
    return of_day(month, days[0], clock, int(year))


def of_boot(seconds: str) -> datetime | None:
    """Seconds since the kernel's start, counted from 1970."""
    try:
        return BOOT + timedelta(seconds=float(seconds))
    except (ValueError, OverflowError):
        return None
