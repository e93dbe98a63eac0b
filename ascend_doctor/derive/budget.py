"""Whether a model fits into the memory of its devices: the sum of memory/ with the catalogue, limits and the host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ascend_doctor.derive import rows
from ascend_doctor.derive.host import visible_chips
from ascend_doctor.derive.memory import total_of
from ascend_doctor.facts.demand import Demand, Wishes
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.safetensors import Tensor
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.cards import Cards
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.knowledge.models import Model, Models, NumberFormat
from ascend_doctor.knowledge.reading import nearest
from ascend_doctor.memory.budget import (
    MIB,
    OUTSIDE,
    Costs,
    Largest,
    Line,
    Plan,
    Room,
    Subject,
    cards_for_weights,
    communicators,
    guide_line,
    largest,
    lines,
    short_bytes,
)
from ascend_doctor.memory.shapes import EVEN, LAST, Shape, shape_of
from ascend_doctor.memory.weights import Format, Piece, Split, pieces_of_shape, pieces_of_tensors, rank_bytes
from ascend_doctor.records import dataclass

LIVE = "live"
BUFFER = "HCCL_BUFFSIZE"
UNCOUNTED = Missing(Reason.FAILED, "the KV cache of this architecture cannot be computed here", "demand.config")
NO_SHAPE = Missing(Reason.FAILED, "the shape of this model is not known", "demand.model")


@dataclass(frozen=True)
class Sum:
    """One model on one kind of card. ``fewest``: the fewest cards that hold it, such as ``16 (TP 16, PP 1)``.

    ``largest_*`` are 0 and texts empty where nothing fits. ``lines`` are told by the verb. ``uneven_*``: the ranks
    cannot share them out; ``kv_heads`` is 0 where they are not split.
    """

    model: str
    format: str
    context: int
    cards: int
    wanted_tokens: int
    wanted_sequences: int
    card: str
    card_bytes: int | Missing
    free_bytes: int | Missing
    fraction: float
    usable_mib: int | Missing
    need_mib: int | Missing
    weights_mib: int | Missing
    weights_bytes: int | Missing
    cards_needed: int | Missing
    fits: bool | Missing
    short_bytes: int | Missing
    short_mib: int | Missing
    beyond_context: bool | Missing
    tp: int
    ep: int
    pp: int
    heads: int
    kv_heads: int
    experts: int
    layers: int
    uneven_heads: bool | Missing
    uneven_experts: bool | Missing
    uneven_layers: bool | Missing
    largest_tokens: int | Missing
    largest_sequences: int | Missing
    fewest: str
    fewest_cards: int
    smaller_format: str
    holders: str
    lines: tuple[Line, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Buffers:
    """The framework's share, filled, beside the buffers of communicators, which lie outside of it."""

    model: str
    share_mib: int | Missing
    buffers_mib: int
    formula: str
    card_mib: int | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Device:
    """The memory that a rank finds; ``holders`` are the programs that hold some of it."""

    name: str
    room: Room | Missing
    holders: str
    reads: tuple[str, ...]


@rows("budget.sums")
def sums(
    demand: Demand, npu: Npu, env: Mapping[str, str | Missing], models: Models, cards: Cards, limits: Limits
) -> tuple[Sum, ...] | Missing:
    """One row where a model was asked for."""
    wishes = demand.wishes
    if isinstance(wishes, Missing):
        return wishes
    known = models.named(wishes.model)
    subject, form = _subject(demand, wishes, known, models)
    device = _device(wishes, npu, env, cards, limits)
    plan = _plan(wishes, subject, limits)
    costs = _costs(plan.split, env, limits)
    if isinstance(costs, Missing):
        return costs
    if isinstance(subject, Missing):
        return (_unknown(wishes, plan, device, subject),)
    found = lines(subject, plan, costs)
    room, most = device.room, int(limits["memory.most_cards"])
    best: Largest | Missing = UNCOUNTED
    if isinstance(room, Missing):
        best = room
    elif subject.cache_known:
        best = largest(subject, plan, costs, room, most)
    smaller = "" if isinstance(room, Missing) else _smaller(subject, demand.tensors, models, form, plan, costs, room)
    return (_sum(wishes, subject, form, plan, device, found, costs, best, smaller),)


@rows("budget.buffers")
def buffers(
    demand: Demand, npu: Npu, env: Mapping[str, str | Missing], models: Models, cards: Cards, limits: Limits
) -> tuple[Buffers, ...] | Missing:
    """One row where a sum could be made and ranks talk to each other."""
    found = sums(demand, npu, env, models, cards, limits)
    if isinstance(found, Missing):
        return found
    outside = [(one, line) for one in found for line in one.lines if line.side == OUTSIDE and line.bytes]
    return tuple(
        Buffers(
            model=one.model,
            share_mib=one.usable_mib,
            buffers_mib=line.bytes // MIB,
            formula=line.formula,
            card_mib=one.card_bytes if isinstance(one.card_bytes, Missing) else one.card_bytes // MIB,
            reads=(*one.reads, f"env.{BUFFER}"),
        )
        for one, line in outside
    )


def _sum(
    wishes: Wishes,
    subject: Subject,
    form: str,
    plan: Plan,
    device: Device,
    found: tuple[Line, ...],
    costs: Costs,
    best: Largest | Missing,
    smaller: str,
) -> Sum:
    room, context = device.room, subject.shape.context if subject.shape else 0
    short = room if isinstance(room, Missing) else short_bytes(found, room)
    if short == 0 and not subject.cache_known:
        short = UNCOUNTED
    weights = rank_bytes(subject.pieces, subject.shape, plan.split)
    layout = None if isinstance(best, Missing) else best.layout
    if not isinstance(room, Missing):
        found = (*found, guide_line(room.total, costs))
    return Sum(
        model=wishes.model,
        format=form,
        context=context,
        cards=plan.split.cards,
        wanted_tokens=plan.tokens,
        wanted_sequences=plan.sequences,
        card=device.name,
        card_bytes=room if isinstance(room, Missing) else room.total,
        free_bytes=room if isinstance(room, Missing) else room.free,
        fraction=wishes.gpu_memory_utilization,
        usable_mib=room if isinstance(room, Missing) else room.usable // MIB,
        need_mib=-(-sum(line.bytes for line in found if line.side != "beside") // MIB),
        weights_mib=-(-weights // MIB),
        weights_bytes=subject.weights,
        cards_needed=room if isinstance(room, Missing) else cards_for_weights(subject, room),
        fits=short if isinstance(short, Missing) else short == 0,
        short_bytes=short,
        short_mib=short if isinstance(short, Missing) else -(-short // MIB),
        beyond_context=plan.tokens > context if context else NO_SHAPE,
        **_parts(subject.shape, plan.split),
        largest_tokens=best if isinstance(best, Missing) else best.tokens,
        largest_sequences=best if isinstance(best, Missing) else best.sequences,
        fewest=_words(layout),
        fewest_cards=layout.cards if layout else 0,
        smaller_format=smaller,
        holders=device.holders,
        lines=found,
        reads=("demand.model", "demand.config", "demand.tensors", *device.reads),
    )


def _unknown(wishes: Wishes, plan: Plan, device: Device, why: Missing) -> Sum:
    room = device.room
    return Sum(
        model=wishes.model,
        format="",
        context=0,
        cards=plan.split.cards,
        wanted_tokens=plan.tokens,
        wanted_sequences=plan.sequences,
        card=device.name,
        card_bytes=room if isinstance(room, Missing) else room.total,
        free_bytes=room if isinstance(room, Missing) else room.free,
        fraction=wishes.gpu_memory_utilization,
        usable_mib=room if isinstance(room, Missing) else room.usable // MIB,
        need_mib=why,
        weights_mib=why,
        weights_bytes=why,
        cards_needed=why,
        fits=why,
        short_bytes=why,
        short_mib=why,
        beyond_context=why,
        **_parts(None, plan.split, why),
        largest_tokens=why,
        largest_sequences=why,
        fewest="",
        fewest_cards=0,
        smaller_format="",
        holders=device.holders,
        lines=(),
        reads=("demand.model", "demand.config", "demand.tensors", *device.reads),
    )


def _parts(shape: Shape | None, split: Split, why: Missing = NO_SHAPE) -> dict[str, Any]:
    """What is shared out, and whether it comes out even: frameworks refuse heads that TP does not divide.

    KV heads of which there are fewer than ranks are copied, so their number has to divide TP.
    """
    heads, experts, layers = (shape.heads, shape.routed, shape.layers) if shape else (0, 0, 0)
    kv = shape.kv_heads if shape and shape.kind == "gqa" else 0
    uneven_kv = bool(kv) and max(kv, split.tp) % min(kv, split.tp) > 0
    return {
        "kv_heads": kv,
        "tp": split.tp,
        "ep": split.ep,
        "pp": split.pp,
        "heads": heads,
        "experts": experts,
        "layers": layers,
        "uneven_heads": (heads % split.tp > 0 or uneven_kv) if shape else why,
        "uneven_experts": experts % split.ep > 0 if shape else why,
        "uneven_layers": split.pp > layers if shape else why,
    }


def _words(layout: Split | None) -> str:
    if layout is None:
        return ""
    expert = f", EP {layout.ep}" if layout.ep > 1 else ""
    return f"{layout.cards} (TP {layout.tp}, PP {layout.pp}{expert})"


def _subject(demand: Demand, wishes: Wishes, known: Model | None, models: Models) -> tuple[Subject | Missing, str]:
    """The real tensors first, then the folder's shape, then the catalogue's; with the name of the format."""
    tensors = demand.tensors
    config = known.config if known else None
    if not isinstance(demand.config, Missing):
        config = _parsed(demand.config)
        if config is None:
            return Missing(Reason.FAILED, "config.json is no JSON object", "demand.config"), ""
    elif demand.config.reason is not Reason.ABSENT:
        return demand.config, ""
    shape = None if config is None else shape_of(config, models.indexed_ratio(config))
    if not isinstance(tensors, Missing):
        layers = shape.layers if shape else 1 << 16
        pieces = pieces_of_tensors(tensors, layers)
        counted = f"{sum(tensor.count for tensor in tensors)} tensors of {wishes.model}"
        return Subject(shape, pieces, counted, 0, _hidden(config)), "files"
    if tensors.reason is not Reason.ABSENT:
        return tensors, ""
    form = _format(wishes, known, config, models)
    if shape is None and known is not None and known.published_weights:
        pieces = (Piece(LAST, EVEN, known.published_weights),)
        return Subject(None, pieces, "published", known.published_kv_of_token, _hidden(config)), "published"
    if form is None:
        return Missing(Reason.FAILED, f"no number format {wishes.quantization} is known", "demand.wishes"), ""
    if shape is None:
        hint = nearest(wishes.model, [model.id for model in models.models])
        return Missing(Reason.FAILED, f"the shape of {wishes.model} is not known{hint}", "demand.model"), ""
    return _of_shape(shape, form), form.name


def _hidden(config: Mapping[str, Any] | None) -> int:
    value = (config or {}).get("hidden_size")
    return value if isinstance(value, int) and 0 < value < 1 << 20 else 0


def _of_shape(shape: Shape, form: NumberFormat) -> Subject:
    pieces = pieces_of_shape(shape, Format(form.name, form.experts, form.embeddings, form.other))
    return Subject(shape, pieces, f"shape in {form.name}")


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping) else None


def _format(
    wishes: Wishes, known: Model | None, config: Mapping[str, Any] | None, models: Models
) -> NumberFormat | None:
    """As asked for, as the name of the checkpoint ends, as its config says, as the model was published."""
    if wishes.quantization:
        return models.format(wishes.quantization)
    if known is not None:
        native = wishes.dtype or known.native if known.native in ("bf16", "fp32") else known.native
        return models.format_in(wishes.model, native)
    words = config or {}
    quantised = words.get("quantization_config")
    method = quantised.get("quant_method") if isinstance(quantised, Mapping) else words.get("quantize")
    name = method or wishes.dtype or words.get("dtype") or words.get("torch_dtype") or "bf16"
    return models.format(str(name)) or models.format("bf16")


def _smaller(
    subject: Subject,
    tensors: tuple[Tensor, ...] | Missing,
    models: Models,
    form: str,
    plan: Plan,
    costs: Costs,
    room: Room,
) -> str:
    """The format of most bits, below those of the present one, in which it fits."""
    now = models.format(form if isinstance(tensors, Missing) else _format_of(tensors))
    if subject.shape is None or now is None:
        return ""
    for other in sorted(models.formats, key=lambda f: -f.experts - f.other):
        smaller = (other.experts, other.other) < (now.experts, now.other)
        if smaller and short_bytes(lines(_of_shape(subject.shape, other), plan, costs), room) == 0:
            return other.name
    return ""


def _format_of(tensors: tuple[Tensor, ...]) -> str:
    """Of files that are not quantised; "" for others, which hold several kinds of numbers."""
    kinds = {tensor.dtype for tensor in tensors if len(tensor.shape) > 1}
    return "fp32" if kinds == {"F32"} else "bf16" if kinds and kinds <= {"BF16", "F16"} else ""


def _plan(wishes: Wishes, subject: Subject | Missing, limits: Limits) -> Plan:
    shape = None if isinstance(subject, Missing) else subject.shape
    width = 1 if (wishes.kv_cache_dtype or "").startswith(("fp8", "int8")) else 2
    tokens = wishes.max_model_len or (shape.context if shape and shape.context else 4096)
    batched = wishes.batched_tokens or int(limits["memory.batched_tokens"])
    split = Split(wishes.tp, wishes.pp, wishes.ep, wishes.dp)
    return Plan(split, wishes.batch, tokens, width, batched, wishes.eager)


def _costs(split: Split, env: Mapping[str, str | Missing], limits: Limits) -> Costs | Missing:
    """The buffers of communicators are of HCCL_BUFFSIZE where it is set to a number."""
    value = env.get(BUFFER, Missing(Reason.NOT_COLLECTED, f"${BUFFER}", f"env.{BUFFER}"))
    if isinstance(value, Missing) and value.reason is not Reason.ABSENT and communicators(split):
        return value
    set_ = isinstance(value, str) and value.isascii() and value.strip().isdigit() and len(value) < 8
    return Costs(
        runtime_mib=int(limits["memory.runtime_reserve_mib"]),
        graphs_mib=int(limits["memory.graphs_mib"]),
        copies=int(limits["memory.activation_copies"]),
        buffer_mib=int(value) if isinstance(value, str) and set_ else int(limits["memory.hccl_buffer_mib"]),
        firmware_mib=int(limits["memory.firmware_reserve_mib"]),
    )


def _device(wishes: Wishes, npu: Npu, env: Mapping[str, str | Missing], cards: Cards, limits: Limits) -> Device:
    if wishes.card != LIVE:
        card = cards.named(wishes.card)
        if card is None:
            hint = nearest(wishes.card, cards.cards)
            unknown = Missing(Reason.FAILED, f"no card {wishes.card} is known{hint}", "demand.wishes")
            return Device(wishes.card, unknown, "", ())
        return Device(card.name, Room(card.bytes, card.bytes, wishes.gpu_memory_utilization, False), "", ())
    return _live_device(wishes, npu, env, limits)


def _live_device(wishes: Wishes, npu: Npu, env: Mapping[str, str | Missing], limits: Limits) -> Device:
    """The visible chip with the least memory that is free: every rank needs as much."""
    devices = visible_chips(npu, env)
    if isinstance(devices, Missing) or isinstance(npu.chips, Missing):
        return Device(LIVE, devices if isinstance(devices, Missing) else Missing(Reason.FAILED, ""), "", ("npu.chips",))
    found: list[tuple[int, int, int]] = []
    for index in devices:
        total = total_of(npu.chips[index], index)
        used = getattr(npu.chips[index], total.path.rpartition(".")[2].replace("total", "used"))
        if isinstance(total.mib, Missing) or isinstance(used, Missing):
            return Device(LIVE, total.mib if isinstance(total.mib, Missing) else used, "", (total.path,))
        found.append((total.mib - used, index, total.mib))
    if not found:
        return Device(LIVE, Missing(Reason.FAILED, "no NPU is visible", "npu.chips"), "", ("npu.chips",))
    free, index, total_mib = min(found)
    chip = npu.chips[index]
    held = total_mib - free > limits["memory.idle_hbm_mib"]
    processes = () if isinstance(npu.processes, Missing) else npu.processes
    holders = ", ".join(f"{p.pid} {p.name or '?'}" for p in processes if p.npu_id == chip.npu_id)
    room = Room(total_mib * MIB, free * MIB, wishes.gpu_memory_utilization, held)
    name = f"{chip.name if isinstance(chip.name, str) else '?'}, NPU {chip.npu_id}"
    return Device(name, room, holders, (f"npu.chips[{index}]", "npu.processes"))


def as_json(found: Sum) -> dict[str, Any]:
    """``memory`` of a report."""

    def plain(value: Any) -> Any:
        return None if isinstance(value, Missing) else value

    return {
        "model": found.model,
        "format": found.format,
        "card": found.card,
        "cards": found.cards,
        "rows": [asdict(line) for line in found.lines],
        "card_bytes": plain(found.card_bytes),
        "free_bytes": plain(found.free_bytes),
        "usable_fraction": found.fraction,
        "usable_mib": plain(found.usable_mib),
        "wanted": {"max_model_len": found.wanted_tokens, "batch": found.wanted_sequences},
        "weights_bytes": plain(found.weights_bytes),
        "cards_needed": plain(found.cards_needed),
        "fits": plain(found.fits),
        "short_bytes": plain(found.short_bytes),
        "held_by": found.holders,
        "largest": {
            "max_model_len": plain(found.largest_tokens),
            "batch": plain(found.largest_sequences),
            "quantization": found.smaller_format or None,
            "cards": found.fewest_cards or None,
            "layout": found.fewest or None,
        },
    }
