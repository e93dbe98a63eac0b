"""Addresses in a text: IPv4, IPv6 and MAC, replaced where they are some machine's.

Left as they are: masks, loopback, 0.0.0.0, broadcast, multicast, and what has four parts but is a version, such as
8.5.0.1. Of four numbers alone nobody can tell the two apart. An address is: what is private, what no version begins
with (32 and above), what stands behind ``ip``, ``addr`` or ``host`` and the like, what has a port or a prefix length
behind it, and what the host has shown to be one elsewhere (``known``).

Sources: RFC 1918, RFC 6598, RFC 5737 (private and documentation networks); proc(5), /proc/net/tcp and if_inet6.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ascend_doctor.host.pseudonyms import LINK_LOCAL_MARK, MAC_MARK, Pseudonyms

_IPV4 = re.compile(
    r"(?<![0-9A-Za-z.])(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?!\d|\.\d|[A-Za-z])(/\d{1,2}\b)?( {2,})?", re.ASCII
)
_IPV6 = re.compile(
    r"(?<![0-9A-Za-z_])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{3,39}(?![0-9A-Za-z_])( {2,})?", re.ASCII
)
_MAC = re.compile(
    r"(?<![0-9A-Za-z:])(?:[0-9A-Fa-f]{2}:){5,19}[0-9A-Fa-f]{2}(?![0-9A-Za-z:])"
    r"|(?<![0-9A-Za-z-])(?=[0-9-]*[A-Fa-f])(?:[0-9A-Fa-f]{2}-){5,7}[0-9A-Fa-f]{2}(?![0-9A-Za-z-])"
    r"|(?<=\benx)[0-9a-f]{12}\b",
    re.ASCII,
)
_IF_INET6 = re.compile(r"(?m)^([0-9a-f]{32})(?= [0-9a-f]{2} [0-9a-f]{2} [0-9a-f]{2} [0-9a-f]{2} )", re.ASCII)
_SOCKETS = re.compile(
    r"(?m)^( *\d{1,10}: )([0-9A-F]{32}|[0-9A-F]{8})(:[0-9A-F]{4} )([0-9A-F]{32}|[0-9A-F]{8})(?=:[0-9A-F]{4} )", re.ASCII
)

_ADDRESS_BEFORE = re.compile(
    r"(?:(?:\b|_|[a-z])(?:IP|Ip)|(?:\b|_)ip|inet|(?i:addr|address|host|server|peer|remote|gateway|dns|nameserver"
    r"|endpoint|ping|listen|bind|connect|connected|url|identifier|rootinfo))(?: (?:is|to|on|ip|at))?"
    r"(?:[\"']?[\s:=\[({<]{1,4}[\"']?|://|@)$",
    re.ASCII,
)
_VERSION_BEFORE = re.compile(r"(?i:version|ver|release|cann|hdk)[\"']?[\s:=]{1,4}[\"']?v?$|[=<>~!]=\s?$", re.ASCII)
_RELEASE_BEFORE = re.compile(r"(?:^|[^\d.])\d{1,3}\.\d{1,3}\.\d{1,3}-$", re.ASCII)
_PACKAGE_BEFORE = re.compile(r"[-_=/vV]$|[A-Za-z]\w*[-_]\w[\w-]*[\s(]{1,24}$", re.ASCII)
_PORT_BEHIND = re.compile(r":\d{2,5}\b|%[A-Za-z]", re.ASCII)
_NAME_BEHIND = re.compile(r"\.[A-Za-z]", re.ASCII)
_LOOK_BACK = 32
_MOST_VERSIONS = 31
"""No version of a driver, of CANN or of a package begins with a larger number and has four parts."""
_MOST_PARTS = 63
"""As little goes on with a larger one, but for packages such as opencv-python 4.10.0.84."""

_ZEROS = "000000000000"
_EVERYBODY = ("ffffffffffff", "0180c2", "01005e", "3333")
"""Beginnings of MAC addresses that are no machine's."""

_WELL_KNOWN_NETWORKS = frozenset(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10"])


def number_of(text: str) -> int | None:
    """The address that four numbers are; None where they are none (256, 010)."""
    found = 0
    for part in text.split("."):
        if int(part) > 255 or (part[0] == "0" and part != "0"):
            return None
        found = found << 8 | int(part)
    return found


def is_private(address: int) -> bool:
    """RFC 1918, 6598 and 3927."""
    return (
        address >> 24 == 10
        or address >> 20 == 0xAC1
        or address >> 16 in (0xC0A8, 0xA9FE)
        or address >> 22 == 0x6440 >> 6
    )


def is_machines(address: int) -> bool:
    """Whether one machine may have it: not 0.x, 127.x, 198.18.0.0/15, masks, multicast and above."""
    first = address >> 24
    if first in (0, 127) or first >= 224 or address >> 17 == 0xC612 >> 1:
        return False
    inverted = address ^ 0xFFFFFFFF
    return bool(inverted & inverted + 1)  # a mask has no zero left of a one


class Addresses:
    """Replaces the addresses of texts. ``known``: IPv4 addresses that the host has shown to be such."""

    def __init__(self, pseudonyms: Pseudonyms, known: Collection[int] = ()) -> None:
        self._pseudonyms, self.known = pseudonyms, set(known)

    def replaced(self, text: str) -> str:
        """A second time it changes nothing."""
        if ":" in text or "-" in text or "enx" in text:
            text = _MAC.sub(self._mac, text)
        if ":" in text:
            if _SOCKETS.search(text):
                text = _SOCKETS.sub(self._socket, text)
            text = _IPV6.sub(self._ipv6, text)
        if "." in text:
            text = _IPV4.sub(self._ipv4, text)
        return _IF_INET6.sub(self._hex6, text) if " " in text else text

    def learn(self, text: str) -> None:
        """Takes every address of a text that holds no versions, such as a list of a host's addresses."""
        for found in _IPV4.finditer(text):
            address = number_of(found[1])
            if address is not None and is_machines(address):
                self.known.add(address)

    def _ipv4(self, found: re.Match[str]) -> str:
        address, length = number_of(found[1]), int(found[2][1:]) if found[2] else 32
        if address is None or not is_machines(address) or not self._is_address(found, address):
            return found[0]
        if 8 <= length < 31 and not address & (1 << 32 - length) - 1:
            is_known = f"{found[1]}{found[2]}" in _WELL_KNOWN_NETWORKS
            named = found[1] if is_known else self._pseudonyms.ipv4_network(address, length)
        else:
            named = self._pseudonyms.ipv4(address)
        return in_column(f"{found[1]}{found[2] or ''}", f"{named}{found[2] or ''}", found[3])

    def _is_address(self, found: re.Match[str], address: int) -> bool:
        text, start, end = found.string, found.start(), found.end(1)
        before = text[max(0, start - _LOOK_BACK) : start]
        if _VERSION_BEFORE.search(before):
            return False
        if address in self.known or is_private(address) or _PORT_BEHIND.match(text, end):
            return True
        if found[2] and int(found[2][1:]) >= 8:
            return True
        if _RELEASE_BEFORE.search(before) or _NAME_BEHIND.match(text, end) or not address & 0xFFFF:
            return False
        if address >> 24 > _MOST_VERSIONS or _ADDRESS_BEFORE.search(before):
            return True
        parts = address >> 16 & 255, address >> 8 & 255, address & 255
        return max(parts) > _MOST_PARTS and not _PACKAGE_BEFORE.search(before)

    def _ipv6(self, found: re.Match[str]) -> str:
        spaces = found[1] or ""
        text = found[0][: len(found[0]) - len(spaces)]
        tail = ""
        while text.endswith(":") and not text.endswith("::"):
            text, tail = text[:-1], f":{tail}"
        address = ipv6_number(text)
        if address is None or not _is_machines6(address):
            return found[0]
        named = written6(self._pseudonyms.ipv6(address), whole="::" not in text)
        return in_column(text + tail, (named.upper() if text.isupper() else named) + tail, spaces)

    def _hex6(self, found: re.Match[str]) -> str:
        address = int(found[1], 16)
        return f"{self._pseudonyms.ipv6(address):032x}" if _is_machines6(address) else found[0]

    def _socket(self, found: re.Match[str]) -> str:
        return f"{found[1]}{self._hex_of(found[2])}{found[3]}{self._hex_of(found[4])}"

    def _hex_of(self, words: str) -> str:
        """As the kernel prints them on a machine that has the lowest byte first: each 32 bits turned round."""
        turned = _turned(words)
        if len(words) == 8:
            address = int(turned, 16)
            four = number_of(self._pseudonyms.ipv4(address)) if is_machines(address) else None
            return words if four is None else _turned(f"{four:08X}")
        address = int(turned, 16)
        if address >> 32 == 0xFFFF and is_machines(address & 0xFFFFFFFF):
            four = number_of(self._pseudonyms.ipv4(address & 0xFFFFFFFF))
            return words if four is None else _turned(f"{0xFFFF << 32 | four:032X}")
        return _turned(f"{self._pseudonyms.ipv6(address):032X}") if _is_machines6(address) else words

    def _mac(self, found: re.Match[str]) -> str:
        text = found[0]
        digits = text.replace(":", "").replace("-", "").lower()
        mark = bytes(MAC_MARK).hex()
        if digits.startswith((_ZEROS, mark, *_EVERYBODY)):
            return text
        named = self._pseudonyms.mac(digits)
        named = named.upper() if text.isupper() else named
        parted = text[2] if text[2] in ":-" else ""
        return parted.join(named[n : n + 2] for n in range(0, len(named), 2))


def ipv6_number(text: str) -> int | None:
    """Only what is written out (eight groups) or has ``::``; a time such as 12:30:45 is none."""
    if text.count(":") != 7 and "::" not in text:
        return None
    from ipaddress import IPv6Address

    try:
        return int(IPv6Address(text))
    except ValueError:
        return None


def _is_machines6(address: int) -> bool:
    """Global, unique local and link-local addresses, but not those that we give."""
    first = address >> 112
    if first >> 6 == 0x3FA:
        return address >> 48 & 0xFFFF != LINK_LOCAL_MARK and bool(address & (1 << 64) - 1)
    return (first >> 13 == 1 and address >> 80 != 0x200100020000) or first >> 9 == 0x7E


def written6(address: int, whole: bool) -> str:
    """With ``::`` for zeros, or all eight groups."""
    from ipaddress import IPv6Address

    found = IPv6Address(address)
    return found.exploded if whole else str(found)


def _turned(words: str) -> str:
    return "".join(words[start + at : start + at + 2] for start in range(0, len(words), 8) for at in range(6, -1, -2))


def in_column(before: str, after: str, spaces: str | None) -> str:
    """What follows stays in its column where there is room."""
    if not spaces:
        return after
    return after + " " * max(1, len(spaces) + len(before) - len(after))
