"""Puts pseudonyms in place of hosts, users, addresses and serial numbers; everything else stays byte for byte.

Secrets go first (redact.py). The form is kept (pseudonyms.py), so that what parsed a text before parses it afterwards
and finds equal what was equal: no verdict changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Callable

from ascend_doctor.host.addresses import Addresses, in_column
from ascend_doctor.host.identities import VARIABLES_OF_HOSTS, VARIABLES_OF_USERS, Found
from ascend_doctor.host.name_patterns import (
    ACCOUNT,
    CUT,
    EMAIL,
    GROUP,
    HOME,
    HOST_BEHIND,
    HOST_FILES,
    HOST_STEMS,
    PROMPT,
    SERIAL,
    SERIAL_FILES,
    SERIAL_STEMS,
    SYSLOG,
    UID,
    URL,
    USER_BEHIND,
    USER_STEMS,
    UUID,
    is_sure,
)
from ascend_doctor.host.names import Names, Public
from ascend_doctor.host.pseudonyms import NAMED, Pseudonyms
from ascend_doctor.host.redact import HIDDEN, Hiding, secrets, secrets_in

Match = re.Match[str]

SURE_SERIAL, LONG_NUMBER = 8, 12
"""Characters of a serial number that is nothing else, with letters and without."""

SHORTEST_TEXT, LINE = 6, 4000
"""Characters of a text in which something says that something else is a name, and of one that may come again."""

MEMORY = 20_000
"""Texts whose answer is kept: a report says most things twice, in two languages."""

_BINARY = (b"\x7fELF", b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd")
"""Beginnings of programs and packed files: what a changed byte would break, and no text can be seen in."""


class Redactor(Hiding):
    """For one run or one snapshot: first ``learn`` from all texts, then replace. Not for several threads."""

    state = "identity"

    def __init__(self, pseudonyms: Pseudonyms, public: Public) -> None:
        self.pseudonyms, self.names = pseudonyms, Names(public)
        self._public = public
        self._addresses = Addresses(pseudonyms)
        self._known: dict[str, str] = {}
        self._by_names = {"host": pseudonyms.host, "user": pseudonyms.user, "serial": pseudonyms.serial}

    def add(self, found: Found) -> None:
        """What a host says of itself."""
        self.names.add(found)
        for text in found.addresses:
            self._addresses.learn(text)
        self._known.clear()

    def learn(self, texts: Iterable[str]) -> None:
        """Names that stand in texts as such are hidden in all texts."""
        seen: set[str] = set()  # a report says most things several times
        for text in texts:
            if text in seen:
                continue
            if len(text) < LINE:
                seen.add(text)
            if len(text) >= SHORTEST_TEXT and not text.startswith("\x7fELF"):
                self.names.learn(text)
                self._learn_serials(text)
        self._known.clear()

    def _learn_serials(self, text: str) -> None:
        """A long one is known without its label."""
        lower = text.lower()
        if any(stem in lower for stem in SERIAL_STEMS):
            for found in SERIAL.finditer(text):
                least = LONG_NUMBER if found[2].isdigit() else SURE_SERIAL
                if len(found[2]) >= least and _is_serial(found[2]):
                    self.names.anywhere.setdefault(found[2], "serial")

    # Texts

    def text(self, text: str) -> str:
        """A second time it changes nothing."""
        known = self._known.get(text)
        if known is None:
            known = self._replaced(secrets_in(text))
            if len(self._known) < MEMORY:
                self._known[text] = known
        return known

    def path(self, path: str) -> str:
        return self.text(path)

    def data(self, data: bytes) -> bytes:
        """Of a file or a command, in any encoding that has ASCII as it is, or in UTF-16."""
        for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
            if data.startswith(mark):
                whole = len(data) - len(data) % 2
                text = data[2:whole].decode(encoding, "surrogatepass")
                return mark + self.text(text).encode(encoding, "surrogatepass") + data[whole:]
        return _as_text(secrets(data), self._replaced)

    def _replaced(self, text: str) -> str:
        if len(text) < 2 or text.isspace():
            return text
        if text.endswith("…"):
            text = CUT.sub(self._without_beginning, text)
        if "@" in text:
            text = EMAIL.sub(self._email, text)
            text = PROMPT.sub(lambda found: f"{self._user(found[1])}@{self._host(found[2])}", text)
        if "://" in text:
            text = URL.sub(self._url, text)
        if "/home/" in text:
            text = HOME.sub(lambda found: found[1] + self._user(found[2], sure=True), text)
        if ":" in text or "=" in text:
            text = self._behind_labels(text)
        text = self._addresses.replaced(text)
        if text.count("-") >= 4:
            text = UUID.sub(self._uuid, text)
        return self._wherever(text)

    def _behind_labels(self, text: str) -> str:
        lower = text.lower()
        text = SYSLOG.sub(lambda found: found[1] + self._host(found[2]), text)
        if text.count(":") >= 3:
            text = ACCOUNT.sub(self._account, text)
            text = GROUP.sub(self._group, text)
        if any(stem in lower for stem in HOST_STEMS):
            text = HOST_BEHIND.sub(self._behind_host, text)
        if any(stem in lower for stem in USER_STEMS):
            text = USER_BEHIND.sub(lambda found: found[1] + self._user(found[2]), text)
        if "id=" in text:
            text = UID.sub(lambda found: found[1] + self._user(found[2]), text)
        if any(stem in lower for stem in SERIAL_STEMS):
            text = SERIAL.sub(self._serial, text)
        return text

    def _behind_host(self, found: Match) -> str:
        return found[1] + self._host(found[2]) if is_sure(found) else found[0]

    def _host(self, name: str) -> str:
        return self.pseudonyms.host(name) if name in self.names.hosts else name

    def _user(self, name: str, sure: bool = False) -> str:
        hidden = self.names.is_user(name) if sure else name in self.names.users
        return self.pseudonyms.user(name) if hidden else name

    def _email(self, found: Match) -> str:
        if self._public.is_public(found[2]) or NAMED.match(found[2]):
            return found[0]
        return f"{self.pseudonyms.user(found[1])}@{self.pseudonyms.domain(found[2])}"

    def _url(self, found: Match) -> str:
        name = found[2].rstrip(".")
        if not self.names.is_host(name):
            return found[0]
        return found[1] + self.pseudonyms.host(name) + found[2][len(name) :]

    def _account(self, found: Match) -> str:
        """The field behind the group has the user's real name."""
        user = self._user(found[1])
        about = found[3] if user == found[1] or not found[3] else user
        return f"{user}{found[2]}{about}"

    def _group(self, found: Match) -> str:
        members = ",".join(self._user(name) for name in found[3].split(","))
        return f"{self._user(found[1])}{found[2]}{members}"

    def _serial(self, found: Match) -> str:
        value = found[2]
        return found[1] + self.pseudonyms.serial(value) if _is_serial(value) else found[0]

    def _uuid(self, found: Match) -> str:
        return found[0] if set(found[0]) <= set("0-f") else self.pseudonyms.uuid(found[0])

    def _without_beginning(self, found: Match) -> str:
        """Of a text that was cut: half a name or half an address is still one."""
        part = found[1]
        is_half = part.count(".") > 1 or part.count(":") > 2 or self.names.begins(part)
        return "…" if is_half and not NAMED.match(part) else found[0]

    def _wherever(self, text: str) -> str:
        pattern = self.names.pattern()
        return text if pattern is None else pattern.sub(self._by_kind, text)

    def _by_kind(self, found: Match) -> str:
        name = found["host"] or found["name"]
        kind = "host" if found["host"] else self.names.anywhere[name]
        return in_column(name, self._by_names[kind](name), found["spaces"])

    # Values that stand alone

    def host(self, name: str) -> str:
        """The name of a host, where nothing around it says so."""
        return self.pseudonyms.host(name) if self.names.add_host(name) else self.text(name)

    def variable(self, name: str, value: str) -> str:
        """With its name before it, which may say what it is: USER=worker, HCCL_IF_IP=8.1.1.1."""
        whole = f"{name}={value}"
        found = super().variable(name, value)
        if found == HIDDEN.decode():
            return found
        if name in VARIABLES_OF_HOSTS:
            return self.host(value)
        if name in VARIABLES_OF_USERS:
            return self.user(value)
        hidden = self.text(whole)
        return hidden[len(name) + 1 :] if hidden.startswith(f"{name}=") else found

    def user(self, name: str) -> str:
        """The name of a user, likewise."""
        return self.pseudonyms.user(name) if self.names.is_user(name) else self.text(name)

    def shown(self, source: str, text: str) -> str:
        """A variable or some file says by its name what its text is."""
        kind, _, name = source.partition(":")
        if kind == "env" and name:
            return self.variable(name, text)
        if kind == "file" and (name == "/etc/hosts" or name in HOST_FILES or SERIAL_FILES.fullmatch(name)):
            return self.file(name, text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
        return self.text(text)

    def file(self, path: str, data: bytes) -> bytes:
        """What stands in a file; some hold a name or a serial number and nothing that says so."""
        if data.startswith(_BINARY):
            return data
        if path in HOST_FILES:
            return _as_text(data, lambda text: text.replace(text.strip(), self.host(text.strip())))
        if path == "/etc/hosts":
            return _as_text(data, self._host_table)
        if SERIAL_FILES.fullmatch(path):
            return _as_text(data, self._number)
        return self.data(data)

    def _number(self, text: str) -> str:
        number = text.strip("\0\n ")
        if not any(sign.isdigit() for sign in number):
            return text
        named = self.pseudonyms.uuid(number) if UUID.fullmatch(number) else self.pseudonyms.serial(number)
        return text.replace(number, named)

    def _host_table(self, text: str) -> str:
        lines = []
        for line in text.split("\n"):
            entry, mark, comment = line.partition("#")
            words = re.split(r"(\s+)", entry)
            first = next((n for n, word in enumerate(words) if word.strip()), len(words))
            for n in range(first + 1, len(words)):
                if words[n].strip():
                    words[n] = self.host(words[n])
            lines.append(self.text("".join(words)) + mark + (self.text(comment) if comment else ""))
        return "\n".join(lines)

    def names_in(self, folder: str, names: Sequence[str]) -> list[str]:
        """What a folder holds: each as it stands in a path."""
        if folder in ("/home", "/home/"):
            return [self.text(f"/home/{name}")[len("/home/") :] for name in names]
        together = "\n".join(names)
        replaced = self.text(together).split("\n")
        return replaced if len(replaced) == len(names) else [self.text(name) for name in names]


def _is_serial(value: str) -> bool:
    """Not NA, and not what another part of us has put there."""
    return any(sign.isdigit() for sign in value) and not UUID.fullmatch(value) and not NAMED.match(value)


def _as_text(data: bytes, change: Callable[[str], str]) -> bytes:
    return change(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
