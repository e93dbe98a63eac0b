"""What the NPUs that a process may use ask of their host, and what the host's settings are compared with."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_doctor.derive import rows
from ascend_doctor.derive.memory import VISIBLE, total_of, visible
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.os_release import OsRelease
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.knowledge.os_support import OsSupport
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Load:
    """``need_mib``: host memory that should be free for the visible chips; ``hbm_mib``: what they hold together."""

    chips: int
    need_mib: int
    hbm_mib: int | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Thresholds:
    """The one row of limits for the settings of a host; each has its source in rules/limits.yaml."""

    swappiness: int
    swap_used_mib: int
    huge_free_percent: int
    open_files: int
    threads: int
    locked_kib: int
    shm_mib: int
    shm_left_mib: int
    shm_of_large_jobs_mib: int
    chips_of_large_jobs: int
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class System:
    """The distribution, and whether a public document of the vendor names it."""

    id: str
    version: str | Missing
    listed: bool | Missing
    sources: tuple[Source, ...]
    reads: tuple[str, ...]


def visible_chips(npu: Npu, env: Mapping[str, str | Missing]) -> tuple[int, ...] | Missing:
    """Places in npu.chips that ASCEND_RT_VISIBLE_DEVICES leaves."""
    if isinstance(npu.chips, Missing):
        return npu.chips
    chosen = env.get(VISIBLE)
    if isinstance(chosen, Missing) and chosen.reason is not Reason.ABSENT:
        return chosen
    return visible(chosen, len(npu.chips))


@rows("host.load")
def load(npu: Npu, env: Mapping[str, str | Missing], limits: Limits) -> tuple[Load, ...] | Missing:
    """One row where a chip is visible."""
    devices = visible_chips(npu, env)
    if isinstance(devices, Missing) or isinstance(npu.chips, Missing):
        return devices if isinstance(devices, Missing) else npu.chips  # type: ignore[return-value]
    if not devices:
        return ()
    amounts = [total_of(npu.chips[device], device) for device in devices]
    unknown = next((amount.mib for amount in amounts if isinstance(amount.mib, Missing)), None)
    hbm = unknown or sum(amount.mib for amount in amounts if not isinstance(amount.mib, Missing))
    need = int(limits["numa.shared_mib"] + limits["numa.per_card_mib"] * len(devices))
    return (Load(len(devices), need, hbm, ("npu.chips", f"env.{VISIBLE}")),)


@rows("host.thresholds")
def thresholds(limits: Limits) -> tuple[Thresholds, ...]:
    """Always one row."""
    return (
        Thresholds(
            swappiness=int(limits["host.swappiness"]),
            swap_used_mib=int(limits["host.swap_used_mib"]),
            huge_free_percent=int(limits["host.huge_free_percent"]),
            open_files=int(limits["host.open_files"]),
            threads=int(limits["host.threads"]),
            locked_kib=int(limits["host.locked_kib"]),
            shm_mib=int(limits["host.shm_mib"]),
            shm_left_mib=int(limits["host.shm_left_mib"]),
            shm_of_large_jobs_mib=int(limits["host.shm_of_large_jobs_mib"]),
            chips_of_large_jobs=int(limits["host.chips_of_large_jobs"]),
        ),
    )


@rows("host.system")
def system(os_release: OsRelease, os_support: OsSupport) -> tuple[System, ...] | Missing:
    """One row where the distribution is known."""
    if isinstance(os_release.id, Missing):
        return os_release.id
    version = os_release.version_id
    reads = ("os_release.id", "os_release.version_id")
    if isinstance(version, Missing) and version.reason is not Reason.ABSENT:
        return (System(os_release.id, version, version, (), reads),)
    entry = os_support.listed(os_release.id, "" if isinstance(version, Missing) else version)
    sources = (entry.source,) if entry else tuple({d.source.url: d.source for d in os_support.distributions}.values())
    return (System(os_release.id, version, entry is not None, sources, reads),)
