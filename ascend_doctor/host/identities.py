"""What a host says of itself: its names, its users, its addresses. Sources: hosts(5), passwd(5), proc(5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ascend_doctor.host import Host, Missing, decoded
from ascend_doctor.records import dataclass

FIRST_USER, NOBODY = 1000, 65534
_NO_SHELLS = ("nologin", "false", "sync", "shutdown", "halt")
VARIABLES_OF_USERS = ("USER", "LOGNAME", "SUDO_USER", "USERNAME")
VARIABLES_OF_HOSTS = ("HOSTNAME", "HOST", "NODE_NAME", "POD_NAME", "SERVER_ID")


@dataclass(frozen=True)
class Found:
    """Names of hosts and of users, and texts in which every address is one."""

    hosts: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    addresses: tuple[str, ...] = ()


def of_host(host: Host) -> Found:
    """What a host says of itself: reads six small files, starts nothing."""
    hosts: set[str] = set()
    users: set[str] = set()
    name = host.identity.hostname
    if isinstance(name, str):
        hosts.add(name)
    for path in ("/etc/hostname", "/proc/sys/kernel/hostname"):
        hosts.update(_read(host, path).split()[:1])
    table = _read(host, "/etc/hosts")
    hosts.update(_hosts_of(table))
    users.update(accounts(_read(host, "/etc/passwd")))
    for variable in VARIABLES_OF_USERS:
        users.update(_variable(host, variable))
    for variable in VARIABLES_OF_HOSTS:
        hosts.update(_variable(host, variable))
    for home in _variable(host, "HOME"):
        users.update({home.rstrip("/").rpartition("/")[2]} if home.count("/") > 1 else ())
    addresses = (table, _read(host, "/etc/hccn.conf"), _read(host, "/etc/resolv.conf"), _leaves(host))
    return Found(frozenset(hosts), frozenset(users), addresses)


def of_this_process() -> Found:
    """The user and the machine as this process was told; a directory server's users are in no file."""
    import os

    users = {os.environ.get(name, "") for name in VARIABLES_OF_USERS}
    homes = {os.path.expanduser("~"), os.environ.get("HOME", "")}
    users.update(home.rstrip("/").rpartition("/")[2] for home in homes if home.rstrip("/").count("/") > 1)
    hosts = {os.environ.get(name, "") for name in VARIABLES_OF_HOSTS} | {os.uname().nodename}
    return Found(frozenset(hosts), frozenset(users))


def _read(host: Host, path: str) -> str:
    value = host.read(path).value
    return "" if isinstance(value, Missing) else decoded(value)


def _variable(host: Host, name: str) -> Iterator[str]:
    value = host.env(name).value
    if isinstance(value, str) and value:
        yield value


def _leaves(host: Host) -> str:
    """The own addresses in fib_trie, which has networks and hosts only."""
    return "\n".join(re.findall(r"\|-- (\S+)", _read(host, "/proc/net/fib_trie")))


def _hosts_of(table: str) -> Iterator[str]:
    for line in table.split("\n"):
        yield from line.partition("#")[0].split()[1:]


def accounts(passwd: str) -> Iterator[str]:
    """Those who log in: of a number from 1000 on, or with a shell."""
    for line in passwd.split("\n"):
        cells = line.split(":")
        if len(cells) < 7 or not cells[2].isdigit():
            continue
        shell = cells[6].strip().rpartition("/")[2]
        if FIRST_USER <= int(cells[2]) != NOBODY or (shell and shell not in _NO_SHELLS and int(cells[2])):
            yield cells[0]
