"""Whether what the environment says of the network is so, and whether the ports that HCCL takes are free.

Sources: CANN, environment variables HCCL_SOCKET_IFNAME, HCCL_IF_IP, HCCL_IF_BASE_PORT; PyTorch, Common environment
variables (GLOO_SOCKET_IFNAME).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ascend_doctor.derive import rows
from ascend_doctor.facts.devices import DeviceNode, Devices
from ascend_doctor.facts.interfaces import Interfaces
from ascend_doctor.facts.ports import Ports, port_ranges
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass

Env = Mapping[str, "str | Missing"]

HCCL_NAMES = "HCCL_SOCKET_IFNAME"
EXACT_NAMES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
OWN_ADDRESS = "HCCL_IF_IP"
OWN_ADDRESSES = (OWN_ADDRESS, "VLLM_HOST_IP")
BASE_PORT = "HCCL_IF_BASE_PORT"
HOST_RANGE = "HCCL_HOST_SOCKET_PORT_RANGE"
NPU_RANGE = "HCCL_NPU_SOCKET_PORT_RANGE"
VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
LAST_PORT = 65535


@dataclass(frozen=True)
class NamedInterfaces:
    """A variable that names interfaces. ``gone``: names that none has; ``usable``: whether one is left to use.

    ``down``: whether all that match are down.
    """

    variable: str
    value: str
    matching: str
    gone: str
    usable: bool
    down: bool | Missing
    present: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class OwnAddress:
    """A variable that names an address to listen on: whether it is one, and of this host."""

    variable: str
    value: str
    is_address: bool
    is_own: bool | Missing
    own: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class HcclPorts:
    """The ports of the host that HCCL takes, one for each device from ``first`` on.

    ``busy``: those that somebody listens on; ``wanted``: those among them that belong to the devices that the
    environment chose; ``over``: the last device's port is none. ``given``: whether a variable sets the first port.
    """

    first: int
    last: int
    given: bool
    busy: str
    busy_count: int
    wanted: str
    wanted_count: int
    over: bool
    highest: int
    device: int
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Reservation:
    """Whether the kernel may give HCCL's ports to outgoing connections; ``wanted``: what should be reserved."""

    first: int
    last: int
    at_risk: bool | Missing
    outgoing: str
    reserved: str | Missing
    wanted: str | Missing
    reads: tuple[str, ...]


@rows("network.named_interfaces")
def named_interfaces(env: Env, interfaces: Interfaces) -> tuple[NamedInterfaces, ...] | Missing:
    """One row for each variable that is set; HCCL does not look at its own where HCCL_IF_IP is set."""
    found = []
    for variable in (HCCL_NAMES, *EXACT_NAMES):
        value = _of(env, variable)
        chosen = _of(env, OWN_ADDRESS)
        if variable == HCCL_NAMES and isinstance(value, str):
            if isinstance(chosen, str):
                continue
            if chosen.reason is not Reason.ABSENT:
                return chosen
        if isinstance(value, Missing):
            if value.reason is not Reason.ABSENT:
                return value
            continue
        if not value.strip():
            continue
        if isinstance(interfaces.links, Missing):
            return interfaces.links
        found.append(_named(variable, value.strip(), interfaces))
    return tuple(found)


def _named(variable: str, value: str, interfaces: Interfaces) -> NamedInterfaces:
    links = {} if isinstance(interfaces.links, Missing) else interfaces.links
    matching, gone = (hccl_choice if variable == HCCL_NAMES else exact_choice)(value, tuple(links))
    usable = bool(matching) and (variable == HCCL_NAMES or not gone)
    return NamedInterfaces(
        variable,
        value,
        ", ".join(matching),
        ", ".join(gone),
        usable,
        _all_down([links[name].state for name in matching]),
        ", ".join(links) or "-",
        (f"env.{variable}", "interfaces.links", *(f"{keyed('interfaces.links', name)}.state" for name in matching)),
    )


def _all_down(states: Sequence[str | Missing]) -> bool | Missing:
    if any(isinstance(state, str) and state != "down" for state in states):
        return False
    unseen = next((state for state in states if isinstance(state, Missing)), None)
    return unseen if unseen else bool(states)


def hccl_choice(value: str, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """``eth,enp`` are beginnings, ``=eth0`` whole names, ``^`` and ``^=`` what is left out: matching, and in vain."""
    excluded, exact = value.startswith("^"), value.lstrip("^").startswith("=")
    wanted = [part.strip() for part in value.lstrip("^").lstrip("=").split(",") if part.strip()]

    def fits(name: str, part: str) -> bool:
        return name == part if exact else name.startswith(part)

    if excluded:
        return [name for name in names if not any(fits(name, part) for part in wanted)], []
    matching = [name for name in names if any(fits(name, part) for part in wanted)]
    return matching, [part for part in wanted if not any(fits(name, part) for name in names)]


def exact_choice(value: str, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Whole names, parted by commas."""
    wanted = [part.strip() for part in value.split(",") if part.strip()]
    return [part for part in wanted if part in names], [part for part in wanted if part not in names]


@rows("network.own_address")
def own_address(env: Env, interfaces: Interfaces) -> tuple[OwnAddress, ...] | Missing:
    """One row for each variable that is set."""
    found = []
    for variable in OWN_ADDRESSES:
        value = _of(env, variable)
        if isinstance(value, Missing):
            if value.reason is not Reason.ABSENT:
                return value
        elif isinstance(interfaces.addresses, Missing):
            return interfaces.addresses
        else:
            found.append(_own_address(variable, value, interfaces.addresses))
    return tuple(found)


def _own_address(variable: str, value: str, addresses: Sequence[str]) -> OwnAddress:
    from ipaddress import ip_address

    try:
        wanted = ip_address(value.strip().partition("%")[0])
    except ValueError:
        wanted = None
    own = {ip_address(text) for text in addresses if _is_address(text)}
    is_own: bool | Missing = wanted in own
    if not is_own and len(own) < len(addresses):
        is_own = Missing(Reason.FAILED, "one of them is no address", "interfaces.addresses")
    shown = sorted(str(address) for address in own if not address.is_loopback and not address.is_link_local)
    reads = (f"env.{variable}", "interfaces.addresses")
    return OwnAddress(variable, value, wanted is not None, is_own, ", ".join(shown) or "-", reads)


def _is_address(text: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(text)
    except ValueError:
        return False
    return True


@rows("network.hccl_ports")
def hccl_ports(env: Env, ports: Ports, devices: Devices, limits: Limits) -> tuple[HcclPorts, ...] | Missing:
    """One row, unless ranges of ports are given: these are for several processes."""
    span = _span(env, devices, limits)
    if isinstance(span, Missing):
        return span
    if not span:
        return ()
    first, count, numbers = span
    if isinstance(ports.listening, Missing):
        return ports.listening
    chosen = _chosen(env, numbers)
    busy = [port for port in ports.listening if first <= port < first + count]
    wanted = [port for port in busy if port - first in chosen]
    highest = max(numbers)
    return (
        HcclPorts(
            first,
            min(first + count - 1, LAST_PORT),
            isinstance(_of(env, BASE_PORT), str),
            ", ".join(map(str, busy)),
            len(busy),
            ", ".join(map(str, wanted)),
            len(wanted),
            first + highest > LAST_PORT,
            first + highest,
            highest,
            ("ports.listening", f"env.{BASE_PORT}", f"env.{VISIBLE}", "devices.nodes"),
        ),
    )


@rows("network.reservation")
def reservation(env: Env, ports: Ports, devices: Devices, limits: Limits) -> tuple[Reservation, ...] | Missing:
    """One row on a host with NPUs."""
    span = _span(env, devices, limits)
    if isinstance(span, Missing):
        return span
    if not span:
        return ()
    first, count, _ = span
    last = min(first + count - 1, LAST_PORT)
    low, high = ports.outgoing_first, ports.outgoing_last
    at_risk: bool | Missing
    if isinstance(low, Missing) or isinstance(high, Missing):
        at_risk = low if isinstance(low, Missing) else high  # type: ignore[assignment]
    else:
        exposed = [port for port in range(first, last + 1) if low <= port <= high]
        if exposed and isinstance(ports.reserved, Missing):
            at_risk = ports.reserved
        else:
            kept = () if isinstance(ports.reserved, Missing) else port_ranges(ports.reserved)
            at_risk = any(not any(a <= port <= b for a, b in kept) for port in exposed)
    own = f"{first}-{last}"
    wanted = f"{ports.reserved},{own}" if ports.reserved and isinstance(ports.reserved, str) else own
    reads = ("ports.outgoing_first", "ports.outgoing_last", "ports.reserved", f"env.{BASE_PORT}")
    return (Reservation(first, last, at_risk, f"{low}-{high}", ports.reserved, wanted, reads),)


def _span(env: Env, devices: Devices, limits: Limits) -> tuple[int, int, list[int]] | tuple[()] | Missing:
    """First port, how many, and the numbers of the devices; empty where there is nothing to judge."""
    if isinstance(devices.nodes, Missing):
        return devices.nodes
    numbers = device_numbers(devices.nodes)
    if isinstance(numbers, Missing):
        return numbers
    ranges, base = _of(env, HOST_RANGE), _of(env, BASE_PORT)
    for value in (ranges, base):
        if isinstance(value, Missing) and value.reason is not Reason.ABSENT:
            return value
    if not numbers or isinstance(ranges, str):
        return ()
    if isinstance(base, str) and not re.fullmatch(r"\s*\d{1,5}\s*", base, re.ASCII):
        return ()
    first = int(base) if isinstance(base, str) else int(limits["network.hccl_base_port"])
    return first, int(limits["network.hccl_ports"]), numbers


def device_numbers(nodes: Mapping[str, DeviceNode]) -> list[int] | Missing:
    """N of each /dev/davinciN."""
    unseen = (node.number for node in nodes.values() if isinstance(node.number, Missing))
    hidden = next((number for number in unseen if number.reason is not Reason.ABSENT), None)
    return hidden or [node.number for node in nodes.values() if isinstance(node.number, int)]


def _chosen(env: Env, numbers: Sequence[int]) -> set[int]:
    """The devices that the environment chose, as the driver numbers them; none where it does not choose."""
    value = _of(env, VISIBLE)
    if isinstance(value, Missing):
        return set()
    order = sorted(numbers)
    listed = [int(part) for part in re.findall(r"\d{1,4}", value, re.ASCII)]
    return {order[logical] for logical in listed if logical < len(order)}


def _of(env: Env, name: str) -> str | Missing:
    return env.get(name, Missing(Reason.NOT_COLLECTED, f"${name}", f"env.{name}"))
