"""The config.json of MindIE's service that a launch command will read. Given with a launch.

Source: https://www.hiascend.com/document/detail/en/mindie/230/LLMframe/llmdev/mindie_service0285.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ascend_doctor.host import Area, Collected, Host, Missing, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

NOT_GIVEN = Missing(Reason.UNSUPPORTED, "no launch of MindIE was given")
NOT_SAID = Missing(Reason.ABSENT, "config.json does not say")
INSTALLED, HOME = "/usr/local/Ascend/mindie/latest/mindie-service", "MIES_INSTALL_PATH"
CONFIG = "MIES_CONFIG_JSON_PATH"
PORTS = ("port", "managementPort", "metricsPort")
MOST_DEVICES = 1024


@dataclass(frozen=True)
class MindieConfig:
    """``devices``: of the first instance; ``memory_gib``: npuMemSize, for the KV cache, -1 for all that is left.

    ``ports``: by their names in the file."""

    file: str | Missing
    world_size: int | Missing
    devices: tuple[int, ...] | Missing
    several_nodes: bool | Missing
    longest: int | Missing
    longest_input: int | Missing
    prefill_tokens: int | Missing
    memory_gib: int | Missing
    weights: str | Missing
    block_size: int | Missing
    ports: dict[str, int] | Missing


@dataclass(frozen=True)
class Words:
    """What the file says, by the names of the facts."""

    world_size: int | Missing
    devices: tuple[int, ...] | Missing
    several_nodes: bool | Missing
    longest: int | Missing
    longest_input: int | Missing
    prefill_tokens: int | Missing
    memory_gib: int | Missing
    weights: str | Missing
    block_size: int | Missing
    ports: dict[str, int] | Missing


def words(data: bytes) -> Words | Missing | Shown[Words]:
    """The first model of the file: the service runs one."""
    try:
        document = json.loads(decoded(data))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, Mapping):
        return Missing(Reason.FAILED, "config.json of MindIE is no JSON object")
    backend = _part(document, "BackendConfig")
    deploy = _part(backend, "ModelDeployConfig")
    models = deploy.get("ModelConfig")
    model: Mapping[str, Any] = (
        models[0] if isinstance(models, list) and models and isinstance(models[0], Mapping) else {}
    )
    several, weights = backend.get("multiNodesInferEnabled"), model.get("modelWeightPath")
    found = Words(
        world_size=_number(model, "worldSize"),
        devices=_devices(backend.get("npuDeviceIds")),
        several_nodes=several if isinstance(several, bool) else False,
        longest=_number(deploy, "maxSeqLen"),
        longest_input=_number(deploy, "maxInputTokenLen"),
        prefill_tokens=_number(_part(backend, "ScheduleConfig"), "maxPrefillTokens"),
        memory_gib=_number(model, "npuMemSize"),
        weights=weights[:4096] if isinstance(weights, str) and weights else NOT_SAID,
        block_size=_number(_part(backend, "ScheduleConfig"), "cacheBlockSize"),
        ports=_ports(_part(document, "ServerConfig"), backend, several is True),
    )
    shown = (f"{name}: {value}" for name, value in vars(found).items() if not isinstance(value, Missing))
    return Shown(found, {"": "; ".join(shown)[:400]})


def _part(words: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = words.get(name)
    return part if isinstance(part, Mapping) else {}


def _number(words: Mapping[str, Any], name: str) -> int | Missing:
    value = words.get(name)
    return value if type(value) is int and abs(value) < 1 << 40 else NOT_SAID


def _ports(server: Mapping[str, Any], backend: Mapping[str, Any], several: bool) -> dict[str, int]:
    """What the daemon listens on, by the names in the file."""
    named = [(server, name) for name in PORTS] + ([(backend, "multiNodesInferPort")] if several else [])
    found = {name: words.get(name) for words, name in named}
    return {name: port for name, port in found.items() if type(port) is int and 0 < port < 1 << 16}


def _devices(value: object) -> tuple[int, ...] | Missing:
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, list) or len(first) > MOST_DEVICES or not all(type(one) is int for one in first):
        return NOT_SAID
    return tuple(first)


def _usual(host: Host) -> str:
    """Under MIES_INSTALL_PATH, or where MindIE is installed."""
    chosen, home = host.env(CONFIG).value, host.env(HOME).value
    if isinstance(chosen, str) and chosen.startswith("/"):
        return chosen
    return f"{INSTALLED if isinstance(home, Missing) or not home else home.rstrip('/')}/conf/config.json"


def collect(host: Host) -> Collected[MindieConfig]:
    """Asks nothing: whether MindIE is to be started is said by a launch command."""
    return Area("mindie_config").of(MindieConfig(*[NOT_GIVEN] * len(MindieConfig.__annotations__)))


def mindie_config(host: Host, named: str | Missing) -> Collected[MindieConfig]:
    """Reads one file: the one that the command or MIES_CONFIG_JSON_PATH names, else that of the installation."""
    area = Area("mindie_config")
    if isinstance(named, Missing) and named.reason is not Reason.ABSENT:
        return area.of(MindieConfig(*[named] * len(MindieConfig.__annotations__)))
    file = named if isinstance(named, str) and named.startswith("/") else _usual(host)
    answer = parsed(host.read(file), words)
    about = area.take("", answer)
    facts: dict[str, Any] = {name: getattr(about, name, about) for name in Words.__annotations__}
    return area.of(MindieConfig(file=file, **facts))
