"""The memory of the NPUs: what a new service finds free, who holds the rest, and the sum behind ASCEND_MEM_SIZE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ascend_doctor.derive import rows
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.npu_table import Chip, Process
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass

VARIABLE = "ASCEND_MEM_SIZE"
VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
MIB_OF_UNIT = {"": 1, "M": 1, "G": 1024}


class Amount(NamedTuple):
    """A figure of the tool and the fact that it is."""

    mib: int | Missing
    path: str


@dataclass(frozen=True)
class ChipMemory:
    """``kind``: HBM, or DDR on chips without HBM, whose own operating system may live there too.

    ``listed``: processes that npu-smi shows on this chip; ``holders`` names them. ``busy``: more is used than a chip
    without work uses; on DDR that is not judged.
    """

    name: str
    kind: str
    total_mib: int | Missing
    used_mib: int | Missing
    free_mib: int | Missing
    listed: int | Missing
    holders: str
    busy: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class MemSize:
    """ASCEND_MEM_SIZE against the smallest visible chip; ``mib`` is unsupported where the value is no number of MiB."""

    text: str
    is_number: bool
    mib: int | Missing
    chip: str
    total_mib: int | Missing
    limit_mib: int | Missing
    over_mib: int | Missing
    reads: tuple[str, ...]


@rows("memory.chips")
def chips(npu: Npu, limits: Limits) -> tuple[ChipMemory, ...] | Missing:
    """One row for each chip."""
    seen = _seen(npu)
    if isinstance(seen, Missing):
        return seen
    return tuple(_chip(npu, index, chip, limits) for index, chip in enumerate(seen))


@rows("memory.mem_size")
def mem_size(npu: Npu, env: Mapping[str, str | Missing], limits: Limits) -> tuple[MemSize, ...] | Missing:
    """One row where the variable is set."""
    text = env.get(VARIABLE, Missing(Reason.NOT_COLLECTED, f"${VARIABLE}", f"env.{VARIABLE}"))
    if isinstance(text, Missing):
        return text
    seen = _seen(npu)
    if isinstance(seen, Missing):
        return seen
    mib = mib_of(text)
    chosen = env.get(VISIBLE)
    if isinstance(chosen, Missing) and chosen.reason is not Reason.ABSENT:
        return chosen
    smallest, total = _smallest(seen, visible(chosen, len(seen)))
    reserve = int(limits["memory.firmware_reserve_mib"] + limits["memory.runtime_reserve_mib"])
    limit = total.mib if isinstance(total.mib, Missing) else total.mib - reserve
    over = next((part for part in (mib, limit) if isinstance(part, Missing)), None)
    row = MemSize(
        text=text,
        is_number=not isinstance(mib, Missing),
        mib=mib,
        chip=_name(seen[smallest]),
        total_mib=total.mib,
        limit_mib=limit,
        over_mib=over if over is not None else mib - limit,  # type: ignore[operator]
        reads=(f"env.{VARIABLE}", f"env.{VISIBLE}", total.path),
    )
    return (row,)


def mib_of(text: str) -> int | Missing:
    """``28000``, ``28000MB``, ``27.5 GiB`` as MiB: the public guide gives a bare number of MiB."""
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*(?:([MG])(?:i?B)?)?\s*", text, re.ASCII | re.IGNORECASE)
    if not found:
        return Missing(Reason.UNSUPPORTED, f"{text!r} is no number of MiB", f"env.{VARIABLE}")
    return int(float(found[1]) * MIB_OF_UNIT[(found[2] or "").upper()])


def visible(text: str | Missing | None, count: int) -> tuple[int, ...]:
    """The devices that ASCEND_RT_VISIBLE_DEVICES lets through; all where it is not set or its form is unclear."""
    everything = tuple(range(count))
    if not isinstance(text, str) or not re.fullmatch(r"\d{1,4}(?:,\d{1,4})*", text.strip(), re.ASCII):
        return everything
    chosen = tuple(int(number) for number in text.split(","))
    return chosen if all(device < count for device in chosen) else everything


def total_of(chip: Chip, index: int) -> Amount:
    """HBM; DDR where the tool has no HBM column for this chip, and DDR at all (it prints 0 for chips without)."""
    no_hbm = isinstance(chip.hbm_total_mb, Missing) and chip.hbm_total_mb.reason in (Reason.ABSENT, Reason.UNSUPPORTED)
    if no_hbm and chip.memory_total_mb != 0:
        return Amount(chip.memory_total_mb, f"npu.chips[{index}].memory_total_mb")
    return Amount(chip.hbm_total_mb, f"npu.chips[{index}].hbm_total_mb")


def _seen(npu: Npu) -> tuple[Chip, ...] | Missing:
    """The chips, unless one of them is missing; a table of npu-smi has one at least."""
    if isinstance(npu.chips, Missing):
        return npu.chips
    return next((chip for chip in npu.chips if isinstance(chip, Missing)), npu.chips)


def _smallest(chips: Sequence[Chip], devices: Sequence[int]) -> tuple[int, Amount]:
    """The visible chip with the least memory; one whose memory is not known leaves it open."""
    amounts = [(device, total_of(chips[device], device)) for device in devices]
    for device, amount in amounts:
        if isinstance(amount.mib, Missing):
            return device, amount
    return min(amounts, key=lambda pair: pair[1].mib)  # type: ignore[arg-type, return-value]


def _chip(npu: Npu, index: int, chip: Chip, limits: Limits) -> ChipMemory:
    total = total_of(chip, index)
    kind = "HBM" if total.path.endswith("hbm_total_mb") else "DDR"
    used = Amount(chip.hbm_used_mb if kind == "HBM" else chip.memory_used_mb, total.path.replace("total", "used"))
    unknown = next((part for part in (total.mib, used.mib) if isinstance(part, Missing)), None)
    holders = _on(npu, chip)
    idle_limit = limits["memory.idle_hbm_mib"]
    return ChipMemory(
        name=_name(chip),
        kind=kind,
        total_mib=total.mib,
        used_mib=used.mib,
        free_mib=unknown if unknown is not None else total.mib - used.mib,  # type: ignore[operator]
        listed=holders if isinstance(holders, Missing) else len(holders),
        holders="" if isinstance(holders, Missing) else ", ".join(map(_holder, holders)),
        busy=used.mib if isinstance(used.mib, Missing) else kind == "HBM" and used.mib > idle_limit,
        reads=(total.path, used.path, "npu.processes"),
    )


def _on(npu: Npu, chip: Chip) -> tuple[Process, ...] | Missing:
    """The processes of a chip; the layouts without a chip column have one chip for each NPU."""
    if isinstance(npu.processes, Missing):
        return npu.processes
    if isinstance(npu.process_table_present, Missing):
        return npu.process_table_present
    if not npu.process_table_present:
        return Missing(Reason.ABSENT, "npu-smi printed no process table", "npu.processes")
    owners: tuple[Chip | Process, ...] = (chip, *npu.processes)
    parts = [part for o in owners for part in ((o,) if isinstance(o, Missing) else (o.npu_id, o.chip_id))]
    untold = [part for part in parts if isinstance(part, Missing) and part.reason is not Reason.UNSUPPORTED]
    if untold:
        return untold[0]
    place = (chip.npu_id, _number(chip.chip_id))
    return tuple(p for p in npu.processes if (p.npu_id, _number(p.chip_id)) == place)


def _number(chip_id: int | Missing) -> int | None:
    return None if isinstance(chip_id, Missing) else chip_id


def _holder(process: Process) -> str:
    memory = "?" if isinstance(process.memory_mb, Missing) else process.memory_mb
    return f"{process.pid} {process.name or '?'} {memory} MiB"


def _name(chip: Chip) -> str:
    """The card, and the chip on it where there is such a number."""
    return f"{chip.npu_id}" if isinstance(chip.chip_id, Missing) else f"{chip.npu_id}/{chip.chip_id}"
