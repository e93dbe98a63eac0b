"""Transparent huge pages as the kernel has them set.

Source: Linux kernel documentation, admin-guide/mm/transhuge.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Reason, decoded, parsed
from ascend_doctor.records import dataclass

SYSFS = "/sys/kernel/mm/transparent_hugepage"


@dataclass(frozen=True)
class Khugepaged:
    """The kernel thread that makes huge pages in the background; ``defrag`` 1: it may compact memory for one."""

    defrag: int | Missing
    pages_to_scan: int | Missing
    scan_sleep_milliseconds: int | Missing
    alloc_sleep_milliseconds: int | Missing


@dataclass(frozen=True)
class Thp:
    """The chosen word of each sysfs file, such as ``madvise`` of ``always [madvise] never``."""

    enabled: str | Missing
    defrag: str | Missing
    khugepaged: Khugepaged


def chosen_word(text: bytes) -> str | Missing:
    """The word in brackets; Missing(failed) where the file has none."""
    found = re.search(r"\[([a-z+]{1,40})\]", decoded(text))
    return found[1] if found else Missing(Reason.FAILED, "no word in brackets")


def number(text: bytes) -> int | Missing:
    """The one number of a file."""
    found = re.fullmatch(r"\s*(\d{1,18})\s*", decoded(text), re.ASCII)
    return int(found[1]) if found else Missing(Reason.FAILED, "no number")


def collect(host: Host) -> Collected[Thp]:
    """Reads six files, starts nothing."""
    area = Area("thp")

    def word(name: str) -> str | Missing:
        return area.take(name, parsed(host.read(f"{SYSFS}/{name}"), chosen_word))

    def setting(name: str, file: str) -> int | Missing:
        return area.take(f"khugepaged.{name}", parsed(host.read(f"{SYSFS}/khugepaged/{file}"), number))

    return area.of(
        Thp(
            enabled=word("enabled"),
            defrag=word("defrag"),
            khugepaged=Khugepaged(
                defrag=setting("defrag", "defrag"),
                pages_to_scan=setting("pages_to_scan", "pages_to_scan"),
                scan_sleep_milliseconds=setting("scan_sleep_milliseconds", "scan_sleep_millisecs"),
                alloc_sleep_milliseconds=setting("alloc_sleep_milliseconds", "alloc_sleep_millisecs"),
            ),
        )
    )
