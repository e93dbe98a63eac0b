"""A tile for each chip, card by card: what a reader compares at a glance."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_doctor.records import dataclass
from ascend_doctor.report.pictures.rows import Holder, Link, Machine, Npu
from ascend_doctor.report.pictures.trouble import Trouble, gravest

HEALTHY = "OK"
BAR = 26
"""Height of a memory bar."""

GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""GT/s -> generation of PCI Express."""


@dataclass(frozen=True)
class Tile:
    """``number`` names the chip, ``place`` in full; ``used`` is the height of the bar, None where that is not known.

    ``health`` is empty where it is OK, None where nobody knows; ``narrow``: the link is less than it could be.
    """

    place: str
    number: str
    name: str | None
    mark: str
    target: str | None
    health: str | None
    used: float | None
    memory: str
    used_gib: str | None
    total_gib: str | None
    celsius: str | None
    link: str | None
    narrow: bool
    holders: tuple[Holder, ...]


@dataclass(frozen=True)
class Card:
    """The chips of one card, in a frame of their own where there are several."""

    npu: int
    tiles: tuple[Tile, ...]


def cards(machine: Machine, troubles: Mapping[str, Trouble]) -> tuple[Card, ...]:
    """In the order of npu-smi, which is that of the boards."""
    found: dict[int, list[Tile]] = {}
    for npu in machine.npus:
        found.setdefault(npu.npu, []).append(_tile(npu, machine.single, troubles))
    return tuple(Card(npu, tuple(tiles)) for npu, tiles in found.items())


def trouble_of(npu: Npu, troubles: Mapping[str, Trouble], single: bool) -> Trouble | None:
    """The gravest that lies on a chip, its card where that has one chip only, or its link."""
    names = [f"npu:{npu.place}", f"pci:{npu.bus}" if npu.bus else ""]
    names += [f"npu:{npu.npu}"] if single or f"npu:{npu.place}" not in troubles else []
    return gravest(*(troubles.get(name) for name in names))


def mark_of(npu: Npu, trouble: Trouble | None) -> str:
    """The trouble's; else what npu-smi says: a chip that is not OK is never shown as one that is."""
    if trouble and trouble.mark != "info":
        return trouble.mark
    if npu.health is None:
        return "unknown"
    return "pass" if npu.health == HEALTHY else "warning"


def _tile(npu: Npu, single: bool, troubles: Mapping[str, Trouble]) -> Tile:
    trouble = trouble_of(npu, troubles, single)
    known = npu.used_mib is not None and npu.total_mib
    return Tile(
        place=npu.place,
        number=str(npu.npu) if single else npu.place,
        name=npu.name,
        mark=mark_of(npu, trouble),
        target=trouble.target if trouble else None,
        health=None if npu.health is None else "" if npu.health == HEALTHY else npu.health,
        used=round(BAR * min(1.0, npu.used_mib / npu.total_mib), 1) if known else None,  # type: ignore[operator]
        memory=npu.memory,
        used_gib=gib(npu.used_mib),
        total_gib=gib(npu.total_mib or None),
        celsius=None if npu.celsius is None else f"{npu.celsius:g}",
        link=link_text(npu.link),
        narrow=is_narrow(npu.link),
        holders=npu.holders or (),
    )


def gib(mib: int | None) -> str | None:
    """``3.3``, ``64``; None stays None."""
    if mib is None:
        return None
    return f"{mib / 1024:.1f}".removesuffix(".0") if mib < 10240 else f"{mib / 1024:.0f}"


def is_narrow(link: Link | None) -> bool:
    if link is None:
        return False
    return _less(link.width, link.possible_width) or _less(link.speed_gts, link.possible_speed_gts)


def link_text(link: Link | None) -> str | None:
    """``x16 G4``; what is less than it could be says so: ``x8 of x16``, ``G3 of G4``; ``?``; None without a link."""
    if link is None:
        return None
    if link.width is None and link.speed_gts is None:
        return "?"
    if _less(link.width, link.possible_width):
        return f"x{link.width} of x{link.possible_width}"
    if _less(link.speed_gts, link.possible_speed_gts):
        return f"{generation(link.speed_gts)} of {generation(link.possible_speed_gts)}"
    width = "" if link.width is None else f"x{link.width}"
    return f"{width} {generation(link.speed_gts)}".strip()


def generation(speed: float | None) -> str:
    """``G4`` of 16 GT/s; a speed that has no generation as it is."""
    if speed is None:
        return ""
    return f"G{GENERATIONS[speed]}" if speed in GENERATIONS else f"{speed:g}"


def _less(now: float | None, possible: float | None) -> bool:
    return now is not None and possible is not None and now < possible
