"""The host's own memory: what is there, what is free, swap, huge pages, and how the kernel was told to use them.

Sources: proc_meminfo(5); Linux kernel documentation, admin-guide/sysctl/vm; getauxval(3) for the page size.
"""

from __future__ import annotations

import re
import struct

from ascend_doctor.facts.thp import number
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

AUXV_PAGE_SIZE = 6
"""AT_PAGESZ."""


@dataclass(frozen=True)
class Memory:
    """In a container these are the machine's own figures; what the container may use is in ``cgroup``.

    ``huge_mib`` is locked away for huge pages, used or not; ``huge_free_mib`` is the part that nobody uses.
    ``page_kib``: the size of a plain page, 4 or 64.
    """

    total_mib: int | Missing
    available_mib: int | Missing
    swap_total_mib: int | Missing
    swap_used_mib: int | Missing
    commit_limit_mib: int | Missing
    committed_mib: int | Missing
    huge_mib: int | Missing
    huge_free_mib: int | Missing
    page_kib: int | Missing
    swappiness: int | Missing
    overcommit_memory: int | Missing


@dataclass(frozen=True)
class Table:
    """What /proc/meminfo says."""

    total_mib: int | Missing
    available_mib: int | Missing
    swap_total_mib: int | Missing
    swap_used_mib: int | Missing
    commit_limit_mib: int | Missing
    committed_mib: int | Missing
    huge_mib: int | Missing
    huge_free_mib: int | Missing


def table(text: bytes) -> Shown[Table]:
    """Lines such as ``MemAvailable:  123456 kB`` and ``HugePages_Free:  0``."""
    kib: dict[str, int] = {}
    lines: dict[str, str] = {}
    for line in decoded(text).split("\n"):
        found = re.match(r"([A-Za-z_]{1,40}):\s+(\d{1,15})(?: kB)?\s*$", line, re.ASCII)
        if found and found[1] not in kib:
            kib[found[1]], lines[found[1]] = int(found[2]), " ".join(line.split())

    def mib(*names: str) -> int | Missing:
        """The first less the second."""
        gone = [name for name in names if name not in kib]
        if gone:
            return Missing(Reason.FAILED, f"no line {gone[0]} in meminfo")
        return max(0, kib[names[0]] - sum(kib[name] for name in names[1:])) // 1024

    def pages_mib(name: str) -> int | Missing:
        """A number of huge pages of the usual size; a kernel without them has no such line."""
        if name not in kib or "Hugepagesize" not in kib:
            return Missing(Reason.ABSENT, f"no line {name} in meminfo") if kib else Missing(Reason.FAILED, "no meminfo")
        return kib[name] * kib["Hugepagesize"] // 1024

    shown = {
        "total_mib": ("MemTotal",),
        "available_mib": ("MemAvailable",),
        "swap_total_mib": ("SwapTotal",),
        "swap_used_mib": ("SwapTotal", "SwapFree"),
        "commit_limit_mib": ("CommitLimit",),
        "committed_mib": ("Committed_AS",),
        "huge_mib": ("HugePages_Total", "Hugepagesize", "Hugetlb"),
        "huge_free_mib": ("HugePages_Free", "Hugepagesize"),
    }
    texts = {part: "; ".join(lines[name] for name in names if name in lines) for part, names in shown.items()}
    value = Table(
        mib("MemTotal"),
        mib("MemAvailable"),
        mib("SwapTotal"),
        mib("SwapTotal", "SwapFree"),
        mib("CommitLimit"),
        mib("Committed_AS"),
        mib("Hugetlb") if "Hugetlb" in kib else pages_mib("HugePages_Total"),
        pages_mib("HugePages_Free"),
    )
    return Shown(value, texts)


def page_kib(auxv: bytes) -> Shown[int | Missing]:
    """Of the pairs of words that the kernel hands to a program, that of AT_PAGESZ."""
    for place in range(0, min(len(auxv), 4096) - 15, 16):
        kind, size = struct.unpack_from("<QQ", auxv, place)
        if kind == AUXV_PAGE_SIZE and size % 1024 == 0 and 0 < size <= 1 << 20:
            return Shown(size // 1024, {"": f"AT_PAGESZ {size}"})
    return Shown(Missing(Reason.FAILED, "no AT_PAGESZ in the auxiliary vector"), {"": "no AT_PAGESZ"})


def collect(host: Host) -> Collected[Memory]:
    """Reads four files, starts nothing."""
    area = Area("memory")

    def setting(name: str) -> int | Missing:
        return area.take(name, parsed(host.read(f"/proc/sys/vm/{name}"), number))

    answer: Parsed[Table] = parsed(host.read("/proc/meminfo"), table)
    found = area.take("", answer)
    pages: Parsed[int | Missing] = parsed(host.read("/proc/self/auxv"), page_kib)
    if isinstance(found, Missing):
        found = Table(found, found, found, found, found, found, found, found)
    return area.of(
        Memory(
            found.total_mib,
            found.available_mib,
            found.swap_total_mib,
            found.swap_used_mib,
            found.commit_limit_mib,
            found.committed_mib,
            found.huge_mib,
            found.huge_free_mib,
            page_kib=area.take("page_kib", pages),
            swappiness=setting("swappiness"),
            overcommit_memory=setting("overcommit_memory"),
        )
    )
