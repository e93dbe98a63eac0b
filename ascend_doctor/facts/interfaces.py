"""The network interfaces of the host and its own addresses, as far as this process sees them.

Sources: Linux kernel documentation, ABI/testing/sysfs-class-net; proc(5) (/proc/net/fib_trie, /proc/net/if_inet6).
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, decoded, keyed, parsed
from ascend_doctor.records import dataclass

SYSFS = "/sys/class/net"
_NOT_INTERFACES = ("bonding_masters",)


@dataclass(frozen=True)
class Interface:
    """``state`` is the kernel's operstate: up, down, unknown (as lo says of itself), lowerlayerdown ..."""

    name: str
    state: str | Missing
    mtu: int | Missing


@dataclass(frozen=True)
class Interfaces:
    """By name: ``links["eth0"]``. ``addresses``: IPv4 and IPv6 of this host, as text, without prefix lengths."""

    links: dict[str, Interface] | Missing
    addresses: tuple[str, ...] | Missing


def local_addresses(data: bytes) -> tuple[str, ...] | Missing:
    """The addresses of fib_trie that are this host's own: a leaf ``|-- 10.0.0.5`` with ``/32 host LOCAL`` below it."""
    found: list[str] = []
    leaf = ""
    for line in decoded(data).split("\n"):
        node = re.match(r"[ |+-]*\|-- (\d{1,3}(?:\.\d{1,3}){3})$", line.rstrip(), re.ASCII)
        if node:
            leaf = node[1]
        elif leaf and line.strip() == "/32 host LOCAL" and leaf not in found:
            found.append(leaf)
    return tuple(found)


def ipv6_addresses(data: bytes) -> tuple[str, ...] | Missing:
    """The addresses of if_inet6, all eight groups of each written out."""
    rows = re.findall(r"(?m)^([0-9a-f]{32}) ", decoded(data))
    return tuple(dict.fromkeys(":".join(re.findall("....", row)) for row in rows))


def state_word(data: bytes) -> str | Missing:
    word = decoded(data).strip()
    return word if re.fullmatch(r"[a-z]{1,20}", word) else Missing(Reason.FAILED, "not the word of a state")


def packet_bytes(data: bytes) -> int | Missing:
    found = re.fullmatch(r"\s*(\d{1,9})\s*", decoded(data), re.ASCII)
    return int(found[1]) if found else Missing(Reason.FAILED, "no number")


def collect(host: Host) -> Collected[Interfaces]:
    """Reads two files for each interface and two more, starts nothing."""
    area = Area("interfaces")
    names = area.take("links", parsed(host.list(SYSFS), _names))
    return area.of(
        Interfaces(
            links=names if isinstance(names, Missing) else {name: _interface(host, area, name) for name in names},
            addresses=area.take("addresses", _addresses(host)),
        )
    )


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in _NOT_INTERFACES)


def _interface(host: Host, area: Area, name: str) -> Interface:
    path = keyed("links", name)
    return Interface(
        name,
        state=area.take(f"{path}.state", parsed(host.read(f"{SYSFS}/{name}/operstate"), state_word)),
        mtu=area.take(f"{path}.mtu", parsed(host.read(f"{SYSFS}/{name}/mtu"), packet_bytes)),
    )


def _addresses(host: Host) -> Parsed[tuple[str, ...] | Missing]:
    """Of both families; a kernel without IPv6 has no second table."""
    four: Parsed[tuple[str, ...] | Missing] = parsed(host.read("/proc/net/fib_trie"), local_addresses)
    if isinstance(four.value, Missing):
        return four
    six: Parsed[tuple[str, ...] | Missing] = parsed(host.read("/proc/net/if_inet6"), ipv6_addresses)
    if isinstance(six.value, Missing) and six.value.reason is not Reason.ABSENT:
        return six
    found = four.value + (() if isinstance(six.value, Missing) else six.value)
    return Parsed(found, four.source, {"": ", ".join(found[:40]) or "no address"})
