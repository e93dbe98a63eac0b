"""Names in place of names: the same key gives the same pseudonym, and only the map gives the name back.

Forms: ``host-048213``, ``user-731905``, ``domain-220417.example``; IPv4 addresses in 198.18.0.0/15 (RFC 2544), IPv6
addresses in 2001:2::/48 (RFC 5180), two networks that are for benchmarks and nobody's; MAC 02:ad:0c:..., which says of
itself that it is no maker's (the second bit); serial numbers of equal width. What has such a form is left as it is, so
that redacting twice is redacting once. Two names never get one pseudonym; where the key says so the later one moves on.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator
from typing import Callable

IPV4_BASE, IPV4_BITS = 0xC6120000, 17
IPV6_BASE = 0x20010002 << 96
LINK_LOCAL_MARK = 0xAD0C
"""The first two bytes of the lower half of a link-local pseudonym."""

NAMED = re.compile(r"(?:host|user)-\d{6}|domain-\d{6}(?:\.example)?|example")
MAC_MARK = (0x02, 0xAD, 0x0C)
_UUID_MARK = "00000000"


class Pseudonyms:
    """By one key, as it is given to one run. Not for several threads."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._given: dict[tuple[str, str], str] = {}
        self._taken: set[tuple[str, str]] = set()
        self._bits: dict[tuple[int, int], int] = {}

    def entries(self) -> Iterator[tuple[str, str, str]]:
        """Kind, name and pseudonym of all that were given, for the owner's map."""
        for (kind, real), pseudonym in self._given.items():
            yield kind, real, pseudonym

    def host(self, name: str) -> str:
        """``node-a`` and ``node-a.corp.com`` keep their first part equal."""
        first, dot, rest = name.partition(".")
        return self._host(first) + (f".{self.domain(rest)}" if dot and rest else dot)

    def _host(self, name: str) -> str:
        return self._named("host", name.lower(), "host-{:06d}")

    def domain(self, name: str) -> str:
        whole = name.lower().rstrip(".")
        return self._named("domain", whole, "domain-{:06d}.example") + ("." if name.endswith(".") else "")

    def user(self, name: str) -> str:
        return self._named("user", name, "user-{:06d}")

    def _named(self, kind: str, name: str, form: str) -> str:
        if NAMED.fullmatch(name):
            return name
        return self._given_for(kind, name, lambda salt: form.format(self._number(kind, name, salt) % 1_000_000))

    def ipv4(self, address: int) -> str:
        """Two addresses that share their first n bits, n from 15 on, share as many afterwards."""
        return self._given_for("ipv4", dotted(address), lambda salt: dotted(self._network(address, 32, salt)))

    def ipv4_network(self, address: int, length: int) -> str:
        """``10.20.0.0`` of /16 stays a network of /16, the one in which its addresses are."""
        return dotted(self._network(address, length, 0))

    def _network(self, address: int, length: int, salt: int) -> int:
        if salt:
            return IPV4_BASE | self._number("ipv4", dotted(address), salt) >> 3 & (1 << IPV4_BITS) - 1
        found = IPV4_BASE
        for kept in range(32 - IPV4_BITS, length):
            place = 31 - kept
            found |= (address >> place & 1 ^ self._flip(address >> place + 1, kept)) << place
        return found

    def _flip(self, prefix: int, length: int) -> int:
        """Whether the bit behind a prefix turns (Xu, Fan, Ammar, Moon: Prefix-Preserving IP Address Anonymization)."""
        known = self._bits.get((prefix, length))
        if known is None:
            known = self._bits[prefix, length] = self._number("bit", f"{length}:{prefix}", 0) & 1
        return known

    def ipv6(self, address: int) -> int:
        """The subnet (/64) and the rest each as one; a link-local address stays one."""
        subnet, own = address >> 64, address & (1 << 64) - 1
        link_local = subnet >> 54 == 0x3FA

        def made(salt: int) -> str:
            low = self._number("ipv6", f"{subnet:x}:{own:x}", salt) & (1 << 64) - 1 if own else 0
            if link_local:
                return f"{subnet << 64 | LINK_LOCAL_MARK << 48 | low & (1 << 48) - 1:032x}"
            high = self._number("ipv6", f"{subnet:x}", salt) & 0xFFFF
            return f"{IPV6_BASE | high << 64 | low:032x}"

        return int(self._given_for("ipv6", f"{address:032x}", made), 16)

    def mac(self, digits: str) -> str:
        """Of 12 or more hexadecimal digits without what parts them."""
        real = digits.lower()
        form = f"{{:0{len(real) - 6}x}}"

        def made(salt: int) -> str:
            number = self._number("mac", real, salt) & (1 << 4 * (len(real) - 6)) - 1
            return bytes(MAC_MARK).hex() + form.format(number)

        return self._given_for("mac", real, made)

    def serial(self, text: str) -> str:
        """As many characters: X first (0 where there are only digits), then digits; what parts them stays."""
        places = [n for n, sign in enumerate(text) if sign.isalnum()]
        mark = "0" if all(text[n].isdigit() for n in places) else "X"
        lead = min(4, max(1, len(places) - 3))
        if all(text[n] == mark for n in places[:lead]) and all(text[n].isdigit() for n in places[lead:]):
            return text

        def made(salt: int) -> str:
            digits = f"{self._number('serial', text, salt):040d}"[-40:]
            signs = list(text)
            for n, place in enumerate(places):
                signs[place] = mark if n < lead else digits[-1 - (n - lead) % 40]
            return "".join(signs)

        return self._given_for("serial", text, made)

    def uuid(self, text: str) -> str:
        if text.startswith(_UUID_MARK):
            return text
        real = text.lower()

        def made(salt: int) -> str:
            digits = f"{self._number('uuid', real, salt):032x}"[-24:]
            return "-".join([_UUID_MARK, digits[:4], digits[4:8], digits[8:12], digits[12:]])

        return self._given_for("uuid", real, made)

    def _given_for(self, kind: str, real: str, made: Callable[[int], str]) -> str:
        known = self._given.get((kind, real))
        if known is not None:
            return known
        space = "ip" if kind.startswith("ip") else kind
        for salt in range(1000):
            known = made(salt)
            if (space, known) not in self._taken:
                break
        self._taken.add((space, known))  # type: ignore[arg-type]
        self._given[kind, real] = known  # type: ignore[assignment]
        return known  # type: ignore[return-value]

    def _number(self, kind: str, name: str, salt: int) -> int:
        message = f"{kind}\0{salt}\0{name}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hmac.digest(self._key, message, hashlib.sha256)[:16], "big")


def dotted(address: int) -> str:
    """``198.18.0.1``."""
    return f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}"
