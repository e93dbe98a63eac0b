"""Names and shapes of all tensors that a model and its caches hold, and their bytes. Needs no torch.

What is counted here is what ``weights``, ``caches`` and ``rotary`` allocate, to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .config import CSA, HCA, SLIDING, Config

DTYPE_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
FP32, INT64 = 4, 8

QUERIES_AT_ONCE = 128
"""A longer prompt is attended in steps of so many queries, which bounds what is held between."""

DRAWN, AROUND_ONE, TABLE = "drawn", "around one", "table"
"""How a parameter is filled: normal numbers, normal numbers around 1, experts of each token."""


@dataclass(frozen=True)
class Parameter:
    """``scale`` is the deviation of its normal numbers; ``wide`` ones stay fp32 in every dtype."""

    shape: tuple[int, ...]
    filled: str
    scale: float
    wide: bool = False

    def bytes(self, dtype: str) -> int:
        size = INT64 if self.filled == TABLE else FP32 if self.wide else DTYPE_BYTES[dtype]
        return prod(self.shape) * size


def parameter_shapes(config: Config) -> dict[str, Parameter]:
    """All parameters in the order in which they are drawn."""
    c = config
    found = {"embedding": Parameter((c.vocabulary, c.hidden), DRAWN, EMBEDDING)}
    for layer in range(c.layers):
        at = f"layers.{layer}."
        found.update(_under(f"{at}attention_streams.", _streams(c, (2 + c.streams) * c.streams, 3)))
        found.update(_under(f"{at}attention.", _attention(c, c.kind(layer), c.ratios[layer])))
        found.update(_under(f"{at}expert_streams.", _streams(c, (2 + c.streams) * c.streams, 3)))
        found.update(_under(f"{at}experts.", _experts(c, c.hashed(layer))))
    found.update(_under("final_streams.", _streams(c, c.streams, 1)))
    found["norm"] = _norm(c.hidden)
    found["head"] = _matrix(c.vocabulary, c.hidden)
    return found


EMBEDDING = 0.5
NORM, SINK, POSITION, CHOICE, STREAM = 0.1, 1.0, 0.5, 0.05, 0.5
"""Deviations. Fresh models have ones and zeros here; then a device that forgot to add or multiply would pass unseen."""


def _matrix(*shape: int) -> Parameter:
    """A matrix, or several: what goes through keeps its size, whatever the width."""
    return Parameter(shape, DRAWN, shape[-1] ** -0.5)


def _norm(width: int) -> Parameter:
    return Parameter((width,), AROUND_ONE, NORM, wide=True)


def _attention(c: Config, kind: str, ratio: int) -> dict[str, Parameter]:
    found = {
        "norm": _norm(c.hidden),
        "query_down": _matrix(c.query_rank, c.hidden),
        "query_norm": _norm(c.query_rank),
        "query_up": _matrix(c.heads * c.head_dim, c.query_rank),
        "key": _matrix(c.head_dim, c.hidden),
        "key_norm": _norm(c.head_dim),
        "sinks": Parameter((c.heads,), DRAWN, SINK, wide=True),
        "output_down": _matrix(c.output_groups, c.output_rank, c.heads * c.head_dim // c.output_groups),
        "output_up": _matrix(c.hidden, c.output_groups * c.output_rank),
    }
    if kind != SLIDING:
        found.update(_under("compressor.", _compressor(c, ratio, c.head_dim, kind)))
    if kind == CSA:
        found.update(_under("indexer.compressor.", _compressor(c, ratio, c.index_dim, kind)))
        found["indexer.query"] = _matrix(c.index_heads * c.index_dim, c.query_rank)
        found["indexer.weights"] = _matrix(c.index_heads, c.hidden)
    return found


def _compressor(c: Config, ratio: int, width: int, kind: str) -> dict[str, Parameter]:
    series = series_of(kind)
    return {
        "value": _matrix(series * width, c.hidden),
        "gate": _matrix(series * width, c.hidden),
        "position": Parameter((ratio, series * width), DRAWN, POSITION, wide=True),
        "norm": _norm(width),
    }


def _experts(c: Config, hashed: bool) -> dict[str, Parameter]:
    return {
        "norm": _norm(c.hidden),
        "router": Parameter((c.experts, c.hidden), DRAWN, c.hidden**-0.5, wide=True),
        **(
            {"table": Parameter((c.vocabulary, c.experts_per_token), TABLE, 0.0)}
            if hashed
            else {"choice": Parameter((c.experts,), DRAWN, CHOICE, wide=True)}
        ),
        "gate_up": _matrix(c.experts, 2 * c.expert_width, c.hidden),
        "down": _matrix(c.experts, c.hidden, c.expert_width),
        "shared_gate_up": _matrix(2 * c.expert_width, c.hidden),
        "shared_down": _matrix(c.hidden, c.expert_width),
    }


def _streams(c: Config, outputs: int, scales: int) -> dict[str, Parameter]:
    return {
        "mix": Parameter((outputs, c.streams * c.hidden), DRAWN, (c.streams * c.hidden) ** -0.5, wide=True),
        "base": Parameter((outputs,), DRAWN, STREAM, wide=True),
        "scale": Parameter((scales,), AROUND_ONE, NORM, wide=True),
    }


def _under(prefix: str, parameters: dict[str, Parameter]) -> dict[str, Parameter]:
    return {prefix + name: parameter for name, parameter in parameters.items()}


def series_of(kind: str) -> int:
    """CSA windows overlap: a token gives one value to its own entry and another to the next one's."""
    return 2 if kind == CSA else 1


def cache_shapes(config: Config, batch: int, length: int) -> dict[str, tuple[int, ...]]:
    """What the caches of ``length`` positions hold: the last positions of a window in a ring, entries for all."""
    c = config
    found: dict[str, tuple[int, ...]] = {}
    for layer, ratio in enumerate(c.ratios):
        kind, at = c.kind(layer), f"layers.{layer}."
        found[f"{at}window"] = (batch, c.window, c.head_dim)
        parts = {SLIDING: {}, HCA: {"compressor": c.head_dim}, CSA: {"compressor": c.head_dim, "indexer": c.index_dim}}
        for part, width in parts[kind].items():
            pending = (batch, series_of(kind) * ratio, series_of(kind) * width)
            found[f"{at}{part}.values"] = pending
            found[f"{at}{part}.gates"] = pending
            found[f"{at}{part}.entries"] = (batch, length // ratio, width)
    return found


def weight_bytes(config: Config, dtype: str) -> int:
    return sum(parameter.bytes(dtype) for parameter in parameter_shapes(config).values())


def largest_draw(config: Config) -> int:
    """Bytes of the largest tensor while it is drawn: on top of the weights until all are."""
    table = config.vocabulary * config.experts * (2 * FP32 + INT64) if config.hash_layers else 0
    drawn = (prod(p.shape) * FP32 for p in parameter_shapes(config).values() if p.filled != TABLE)
    return max(*drawn, table)


def cache_bytes(config: Config, batch: int, length: int, dtype: str) -> int:
    return sum(prod(shape) for shape in cache_shapes(config, batch, length).values()) * DTYPE_BYTES[dtype]


def table_bytes(config: Config, length: int) -> int:
    """The cosines and sines of both kinds of rotation, fp32."""
    return 2 * 2 * length * (config.rotary_dim // 2) * FP32


def activation_bytes(config: Config, batch: int, sequence: int, length: int, dtype: str) -> int:
    """The most that is held between the weights and the logits while ``sequence`` tokens go through together.

    The residual streams, and the part that needs most beside them. ``length``: positions after these tokens, which
    bounds the compressed entries. A bound from the shapes, one and a half to three times what is seen.
    """
    c, size, tokens = config, DTYPE_BYTES[dtype], batch * sequence
    streams = tokens * c.streams * c.hidden
    parts = [streams * 3 * FP32, _expert_bytes(c, tokens, size), tokens * c.vocabulary * size]
    parts += [_attention_bytes(c, layer, batch, sequence, length, size) for layer in range(c.layers)]
    return 2 * streams * size + tokens * c.hidden * (size + FP32) + max(parts)


def _attention_bytes(c: Config, layer: int, batch: int, sequence: int, length: int, size: int) -> int:
    queries = batch * min(sequence, QUERIES_AT_ONCE)
    entries = length // c.ratios[layer] if c.ratios[layer] else 0
    keys = min(c.window, length) + min(sequence, QUERIES_AT_ONCE) + entries
    scores = queries * c.heads * keys * (size + 3 * FP32)
    heads = queries * c.heads * c.head_dim * (2 * size + 2 * FP32)
    index = entries * (queries * c.index_heads * 2 + batch * c.index_dim) * FP32 if c.kind(layer) == CSA else 0
    lined_up = batch * (c.window + sequence + keys) * c.head_dim * size
    compressed = 4 * batch * sequence * series_of(c.kind(layer)) * c.head_dim * FP32 if entries else 0
    outputs = 2 * batch * sequence * c.heads * c.head_dim * size
    return max(scores, index) + heads + lined_up + compressed + outputs


def _expert_bytes(c: Config, tokens: int, size: int) -> int:
    """Of all tokens' choices: their rows, what came of them, and, if all went to one expert, what is inside of it."""
    rows = tokens * c.experts_per_token
    return rows * (c.hidden * (3 * size + FP32) + 4 * c.expert_width * size)
