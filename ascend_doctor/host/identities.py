"""Who is named in what a machine says: its hosts and users, found where they stand as such.

A name that is found is replaced wherever it stands, unless it is also a word (``worker``, ``master``): such a one only
where it stands as a name. Sources: hosts(5), passwd(5), group(5), RFC 3164 and RFC 5424 (syslog).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from ascend_doctor.host import Host, Missing, decoded
from ascend_doctor.host.pseudonyms import NAMED
from ascend_doctor.records import dataclass

SHORTEST = 3
"""Characters of a name that is replaced wherever it stands."""

FIRST_USER, NOBODY = 1000, 65534
_NO_SHELLS = ("nologin", "false", "sync", "shutdown", "halt")
VARIABLES_OF_USERS = ("USER", "LOGNAME", "SUDO_USER", "USERNAME")
VARIABLES_OF_HOSTS = ("HOSTNAME", "HOST", "NODE_NAME", "POD_NAME", "SERVER_ID")
_NAME = r"[A-Za-z0-9_](?:[\w.-]{0,62}[\w])?"

SYSLOG = re.compile(
    r"(?m)^((?:<\d{1,3}>)?(?:\d{1,3} )?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?(?: \d{4})?"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)) )"
    r"([A-Za-z0-9][\w.-]{0,254})(?= (?:kernel|[\w./@-]{1,80}\[\d{1,10}\]|[a-z][\w./@-]{1,80}): )",
    re.ASCII,
)
HOST_BEHIND = re.compile(
    r"(?i)((?<![A-Za-z])(?:(?:server|host|node|pod|machine|nick)[_ -]?name|server[_-]?id|node[_-]?id|nodename|fqdn"
    r"|(?:local|remote|peer|dst|src|target)[_-]?host|hostname)"
    r"[\"']?(?:\s{0,20}[:=]\s{0,20}|\[|\s)[\"']?)([A-Za-z0-9][\w.-]{0,62}\w)(?![\w(])",
    re.ASCII,
)
USER_BEHIND = re.compile(
    r"(?i)((?<![A-Za-z])(?:(?:user(?:[_ -]?name)?|login|logname|owner|ruser|acct|sudo)[\"']?"
    r"(?:\s{0,20}[:=]\s{0,20}[\"']?|\[)|user\s(?=[\w.-]+(?: from |\(uid=| by )))|(?<=用户) ?)"
    r"([A-Za-z_][\w.-]{0,30}\w)(?![\w(@/-])",
    re.ASCII,
)
UID = re.compile(r"([ug]id=\d{1,10}\()([A-Za-z_][\w.-]{0,31})(?=\))", re.ASCII)
PROMPT = re.compile(r"(?<![\w.-])([a-z_][\w.-]{0,31})@([a-z0-9][\w-]{0,62})(?=[: ][~/][^\s#$]{0,200}\]?[#$])", re.ASCII)
HOME = re.compile(r"(/home/)([^/\s:;,\"'()<>\[\]{}|&*?\0\\]{1,64})")
ACCOUNT = re.compile(
    r"(?m)^([A-Za-z_][\w.-]{0,31}\$?)(:[x*!]{0,2}:\d{1,10}:\d{1,10}:)([^:\n]{0,200})(?=:[^:\n]{0,4096}:[^:\n]{0,4096}$)",
    re.ASCII,
)
GROUP = re.compile(r"(?m)^([A-Za-z_][\w.-]{0,31})(:[x*!]{0,2}:\d{1,10}:)([\w.,-]*)$", re.ASCII)
URL = re.compile(
    r"(?i)(?<![a-z0-9])((?:https?|ftp|tcp|udp|grpc|rpc|ssh|git|rediss?|etcd|amqp|wss?|nfs|kafka|mysql|postgresql)://"
    r"(?:[^\s/@\"']{1,200}@)?)([A-Za-z0-9][\w.-]{0,253})",
    re.ASCII,
)
WHOLE_HOST = re.compile(
    r"(?<![\w.@/-])((?:[a-z0-9][a-z0-9-]{0,62}\.){1,5}(?:(?:com|cn|lan|corp|intranet|internal|localdomain)(?![\w.-])"
    r"|[a-z]{2,12}(?=:\d{2,5}/)))",
    re.ASCII,
)
"""``registry.corp.cn``, ``registry.corp.io:5000/image``; a file or a module has no such end."""

EMAIL = re.compile(r"(?<![\w.+-])([\w.+-]{1,64})@((?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24})(?![\w-])", re.ASCII)

HOST_STEMS = ("name", "host", "server", "node", "fqdn")
USER_STEMS = ("user", "login", "logname", "owner", "acct", "sudo", "用户")
"""In lower case; one of them stands in every text in which HOST_BEHIND and USER_BEHIND find anything."""


def is_sure(found: re.Match[str]) -> bool:
    """``hostname gz07`` is a name, ``server name resolution`` is not."""
    return not found[1][-1].isspace() or found[1].rstrip()[-1] in ":=" or bool(re.search(r"[\d.-]", found[2]))


class Public(Protocol):
    """What need not be hidden; rules/redaction.yaml through knowledge/redaction.py."""

    @property
    def users(self) -> frozenset[str]: ...

    @property
    def values(self) -> frozenset[str]: ...

    def is_word(self, name: str) -> bool: ...

    def is_public(self, host: str) -> bool: ...


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


class Names:
    """The names that were found. ``hosts`` and ``users`` are replaced where they stand as such, ``anywhere`` always."""

    def __init__(self, public: Public) -> None:
        self._public = public
        self.hosts: set[str] = set()
        self.users: set[str] = set()
        self.domains: set[str] = set()
        self.anywhere: dict[str, str] = {}
        """Name -> host or user."""
        self._refused: set[str] = set()

    def add(self, found: Found) -> None:
        self.add_hosts(found.hosts)
        self._add_users(found.users)

    def add_hosts(self, names: Iterable[str]) -> None:
        for name in names:
            self.add_host(name)

    def add_host(self, name: str) -> bool:
        """Whether it is a name to hide."""
        name = name.rstrip(".")
        if not self.is_host(name):
            return False
        first, _, domain = name.partition(".")
        self._add_host(name)
        if domain:
            self._add_host(first)
            self.add_domain(domain)
        return True

    def _add_host(self, name: str) -> None:
        if name not in self.hosts:
            self.hosts.add(name)
            self._add_anywhere(name, "host")

    def add_domain(self, name: str) -> None:
        """All hosts below it are hidden."""
        if "." in name and not self._public.is_public(name) and not NAMED.match(name):
            self.domains.add(name.lower())

    def is_host(self, name: str) -> bool:
        if name in self.hosts:
            return True
        if len(name) < 2 or name.lower() in self._public.values or NAMED.fullmatch(name.partition(".")[0]):
            return False
        is_number = re.fullmatch(r"[\d.]+|0x[0-9a-f]+", name)
        return bool(re.fullmatch(_NAME, name)) and not is_number and not self._public.is_public(name)

    def add_user(self, name: str) -> bool:
        """Whether it is a name to hide."""
        if not self.is_user(name):
            return False
        if name not in self.users:
            self.users.add(name)
            self._add_anywhere(name, "user")
        return True

    def is_user(self, name: str) -> bool:
        if name in self.users:
            return True
        if not name or name in self._public.users or name.lower() in self._public.values or NAMED.fullmatch(name):
            return False
        return not re.fullmatch(r"[\d.]+|[^\w]+", name)

    def _add_anywhere(self, name: str, kind: str) -> None:
        if len(name) < SHORTEST or name in self.anywhere or name in self._refused:
            return
        if name.isdigit() or any(sign in name for sign in "\n\t /") or self._public.is_word(name):
            self._refused.add(name)
            return
        self.anywhere[name] = kind

    def learn(self, text: str) -> None:
        """What stands in a text as the name of a host or a user. Words are not taken from where they often stand."""
        if "/home/" in text:
            for found in HOME.finditer(text):
                self.add_user(found[2])
        if "@" in text:
            for found in PROMPT.finditer(text):
                self.add_user(found[1])
                self.add_host(found[2])
            for found in EMAIL.finditer(text):
                if not self._public.is_public(found[2]):
                    self.add_domain(found[2])
                    if not self._public.is_word(found[1]):
                        self.add_user(found[1])
        if "://" in text:
            for found in URL.finditer(text):
                if self.is_host(found[2]) and not self._public.is_word(found[2]):
                    self._add_host(found[2])
        for found in WHOLE_HOST.finditer(text) if "." in text else ():
            if self.is_host(found[1]) and not self._public.is_word(found[1]):
                self._add_host(found[1])
                self.add_domain(found[1].partition(".")[2])
        if ":" in text:
            self.add_hosts(found[2] for found in SYSLOG.finditer(text))
        lower = text.lower()
        if any(stem in lower for stem in HOST_STEMS):
            for found in HOST_BEHIND.finditer(text):
                if is_sure(found) and self.is_host(found[2]) and not self._public.is_word(found[2]):
                    self.add_host(found[2])
        if any(stem in lower for stem in USER_STEMS):
            for found in USER_BEHIND.finditer(text):
                if self.is_user(found[2]) and not self._public.is_word(found[2]):
                    self.add_user(found[2])
        if "id=" in text:
            self._add_users(found[2] for found in UID.finditer(text))

    def _add_users(self, names: Iterable[str]) -> None:
        for name in names:
            self.add_user(name)
