"""The rank table against itself, this host's addresses and devices, and the addresses of its NPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ascend_doctor.derive import rows
from ascend_doctor.derive.launch import whole
from ascend_doctor.derive.network import device_numbers
from ascend_doctor.facts.devices import Devices
from ascend_doctor.facts.hccn import Hccn
from ascend_doctor.facts.interfaces import Interfaces
from ascend_doctor.facts.rank_table import RankDevice, RankTable, Server
from ascend_doctor.host import Missing, Reason
from ascend_doctor.records import dataclass

NAMED = 4
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:]{3,39}", re.ASCII)
COMPLETED = "completed"


@dataclass(frozen=True)
class Summary:
    """The file as a whole. ``ranks`` are those that it lists; ``gaps``, ``twice`` and ``shared`` name what is wrong.

    ``shared``: addresses of NPUs that two ranks have. ``here``: servers that are this host, by their addresses.
    """

    variable: str
    file: str
    unreadable: bool | Missing
    status: str | Missing
    completed: bool | Missing
    said_count: int | Missing
    count: int | Missing
    ranks: int | Missing
    gaps: str | Missing
    twice: str | Missing
    shared: str | Missing
    here: int | Missing
    own: str | Missing
    listed: str | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Own:
    """A device that the table gives to this host. ``there``: /dev has it; ``configured``: its address in hccn.conf.

    ``agrees``: the table's address is the one that hccn_tool says, or else that of hccn.conf.
    """

    number: int | Missing
    rank: int | Missing
    there: bool | Missing
    address: str | Missing
    configured: str | Missing
    agrees: bool | Missing
    reads: tuple[str, ...]


def _listed(rank_table: RankTable) -> tuple[Server, ...] | Missing:
    """The servers; one part that is not known leaves all unknown."""
    servers = whole(rank_table.servers)
    if isinstance(servers, Missing):
        return servers
    devices = [whole(server.devices) for server in servers]
    return next((part for part in devices if isinstance(part, Missing)), servers)


@rows("rank_table.summary")
def summary(rank_table: RankTable, interfaces: Interfaces) -> tuple[Summary, ...] | Missing:
    """One row where the environment names a table."""
    if isinstance(rank_table.file, Missing):
        return rank_table.file
    if isinstance(rank_table.variable, Missing):
        return rank_table.variable
    servers = _listed(rank_table)
    devices = servers if isinstance(servers, Missing) else [device for server in servers for device in server.devices]
    numbers = devices if isinstance(devices, Missing) else [device.rank for device in devices]
    here = _here(servers, interfaces)
    status = rank_table.status
    unsaid = isinstance(status, Missing) and status.reason is Reason.ABSENT  # MindIE's own tables have no status
    return (
        Summary(
            variable=rank_table.variable,
            file=rank_table.file,
            unreadable=_unreadable(servers),
            status=status,
            completed=True if unsaid else status if isinstance(status, Missing) else status == COMPLETED,
            said_count=rank_table.server_count,
            count=servers if isinstance(servers, Missing) else len(servers),
            ranks=numbers if isinstance(numbers, Missing) else len(numbers),
            gaps=_gaps(numbers),
            twice=_doubles(numbers),
            shared=_doubles(devices if isinstance(devices, Missing) else [device.address for device in devices]),
            here=here if isinstance(here, Missing) else len(here),
            own=_addresses(interfaces),
            listed=servers if isinstance(servers, Missing) else _some(_ids(servers)),
            reads=("rank_table", "interfaces.addresses"),
        ),
    )


def _unreadable(servers: tuple[Server, ...] | Missing) -> bool | Missing:
    """No such file, or nothing in it that is a rank table."""
    if not isinstance(servers, Missing):
        return False
    return True if servers.reason in (Reason.ABSENT, Reason.FAILED) else servers


def _ids(servers: Iterable[Server]) -> Iterator[str]:
    return (server.id if isinstance(server.id, str) else "?" for server in servers)


def _some(values: Iterable[object]) -> str:
    found = [str(value) for value in values]
    return ", ".join(found[:NAMED]) + (f", … ({len(found)})" if len(found) > NAMED else "")


def _gaps(numbers: list[int | Missing] | Missing) -> str | Missing:
    """Ranks from 0 on that nobody has."""
    if isinstance(numbers, Missing):
        return numbers
    unseen = next((n for n in numbers if isinstance(n, Missing)), None)
    if unseen:
        return unseen
    return _some(rank for rank in range(len(numbers)) if rank not in set(numbers))


def _doubles(values: list[int | Missing] | list[str | Missing] | Missing) -> str | Missing:
    if isinstance(values, Missing):
        return values
    seen: set[object] = set()
    twice: dict[object, None] = {}
    for value in values:
        if isinstance(value, Missing):
            continue
        if value in seen:
            twice[value] = None
        seen.add(value)
    return _some(twice)


def _addresses(interfaces: Interfaces) -> str | Missing:
    found = interfaces.addresses
    return found if isinstance(found, Missing) else _some(a for a in found if not a.startswith(("127.", "::1", "fe80")))


def _here(servers: tuple[Server, ...] | Missing, interfaces: Interfaces) -> list[Server] | Missing:
    """The servers whose id or pod address is one of this host's."""
    if isinstance(servers, Missing) or isinstance(interfaces.addresses, Missing):
        return servers if isinstance(servers, Missing) else interfaces.addresses  # type: ignore[return-value]
    own = set(interfaces.addresses)
    found = [server for server in servers if server.id in own or server.container in own]
    named = [part for server in servers for part in (server.id, server.container) if isinstance(part, str)]
    if not found and not any(_ADDRESS.fullmatch(name) for name in named):
        return Missing(Reason.UNSUPPORTED, "the servers are not named by addresses", "rank_table.servers")
    return found


@rows("rank_table.own")
def own(rank_table: RankTable, interfaces: Interfaces, devices: Devices, hccn: Hccn) -> tuple[Own, ...] | Missing:
    """One row for each device that the table gives to this host."""
    if isinstance(rank_table.file, Missing):
        return rank_table.file
    here = _here(_listed(rank_table), interfaces)
    if isinstance(here, Missing):
        return () if here.reason in (Reason.ABSENT, Reason.UNSUPPORTED, Reason.FAILED) else here
    numbers = devices.nodes if isinstance(devices.nodes, Missing) else device_numbers(devices.nodes)
    return tuple(_own(device, numbers, hccn) for server in here for device in server.devices)


def _own(device: RankDevice, numbers: list[int] | Missing, hccn: Hccn) -> Own:
    number, there = device.number, numbers
    known: bool | Missing
    if isinstance(number, Missing) or isinstance(there, Missing):
        known = number if isinstance(number, Missing) else there  # type: ignore[assignment]
    else:
        known = number in there
    configured = _configured(number, hccn)
    address = device.address
    if isinstance(address, Missing):
        agrees: bool | Missing = True if address.reason is Reason.ABSENT else address
    elif isinstance(configured, Missing):
        agrees = True if configured.reason is Reason.ABSENT else configured
    else:
        agrees = address == configured
    reads = ("rank_table.servers", "devices.nodes", f"hccn.conf[{number}]", f"hccn.ports[{number}].address")
    return Own(number, device.rank, known, address, configured, agrees, reads)


def _configured(number: int | Missing, hccn: Hccn) -> str | Missing:
    """The address that the device has, by hccn_tool where it was asked, else by hccn.conf."""
    if isinstance(number, Missing):
        return number
    if not isinstance(hccn.ports, Missing) and number in hccn.ports:
        return hccn.ports[number].address
    if isinstance(hccn.conf, Missing):
        return hccn.conf
    setting = hccn.conf.get(number)
    return setting.address if setting else Missing(Reason.ABSENT, "not in the file", "hccn.conf")
