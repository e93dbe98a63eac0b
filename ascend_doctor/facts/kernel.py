"""The running kernel: its release, how it was started, and the settings that concern NPUs.

Sources: uname(2); Linux kernel documentation: admin-guide/kernel-parameters, admin-guide/sysctl/kernel, and
ABI/testing/sysfs-kernel-iommu_groups for the type of a group.
"""

from __future__ import annotations

import re

from ascend_doctor.facts.thp import number
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, decoded, parsed
from ascend_doctor.records import dataclass

IOMMU_GROUPS = "/sys/kernel/iommu_groups"


@dataclass(frozen=True)
class Kernel:
    """``release`` is what uname -r says; in a container it is the machine's.

    ``iommu``: the type of the first group (``identity``: addresses pass as they are; ``DMA``, ``DMA-FQ``: each is
    translated); the kernel gives devices one default type. Absent where no device is behind an IOMMU.
    ``numa_balancing``: 0 is off; absent in a kernel for one node.
    """

    release: str | Missing
    major: int | Missing
    minor: int | Missing
    arch: str | Missing
    cmdline: str | Missing
    iommu: str | Missing
    numa_balancing: int | Missing
    pid_max: int | Missing


def release_numbers(release: str) -> tuple[int, int] | Missing:
    """(5, 10) of ``5.10.0-216.0.0.115.oe2203sp4.aarch64``."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", release, re.ASCII)
    return (int(found[1]), int(found[2])) if found else Missing(Reason.FAILED, "no release of a kernel")


def one_line(text: bytes) -> str | Missing:
    """The first line of a file."""
    words = decoded(text).strip().split("\n")[0].strip()[:2000]
    return words or Missing(Reason.FAILED, "empty")


def collect(host: Host) -> Collected[Kernel]:
    """Reads four small files and lists a folder; starts nothing."""
    area = Area("kernel")
    identity = host.identity
    release = area.take("release", Parsed(identity.kernel, "identity", {"": f"kernel {identity.kernel}"}))
    numbers = release if isinstance(release, Missing) else release_numbers(release)
    for part in ("major", "minor"):
        area.take(part, Parsed(release, "identity", {"": f"kernel {identity.kernel}"}))
    return area.of(
        Kernel(
            release=release,
            major=numbers if isinstance(numbers, Missing) else numbers[0],
            minor=numbers if isinstance(numbers, Missing) else numbers[1],
            arch=area.take("arch", Parsed(identity.arch, "identity", {"": f"arch {identity.arch}"})),
            cmdline=area.take("cmdline", parsed(host.read("/proc/cmdline"), one_line)),
            iommu=area.take("iommu", _iommu(host)),
            numa_balancing=area.take("numa_balancing", parsed(host.read("/proc/sys/kernel/numa_balancing"), number)),
            pid_max=area.take("pid_max", parsed(host.read("/proc/sys/kernel/pid_max"), number)),
        )
    )


def _iommu(host: Host) -> Parsed[str | Missing]:
    """Groups without a type file are of a kernel before 5.11: unsupported."""
    groups = host.list(IOMMU_GROUPS)
    if isinstance(groups.value, Missing):
        return Parsed(groups.value, groups.source, {"": groups.value.reason.value})
    numbers = sorted((name for name in groups.value if name.isascii() and name.isdigit()), key=int)
    if not numbers:
        return Parsed(Missing(Reason.ABSENT, "no IOMMU group"), groups.source, {"": "no group"})
    answer = host.read(f"{IOMMU_GROUPS}/{numbers[0]}/type")
    if isinstance(answer.value, Missing) and answer.value.reason is Reason.ABSENT:
        untold = Missing(Reason.UNSUPPORTED, "this kernel does not tell the type of an IOMMU group")
        return Parsed(untold, answer.source, {"": f"{len(numbers)} groups without a type"})
    return parsed(answer, one_line)
