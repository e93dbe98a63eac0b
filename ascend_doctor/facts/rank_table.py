"""The rank table that the environment names: which device of which server is which rank.

Sources: CANN, HCCL, rank table (https://www.hiascend.com/document/detail/zh/canncommercial/850/commlib/hcclug/hcclug_000014.html);
MindCluster, hccl.json (https://www.hiascend.com/document/detail/zh/mindx-dl/600/clusterscheduling/ref/appendices/mxdlug_appendices_009.html).
Numbers are texts there; tables that people write have numbers too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ascend_doctor.host import Area, Collected, Host, Missing, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

VARIABLES = ("RANK_TABLE_FILE", "RANKTABLEFILE")
NOT_SET = Missing(Reason.ABSENT, "neither RANK_TABLE_FILE nor RANKTABLEFILE is set")
NOT_SAID = Missing(Reason.ABSENT, "the rank table does not say")
MOST_SERVERS, MOST_DEVICES = 4096, 1024


@dataclass(frozen=True)
class RankDevice:
    """``address``: of the NPU's own network port; absent in tables of one server."""

    number: int | Missing
    rank: int | Missing
    address: str | Missing


@dataclass(frozen=True)
class Server:
    """``id``: by which HCCL tells servers apart, most often the address; ``container``: that of the pod."""

    id: str | Missing
    container: str | Missing
    devices: tuple[RankDevice, ...]


@dataclass(frozen=True)
class RankTable:
    """``server_count``: as the file says; ``servers``: as it lists them."""

    variable: str | Missing
    file: str | Missing
    status: str | Missing
    version: str | Missing
    server_count: int | Missing
    servers: tuple[Server, ...] | Missing


@dataclass(frozen=True)
class Table:
    """What the file says."""

    status: str | Missing
    version: str | Missing
    server_count: int | Missing
    servers: tuple[Server, ...] | Missing


def table(data: bytes) -> Table | Missing | Shown[Table]:
    try:
        whole = json.loads(decoded(data))
    except (ValueError, RecursionError):
        whole = None
    if not isinstance(whole, Mapping):
        return Missing(Reason.FAILED, "no JSON object")
    servers = _servers(whole.get("server_list"))
    found = Table(_text(whole, "status"), _text(whole, "version"), _number(whole.get("server_count")), servers)
    listed = [] if isinstance(servers, Missing) else servers
    many = sum(len(server.devices) for server in listed)
    return Shown(found, {"": f"status {found.status}, {len(listed)} servers, {many} devices"})


def _servers(value: object) -> tuple[Server, ...] | Missing:
    if not isinstance(value, list):
        return NOT_SAID
    if len(value) > MOST_SERVERS:
        return Missing(Reason.FAILED, f"more than {MOST_SERVERS} servers")
    found = []
    for server in value:
        words: Mapping[str, Any] = server if isinstance(server, Mapping) else {}
        listed = words.get("device")
        devices = listed[:MOST_DEVICES] if isinstance(listed, list) else []
        found.append(Server(_text(words, "server_id"), _text(words, "container_ip"), tuple(map(_device, devices))))
    return tuple(found)


def _device(value: object) -> RankDevice:
    words: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    return RankDevice(_number(words.get("device_id")), _number(words.get("rank_id")), _text(words, "device_ip"))


def _text(words: Mapping[str, Any], name: str) -> str | Missing:
    value = words.get(name)
    return value[:200] if isinstance(value, str) and value else NOT_SAID


def _number(value: object) -> int | Missing:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9:
        return int(value)
    return value if type(value) is int and 0 <= value < 1 << 24 else NOT_SAID


def collect(host: Host) -> Collected[RankTable]:
    """Reads one file where the environment names it."""
    area = Area("rank_table")
    for variable in VARIABLES:
        answer = host.env(variable)
        if isinstance(answer.value, str) and answer.value:
            return _read(host, area, variable, answer.value)
        if isinstance(answer.value, Missing) and answer.value.reason is not Reason.ABSENT:
            return area.of(RankTable(*[answer.value] * 6))
    return area.of(RankTable(*[NOT_SET] * 6))


def _read(host: Host, area: Area, variable: str, file: str) -> Collected[RankTable]:
    if not file.startswith("/"):
        unknown = Missing(Reason.NOT_COLLECTED, f"{file} is relative to a folder that is not known here")
        return area.of(RankTable(variable, file, unknown, unknown, unknown, unknown))
    about = area.take("", parsed(host.read(file), table))
    facts: dict[str, Any] = {name: getattr(about, name, about) for name in Table.__annotations__}
    return area.of(RankTable(variable, file, **facts))
