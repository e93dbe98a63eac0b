"""The NPUs on the PCI bus: their links, NUMA nodes and drivers, and the bridge above each.

Sources: Linux kernel documentation, ABI/testing/sysfs-bus-pci; device ids of Huawei's driver, dcmi_common.h.
UB-attached chips (Ascend 950DT) and a chip that is its own host (310B in RC mode) are not on this bus.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, decoded, keyed, parsed
from ascend_doctor.records import dataclass

SYSFS = "/sys/bus/pci/devices"
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
VENDORS = ("19e5", "203f", "20c6", "20e9")
"""Huawei, and three partners that sell the same chips under their own vendor id."""


@dataclass(frozen=True)
class Bridge:
    """The port above a function: the other end of its link. Speeds in GT/s, widths in lanes."""

    address: str
    current_speed_gts: float | Missing
    current_width: int | Missing
    max_speed_gts: float | Missing
    max_width: int | Missing


@dataclass(frozen=True)
class Function:
    """One NPU function; ``driver`` is absent where none is bound, ``bridge`` where it sits on a root bus."""

    address: str
    vendor_id: str
    device_id: str
    numa_node: int | Missing
    driver: str | Missing
    current_speed_gts: float | Missing
    current_width: int | Missing
    max_speed_gts: float | Missing
    max_width: int | Missing
    bridge: Bridge | Missing


@dataclass(frozen=True)
class Pci:
    """By bus address, lower case: ``npus["0000:c1:00.0"]``; empty where the bus has none."""

    npus: dict[str, Function] | Missing


def hex_id(text: bytes) -> str | Missing:
    """``0x19e5`` as ``19e5``."""
    found = re.match(r"\s*(?:0x)?([0-9a-fA-F]{4,8})\s*$", decoded(text))
    return found[1].lower() if found else Missing(Reason.FAILED, "no hexadecimal number")


def gigatransfers(text: bytes) -> float | Missing:
    """``16.0 GT/s PCIe``, ``8 GT/s``; the kernel says ``Unknown`` where a function reports no link."""
    words = decoded(text).strip()
    found = re.match(r"(\d{1,4}(?:\.\d{1,4})?) ?GT/s", words)
    if found and float(found[1]) > 0:
        return float(found[1])
    if words.startswith("Unknown"):
        return Missing(Reason.UNSUPPORTED, words[:40])
    return Missing(Reason.FAILED, "no link speed")


def lanes(text: bytes) -> int | Missing:
    """A width of 1 to 32; 0, 63 and 255 stand for a link that is not reported."""
    found = re.match(r"\s*(\d{1,3})\s*$", decoded(text), re.ASCII)
    if not found:
        return Missing(Reason.FAILED, "no link width")
    width = int(found[1])
    return width if 1 <= width <= 32 else Missing(Reason.UNSUPPORTED, f"width {width}")


def node_number(text: bytes) -> int | Missing:
    """The NUMA node; -1 is the kernel's word for not knowing."""
    found = re.match(r"\s*(-1|\d{1,5})\s*$", decoded(text), re.ASCII)
    if not found:
        return Missing(Reason.FAILED, "no node number")
    return int(found[1]) if found[1] != "-1" else Missing(Reason.ABSENT, "the kernel knows no node (-1)")


def last_name(target: str) -> str | Missing:
    """``devdrv_device_driver`` of ``../../../../bus/pci/drivers/devdrv_device_driver``."""
    name = target.rstrip("/").rpartition("/")[2]
    return name or Missing(Reason.FAILED, "an empty link")


def bridge_above(target: str) -> str | Missing:
    """The second last address of ``../../../devices/pci0000:c0/0000:c0:00.0/0000:c1:00.0``."""
    parts = target.rstrip("/").split("/")
    if len(parts) < 2:
        return Missing(Reason.FAILED, "a link that names no bus")
    if parts[-2].startswith("pci"):
        return Missing(Reason.ABSENT, f"the function sits on the root bus {parts[-2]}")
    if ADDRESS.fullmatch(parts[-2]):
        return parts[-2]
    return Missing(Reason.FAILED, "a link that names no bridge")


def is_npu(vendor: str, class_code: str, device: str) -> bool:
    """A processing accelerator of the d range: Kunpeng's own ZIP engine (a250) has the same vendor and class."""
    return vendor in VENDORS and class_code.startswith("1200") and device.startswith("d")


def npu_ids(host: Host) -> Parsed[dict[str, tuple[str, str]]]:
    """Address -> (vendor, device) of each NPU; Missing where one function of the bus could not be told."""
    names = host.list(SYSFS)
    found: dict[str, tuple[str, str]] = {}
    if isinstance(names.value, Missing):
        return Parsed(names.value, names.source, {})
    for name in names.value:
        if not ADDRESS.fullmatch(name):
            continue
        ids: list[str] = []
        for file in ("vendor", "class", "device"):
            answer = parsed(host.read(f"{SYSFS}/{name}/{file}"), hex_id)
            if isinstance(answer.value, Missing):
                if answer.value.reason is Reason.ABSENT:
                    break  # unplugged since the bus was listed
                return Parsed(answer.value, answer.source, answer.texts)
            ids.append(answer.value)
            if file == "vendor" and answer.value not in VENDORS:
                break
            if file == "class" and not answer.value.startswith("1200"):
                break
        if len(ids) == 3 and is_npu(*ids):
            found[name] = (ids[0], ids[2])
    text = f"{len(names.value)} functions, {len(found)} of them NPUs"
    return Parsed(found, names.source, {"": f"{text}: {', '.join(found)}" if found else text})


def collect(host: Host) -> Collected[Pci]:
    """Reads one file for each function of the bus and a dozen for each NPU, starts nothing."""
    area = Area("pci")
    ids = area.take("npus", npu_ids(host))
    if isinstance(ids, Missing):
        return area.of(Pci(npus=ids))
    return area.of(Pci(npus={address: _function(host, area, address, *ids[address]) for address in ids}))


def _function(host: Host, area: Area, address: str, vendor: str, device: str) -> Function:
    folder, path = f"{SYSFS}/{address}", keyed("npus", address)
    return Function(
        address,
        vendor,
        device,
        numa_node=area.take(f"{path}.numa_node", parsed(host.read(f"{folder}/numa_node"), node_number)),
        driver=area.take(f"{path}.driver", parsed(host.link(f"{folder}/driver"), last_name)),
        current_speed_gts=_speed(host, area, folder, path, "current"),
        current_width=_width(host, area, folder, path, "current"),
        max_speed_gts=_speed(host, area, folder, path, "max"),
        max_width=_width(host, area, folder, path, "max"),
        bridge=_bridge(host, area, folder, f"{path}.bridge"),
    )


def _bridge(host: Host, area: Area, below: str, path: str) -> Bridge | Missing:
    address = area.take(path, parsed(host.link(below), bridge_above))
    if isinstance(address, Missing):
        return address
    folder = f"{SYSFS}/{address}"
    return Bridge(
        address,
        current_speed_gts=_speed(host, area, folder, path, "current"),
        current_width=_width(host, area, folder, path, "current"),
        max_speed_gts=_speed(host, area, folder, path, "max"),
        max_width=_width(host, area, folder, path, "max"),
    )


def _speed(host: Host, area: Area, folder: str, path: str, which: str) -> float | Missing:
    return area.take(f"{path}.{which}_speed_gts", parsed(host.read(f"{folder}/{which}_link_speed"), gigatransfers))


def _width(host: Host, area: Area, folder: str, path: str, which: str) -> int | Missing:
    return area.take(f"{path}.{which}_width", parsed(host.read(f"{folder}/{which}_link_width"), lanes))
