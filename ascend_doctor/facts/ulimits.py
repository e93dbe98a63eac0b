"""The limits of the asking process, which its children inherit: what ulimit shows.

Source: proc_pid_limits(5), getrlimit(2).
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

ROWS = {
    "open_files": ("Max open files", 1),
    "processes": ("Max processes", 1),
    "locked_kib": ("Max locked memory", 1024),
    "stack_kib": ("Max stack size", 1024),
    "core_kib": ("Max core file size", 1024),
    "address_space_kib": ("Max address space", 1024),
}
"""Field -> name in the file and bytes of a unit."""


@dataclass(frozen=True)
class Ulimits:
    """Soft limits; ``open_files_hard`` is how far a program may raise its own. Absent: unlimited."""

    open_files: int | Missing
    open_files_hard: int | Missing
    processes: int | Missing
    locked_kib: int | Missing
    stack_kib: int | Missing
    core_kib: int | Missing
    address_space_kib: int | Missing


def limits(text: bytes) -> Shown[Ulimits]:
    """Lines such as ``Max open files            1024                 524288               files``."""
    cells: dict[str, tuple[str, str]] = {}
    lines: dict[str, str] = {}
    for line in decoded(text).split("\n"):
        found = re.match(r"(Max [a-z ]{1,30}?)\s{2,}(unlimited|\d{1,20})\s+(unlimited|\d{1,20})", line, re.ASCII)
        if found:
            cells.setdefault(found[1], (found[2], found[3]))
            lines.setdefault(found[1], " ".join(line.split()))

    def value(field: str, column: int = 0) -> int | Missing:
        name, unit = ROWS[field]
        if name not in cells:
            return Missing(Reason.FAILED, f"no line {name} in limits")
        word = cells[name][column]
        return Missing(Reason.ABSENT, "unlimited") if word == "unlimited" else int(word) // unit

    texts = {field: lines.get(name, "") for field, (name, _) in ROWS.items()}
    return Shown(
        Ulimits(
            value("open_files"),
            value("open_files", 1),
            value("processes"),
            value("locked_kib"),
            value("stack_kib"),
            value("core_kib"),
            value("address_space_kib"),
        ),
        {**texts, "open_files_hard": texts["open_files"]},
    )


def collect(host: Host) -> Collected[Ulimits]:
    """Reads one file, starts nothing."""
    area = Area("ulimits")
    answer: Parsed[Ulimits] = parsed(host.read("/proc/self/limits"), limits)
    found = area.take("", answer)
    return area.of(Ulimits(*[found] * 7) if isinstance(found, Missing) else found)
