"""The CPUs: which are on, which this process may use, which the kernel leaves alone, and how their clock is set.

Sources: Linux kernel documentation: ABI/testing/sysfs-devices-system-cpu, admin-guide/pm/cpufreq (policies and
governors), admin-guide/kernel-parameters (isolcpus, nohz_full); proc_pid_status(5).
"""

from __future__ import annotations

import re
from typing import Callable

from ascend_doctor.facts.numa import cpu_list, cpu_set
from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

SYSFS = "/sys/devices/system/cpu"


@dataclass(frozen=True)
class Cpu:
    """Lists as the kernel writes them, such as ``0-191``; ``isolated`` and ``nohz_full`` are empty where none is.

    ``allowed`` is what this process may run on: a container's cpuset, or taskset. ``governors`` and ``drivers``: the
    different ones of all policies; absent where the kernel does not set the clock of CPUs (most virtual machines).
    """

    online: str | Missing
    online_count: int | Missing
    allowed: str | Missing
    allowed_count: int | Missing
    isolated: str | Missing
    nohz_full: str | Missing
    governors: tuple[str, ...] | Missing
    drivers: tuple[str, ...] | Missing


def allowed_list(text: bytes) -> Shown[str]:
    """The line Cpus_allowed_list of /proc/self/status."""
    for line in decoded(text).split("\n"):
        name, colon, value = line.partition(":")
        if colon and name == "Cpus_allowed_list":
            return Shown(cpu_list(value.encode()), {"": " ".join(line.split())[:400]})
    return Shown(Missing(Reason.FAILED, "no line Cpus_allowed_list"), {"": "no line Cpus_allowed_list"})


def tickless_list(text: bytes) -> str | Missing:
    """A kernel that was started without nohz_full writes ``(null)``."""
    return "" if decoded(text).strip() in ("", "(null)") else cpu_list(text)


def word(text: bytes) -> str | Missing:
    """A name such as ``performance`` or ``cppc_cpufreq``."""
    found = re.fullmatch(r"\s*([A-Za-z0-9_-]{1,40})\s*", decoded(text), re.ASCII)
    return found[1] if found else Missing(Reason.FAILED, "no name")


def collect(host: Host) -> Collected[Cpu]:
    """Reads four files and two for each policy of the clock; starts nothing."""
    area = Area("cpu")

    def listed(name: str, answer: Answer[bytes], parse: Callable[[bytes], object]) -> str | Missing:
        return area.take(name, parsed(answer, parse))  # type: ignore[arg-type]

    online = listed("online", host.read(f"{SYSFS}/online"), cpu_list)
    allowed = listed("allowed", host.read("/proc/self/status"), allowed_list)
    for name in ("online", "allowed"):
        area.provenance[f"cpu.{name}_count"] = area.provenance[f"cpu.{name}"]
    policies = host.list(f"{SYSFS}/cpufreq")
    return area.of(
        Cpu(
            online=online,
            online_count=_count(online),
            allowed=allowed,
            allowed_count=_count(allowed),
            isolated=listed("isolated", host.read(f"{SYSFS}/isolated"), cpu_list),
            nohz_full=listed("nohz_full", host.read(f"{SYSFS}/nohz_full"), tickless_list),
            governors=area.take("governors", _of_policies(host, policies, "scaling_governor")),
            drivers=area.take("drivers", _of_policies(host, policies, "scaling_driver")),
        )
    )


def _count(cpus: str | Missing) -> int | Missing:
    found = cpus if isinstance(cpus, Missing) else cpu_set(cpus)
    return found if isinstance(found, Missing) else len(found)


def _of_policies(host: Host, names: Answer[tuple[str, ...]], file: str) -> Parsed[tuple[str, ...] | Missing]:
    """The different words of a file in all policies; one that cannot be read makes it unknown."""
    if isinstance(names.value, Missing):
        return Parsed(names.value, names.source, {"": names.value.reason.value})
    found: dict[str, int] = {}
    for name in names.value:
        if not re.fullmatch(r"policy\d{1,5}", name, re.ASCII):
            continue
        answer = host.read(f"{SYSFS}/cpufreq/{name}/{file}")
        value = answer.value if isinstance(answer.value, Missing) else word(answer.value)
        if isinstance(value, Missing):
            if value.reason is Reason.ABSENT:
                continue  # its CPUs went off meanwhile
            return Parsed(value, answer.source, {"": value.detail or value.reason.value})
        found[value] = found.get(value, 0) + 1
    if not found:
        return Parsed(Missing(Reason.ABSENT, "no policy"), names.source, {"": "no policy"})
    text = ", ".join(f"{value}: {count} policies" for value, count in sorted(found.items()))
    return Parsed(tuple(sorted(found)), f"{names.source}/*/{file}", {"": text})
