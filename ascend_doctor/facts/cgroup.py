"""What control groups allow the asking process: memory, processes and CPU time, the tightest limit on the way up.

Sources: Linux kernel documentation, admin-guide/cgroup-v2 and admin-guide/cgroup-v1 (memory, pids);
scheduler/sched-bwc for cpu.cfs_quota_us; cgroup_namespaces(7) for what a container sees as its root.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Callable, NamedTuple

from ascend_doctor.facts.thp import number
from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, decoded
from ascend_doctor.records import dataclass

MOUNT = "/sys/fs/cgroup"
V1_UNLIMITED = 1 << 62
"""Version 1 writes the largest multiple of a page where version 2 writes ``max``."""

MEMORY_LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
MEMORY_USED = {1: "memory.usage_in_bytes", 2: "memory.current"}
PIDS_LIMIT = {1: "pids.max", 2: "pids.max"}
CPU_LIMIT = {1: "cpu.cfs_quota_us", 2: "cpu.max"}
EVERY_GROUP = {1: "cgroup.procs", 2: "cgroup.controllers"}
"""Version -> file."""

NO_LIMIT = Missing(Reason.ABSENT, "no limit")
DEEPEST = 24


@dataclass(frozen=True)
class Cgroup:
    """Limits are absent where there is none. ``memory_used_mib`` leaves out file cache, which the kernel gives back.

    ``cpus`` is how many CPUs' worth of time the group gets (cpu.max), not which CPUs: that is ``cpu.allowed``.
    """

    version: int | Missing
    memory_limit_mib: int | Missing
    memory_used_mib: int | Missing
    pids_limit: int | Missing
    pids_used: int | Missing
    cpus: float | Missing


class Level(NamedTuple):
    """One limit and the folder that has it."""

    limit: float
    folder: str
    text: str


class Group(NamedTuple):
    """Where the process is in the hierarchy of one controller: its folders, from its own up to the root."""

    version: int
    folders: tuple[str, ...]


def groups(text: bytes) -> dict[str, Group]:
    """Controller -> group, from lines such as ``12:memory:/docker/5f3a`` and ``0::/init.scope``; "" is version 2."""
    found: dict[str, Group] = {}
    for line in decoded(text).split("\n"):
        match = re.fullmatch(r"(\d{1,4}):([^:]{0,200}):(/.{0,4000})", line.rstrip())
        if not match:
            continue
        second = match[1] == "0" and not match[2]
        for controller in match[2].split(","):
            if second or not controller.startswith("name="):
                root = MOUNT if second else f"{MOUNT}/{controller}"
                found.setdefault(controller, Group(2 if second else 1, _up(root, match[3])))
    return found


def _up(root: str, path: str) -> tuple[str, ...]:
    """A path outside the namespace (``/../other``) has no folder here: then the root speaks for it."""
    parts = [part for part in path.split("/") if part]
    if ".." in parts or len(parts) > DEEPEST:
        parts = []
    return tuple("/".join([root, *parts[:length]]) for length in range(len(parts), -1, -1))


def bytes_allowed(text: bytes) -> float | Missing:
    """``max`` or a number; unlimited is Missing(absent)."""
    if decoded(text).strip() == "max":
        return NO_LIMIT
    found = re.fullmatch(r"\s*(\d{1,20})\s*", decoded(text), re.ASCII)
    if not found:
        return Missing(Reason.FAILED, "no limit in bytes")
    return NO_LIMIT if int(found[1]) >= V1_UNLIMITED else int(found[1])


def cpus_allowed(text: bytes) -> float | Missing:
    """``200000 100000`` is two CPUs; ``max 100000`` and -1 are no limit."""
    words = decoded(text).split()
    if words[:1] in (["max"], ["-1"]):
        return NO_LIMIT
    if len(words) == 2 and all(re.fullmatch(r"[1-9]\d{0,14}", word, re.ASCII) for word in words):
        return round(int(words[0]) / int(words[1]), 2)
    return Missing(Reason.FAILED, "no quota of CPU time")


def file_cache(text: bytes) -> int | Missing:
    """Bytes of page cache in memory.stat; version 1 counts the groups below in lines that begin with total_."""
    found = dict(re.findall(r"(?m)^(\w{1,40}) (\d{1,18})$", decoded(text), re.ASCII))
    for prefix in ("total_", ""):
        names = [f"{prefix}{name}_file" for name in ("active", "inactive")]
        if all(name in found for name in names):
            return sum(int(found[name]) for name in names)
    return Missing(Reason.FAILED, "no file cache in memory.stat")


def collect(host: Host) -> Collected[Cgroup]:
    """Reads one file for each level of the hierarchy and limit; starts nothing."""
    area = Area("cgroup")
    own = host.read("/proc/self/cgroup")
    if isinstance(own.value, Missing):
        area.take("", Parsed(own.value, own.source, {"": own.value.reason.value}))
        return area.of(Cgroup(own.value, own.value, own.value, own.value, own.value, own.value))
    found = groups(own.value)
    memory, pids, cpu = (found.get(name, found.get("")) for name in ("memory", "pids", "cpu"))
    version = memory.version if memory else Missing(Reason.ABSENT, "no group of a memory controller")
    area.take("version", Parsed(version, own.source, {"": decoded(own.value).strip()[:400]}))
    limit = _tightest(host, memory, MEMORY_LIMIT, bytes_allowed)
    tasks = _tightest(host, pids, PIDS_LIMIT, bytes_allowed)
    quota = _v1_quota(host, cpu) if cpu and cpu.version == 1 else _tightest(host, cpu, CPU_LIMIT, cpus_allowed)
    return area.of(
        Cgroup(
            version=version,
            memory_limit_mib=_whole(area.take("memory_limit_mib", _shown(limit)), 1 << 20),
            memory_used_mib=_whole(area.take("memory_used_mib", _memory_used(host, memory, limit)), 1 << 20),
            pids_limit=_whole(area.take("pids_limit", _shown(tasks)), 1),
            pids_used=_whole(area.take("pids_used", _pids_used(host, tasks)), 1),
            cpus=_number(area.take("cpus", _shown(quota))),
        )
    )


def _tightest(
    host: Host, group: Group | None, files: Mapping[int, str], parse: Callable[[bytes], float | Missing]
) -> Answer[Level]:
    """The smallest limit from the process's own group to the root; a level that cannot be seen makes it unknown."""
    if group is None:
        return Answer("file:/proc/self/cgroup", Missing(Reason.ABSENT, "no such controller"))
    name = files[group.version]
    levels: list[Level] = []
    seen = 0
    for folder in group.folders:
        answer = host.read(f"{folder}/{name}")
        value = answer.value if isinstance(answer.value, Missing) else parse(answer.value)
        if isinstance(answer.value, Missing) and answer.value.reason is Reason.ABSENT:
            continue
        seen += 1
        if isinstance(value, Missing):
            if value is NO_LIMIT:
                continue
            return Answer(answer.source, value)
        levels.append(Level(value, folder, decoded(answer.value).strip()[:80]))  # type: ignore[arg-type]
    if levels:
        best = min(levels, key=lambda level: level.limit)
        return Answer(f"file:{best.folder}/{name}", best)
    source = f"file:{group.folders[0]}/{name}"
    return Answer(source, NO_LIMIT if seen else _without_files(host, group))


def _without_files(host: Host, group: Group) -> Missing:
    """The true root has no limits; that a folder is a group shows in the files that every group has."""
    root = group.folders[-1]
    answer = host.stat(f"{root}/{EVERY_GROUP[group.version]}")
    if isinstance(answer.value, Missing):
        hidden = Missing(Reason.FAILED, f"{root} shows no control groups")
        return hidden if answer.value.reason is Reason.ABSENT else answer.value
    return NO_LIMIT


def _v1_quota(host: Host, group: Group | None) -> Answer[Level]:
    """Version 1 has quota and period in two files."""
    quota = _tightest(host, group, CPU_LIMIT, _v1_microseconds)
    if isinstance(quota.value, Missing):
        return quota
    period = host.read(f"{quota.value.folder}/cpu.cfs_period_us")
    value = period.value if isinstance(period.value, Missing) else number(period.value)
    if isinstance(value, Missing) or value == 0:
        return Answer(period.source, value if isinstance(value, Missing) else Missing(Reason.FAILED, "a period of 0"))
    cpus = round(quota.value.limit / value, 2)
    return Answer(quota.source, Level(cpus, quota.value.folder, f"{quota.value.text} of {value} microseconds"))


def _v1_microseconds(text: bytes) -> float | Missing:
    return NO_LIMIT if decoded(text).strip() == "-1" else number(text)


def _memory_used(host: Host, group: Group | None, limit: Answer[Level]) -> Parsed[float | Missing]:
    """At the level that has the limit; without one nothing is asked."""
    if isinstance(limit.value, Missing) or group is None:
        return _shown(limit)
    folder = limit.value.folder
    usage = host.read(f"{folder}/{MEMORY_USED[group.version]}")
    stat = host.read(f"{folder}/memory.stat")
    whole = usage.value if isinstance(usage.value, Missing) else number(usage.value)
    cache = stat.value if isinstance(stat.value, Missing) else file_cache(stat.value)
    if isinstance(whole, Missing) or isinstance(cache, Missing):
        unknown, source = (whole, usage.source) if isinstance(whole, Missing) else (cache, stat.source)
        return Parsed(unknown, source, {"": "cannot be told"})
    return Parsed(max(0, whole - cache), usage.source, {"": f"{whole} bytes, {cache} of them file cache"})


def _pids_used(host: Host, limit: Answer[Level]) -> Parsed[float | Missing]:
    if isinstance(limit.value, Missing):
        return _shown(limit)
    answer = host.read(f"{limit.value.folder}/pids.current")
    value = answer.value if isinstance(answer.value, Missing) else number(answer.value)
    return Parsed(value, answer.source, {"": f"{value}"})


def _shown(answer: Answer[Level]) -> Parsed[float | Missing]:
    if isinstance(answer.value, Missing):
        return Parsed(answer.value, answer.source, {"": answer.value.detail or answer.value.reason.value})
    return Parsed(answer.value.limit, answer.source, {"": answer.value.text})


def _whole(value: float | Missing, unit: int) -> int | Missing:
    return value if isinstance(value, Missing) else int(value // unit)


def _number(value: float | Missing) -> float | Missing:
    return value if isinstance(value, Missing) else float(value)
