"""Which device nodes the NPUs of this host need, and who may open those that are there."""

from __future__ import annotations

import re

from ascend_doctor.derive import rows
from ascend_doctor.facts.devices import DeviceNode, Devices
from ascend_doctor.facts.driver import Driver
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.hardware import Hardware, Nodes
from ascend_doctor.records import dataclass

CARD = re.compile(r"/dev/v?davinci\d+", re.ASCII)
GUESTS = "vfio-pci"


@dataclass(frozen=True)
class Required:
    """A node that must be there; ``type`` is absent where it is not."""

    path: str
    type: str | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Access:
    """The nodes that this user may not open, and what one of them is like; ``openable``: whether there are none.

    ``group`` is a name, or the number where /etc/group has none.
    """

    closed: str
    owner: int | Missing
    group: str | Missing
    named: bool
    mode: str | Missing
    openable: bool | Missing
    reads: tuple[str, ...]


@rows("devices.required")
def required(
    devices: Devices, npu: Npu, pci: Pci, driver: Driver, hardware: Hardware
) -> tuple[Required, ...] | Missing:
    """The cards' nodes that are there and the shared ones that they need; one row where no card's is, but should be."""
    nodes = devices.nodes
    if isinstance(nodes, Missing):
        return nodes
    cards = [path for path in nodes if CARD.fullmatch(path)]
    if not cards:
        meant = _are_meant(pci, driver)
        if isinstance(meant, Missing):
            return meant
        return (_required("/dev/davinciN", nodes, None),) if meant else ()
    host, own = hardware.nodes["host"], hardware.nodes["own"]
    alone = _runs_itself(devices, npu, pci, own)
    found = [_required(path, nodes, None) for path in cards]
    for path in host.needs:
        if path in own.needs:
            found.append(_required(path, nodes, None))
        elif alone is not True:
            found.append(_required(path, nodes, alone or None))
    return tuple(found)


@rows("devices.access")
def access(devices: Devices) -> tuple[Access, ...] | Missing:
    """One row for all nodes that are there; what is no device is left to devices.required."""
    if isinstance(devices.nodes, Missing):
        return devices.nodes
    there = [node for node in devices.nodes.values() if not _is_absent(node)]
    nodes = [node for node in there if isinstance(node.type, Missing) or node.type == "char"]
    if not nodes:
        return ()
    closed = [node for node in nodes if node.openable is False]
    unknown = next((node.openable for node in nodes if isinstance(node.openable, Missing)), None)
    shown = closed[0] if closed else nodes[0]
    number = shown.gid if isinstance(shown.gid, Missing) else str(shown.gid)
    return (
        Access(
            drawn_together([node.path for node in closed]),
            shown.uid,
            number if isinstance(shown.group, Missing) else shown.group,
            isinstance(shown.group, str),
            shown.mode,
            not closed if closed or unknown is None else unknown,
            tuple(keyed("devices.nodes", node.path) for node in closed or nodes),
        ),
    )


def _are_meant(pci: Pci, driver: Driver) -> bool | Missing:
    """Whether NPUs should be usable here: a driver is installed and bound to one. A guest's card (vfio) is not ours."""
    if isinstance(driver.version, Missing):
        return False if driver.version.reason is Reason.ABSENT else driver.version
    if isinstance(pci.npus, Missing):
        return False if pci.npus.reason is Reason.ABSENT else pci.npus
    drivers = [function.driver for function in pci.npus.values()]
    if any(isinstance(name, str) and name != GUESTS for name in drivers):
        return True
    unseen = [name for name in drivers if isinstance(name, Missing) and name.reason is not Reason.ABSENT]
    return unseen[0] if unseen else False


def _runs_itself(devices: Devices, npu: Npu, pci: Pci, own: Nodes) -> bool | Missing:
    """Whether the chip is its own host; Missing where neither the bus nor npu-smi could tell."""
    if not isinstance(devices.nodes, Missing) and own.sign in devices.nodes:
        return True
    if not isinstance(pci.npus, Missing) and pci.npus:
        return False
    if isinstance(npu.chips, Missing):
        return npu.chips
    if not any(isinstance(chip.name, str) and chip.name.startswith(own.chips) for chip in npu.chips):
        return False
    for chip in npu.chips:
        if isinstance(chip.bus_id, str):
            return False
        if chip.bus_id.reason not in (Reason.ABSENT, Reason.UNSUPPORTED):
            return chip.bus_id
    return pci.npus if isinstance(pci.npus, Missing) and pci.npus.reason is not Reason.ABSENT else True


def _required(path: str, nodes: dict[str, DeviceNode], doubt: Missing | None) -> Required:
    fact = keyed("devices.nodes", path)
    node = nodes.get(path)
    if node is not None:
        return Required(path, node.type, (fact,))
    return Required(path, doubt or Missing(Reason.ABSENT, "not in /dev", fact), ("devices.nodes",))


def _is_absent(node: DeviceNode) -> bool:
    return isinstance(node.type, Missing) and node.type.reason is Reason.ABSENT


def drawn_together(paths: list[str]) -> str:
    """``/dev/davinci0-7, /dev/davinci_manager``: runs of numbers as one."""
    parts: list[str] = []
    stem, first, last = "", 0, 0
    for path in paths:
        head = path.rstrip("0123456789")
        number = int(path[len(head) :] or -1)
        if number >= 0 and head == stem and number == last + 1:
            last = number
            parts[-1] = f"{stem}{first}-{last}"
        else:
            parts.append(path)
            stem, first, last = head, number, number
    return ", ".join(parts)
