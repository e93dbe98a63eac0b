"""The bytes of the KV cache: for each token, and for each sequence whatever its length."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from ascend_doctor.memory.shapes import Shape
from ascend_doctor.memory.weights import Split, stages
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Cache:
    """``token``: bytes of one token on the fullest rank; ``sequence``: bytes of each sequence beside its tokens."""

    token: Fraction
    sequence: int
    formula: str

    def bytes_of(self, sequences: int, tokens: int) -> int:
        return ceil(sequences * tokens * self.token) + sequences * self.sequence


def token_bytes(shape: Shape, width: int, layer: int) -> Fraction:
    """Of one layer; ``width``: bytes of a number. V3.2's indexer keeps one byte a number whatever the rest has."""
    if shape.kind == "gqa":
        return Fraction(2 * shape.kv_heads * shape.head_dim * width)
    if shape.kind == "mla":
        return Fraction((shape.kv_rank + shape.rope_dim) * width + shape.index_dim)
    ratio = shape.ratios[layer]
    if not ratio:
        return Fraction(0)
    wide = shape.head_dim + (shape.index_dim if ratio == shape.indexed_ratio else 0)
    return Fraction(wide * width, ratio)


def whole_token(shape: Shape, width: int = 2) -> Fraction:
    """Of one token in the whole model, not split over ranks."""
    return sum((token_bytes(shape, width, layer) for layer in range(shape.layers)), Fraction(0))


def cache_of(shape: Shape, split: Split, width: int = 2) -> Cache:
    """GQA is split over TP as far as it has KV heads; one shared vector (MLA, V4) lies whole on each rank."""
    share = min(split.tp, shape.kv_heads) if shape.kind == "gqa" else 1
    held = [sum((token_bytes(shape, width, n) for n in part), Fraction(0)) for part in stages(shape.layers, split.pp)]
    longest = max(len(part) for part in stages(shape.layers, split.pp))
    window = longest * shape.window * shape.head_dim * width if shape.kind == "v4" else 0
    return Cache(max(held) / share, window, _formula(shape, split, width, share, longest))


def _formula(shape: Shape, split: Split, width: int, share: int, layers: int) -> str:
    by = f" / {share}" if share > 1 else ""
    if shape.kind == "gqa":
        return f"2 x {layers} layers x {shape.kv_heads} KV heads x {shape.head_dim} x {width} B{by}"
    if shape.kind == "mla":
        index = f" + {shape.index_dim} B" if shape.index_dim else ""
        return f"{layers} layers x (({shape.kv_rank} + {shape.rope_dim}) x {width} B{index})"
    indexed = sum(ratio == shape.indexed_ratio for ratio in shape.ratios)
    others = [ratio for ratio in shape.ratios if ratio not in (0, shape.indexed_ratio)]
    parts = [f"{indexed} CSA x ({shape.head_dim} + {shape.index_dim}) / {shape.indexed_ratio}"] if indexed else []
    parts += [f"{len(others)} HCA x {shape.head_dim} / {others[0]}"] if others else []
    stage = f", layers {layers} of {shape.layers} on a stage" if split.pp > 1 else ""
    window = f"window {shape.window} x {shape.head_dim} x {width} B x {layers}{stage}"
    return f"({' + '.join(parts) or 0}) x {width} B; {window}"
