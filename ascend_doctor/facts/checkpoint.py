"""The folder of a model: what its config.json says, and whether its weight files are whole. Given with a launch.

Sources: https://github.com/huggingface/safetensors (length, header, data without holes), transformers' config.json, and
msModelSlim's quant_model_description.json (https://gitcode.com/Ascend/msmodelslim).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

from ascend_doctor.facts.demand import Demand, Wishes
from ascend_doctor.facts.quantisation import Description, description, undescribed
from ascend_doctor.facts.safetensors import POINTER, Found, Tensor, header, weight_files
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass
from ascend_doctor.versions import PythonVersion

NOT_GIVEN = Missing(Reason.UNSUPPORTED, "no launch command was given")
NAMED = Missing(Reason.ABSENT, "the model is named and not a folder here")
NOT_SAID = Missing(Reason.ABSENT, "config.json does not say")
DESCRIPTION = "quant_model_description"
WHOLE, GONE, CUT, IS_POINTER, BROKEN = "", "missing", "cut", "pointer", "broken"


@dataclass(frozen=True)
class Shard:
    """A weight file. ``problem``: missing, cut, pointer, broken, or nothing; sizes in bytes, 0 where there is none."""

    name: str
    problem: str | Missing
    detail: str
    size_bytes: int
    wanted_bytes: int


@dataclass(frozen=True)
class Checkpoint:
    """``there``: whether a path that the command gives is a folder; absent where it is a name.

    ``own_code``: it brings Python of its own. ``descriptions``: files that are named as the description of a quantised
    model, or nearly; ``schemes``: how its tensors are quantised; ``undescribed``: linear layers without an entry.
    """

    folder: str | Missing
    there: bool | Missing
    architecture: str | Missing
    model_type: str | Missing
    dtype: str | Missing
    quantised_by: str | Missing
    transformers: PythonVersion | Missing
    latent: bool | Missing
    vision: bool | Missing
    heads: int | Missing
    own_code: bool | Missing
    descriptions: tuple[str, ...] | Missing
    schemes: tuple[str, ...] | Missing
    undescribed: tuple[str, ...] | Missing
    shards: tuple[Shard, ...] | Missing


def collect(host: Host) -> Collected[Checkpoint]:
    """Asks nothing: which folder matters is said by a launch command."""
    return Area("checkpoint").of(_all(NOT_GIVEN))


def _all(why: Missing) -> Checkpoint:
    return Checkpoint(*[why] * len(Checkpoint.__annotations__))


@dataclass(frozen=True)
class Config:
    """``latent``: multi-head latent attention, known by its own word in the file."""

    architecture: str | Missing
    model_type: str | Missing
    dtype: str | Missing
    quantised_by: str | Missing
    transformers: PythonVersion | Missing
    latent: bool
    vision: bool
    heads: int | Missing
    own_code: bool


def config(data: bytes) -> Config | Missing | Shown[Config]:
    """The words of config.json that decide; of a model of several parts those of its text part."""
    try:
        whole = json.loads(decoded(data))
    except (ValueError, RecursionError):
        whole = None
    if not isinstance(whole, Mapping):
        return Missing(Reason.FAILED, "config.json is no JSON object")
    inner = whole.get("text_config")
    words: Mapping[str, Any] = {**whole, **inner} if isinstance(inner, Mapping) else whole
    kinds = whole.get("architectures")
    quantised = whole.get("quantization_config")
    method = quantised.get("quant_method") if isinstance(quantised, Mapping) else whole.get("quantize")
    heads = words.get("num_attention_heads")
    found = Config(
        architecture=_text(kinds[0] if isinstance(kinds, list) and kinds else None),
        model_type=_text(whole.get("model_type")),
        dtype=_text(whole.get("dtype") or whole.get("torch_dtype") or words.get("dtype") or words.get("torch_dtype")),
        quantised_by=_text(method),
        transformers=_text(whole.get("transformers_version")),
        latent=isinstance(words.get("kv_lora_rank"), int),
        vision=any(name in whole for name in ("vision_config", "visual", "vision_tower")),
        heads=heads if type(heads) is int and 0 < heads < 1 << 20 else NOT_SAID,
        own_code=isinstance(whole.get("auto_map"), Mapping),
    )
    shown = {name: f"{name}: {value}" for name, value in vars(found).items() if not isinstance(value, Missing)}
    return Shown(found, {"": "; ".join(shown.values())[:400]})


def _text(value: object) -> str | Missing:
    return value[:200] if isinstance(value, str) and value else NOT_SAID


def checkpoint(host: Host, model: str | Missing, wishes: Wishes | Missing | None) -> tuple[Collected[Any], ...]:
    """The areas checkpoint and demand of a launch: the headers of the weight files are read once for both."""
    area, demand = Area("checkpoint"), Area("demand")
    if isinstance(model, Missing):
        none = Missing(model.reason, "the command names no model")
        return (area.of(_all(none)),)
    demand.take("model", Parsed(None, "argument", {"": model}))
    if not model.startswith("/"):
        found = (area.of(_all(NAMED)),)
        return found if wishes is None else (*found, demand.of(Demand(model, wishes, NAMED, NAMED)))
    folder = model.rstrip("/") or "/"
    file = host.read(f"{folder}/config.json")
    said: Parsed[Config] = parsed(file, config)
    text: Parsed[str | Missing] = parsed(file, decoded)
    shards, tensors = weights(host, folder)
    about = said.value
    listed = area.take("descriptions", parsed(host.list(folder), tuple))
    there: bool | Missing = True
    if isinstance(listed, Missing):
        there = False if listed.reason is Reason.ABSENT else listed
    quantised: Parsed[Description] = parsed(host.read(f"{folder}/{DESCRIPTION}.json"), description)
    layers = area.take("schemes", quantised)
    tensors_there = tensors.value
    words: dict[str, Any] = {name: getattr(about, name, about) for name in Config.__annotations__}
    facts = Checkpoint(
        folder=folder,
        there=there,
        descriptions=listed if isinstance(listed, Missing) else tuple(n for n in listed if _describes(n)),
        schemes=layers if isinstance(layers, Missing) else layers.schemes,
        undescribed=_undescribed(layers, tensors_there),
        shards=area.take("shards", shards),
        **words,
    )
    for name in words:
        area.provenance[f"checkpoint.{name}"] = (said.source, said.texts[""])
    if wishes is None:
        return (area.of(facts),)
    wanted = Demand(model, wishes, demand.take("config", text), demand.take("tensors", tensors))
    return (area.of(facts), demand.of(wanted))


def _undescribed(layers: Description | Missing, tensors: tuple[Tensor, ...] | Missing) -> tuple[str, ...] | Missing:
    for part in (layers, tensors):
        if isinstance(part, Missing):
            return part
    return undescribed(tensors, layers)  # type: ignore[arg-type]


def _describes(name: str) -> bool:
    return name.startswith("quant_model_desc") and name.endswith(".json")


Weights = tuple[Parsed["tuple[Shard, ...] | Missing"], Parsed["tuple[Tensor, ...] | Missing"]]


def weights(host: Host, folder: str) -> Weights:
    """Each weight file against what its own header says, and the tensors of all; one bad file leaves those unknown."""
    source, names = f"file:{folder}", weight_files(host, folder)
    if isinstance(names, Missing):
        texts = {"": names.detail or names.reason.value}
        return Parsed(names, source, texts), Parsed(names, source, texts)
    found: Found = {}
    shards = tuple(_shard(host, folder, name, found) for name in names)
    bad = next((shard for shard in shards if shard.problem != WHOLE), None)
    shown = {"": f"{len(shards)} weight files, {sum(shard.size_bytes for shard in shards)} bytes"}
    if bad is None:
        tensors = tuple(Tensor(*key, count, size) for key, (count, size) in found.items())
        return Parsed(shards, source, shown), Parsed(tensors, source, shown)
    why = bad.problem.reason if isinstance(bad.problem, Missing) else Reason.FAILED
    detail = f"{bad.name}: {bad.problem.detail if isinstance(bad.problem, Missing) else bad.detail}"
    return Parsed(shards, source, shown), Parsed(Missing(why, detail), source, {"": detail})


def _shard(host: Host, folder: str, name: str, found: Found) -> Shard:
    answer = host.open(f"{folder}/{name}")
    if isinstance(answer.value, Missing):
        gone = answer.value.reason is Reason.ABSENT
        return Shard(name, GONE if gone else answer.value, "no such file", 0, 0)
    with answer.value as stream:
        try:
            return _measured(stream, name, found)
        except OSError as error:
            return Shard(name, Missing(Reason.FAILED, error.strerror or "cannot be read"), "", 0, 0)


def _measured(stream: BinaryIO, name: str, found: Found) -> Shard:
    """What a file has, and what its header needs: its own length, and the tensors one behind the other."""
    size = stream.seek(0, 2)
    stream.seek(0)
    head = stream.read(len(POINTER))
    stream.seek(0)
    before = sum(amount for _, amount in found.values())
    wrong = header(stream, found)
    if wrong is None:
        wanted = stream.tell() + sum(amount for _, amount in found.values()) - before
        return Shard(name, CUT if size < wanted else WHOLE, "shorter than its header says", size, wanted)
    problem = IS_POINTER if head.startswith(POINTER) else CUT if size < 8 or "ends inside" in wrong.detail else BROKEN
    return Shard(name, problem, wrong.detail, size, 0)
