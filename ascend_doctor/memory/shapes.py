"""The shape of a model, from the words of its config.json, and how many parameters each part of it has.

Sources: the model classes of transformers, whose parameters these counts equal for the models in rules/models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ascend_doctor.records import dataclass

WHOLE, TENSOR, HEADS, EXPERTS, EVEN = "whole", "tensor", "heads", "experts", "even"
"""How a part is split over ranks: on each whole, over TP, over TP as far as there are KV heads, over EP, over all."""
FIRST, LAST = -1, -2
"""In place of a layer: with the first stage of a pipeline, with its last."""


@dataclass(frozen=True)
class Shape:
    """``kind``: gqa, mla or v4. ``ratios``: of V4, one for each layer: 0 for window only.

    ``indexed_ratio``: layers of this ratio have an indexer and overlapping windows (CSA), the others neither (HCA).
    ``dense_layers`` come before the layers with experts; without experts all are dense. ``active``: experts of a token.
    """

    kind: str
    layers: int
    hidden: int
    vocab: int
    context: int
    heads: int
    kv_heads: int
    head_dim: int
    q_rank: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    v_dim: int
    index_heads: int
    index_dim: int
    o_groups: int
    o_rank: int
    window: int
    ratios: tuple[int, ...]
    indexed_ratio: int
    streams: int
    qkv_bias: bool
    qk_norm: bool
    dense_inter: int
    dense_layers: int
    routed: int
    shared: int
    expert_inter: int
    active: int
    tied: bool


@dataclass(frozen=True)
class Group:
    """Parameters of one part of one layer; ``part``: embeddings, attention, mlp, experts, shared, router or norms."""

    layer: int
    part: str
    split: str
    count: int


def shape_of(config: Mapping[str, Any], indexed_ratio: int = 0) -> Shape | None:
    """None where a figure that every model has is missing, or the architecture is of no kind that is known here.

    ``indexed_ratio``: a constant of V4 that stands in no config.json (rules/models).
    """
    inner = config.get("text_config")
    words = {**config, **inner} if isinstance(inner, Mapping) else config

    def number(*names: str, default: int = 0) -> int:
        for name in names:
            value = words.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40:
                return value
        return default

    layers, hidden, heads = number("num_hidden_layers"), number("hidden_size"), number("num_attention_heads")
    model = str(words.get("model_type", ""))
    kind = _kind(words)
    if not (0 < layers <= 4096 and hidden and heads and number("vocab_size")) or kind is None:
        return None
    ratios = tuple(r for r in words.get("compress_ratios") or () if isinstance(r, int))[:layers]
    if kind == "v4" and (len(ratios) < layers or not indexed_ratio):
        return None
    routed = number("n_routed_experts", "num_experts", "num_local_experts")
    return Shape(
        kind=kind,
        layers=layers,
        hidden=hidden,
        vocab=number("vocab_size"),
        context=number("max_position_embeddings"),
        heads=heads,
        kv_heads=number("num_key_value_heads", default=heads) or heads,
        head_dim=number("head_dim") or hidden // heads,
        q_rank=number("q_lora_rank"),
        kv_rank=number("kv_lora_rank"),
        rope_dim=number("qk_rope_head_dim"),
        nope_dim=number("qk_nope_head_dim"),
        v_dim=number("v_head_dim"),
        index_heads=number("index_n_heads"),
        index_dim=number("index_head_dim"),
        o_groups=number("o_groups", default=1),
        o_rank=number("o_lora_rank"),
        window=number("sliding_window"),
        ratios=ratios,
        indexed_ratio=indexed_ratio,
        streams=number("hc_mult", default=4 if kind == "v4" else 0),
        qkv_bias=model.startswith("qwen2") or words.get("attention_bias") is True,
        qk_norm=model.startswith("qwen3"),
        dense_inter=number("intermediate_size"),
        dense_layers=min(layers, number("first_k_dense_replace")) if routed else layers,
        routed=routed,
        shared=number("n_shared_experts"),
        expert_inter=number("moe_intermediate_size", "intermediate_size"),
        active=number("num_experts_per_tok", "moe_topk") + number("n_shared_experts"),
        tied=words.get("tie_word_embeddings") is True,
    )


def _kind(words: Mapping[str, Any]) -> str | None:
    model = str(words.get("model_type", ""))
    if "compress_ratios" in words:
        return "v4" if model in ("deepseek_v4", "") else None
    if words.get("kv_lora_rank"):
        return "mla"
    # KV shared between layers, states in place of a cache, windows in some layers: sums of their own
    special = (
        "mamba",
        "rwkv",
        "jamba",
        "falcon_h1",
        "gemma",
        "gpt_oss",
        "llama4",
        "qwen3_next",
        "qwen3_5",
        "minimax_m1",
    )
    return None if any(word in model for word in (*special, "v41")) else "gqa"


def groups(shape: Shape) -> Iterator[Group]:
    """All parameters, part by part."""
    yield Group(FIRST, "embeddings", WHOLE if shape.tied else TENSOR, shape.vocab * shape.hidden)
    if not shape.tied:
        yield Group(LAST, "embeddings", TENSOR, shape.vocab * shape.hidden)
    yield Group(LAST, "norms", WHOLE, shape.hidden + _head_streams(shape))
    for layer in range(shape.layers):
        for part, split, count in (*_attention(shape, layer), *_feed_forward(shape, layer)):
            yield Group(layer, part, split, count)
        yield Group(layer, "norms", WHOLE, 2 * shape.hidden + _layer_streams(shape))


def parameters(shape: Shape) -> int:
    return sum(group.count for group in groups(shape))


Counts = Iterator["tuple[str, str, int]"]


def _attention(shape: Shape, layer: int) -> Counts:
    if shape.kind == "gqa":
        return _grouped(shape)
    return _latent(shape) if shape.kind == "mla" else _compressed(shape, layer)


def _grouped(shape: Shape) -> Counts:
    queries, values = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    yield "attention", TENSOR, 2 * shape.hidden * queries + (queries if shape.qkv_bias else 0)
    yield "attention", HEADS, 2 * shape.hidden * values + (2 * values if shape.qkv_bias else 0)
    if shape.qk_norm:
        yield "norms", WHOLE, 2 * shape.head_dim


def _latent(shape: Shape) -> Counts:
    head = shape.nope_dim + shape.rope_dim
    if shape.q_rank:
        yield "attention", WHOLE, shape.hidden * shape.q_rank
        yield "norms", WHOLE, shape.q_rank
    yield "attention", TENSOR, (shape.q_rank or shape.hidden) * shape.heads * head
    yield "attention", WHOLE, shape.hidden * (shape.kv_rank + shape.rope_dim)
    yield "norms", WHOLE, shape.kv_rank
    yield "attention", TENSOR, shape.kv_rank * shape.heads * (shape.nope_dim + shape.v_dim)
    yield "attention", TENSOR, shape.heads * shape.v_dim * shape.hidden
    if shape.index_heads:
        yield "attention", WHOLE, shape.q_rank * shape.index_heads * shape.index_dim
        yield "attention", WHOLE, shape.hidden * (shape.index_dim + shape.index_heads)
        yield "norms", WHOLE, 2 * shape.index_dim


def _compressed(shape: Shape, layer: int) -> Counts:
    """V4: one vector of ``head_dim`` is key and value of all heads; the output goes through groups of low rank."""
    queries, ratio = shape.heads * shape.head_dim, shape.ratios[layer]
    yield "attention", WHOLE, shape.hidden * shape.q_rank
    yield "attention", TENSOR, shape.q_rank * queries
    yield "attention", WHOLE, shape.hidden * shape.head_dim
    yield "attention", TENSOR, queries * shape.o_rank + shape.o_groups * shape.o_rank * shape.hidden
    yield "norms", WHOLE, shape.q_rank + shape.head_dim + shape.heads
    if ratio:
        yield "attention", WHOLE, _compressor(shape, ratio, shape.head_dim)
    if ratio == shape.indexed_ratio:
        queries = shape.q_rank * shape.index_heads * shape.index_dim
        yield "attention", WHOLE, queries + shape.hidden * shape.index_heads
        yield "attention", WHOLE, _compressor(shape, ratio, shape.index_dim)


def _compressor(shape: Shape, ratio: int, width: int) -> int:
    """Values and gates, a position bias for each place of the window, and a norm."""
    wide = 2 * width if ratio == shape.indexed_ratio else width
    return 2 * shape.hidden * wide + ratio * wide + width


def _feed_forward(shape: Shape, layer: int) -> Counts:
    if layer < shape.dense_layers:
        yield "mlp", TENSOR, 3 * shape.hidden * shape.dense_inter
        return
    each = 3 * shape.hidden * shape.expert_inter
    yield "router", WHOLE, shape.routed * shape.hidden
    yield "experts", EXPERTS, shape.routed * each
    if shape.shared:
        yield "shared", TENSOR, shape.shared * each


def _layer_streams(shape: Shape) -> int:
    """Hyper-connections of V4, before attention and before the experts: a projection, its bias, three scales."""
    n = shape.streams
    return 2 * ((2 + n) * n * (n * shape.hidden + 1) + 3) if n else 0


def _head_streams(shape: Shape) -> int:
    n = shape.streams
    return n * (n * shape.hidden + 1) + 1 if n else 0
