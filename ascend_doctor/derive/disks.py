"""Whether there is room where a deployment writes: logs for each visible chip's process, caches, temporary files."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_doctor.derive import rows
from ascend_doctor.derive.host import visible_chips
from ascend_doctor.facts.disks import Disks
from ascend_doctor.facts.npu import Npu
from ascend_doctor.host import Missing, keyed
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass

WITH_INODES = ("ext2", "ext3", "ext4", "xfs", "tmpfs")
"""File systems that count inodes; others say 0 although files can be made."""


@dataclass(frozen=True)
class Room:
    """``counted``: whether the number of free inodes means something here."""

    use: str
    path: str | Missing
    at: str | Missing
    free_mib: int | Missing
    need_mib: int | Missing
    read_only: bool | Missing
    inodes_free: int | Missing
    counted: bool | Missing
    reads: tuple[str, ...]


@rows("disks.room")
def room(disks: Disks, npu: Npu, env: Mapping[str, str | Missing], limits: Limits) -> tuple[Room, ...] | Missing:
    """One row for each use but shared memory, which has a check of its own."""
    devices = visible_chips(npu, env)
    logs = devices if isinstance(devices, Missing) else int(limits["disks.log_mib_of_process"]) * max(1, len(devices))
    needs = {"logs": logs, "caches": int(limits["disks.cache_mib"]), "temporary": int(limits["disks.temporary_mib"])}
    found = []
    for use, need in needs.items():
        space = disks.spaces[use]
        system = space.filesystem
        found.append(
            Room(
                use,
                space.path,
                space.at,
                space.free_mib,
                need,
                space.read_only,
                space.inodes_free,
                system if isinstance(system, Missing) else system in WITH_INODES,
                (keyed("disks.spaces", use),),
            )
        )
    return tuple(found)
