"""The file systems that a deployment writes to: logs of CANN, caches, temporary files, shared memory.

Sources: statvfs(3), proc_pid_mountinfo(5); CANN's environment variables for where logs, caches and models lie.
"""

from __future__ import annotations

import re

from ascend_doctor.facts.user import accounts
from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, StatVfs, decoded, keyed
from ascend_doctor.records import dataclass

NOT_YET = 40
"""Folders that may be missing between a path and the first that is there."""

MIB = 1 << 20


@dataclass(frozen=True)
class Space:
    """Room at a path. ``at`` is the nearest folder that is there: the rest is made when somebody writes.

    ``filesystem``: its type, such as ext4, overlay or tmpfs; some (btrfs, network ones) count no inodes.
    """

    use: str
    path: str | Missing
    at: str | Missing
    filesystem: str | Missing
    read_only: bool | Missing
    size_mib: int | Missing
    free_mib: int | Missing
    inodes_free: int | Missing


@dataclass(frozen=True)
class Disks:
    """By use: ``spaces["logs"].free_mib``; logs, caches, temporary and shared_memory."""

    spaces: dict[str, Space]


@dataclass(frozen=True)
class Mount:
    """A line of mountinfo."""

    point: str
    filesystem: str
    device: str
    read_only: bool
    line: str


def mounts(text: bytes) -> tuple[Mount, ...]:
    """The mounts in their order: of two on one point the later one is seen."""
    found = []
    for line in decoded(text).split("\n"):
        before, dash, after = line.partition(" - ")
        cells, of_system = before.split(" "), after.split(" ")
        if dash and len(cells) > 5 and len(of_system) > 2 and cells[4].startswith("/"):
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), cells[4])
            options = (*cells[5].split(","), *of_system[2].split(","))
            found.append(Mount(point, of_system[0], of_system[1], "ro" in options, line.strip()[:300]))
    return tuple(found)


def mount_of(path: str, known: tuple[Mount, ...]) -> Mount | None:
    """The mount that holds a path: the longest point above it, of equals the last."""
    best: Mount | None = None
    for mount in known:
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def collect(host: Host) -> Collected[Disks]:
    """Asks for the room at four places; starts nothing and writes nothing."""
    area = Area("disks")
    own = home(host)
    answer = host.read("/proc/self/mountinfo")
    known: Parsed[tuple[Mount, ...] | Missing] = Parsed(
        answer.value if isinstance(answer.value, Missing) else mounts(answer.value), answer.source, {}
    )
    places = {
        "logs": _chosen(host, own, (("ASCEND_PROCESS_LOG_PATH", ""), ("ASCEND_WORK_PATH", "/log")), "/ascend/log"),
        "caches": _chosen(host, own, (("ASCEND_CACHE_PATH", ""), ("ASCEND_WORK_PATH", "")), "/.cache"),
        "temporary": "/tmp",
        "shared_memory": "/dev/shm",
    }
    return area.of(Disks({use: _space(host, area, use, path, known) for use, path in places.items()}))


def home(host: Host) -> str | Missing:
    """The home of the asking user, by /etc/passwd."""
    uid = host.identity.uid
    answer = host.read("/etc/passwd")
    if isinstance(uid, Missing) or isinstance(answer.value, Missing):
        return uid if isinstance(uid, Missing) else answer.value  # type: ignore[return-value]
    entry = accounts(answer.value).get(uid)
    if entry is None or not entry[1].startswith("/"):
        return Missing(Reason.FAILED, f"/etc/passwd names no home for {uid}")
    return entry[1]


def _chosen(host: Host, home: str | Missing, variables: tuple[tuple[str, str], ...], below: str) -> str | Missing:
    """The first variable that is set; the folder in the home where none is."""
    for name, rest in variables:
        value = host.env(name).value
        if isinstance(value, Missing) and value.reason is not Reason.ABSENT:
            return value
        if isinstance(value, str) and value.startswith("/"):
            return value.rstrip("/") + rest or "/"
    return home if isinstance(home, Missing) else home.rstrip("/") + below


def _space(host: Host, area: Area, use: str, path: str | Missing, known: Parsed[tuple[Mount, ...] | Missing]) -> Space:
    where = keyed("spaces", use)
    if isinstance(path, Missing):
        area.take(where, Parsed(path, "env and /etc/passwd", {"": path.detail or path.reason.value}))
        return Space(use, path, path, path, path, path, path, path)
    at, answer = nearest(host, path)
    if isinstance(answer.value, Missing):
        why = answer.value
        area.take(where, Parsed(why, answer.source, {"": f"{path}: {why.detail or why.reason.value}"}))
        return Space(use, path, why, why, why, why, why, why)
    size, free, inodes = answer.value.size // MIB, answer.value.free // MIB, answer.value.inodes_free
    area.take(where, Parsed(at, answer.source, {"": f"{at}: {free} of {size} MiB free, {inodes} inodes free"}))
    if isinstance(known.value, Missing):
        return Space(use, path, at, known.value, known.value, size, free, inodes)
    mount = mount_of(at, known.value)
    if mount is None:
        unseen = Missing(Reason.FAILED, f"no mount in mountinfo holds {at}")
        return Space(use, path, at, unseen, unseen, size, free, inodes)
    for part in ("filesystem", "read_only"):
        area.take(f"{where}.{part}", Parsed(mount, known.source, {"": mount.line}))
    return Space(use, path, at, mount.filesystem, mount.read_only, size, free, inodes)


def nearest(host: Host, path: str) -> tuple[str, Answer[StatVfs]]:
    """The room at a path, or at the first folder above it that is there."""
    for _ in range(NOT_YET):
        answer = host.statvfs(path)
        if path == "/" or not isinstance(answer.value, Missing) or answer.value.reason is not Reason.ABSENT:
            break
        path = path.rpartition("/")[0] or "/"
    return path, answer
