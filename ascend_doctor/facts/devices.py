"""The device nodes of the NPUs in /dev, and whether the asking user may open them.

Sources: Huawei's driver, host_sys_init.sh (owner and mode of the nodes); path_resolution(7) for who may open what.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Identity, Missing, Parsed, Reason, Stat, decoded, keyed, parsed
from ascend_doctor.records import dataclass

NAMES = re.compile(r"v?davinci\d{1,5}|davinci_manager|davinci_manager_docker|devmm_svm|hisi_hdc|svm0", re.ASCII)


@dataclass(frozen=True)
class DeviceNode:
    """``number`` is N of /dev/davinciN (absent for the shared ones); ``mode`` is octal text such as 0660."""

    path: str
    number: int | Missing
    type: str | Missing
    mode: str | Missing
    uid: int | Missing
    gid: int | Missing
    group: str | Missing
    openable: bool | Missing


@dataclass(frozen=True)
class Devices:
    """By path: ``nodes["/dev/davinci0"]``; ``uid`` is the user that asks."""

    nodes: dict[str, DeviceNode] | Missing
    uid: int | Missing


def groups(text: bytes) -> dict[int, str]:
    """gid -> name of /etc/group; the first name of a number wins, as in getgrgid."""
    found: dict[int, str] = {}
    for line in decoded(text).split("\n"):
        cells = line.split(":")
        if len(cells) >= 3 and re.fullmatch(r"\d{1,10}", cells[2], re.ASCII):
            found.setdefault(int(cells[2]), cells[0])
    return found


def is_openable(node: Stat, identity: Identity) -> bool | Missing:
    """Reading and writing by mode and ids; root passes. Access lists and a container's device rules are not seen."""
    if isinstance(identity.uid, Missing):
        return identity.uid
    if identity.uid == 0:
        return True
    if identity.uid == node.uid:
        return node.mode & 0o600 == 0o600
    if isinstance(identity.gids, Missing):
        return identity.gids
    if node.gid in identity.gids:
        return node.mode & 0o060 == 0o060
    return node.mode & 0o006 == 0o006


def collect(host: Host) -> Collected[Devices]:
    """Lists /dev and asks for each node's mode and owner; opens nothing."""
    area = Area("devices")
    names = area.take("nodes", parsed(host.list("/dev"), _nodes_of))
    uid = area.take("uid", Parsed(host.identity.uid, "identity", {"": f"uid {host.identity.uid}"}))
    if isinstance(names, Missing):
        return area.of(Devices(nodes=names, uid=uid))
    known = parsed(host.read("/etc/group"), groups)
    return area.of(Devices(nodes={path: _node(host, area, path, known) for path in names}, uid=uid))


def _nodes_of(names: tuple[str, ...]) -> tuple[str, ...]:
    found = [name for name in names if NAMES.fullmatch(name)]
    return tuple(f"/dev/{name}" for name in sorted(found, key=lambda n: (n.rstrip("0123456789"), len(n), n)))


def _node(host: Host, area: Area, path: str, known: Parsed[dict[int, str]]) -> DeviceNode:
    answer = host.stat(path)
    where = keyed("nodes", path)
    digits = re.search(r"davinci(\d+)$", path)
    number = int(digits[1]) if digits else Missing(Reason.ABSENT, "shared by all NPUs")
    stat = area.take(where, Parsed(answer.value, answer.source, {"": _shown(path, answer.value)}))
    if isinstance(stat, Missing):
        return DeviceNode(path, number, stat, stat, stat, stat, stat, stat)
    named = known.value if isinstance(known.value, Missing) else known.value.get(stat.gid)
    group = named or Missing(Reason.ABSENT, f"/etc/group has no name for {stat.gid}")
    area.take(f"{where}.group", Parsed(group, known.source, {"": f"gid {stat.gid}: {named}"}))
    return DeviceNode(
        path,
        number,
        stat.type,
        f"{stat.mode:04o}",
        stat.uid,
        stat.gid,
        group,
        is_openable(stat, host.identity),
    )


def _shown(path: str, stat: Stat | Missing) -> str:
    if isinstance(stat, Missing):
        return f"{path}: {stat.reason.value}"
    return f"{path}: {stat.type} {stat.mode:04o} uid {stat.uid} gid {stat.gid}"
