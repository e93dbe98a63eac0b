"""What npu-smi's details of each chip mean: memory errors, firmware against its package, heat, virtual NPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ascend_doctor.derive import rows
from ascend_doctor.derive.inventory import mixed, seen_chips
from ascend_doctor.facts.devices import Devices
from ascend_doctor.facts.driver import Driver
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.npu_details import Board, ChipDetails, NpuDetails
from ascend_doctor.facts.npu_table import Chip
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass

VIRTUAL = "/dev/vdavinci"
FIRMWARE = re.compile(r"\d{1,4}(?:\.\d{1,4}){4}", re.ASCII)

NO_READING = Missing(Reason.UNSUPPORTED, "no chip tells its temperature", "npu.chips")


@dataclass(frozen=True)
class MemoryErrors:
    """One chip, all its memories together. ``spent``: as many pages are isolated as a chip can; ``many``: a good part.

    ``waiting``: pages that the next reset isolates; only a 950 tells, for the others it is 0.
    """

    place: str | Missing
    npu: int
    double: int | Missing
    double_ever: int | Missing
    isolated: int | Missing
    spent: bool | Missing
    many: bool | Missing
    waiting: int | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Heat:
    """``hotter``: much hotter than the middle one of all chips."""

    place: str | Missing
    celsius: float | Missing
    middle: float | Missing
    hotter: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Running:
    """Driver and firmware that run, on all cards, against the package that is installed.

    ``other``: a card runs another firmware than the package has; False where there is no package, as in a container.
    """

    firmware: str
    mixed_firmware: bool | Missing
    drivers: str
    mixed_drivers: bool | Missing
    package: str | Missing
    other: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Accepted:
    """``verdict`` of the driver about the firmware of one card: OK, NOK, UNKNOWN."""

    npu: int
    verdict: str | Missing
    driver: str | Missing
    firmware: str | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Virtual:
    """Virtual NPUs that somebody cut out of the chips of this host."""

    count: int
    nodes: str
    reads: tuple[str, ...]


@rows("npu_details.memory_errors")
def memory_errors(npu_details: NpuDetails, limits: Limits) -> tuple[MemoryErrors, ...] | Missing:
    """One row for each chip, where npu-smi was asked in depth."""
    if not npu_details.asked:
        return ()
    if isinstance(npu_details.chips, Missing):
        return npu_details.chips
    return tuple(_errors(chip, f"npu_details.chips[{n}].ecc", limits) for n, chip in enumerate(npu_details.chips))


@rows("npu_details.heat")
def heat(npu: Npu, limits: Limits) -> tuple[Heat, ...] | Missing:
    """One row for each chip: public documents name no temperature that is too high, so chips are compared."""
    chips = seen_chips(npu)
    if isinstance(chips, Missing):
        return chips
    unseen = next((c.temp_c for c in chips if isinstance(c.temp_c, Missing) and _may_be(c.temp_c)), None)
    known = sorted(chip.temp_c for chip in chips if not isinstance(chip.temp_c, Missing))
    middle: float | Missing = known[(len(known) - 1) // 2] if known else NO_READING
    if unseen is not None:
        middle = unseen
    return tuple(_heat(chip, f"npu.chips[{n}].temp_c", middle, limits) for n, chip in enumerate(chips))


@rows("npu_details.running")
def running(npu_details: NpuDetails, driver: Driver) -> tuple[Running, ...] | Missing:
    """One row, where npu-smi was asked in depth."""
    boards = _boards(npu_details)
    if isinstance(boards, Missing):
        return boards
    if not boards:
        return ()
    firmware, drivers = [board.firmware for board in boards], [board.driver for board in boards]
    reads = tuple(f"npu_details.boards[{n}]" for n in range(len(boards)))
    return (
        Running(
            firmware=_named(boards, firmware),
            mixed_firmware=_first_unseen(firmware, mixed(firmware)),
            drivers=_named(boards, drivers),
            mixed_drivers=mixed(drivers),
            package=driver.firmware_version,
            other=_other_than(driver.firmware_version, firmware),
            reads=(*reads, "driver.firmware_version"),
        ),
    )


@rows("npu_details.accepted")
def accepted(npu_details: NpuDetails) -> tuple[Accepted, ...] | Missing:
    """One row for each card, where npu-smi was asked in depth."""
    boards = _boards(npu_details)
    if isinstance(boards, Missing):
        return boards
    return tuple(
        Accepted(board.npu_id, board.compatible, board.driver, board.firmware, (f"npu_details.boards[{n}]",))
        for n, board in enumerate(boards)
    )


@rows("npu_details.virtual")
def virtual(devices: Devices) -> tuple[Virtual, ...] | Missing:
    """One row."""
    if isinstance(devices.nodes, Missing):
        return devices.nodes
    found = [path for path in devices.nodes if path.startswith(VIRTUAL)]
    return (Virtual(len(found), ", ".join(found), ("devices.nodes",)),)


def _heat(chip: Chip, path: str, middle: float | Missing, limits: Limits) -> Heat:
    hotter: bool | Missing
    if isinstance(chip.temp_c, Missing) or isinstance(middle, Missing):
        hotter = chip.temp_c if isinstance(chip.temp_c, Missing) else middle  # type: ignore[assignment]
    else:
        hotter = chip.temp_c - middle > limits["npu.hotter_celsius"]
    return Heat(_place(chip.npu_id, chip.chip_id), chip.temp_c, middle, hotter, (path,))


def _errors(chip: ChipDetails, path: str, limits: Limits) -> MemoryErrors:
    place, ecc = _place(chip.npu_id, chip.chip_id), chip.ecc
    if isinstance(ecc, Missing):
        return MemoryErrors(place, chip.npu_id, ecc, ecc, ecc, ecc, ecc, ecc, (path,))
    isolated = _sum([memory.double_pages for memory in ecc.values()])
    unknown = isolated if isinstance(isolated, Missing) else None
    return MemoryErrors(
        place=place,
        npu=chip.npu_id,
        double=_sum([memory.double for memory in ecc.values()]),
        double_ever=_sum([memory.double_ever for memory in ecc.values()]),
        isolated=isolated,
        spent=unknown if unknown is not None else isolated >= limits["npu.isolated_pages_most"],  # type: ignore[operator]
        many=unknown if unknown is not None else isolated >= limits["npu.isolated_pages_many"],  # type: ignore[operator]
        waiting=_sum([_or_none(memory.double_pages_waiting) for memory in ecc.values()]),
        reads=(path,),
    )


def _sum(values: Sequence[int | Missing]) -> int | Missing:
    """Of those that a chip has; one that may be there and is not known makes the sum unknown."""
    unseen = [value for value in values if isinstance(value, Missing) and _may_be(value)]
    known = [value for value in values if not isinstance(value, Missing)]
    if unseen:
        return unseen[0]
    return sum(known) if known else next(iter(values))


def _or_none(count: int | Missing) -> int | Missing:
    return 0 if isinstance(count, Missing) and not _may_be(count) else count


def _may_be(why: Missing) -> bool:
    return why.reason not in (Reason.UNSUPPORTED, Reason.ABSENT)


def _place(npu_id: int | Missing, chip_id: int | Missing) -> str | Missing:
    """0/1, or 0 where npu-smi numbers no chips below the NPU."""
    if isinstance(npu_id, Missing):
        return npu_id
    if isinstance(chip_id, Missing):
        return chip_id if _may_be(chip_id) else f"{npu_id}"
    return f"{npu_id}/{chip_id}"


def _boards(details: NpuDetails) -> tuple[Board, ...] | Missing:
    return details.boards if details.asked else ()


def _first_unseen(values: Sequence[str | Missing], otherwise: bool | Missing) -> bool | Missing:
    """What no card tells is no agreement."""
    if all(isinstance(value, Missing) for value in values):
        return next(value for value in values if isinstance(value, Missing))
    return otherwise


def _other_than(package: str | Missing, running: Sequence[str | Missing]) -> bool | Missing:
    """Whether a card runs another one; numbers of another form than 7.8.0.5.216 are not compared."""
    if isinstance(package, Missing):
        return package if _may_be(package) else False
    unseen = next((value for value in running if isinstance(value, Missing)), None)
    known = [value for value in running if not isinstance(value, Missing)]
    odd = next((value for value in (package, *known) if not FIRMWARE.fullmatch(value)), None)
    if odd is not None:
        return Missing(Reason.FAILED, f"{odd} is of another form", "driver.firmware_version")
    return True if any(value != package for value in known) else False if unseen is None else unseen


def _named(boards: Sequence[Board], values: Sequence[str | Missing]) -> str:
    groups: dict[str, list[str]] = {}
    for board, value in zip(boards, values):
        if not isinstance(value, Missing):
            groups.setdefault(value, []).append(str(board.npu_id))
    return ", ".join(f"{value} (NPU {', '.join(npus)})" for value, npus in groups.items())
