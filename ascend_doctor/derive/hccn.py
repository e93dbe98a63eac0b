"""The NPUs' own network ports against the file that sets them up, and against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ascend_doctor.derive import rows
from ascend_doctor.derive.network import device_numbers
from ascend_doctor.facts.devices import Devices
from ascend_doctor.facts.hccn import Hccn, Port, Setting
from ascend_doctor.host import Missing, Reason
from ascend_doctor.records import dataclass

SHOWN = ("link", "health", "address", "optical_celsius")


@dataclass(frozen=True)
class NpuAddress:
    """One NPU in hccn.conf. ``others``: NPUs of the same address; ``usual_mask``: what most of them have."""

    npu: int
    address: str | Missing
    is_address: bool | Missing
    shared: bool | Missing
    others: str
    netmask: str | Missing
    odd_mask: bool | Missing
    usual_mask: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Gaps:
    """NPUs of this host that hccn.conf, which names some, does not name."""

    count: int
    which: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class NpuPort:
    """What hccn_tool says of one NPU, and hccn.conf. ``configured``: the file gives it an address."""

    npu: int
    link: str | Missing
    health: str | Missing
    configured: bool | Missing
    wanted: str | Missing
    address: str | Missing
    agrees: bool | Missing
    celsius: float | Missing
    high_celsius: float | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Tls:
    """The TLS switch of all NPUs: ``on`` and ``off`` name them; ``mixed``: there are both."""

    on: str
    off: str
    mixed: bool | Missing
    reads: tuple[str, ...]


@rows("hccn.addresses")
def addresses(hccn: Hccn) -> tuple[NpuAddress, ...] | Missing:
    """One row for each NPU that hccn.conf names."""
    if isinstance(hccn.conf, Missing):
        return () if hccn.conf.reason is Reason.ABSENT else hccn.conf
    users: dict[str, list[int]] = {}
    masks: dict[str, int] = {}
    for setting in hccn.conf.values():
        if isinstance(setting.address, str):
            users.setdefault(setting.address, []).append(setting.npu)
        if isinstance(setting.netmask, str):
            masks[setting.netmask] = masks.get(setting.netmask, 0) + 1
    usual = max(masks, key=lambda mask: masks[mask], default="")
    unseen = _unseen([setting.address for setting in hccn.conf.values()])
    unseen_mask = _unseen([setting.netmask for setting in hccn.conf.values()])
    return tuple(_address(setting, users, usual, unseen, unseen_mask) for setting in hccn.conf.values())


def _unseen(values: Sequence[str | Missing]) -> Missing | None:
    """Why one of them is not known, though it may be there."""
    return next((v for v in values if isinstance(v, Missing) and v.reason is not Reason.ABSENT), None)


def _address(
    setting: Setting,
    users: Mapping[str, list[int]],
    usual_mask: str,
    unseen: Missing | None,
    unseen_mask: Missing | None,
) -> NpuAddress:
    value, mask = setting.address, setting.netmask
    others = [] if isinstance(value, Missing) else [npu for npu in users[value] if npu != setting.npu]
    return NpuAddress(
        setting.npu,
        value,
        value if isinstance(value, Missing) else _is_address(value),
        bool(others) if others or unseen is None else unseen,
        ", ".join(map(str, others)),
        mask,
        unseen_mask or (mask if isinstance(mask, Missing) else mask != usual_mask),
        usual_mask,
        tuple(f"hccn.conf[{npu}]" for npu in (setting.npu, *others)),
    )


def _is_address(text: str) -> bool:
    if ":" not in text:
        parts = text.split(".")
        return (
            len(parts) == 4
            and all(p.isascii() and p.isdigit() and int(p) <= 255 for p in parts)
            and set(parts) != {"0"}
        )

    from ipaddress import ip_address  # seldom: the NPUs' ports have IPv4

    try:
        return not ip_address(text).is_unspecified
    except ValueError:
        return False


@rows("hccn.gaps")
def gaps(hccn: Hccn, devices: Devices) -> tuple[Gaps, ...] | Missing:
    """One row where hccn.conf names any NPU: a host without addresses there uses none."""
    if isinstance(hccn.conf, Missing):
        return () if hccn.conf.reason is Reason.ABSENT else hccn.conf
    if isinstance(devices.nodes, Missing):
        return devices.nodes
    unseen = _unseen([setting.address for setting in hccn.conf.values()])
    if unseen:
        return unseen
    named = [npu for npu, setting in hccn.conf.items() if isinstance(setting.address, str)]
    if not named:
        return ()
    numbers = device_numbers(devices.nodes)
    if isinstance(numbers, Missing):
        return numbers
    without = [str(number) for number in numbers if number not in named]
    return (Gaps(len(without), ", ".join(without), ("hccn.conf", "devices.nodes")),)


@rows("hccn.npu_ports")
def npu_ports(hccn: Hccn) -> tuple[NpuPort, ...] | Missing:
    """One row for each NPU where hccn_tool was asked."""
    if not hccn.asked:
        return ()
    if isinstance(hccn.ports, Missing):
        return hccn.ports
    return tuple(_port(port, hccn.conf) for port in hccn.ports.values())


def _port(port: Port, conf: Mapping[int, Setting] | Missing) -> NpuPort:
    wanted: str | Missing
    if isinstance(conf, Missing):
        wanted = conf
    else:
        setting = conf.get(port.npu)
        wanted = setting.address if setting else Missing(Reason.ABSENT, "not in the file", "hccn.conf")
    no_address = isinstance(wanted, Missing) and wanted.reason is Reason.ABSENT
    configured = False if no_address else (wanted if isinstance(wanted, Missing) else True)
    return NpuPort(
        port.npu,
        port.link,
        port.health,
        configured,
        wanted,
        port.address,
        _agrees(wanted, port.address),
        port.optical_celsius,
        port.optical_high_celsius,
        (*(f"hccn.ports[{port.npu}].{what}" for what in SHOWN), f"hccn.conf[{port.npu}]"),
    )


def _agrees(wanted: str | Missing, found: str | Missing) -> bool | Missing:
    """A file without an address wants nothing; a device without one has not what the file wants."""
    if isinstance(wanted, Missing):
        return True if wanted.reason is Reason.ABSENT else wanted
    if isinstance(found, Missing):
        return False if found.reason is Reason.ABSENT else found
    return wanted == found


@rows("hccn.tls")
def tls(hccn: Hccn) -> tuple[Tls, ...] | Missing:
    """One row where hccn_tool was asked."""
    if not hccn.asked:
        return ()
    if isinstance(hccn.ports, Missing):
        return hccn.ports
    states = {port.npu: port.tls for port in hccn.ports.values()}
    on, off = (", ".join(str(npu) for npu, state in states.items() if state is wanted) for wanted in (True, False))
    unseen = next((state for state in states.values() if isinstance(state, Missing)), None)
    mixed: bool | Missing = bool(on and off)
    return (
        Tls(on, off, mixed if mixed or unseen is None else unseen, tuple(f"hccn.ports[{npu}].tls" for npu in states)),
    )
