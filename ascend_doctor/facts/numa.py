"""The NUMA nodes: their CPUs, the socket that these sit in, and their memory.

Sources: Linux kernel documentation, ABI/stable/sysfs-devices-node and ABI/stable/sysfs-devices-system-cpu (topology);
the list format of cpuset(7).
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, keyed, parsed
from ascend_doctor.records import dataclass

SYSFS = "/sys/devices/system/node"
CPUS = "/sys/devices/system/cpu"
LARGEST_CPU = 65535


@dataclass(frozen=True)
class Node:
    """``file_cache_mib`` is page cache: the kernel gives it back on demand, but takes another node's free memory first.

    ``cpus`` is the kernel's own list, such as ``0-23``; empty for a node that has memory only. ``socket`` is the
    package of its first CPU, as the firmware numbers it.
    """

    node: int
    cpus: str | Missing
    socket: int | Missing
    total_mib: int | Missing
    free_mib: int | Missing
    file_cache_mib: int | Missing


@dataclass(frozen=True)
class Numa:
    """By number: ``nodes[4].free_mib``."""

    nodes: dict[int, Node] | Missing
    count: int | Missing


@dataclass(frozen=True)
class Memory:
    """What a node's meminfo says."""

    total_mib: int | Missing
    free_mib: int | Missing
    file_cache_mib: int | Missing


def cpu_set(text: str) -> frozenset[int] | Missing:
    """``0-23,96`` as numbers; Missing(failed) for anything else. An empty list is the empty set."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        found = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part, re.ASCII)
        if not found:
            return frozenset() if not text.strip() else Missing(Reason.FAILED, "no list of CPUs")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first or last > LARGEST_CPU:
            return Missing(Reason.FAILED, "no list of CPUs")
        cpus.update(range(first, last + 1))
    return frozenset(cpus)


def cpu_list(text: bytes) -> str | Missing:
    """The list as the kernel writes it, once it is known to be one."""
    words = decoded(text).strip()
    cpus = cpu_set(words)
    return cpus if isinstance(cpus, Missing) else words


def package(text: bytes) -> int | Missing:
    """A number of a socket; -1 is the kernel's word for not knowing."""
    found = re.fullmatch(r"\s*(-1|\d{1,6})\s*", decoded(text), re.ASCII)
    if not found:
        return Missing(Reason.FAILED, "no number of a socket")
    return int(found[1]) if found[1] != "-1" else Missing(Reason.ABSENT, "the kernel knows no socket (-1)")


def memory(text: bytes) -> Shown[Memory]:
    """Lines such as ``Node 0 MemFree:       15097616 kB``."""
    kib: dict[str, int] = {}
    lines: dict[str, str] = {}
    for line in decoded(text).split("\n"):
        found = re.match(r"\s*(?:Node\s+\d+\s+)?([A-Za-z()_]+):\s+(\d{1,15}) kB", line, re.ASCII)
        if found and found[1] not in kib:
            kib[found[1]], lines[found[1]] = int(found[2]), line.strip()
    pages = [name for name in ("Active(file)", "Inactive(file)") if name in kib]
    why = Missing(Reason.FAILED, "no such line in meminfo")
    value = Memory(
        total_mib=kib["MemTotal"] // 1024 if "MemTotal" in kib else why,
        free_mib=kib["MemFree"] // 1024 if "MemFree" in kib else why,
        file_cache_mib=sum(kib[name] for name in pages) // 1024 if pages else why,
    )
    cache = "; ".join(lines[name] for name in pages)
    texts = {"total_mib": lines.get("MemTotal", ""), "free_mib": lines.get("MemFree", ""), "file_cache_mib": cache}
    return Shown(value, texts)


def collect(host: Host) -> Collected[Numa]:
    """Reads three files for each node, starts nothing."""
    area = Area("numa")
    names = host.list(SYSFS)
    numbers = area.take("nodes", parsed(names, node_numbers))
    if isinstance(numbers, Missing):
        return area.of(Numa(nodes=numbers, count=numbers))
    count = area.take("count", Parsed(len(numbers), names.source, {"": ", ".join(f"node{n}" for n in numbers)}))
    return area.of(Numa(nodes={number: _node(host, area, number) for number in numbers}, count=count))


def node_numbers(names: tuple[str, ...]) -> tuple[int, ...]:
    """The N of the names ``nodeN``, in their order."""
    return tuple(sorted(int(name[4:]) for name in names if re.fullmatch(r"node\d{1,5}", name, re.ASCII)))


def _node(host: Host, area: Area, number: int) -> Node:
    folder, path = f"{SYSFS}/node{number}", keyed("nodes", number)
    cpus = area.take(f"{path}.cpus", parsed(host.read(f"{folder}/cpulist"), cpu_list))
    socket = _socket(host, area, cpus, path)
    answer: Parsed[Memory] = parsed(host.read(f"{folder}/meminfo"), memory)
    found = area.take(path, answer)
    if isinstance(found, Missing):
        return Node(number, cpus, socket, found, found, found)
    return Node(number, cpus, socket, found.total_mib, found.free_mib, found.file_cache_mib)


def _socket(host: Host, area: Area, cpus: str | Missing, path: str) -> int | Missing:
    if isinstance(cpus, Missing):
        return cpus
    first = re.match(r"\d+", cpus)
    if first is None:
        return Missing(Reason.ABSENT, "a node without CPUs")
    file = f"{CPUS}/cpu{first[0]}/topology/physical_package_id"
    return area.take(f"{path}.socket", parsed(host.read(file), package))
