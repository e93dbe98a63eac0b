"""What each NPU's PCI Express link runs at, and what it could: the lesser of what card and port can."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ascend_doctor.derive import rows
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.hardware import Hardware
from ascend_doctor.records import dataclass

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class Link:
    """``label``: ``NPU 0 (0000:c1:00.0, 910B)``, without what is not known; ``port``: the bridge above."""

    address: str
    label: str
    port: str | Missing
    driver: str | Missing
    current_width: int | Missing
    max_width: int | Missing
    port_max_width: int | Missing
    possible_width: int | Missing
    current_speed_gts: float | Missing
    max_speed_gts: float | Missing
    port_max_speed_gts: float | Missing
    possible_speed_gts: float | Missing
    reads: tuple[str, ...]


@rows("pci.links")
def links(pci: Pci, npu: Npu, hardware: Hardware) -> tuple[Link, ...] | Missing:
    """One row for each NPU function; a chip that is not on the bus (UB, RC mode, a masked address) has none."""
    if isinstance(pci.npus, Missing):
        return pci.npus
    found = []
    for address, function in pci.npus.items():
        path, bridge = keyed("pci.npus", address), function.bridge
        if isinstance(bridge, Missing):
            # an NPU without a port above it is a guest's: the link that it shows is not the card's
            port = replace(bridge, reason=Reason.UNSUPPORTED) if bridge.reason is Reason.ABSENT else bridge
            port_width: int | Missing = port
            port_speed: float | Missing = port
            name: str | Missing = port
        else:
            port_width, port_speed, name = bridge.max_width, bridge.max_speed_gts, bridge.address
        width, speed = _shown(function.max_width), _shown(function.max_speed_gts)
        port_width, port_speed = _shown(port_width), _shown(port_speed)
        found.append(
            Link(
                address,
                _label(address, hardware.chips.get(function.device_id), npu),
                name,
                function.driver,
                _shown(function.current_width),
                width,
                port_width,
                _lesser(width, port_width),
                _shown(function.current_speed_gts),
                speed,
                port_speed,
                _lesser(speed, port_speed),
                reads=(
                    *(f"{path}.{side}_{what}" for side in ("current", "max") for what in ("width", "speed_gts")),
                    f"{path}.driver",
                    f"{path}.bridge.max_width",
                    f"{path}.bridge.max_speed_gts",
                ),
            )
        )
    return tuple(found)


def _shown(value: N | Missing) -> N | Missing:
    """Without the file, the kernel knows the function to have no PCI Express link."""
    if isinstance(value, Missing) and value.reason is Reason.ABSENT:
        return replace(value, reason=Reason.UNSUPPORTED, detail="no PCI Express link")
    return value


def _lesser(card: N | Missing, port: N | Missing) -> N | Missing:
    if isinstance(card, Missing):
        return card
    return port if isinstance(port, Missing) else min(card, port)


def _label(address: str, chip: str | None, npu: Npu) -> str:
    chips = () if isinstance(npu.chips, Missing) else npu.chips
    cards = {
        str(c.npu_id)
        for c in chips
        if isinstance(c.bus_id, str) and c.bus_id.lower() == address and not isinstance(c.npu_id, Missing)
    }
    place = f"{address}, {chip}" if chip else address
    return f"NPU {', '.join(sorted(cards))} ({place})" if cards else place
