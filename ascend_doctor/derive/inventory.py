"""The hardware that is there against the one that a site expects, and whether it is all of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, TypeVar, Union

from ascend_doctor.derive import rows
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.npu_table import Chip
from ascend_doctor.facts.numa import Numa
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.profile import Profile
from ascend_doctor.records import dataclass
from ascend_doctor.versions import compare

T = TypeVar("T")

NO_CHIP = Missing(Reason.FAILED, "npu-smi shows no chip", "npu.chips")


@dataclass(frozen=True)
class Item:
    """One thing of ``expect`` in a profile. ``fewer``: a number that is less; ``differs``: another value, or more."""

    what: str
    profile: str
    wanted: str
    found: str | Missing
    fewer: bool | Missing
    differs: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Kinds:
    """All chips of the host: which names and sizes of HBM there are, each with its NPUs."""

    mixed_names: bool | Missing
    names: str
    mixed_sizes: bool | Missing
    sizes: str
    reads: tuple[str, ...]


@rows("inventory.items")
def items(npu: Npu, numa: Numa, profile: Profile) -> tuple[Item, ...]:
    """One row for each thing that the profile expects; none without a profile that expects any."""
    expect, chips = profile.expect, seen_chips(npu)
    ids: list[int] | Missing = chips if isinstance(chips, Missing) else sorted({chip.npu_id for chip in chips})
    found = [
        ("npus", expect.npus, ids if isinstance(ids, Missing) else len(ids), "npu.chips"),
        ("chips", expect.chips, chips if isinstance(chips, Missing) else len(chips), "npu.chips"),
        ("chip_name", expect.chip_name, _first_other(chips, _name, expect.chip_name), "npu.chips"),
        ("hbm_mib", expect.hbm_mib, _first_other(chips, _size, expect.hbm_mib), "npu.chips"),
        ("driver", expect.driver, npu.driver_version, "npu.driver_version"),
        ("numa_nodes", expect.numa_nodes, _count_of_nodes(numa), "numa.nodes"),
    ]
    return tuple(
        _item(what, profile.name, wanted, value, path) for what, wanted, value, path in found if wanted is not None
    )


@rows("inventory.kinds")
def kinds(npu: Npu) -> tuple[Kinds, ...] | Missing:
    """One row: chips of two kinds are no fault, but one job over both is as small as the smallest."""
    chips = seen_chips(npu)
    if isinstance(chips, Missing):
        return chips
    names, sizes = [_name(chip) for chip in chips], [_size(chip) for chip in chips]
    reads = tuple(f"npu.chips[{n}]" for n in range(len(chips)))
    return (Kinds(mixed(names), _listed(chips, names), mixed(sizes), _listed(chips, sizes), reads),)


def seen_chips(npu: Npu) -> tuple[Chip, ...] | Missing:
    """All chips with their NPU; Missing where one of them is not known."""
    if isinstance(npu.chips, Missing):
        return npu.chips
    parts: list[object] = [part for chip in npu.chips for part in (chip, getattr(chip, "npu_id", chip))]
    return next((part for part in parts if isinstance(part, Missing)), npu.chips)


def mixed(values: Sequence[T | Missing]) -> bool | Missing:
    """Whether two of them differ; what no chip has, differs nowhere."""
    if len({value for value in values if not isinstance(value, Missing)}) > 1:
        return True
    unseen = [v for v in values if isinstance(v, Missing) and v.reason not in (Reason.UNSUPPORTED, Reason.ABSENT)]
    return unseen[0] if unseen else False


def _name(chip: Chip) -> str | Missing:
    return chip.name


def _size(chip: Chip) -> int | Missing:
    return chip.hbm_total_mb


def _count_of_nodes(numa: Numa) -> int | Missing:
    return numa.nodes if isinstance(numa.nodes, Missing) else len(numa.nodes)


def _first_other(
    chips: tuple[Chip, ...] | Missing, value_of: Callable[[Chip], Union[int, str, Missing]], wanted: int | str | None
) -> int | str | Missing:
    """The first value that is not the one wanted, else one that is not known, else the wanted one."""
    if isinstance(chips, Missing):
        return chips
    values = [value_of(chip) for chip in chips]
    known = [value for value in values if not isinstance(value, Missing)]
    other = next((value for value in known if not _is_same(str(wanted), str(value))), None)
    unseen = next((value for value in values if isinstance(value, Missing)), known[0] if known else NO_CHIP)
    return unseen if other is None else other


def _is_same(wanted: str, value: str) -> bool:
    """npu-smi prints 910B3 and ``Ascend 910B3``, soc_version is Ascend910B3; a version may be written in two ways."""
    one, other = (text.lower().replace(" ", "").replace("ascend", "") for text in (wanted, value))
    return one == other or compare("driver", wanted, value) == 0


def _item(what: str, profile: str, wanted: int | str, value: int | str | Missing, path: str) -> Item:
    if isinstance(value, Missing):
        return Item(what, profile, str(wanted), value, value, value, (path,))
    fewer = isinstance(wanted, int) and isinstance(value, int) and value < wanted
    return Item(what, profile, str(wanted), str(value), fewer, not _is_same(str(wanted), str(value)), (path,))


def _listed(chips: Sequence[Chip], values: Sequence[int | str | Missing]) -> str:
    """``910B3 (NPU 0, 1), 910B4 (NPU 2)``."""
    groups: dict[str, list[str]] = {}
    for chip, value in zip(chips, values):
        if not isinstance(value, Missing):
            groups.setdefault(str(value), []).append(str(chip.npu_id))
    return ", ".join(f"{value} (NPU {', '.join(dict.fromkeys(npus))})" for value, npus in groups.items())
