"""Running processes: on which CPUs they and their threads may run, and on which NUMA nodes their memory lies.

Sources: proc_pid_status(5), proc_pid_stat(5), proc_pid_numa_maps(5), proc_pid_sched of the kernel's scheduler
documentation. Arguments and environment are not read. numa_maps of another user's process needs root.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from ascend_doctor.facts.npu import COMMAND, npu_smi_info
from ascend_doctor.facts.numa import cpu_list
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, keyed, parsed
from ascend_doctor.records import dataclass

MOST_PROCESSES = 256
MOST_THREADS = 1024
"""Of one process; more are counted, not looked at."""
UNASKED = Missing(Reason.NOT_COLLECTED, "only looked at in depth, or by numa check --pid")


@dataclass(frozen=True)
class Status:
    """Of /proc/PID/status."""

    name: str | Missing
    cpus: str | Missing
    nodes: str | Missing
    threads: int | Missing


@dataclass(frozen=True)
class Memory:
    """``mib_on``: node -> MiB; ``policies``: the different ones, such as ``default`` and ``bind:4,6``."""

    mib_on: Mapping[int, float] = field(default_factory=dict)
    policies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Process:
    """``thread_cpus``: list of CPUs -> how many threads have it. ``migrations``: of all threads, from CPU to CPU.

    ``ran_on``: the CPUs on which its threads ran last.
    """

    pid: int
    parent: int | Missing
    name: str | Missing
    cpus: str | Missing
    memory_nodes: str | Missing
    threads: int | Missing
    thread_cpus: dict[str, int] | Missing
    ran_on: tuple[int, ...] | Missing
    migrations: int | Missing
    memory_mib: dict[int, float] | Missing
    policies: tuple[str, ...] | Missing


@dataclass(frozen=True)
class Processes:
    """By number; ``asked``: the process that was asked for, whose children are the others."""

    asked: int | Missing
    running: dict[int, Process] | Missing


def status(text: bytes) -> Shown[Status]:
    """Name, Cpus_allowed_list, Mems_allowed_list and Threads."""
    found: dict[str, str] = {}
    for line in decoded(text).split("\n"):
        name, colon, value = line.partition(":")
        if colon and name in ("Name", "Cpus_allowed_list", "Mems_allowed_list", "Threads"):
            found.setdefault(name, value.strip())
    count = found.get("Threads", "")
    facts = Status(
        found.get("Name") or Missing(Reason.FAILED, "no line Name"),
        _listed(found, "Cpus_allowed_list"),
        _listed(found, "Mems_allowed_list"),
        int(count) if re.fullmatch(r"\d{1,7}", count, re.ASCII) else Missing(Reason.FAILED, "no line Threads"),
    )
    return Shown(facts, {"": ", ".join(f"{name} {text}" for name, text in found.items())[:400]})


def _listed(found: Mapping[str, str], name: str) -> str | Missing:
    return cpu_list(found[name].encode()) if name in found else Missing(Reason.FAILED, f"no line {name}")


def stat_fields(text: bytes) -> tuple[str, ...]:
    """The fields after the name in parentheses, which may hold blanks and parentheses itself."""
    return tuple(decoded(text).rpartition(")")[2].split())


def parent_of(text: bytes) -> int | Missing:
    fields = stat_fields(text)
    known = len(fields) > 1 and re.fullmatch(r"\d{1,8}", fields[1], re.ASCII)
    return int(fields[1]) if known else Missing(Reason.FAILED, "no parent in stat")


def last_cpu(text: bytes) -> int | Missing:
    """Field 39 of stat, counted from the process number."""
    fields = stat_fields(text)
    known = len(fields) > 36 and re.fullmatch(r"\d{1,6}", fields[36], re.ASCII)
    return int(fields[36]) if known else Missing(Reason.FAILED, "no processor in stat")


def migrations(text: bytes) -> int | Missing:
    """``se.nr_migrations`` of /proc/PID/task/TID/sched; a kernel without scheduler statistics has no such file."""
    found = re.search(r"(?m)^se\.nr_migrations\s*:\s*(\d{1,18})\s*$", decoded(text), re.ASCII)
    return int(found[1]) if found else Missing(Reason.FAILED, "no line se.nr_migrations")


def numa_maps(text: bytes) -> Shown[Memory]:
    """Lines such as ``7f00... default anon=10 N0=6 N1=4 kernelpagesize_kB=4``."""
    kib: dict[int, float] = {}
    policies: dict[str, int] = {}
    for line in decoded(text).split("\n"):
        words = line.split()
        if len(words) < 2:
            continue
        page = re.search(r"\bkernelpagesize_kB=(\d{1,8})\b", line, re.ASCII)
        size = int(page[1]) if page else 4
        pages = re.findall(r"(?<!\S)N(\d{1,5})=(\d{1,15})\b", line, re.ASCII)
        for node, count in pages:
            kib[int(node)] = kib.get(int(node), 0) + int(count) * size
        policies[words[1]] = policies.get(words[1], 0) + sum(int(count) for _, count in pages)
    on = {node: round(amount / 1024, 1) for node, amount in sorted(kib.items())}
    used = tuple(name for name, count in policies.items() if count)
    shown = ", ".join(f"node {node} {mib} MiB" for node, mib in on.items())
    return Shown(Memory(on, used), {"": f"{shown}; policies {', '.join(used)}"[:400]})


def collect(host: Host) -> Collected[Processes]:
    """Those that npu-smi shows on the NPUs, each alone; threads and pages only in depth.

    To write numa_maps the kernel walks all pages of a process, which takes seconds where it holds a model.
    """
    area = Area("processes")
    pids: Parsed[tuple[int, ...]] = parsed(host.run(COMMAND), lambda out: _pids(out.stdout + b"\n" + out.stderr))
    shown = area.take("running", pids)
    nobody = Missing(Reason.ABSENT, "no process was asked for")
    if isinstance(shown, Missing):
        return area.of(Processes(nobody, shown))
    return area.of(Processes(nobody, _read(host, area, shown, host.extent.deep)))


def of_process(host: Host, pid: int) -> Collected[Processes]:
    """One process and all that descend from it."""
    area = Area("processes")
    first = host.read(f"/proc/{pid}/status").value
    if isinstance(first, Missing):
        area.take("running", Parsed(first, f"file:/proc/{pid}/status", {"": first.reason.value}))
        return area.of(Processes(pid, first))
    return area.of(Processes(pid, _read(host, area, descendants(host, pid), True)))


def descendants(host: Host, pid: int) -> tuple[int, ...]:
    """The process first, then its children and theirs, in the order of their numbers; as far as they can be seen."""
    names = host.list("/proc").value
    children: dict[int, list[int]] = {}
    for name in () if isinstance(names, Missing) else names:
        if name.isascii() and name.isdigit() and len(name) < 9:
            stat = host.read(f"/proc/{name}/stat").value
            parent = stat if isinstance(stat, Missing) else parent_of(stat)
            if not isinstance(parent, Missing):
                children.setdefault(parent, []).append(int(name))
    found = [pid]
    for one in found:
        found.extend(child for child in sorted(children.get(one, ())) if child not in found)
    return tuple(found)


def _pids(data: bytes) -> Shown[tuple[int, ...]]:
    table = npu_smi_info(data).value
    found = Missing(Reason.FAILED, "no table") if isinstance(table, Missing) else table.processes
    if isinstance(found, Missing):
        return Shown(found, {"": found.detail})
    pids = tuple(dict.fromkeys(process.pid for process in found))
    return Shown(pids, {"": f"{len(pids)} processes"})


def _read(host: Host, area: Area, pids: Iterable[int], whole: bool) -> dict[int, Process]:
    return {pid: _process(host, area, pid, whole) for pid in list(pids)[:MOST_PROCESSES]}


def _process(host: Host, area: Area, pid: int, whole: bool) -> Process:
    path, folder = keyed("running", pid), f"/proc/{pid}"
    asked: Parsed[Status] = parsed(host.read(f"{folder}/status"), status)
    found = area.take(path, asked)
    if isinstance(found, Missing):
        found = Status(found, found, found, found)
    memory: Memory | Missing = UNASKED
    masks: dict[str, int] | Missing = UNASKED
    ran_on: tuple[int, ...] | Missing = UNASKED
    moved: int | Missing = UNASKED
    if whole:
        maps: Parsed[Memory] = parsed(host.read(f"{folder}/numa_maps"), numa_maps)
        memory = area.take(f"{path}.memory_mib", maps)
        area.provenance[f"processes.{path}.policies"] = area.provenance[f"processes.{path}.memory_mib"]
        masks, ran_on, moved = _threads(host, area, pid, path)
    parent: Parsed[int] = parsed(host.read(f"{folder}/stat"), parent_of)
    return Process(
        pid=pid,
        parent=parent.value,
        name=found.name,
        cpus=found.cpus,
        memory_nodes=found.nodes,
        threads=found.threads,
        thread_cpus=masks,
        ran_on=ran_on,
        migrations=moved,
        memory_mib=memory if isinstance(memory, Missing) else dict(memory.mib_on),
        policies=memory if isinstance(memory, Missing) else memory.policies,
    )


def _threads(
    host: Host, area: Area, pid: int, path: str
) -> tuple[dict[str, int] | Missing, tuple[int, ...] | Missing, int | Missing]:
    """Lists of CPUs, last CPUs and migrations of the threads; a thread that ended meanwhile is left out."""
    names = host.list(f"/proc/{pid}/task")
    if isinstance(names.value, Missing):
        area.take(f"{path}.thread_cpus", Parsed(names.value, names.source, {"": names.value.reason.value}))
        return names.value, names.value, names.value
    masks: dict[str, int] = {}
    cpus: set[int] = set()
    moved: list[int | Missing] = []
    for thread in [name for name in names.value if name.isascii() and name.isdigit()][:MOST_THREADS]:
        folder = f"/proc/{pid}/task/{thread}"
        seen: Parsed[Status] = parsed(host.read(f"{folder}/status"), status)
        if isinstance(seen.value, Status) and isinstance(seen.value.cpus, str):
            masks[seen.value.cpus] = masks.get(seen.value.cpus, 0) + 1
        place: Parsed[int] = parsed(host.read(f"{folder}/stat"), last_cpu)
        if isinstance(place.value, int):
            cpus.add(place.value)
        count: Parsed[int] = parsed(host.read(f"{folder}/sched"), migrations)
        moved.append(count.value)
    shown = ", ".join(f"{count} threads on {mask}" for mask, count in masks.items())
    area.take(f"{path}.thread_cpus", Parsed(None, f"file:/proc/{pid}/task/*/status", {"": shown[:400]}))
    unknown = next((m for m in moved if isinstance(m, Missing)), None)
    total = unknown if unknown is not None else sum(m for m in moved if isinstance(m, int))
    if not moved:
        total = Missing(Reason.FAILED, "no thread could be seen")
    return masks, tuple(sorted(cpus)), total
