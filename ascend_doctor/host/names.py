"""The names that were found in what a machine says, and where they are to be replaced.

A name is replaced wherever it stands, unless it is also a word (``worker``, ``master``): then only where it stands as a
name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from ascend_doctor.host.identities import Found
from ascend_doctor.host.name_patterns import (
    EMAIL,
    HOME,
    HOST_BEHIND,
    HOST_STEMS,
    NAME,
    PROMPT,
    SYSLOG,
    UID,
    URL,
    USER_BEHIND,
    USER_STEMS,
    WHOLE_HOST,
    is_sure,
)
from ascend_doctor.host.pseudonyms import NAMED

SHORTEST = 3
"""Characters of a name that is replaced wherever it stands."""

SHORTEST_STEM = 3
"""Characters of what the names of a cluster's hosts have in common."""


class Public(Protocol):
    """What need not be hidden; rules/redaction.yaml through knowledge/redaction.py."""

    @property
    def users(self) -> frozenset[str]: ...

    @property
    def values(self) -> frozenset[str]: ...

    def is_word(self, name: str) -> bool: ...

    def is_public(self, host: str) -> bool: ...


class Names:
    """The names that were found. ``hosts`` and ``users`` are replaced where they stand as such, ``anywhere`` always."""

    def __init__(self, public: Public) -> None:
        self._public = public
        self.hosts: set[str] = set()
        self.users: set[str] = set()
        self.domains: set[str] = set()
        self.anywhere: dict[str, str] = {}
        """Name -> host, user or serial."""
        self.stems: set[str] = set()
        """Of hosts that are numbered: ``gz-a2-`` of ``gz-a2-07`` hides ``gz-a2-08`` too."""
        self._pattern: tuple[int, re.Pattern[str] | None] = (-1, None)
        self._refused: set[str] = set()

    def add(self, found: Found) -> None:
        for name in found.hosts:
            if self.add_host(name):
                self._add_stem(name.partition(".")[0])
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

    def _add_stem(self, name: str) -> None:
        stem = name.rstrip("0123456789")
        if stem != name and len(stem) >= SHORTEST_STEM and not self._public.is_word(stem.strip("-_.")):
            self.stems.add(stem)

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
        return bool(re.fullmatch(NAME, name)) and not is_number and not self._public.is_public(name)

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

    def pattern(self) -> re.Pattern[str] | None:
        """What is replaced wherever it stands: names, numbered hosts, hosts below a domain; None where nothing is."""
        count = len(self.anywhere) + len(self.domains) + len(self.stems)
        if count != self._pattern[0]:
            domains, stems, names = map(_any_of, (self.domains, self.stems, self.anywhere))
            pattern = re.compile(
                rf"(?<![A-Za-z0-9])(?:(?P<host>(?:[A-Za-z0-9][\w-]{{0,62}}\.){{1,6}}(?i:{domains})(?![\w-])"
                rf"|(?:{stems})\d{{1,9}}(?![A-Za-z0-9]))|(?P<name>{names})(?![A-Za-z0-9]))(?P<spaces> {{2,}})?"
            )
            self._pattern = count, pattern if count else None
        return self._pattern[1]

    def begins(self, part: str) -> bool:
        """Whether a text that was cut may end in the beginning of a name."""
        return any(name.startswith(part) for name in (*self.anywhere, *self.domains, *self.stems))

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


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or r"(?!)"
