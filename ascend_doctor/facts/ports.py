"""Which TCP ports are listened on, and which the kernel gives to outgoing connections.

Sources: proc(5) and Linux kernel documentation, networking/proc_net_tcp and networking/ip-sysctl.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
SYSCTL = "/proc/sys/net/ipv4"
_LISTENS = re.compile(r"\s*\d{1,10}: [0-9A-F]{8,32}:([0-9A-F]{4}) [0-9A-F]{8,32}:[0-9A-F]{4} 0A ", re.ASCII)


@dataclass(frozen=True)
class Ports:
    """``listening``: each once, in order, of both families; ``reserved`` as the kernel writes it: ``60000-60015``."""

    listening: tuple[int, ...] | Missing
    outgoing_first: int | Missing
    outgoing_last: int | Missing
    reserved: str | Missing


def listening(data: bytes) -> tuple[int, ...] | Missing:
    """The ports of a table's sockets in the state LISTEN (0A)."""
    found = map(_LISTENS.match, decoded(data).split("\n"))
    return tuple(sorted({int(match[1], 16) for match in found if match}))


def port_span(data: bytes) -> tuple[int, int] | Missing:
    """``32768	60999``."""
    found = re.match(r"(\d{1,5})\s{1,8}(\d{1,5})\s*$", decoded(data), re.ASCII)
    return (int(found[1]), int(found[2])) if found else Missing(Reason.FAILED, "not two ports")


def port_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """``60000-60015,61000`` as first and last of each; what is no port is passed over."""
    found = re.findall(r"(?:^|,)\s*(\d{1,5})(?:\s*-\s*(\d{1,5}))?\s*(?=,|$)", text, re.ASCII)
    return tuple((int(first), int(last or first)) for first, last in found)


def collect(host: Host) -> Collected[Ports]:
    """Reads four files, starts nothing."""
    area = Area("ports")
    span = parsed(host.read(f"{SYSCTL}/ip_local_port_range"), port_span)
    first = span.value if isinstance(span.value, Missing) else span.value[0]
    last = span.value if isinstance(span.value, Missing) else span.value[1]
    return area.of(
        Ports(
            listening=area.take("listening", _listening(host)),
            outgoing_first=area.take("outgoing_first", Parsed(first, span.source, span.texts)),
            outgoing_last=area.take("outgoing_last", Parsed(last, span.source, span.texts)),
            reserved=area.take("reserved", parsed(host.read(f"{SYSCTL}/ip_local_reserved_ports"), _reserved)),
        )
    )


def _reserved(data: bytes) -> Shown[str | Missing]:
    text = decoded(data).strip()[:4000]
    return Shown(text, {"": text or "no port"})


def _listening(host: Host) -> Parsed[tuple[int, ...] | Missing]:
    """Of both families; a kernel without IPv6 has no second table."""
    found: set[int] = set()
    tables: list[Parsed[tuple[int, ...] | Missing]] = [parsed(host.read(path), listening) for path in TABLES]
    for number, table in enumerate(tables):
        if not isinstance(table.value, Missing):
            found.update(table.value)
        elif number == 0 or table.value.reason is not Reason.ABSENT:
            return table
    ports = ", ".join(map(str, sorted(found)[:40])) or "none"
    return Parsed(tuple(sorted(found)), tables[0].source, {"": f"listened on: {ports}"})
