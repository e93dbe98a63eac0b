"""The user that asks: whether it has a name here, and where its home is.

Sources: passwd(5), nsswitch.conf(5); getpwuid(3) is what programs ask.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

LOCAL = ("files", "compat", "systemd", "altfiles")
"""Places of nsswitch.conf that know no users of a directory server."""


@dataclass(frozen=True)
class User:
    """``name`` is absent where /etc/passwd has no entry for ``uid``.

    ``directory``: whether users may also come from a directory server (LDAP, SSSD), which /etc/passwd does not show.
    """

    uid: int | Missing
    name: str | Missing
    home: str | Missing
    directory: bool | Missing


def accounts(text: bytes) -> dict[int, tuple[str, str, str]]:
    """uid -> (name, home, line); the first entry of a number wins, as in getpwuid."""
    found: dict[int, tuple[str, str, str]] = {}
    for line in decoded(text).split("\n"):
        cells = line.split(":")
        if len(cells) >= 7 and cells[0] and re.fullmatch(r"\d{1,10}", cells[2], re.ASCII):
            found.setdefault(int(cells[2]), (cells[0], cells[5], line))
    return found


def asks_a_directory(text: bytes) -> Shown[bool | Missing]:
    """Whether the line ``passwd:`` names more than local files."""
    for line in decoded(text).split("\n"):
        key, colon, places = line.partition(":")
        if colon and key.strip() == "passwd":
            words = re.sub(r"\[[^\]]*\]|#.*", " ", places).split()
            return Shown(any(word not in LOCAL for word in words), {"": line.strip()[:200]})
    return Shown(False, {"": "no line passwd"})


def collect(host: Host) -> Collected[User]:
    """Reads two files, starts nothing."""
    area = Area("user")
    uid = area.take("uid", Parsed(host.identity.uid, "identity", {"": f"uid {host.identity.uid}"}))
    known = parsed(host.read("/etc/passwd"), accounts)
    named = host.read("/etc/nsswitch.conf")
    directory: Parsed[bool | Missing] = parsed(named, asks_a_directory)
    if isinstance(named.value, Missing) and named.value.reason is Reason.ABSENT:
        directory = Parsed(False, named.source, {"": "absent"})
    return area.of(
        User(
            uid=uid,
            name=area.take("name", _cell(uid, known, 0)),
            home=area.take("home", _cell(uid, known, 1)),
            directory=area.take("directory", directory),
        )
    )


def _cell(uid: int | Missing, known: Parsed[dict[int, tuple[str, str, str]]], cell: int) -> Parsed[str | Missing]:
    if isinstance(uid, Missing) or isinstance(known.value, Missing):
        why = uid if isinstance(uid, Missing) else known.value
        return Parsed(why, known.source, known.texts)  # type: ignore[arg-type]
    if uid not in known.value:
        nobody = f"no entry for {uid}"
        return Parsed(Missing(Reason.ABSENT, nobody), known.source, {"": nobody})
    return Parsed(known.value[uid][cell], known.source, {"": known.value[uid][2]})
