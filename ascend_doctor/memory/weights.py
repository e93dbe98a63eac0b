"""The bytes of weights on one rank: from real tensors exactly, else from the shape and a format of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from ascend_doctor.facts.safetensors import Tensor
from ascend_doctor.memory.shapes import EVEN, EXPERTS, FIRST, HEADS, LAST, TENSOR, WHOLE, Shape, groups
from ascend_doctor.records import dataclass

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d{1,4})\.")
_EXPERT = re.compile(r"\.experts\.")
_MTP = re.compile(r"(?:^|\.)mtp\.")
_KV = re.compile(r"\.[kv]_proj\.")
_WHOLE = re.compile(
    r"norm|q_a_proj|kv_a_proj|\.wq_a\.|\.wkv\.|compressor|indexer|\.gate\.|router|_bias$|attn_sink|sinks?$|\.hc_|^hc_"
)


@dataclass(frozen=True)
class Split:
    """How many ranks share what: tensor, pipeline, expert (1: experts are split like the rest) and data parallel."""

    tp: int
    pp: int
    ep: int
    dp: int

    @property
    def cards(self) -> int:
        return self.tp * self.pp * self.dp


@dataclass(frozen=True)
class Piece:
    """Bytes of weights that are split in one way; ``layer`` may be FIRST or LAST."""

    layer: int
    split: str
    bytes: int


@dataclass(frozen=True)
class Format:
    """Bits of a weight, its share of scales included, by part: experts, embeddings, and all other."""

    name: str
    experts: float
    embeddings: float
    other: float

    def bytes_of(self, part: str, count: int) -> int:
        bits = {"experts": self.experts, "embeddings": self.embeddings}.get(part, self.other)
        return ceil(count * bits / 8)


def pieces_of_shape(shape: Shape, form: Format) -> tuple[Piece, ...]:
    """From the counts of parameters."""
    return merged(Piece(g.layer, g.split, form.bytes_of(g.part, g.count)) for g in groups(shape))


def pieces_of_tensors(tensors: Iterable[Tensor], layers: int) -> tuple[Piece, ...]:
    """From real tensors: by their names, as the checkpoints of the known architectures have them.

    Layers from ``layers`` on are those of speculative decoding (MTP): they lie with the last stage.
    """
    return merged(Piece(_layer_of(t.name, layers), _split_of(t), t.bytes) for t in tensors)


def _layer_of(name: str, layers: int) -> int:
    found = _LAYER.search(name)
    if found and not _MTP.search(name):
        return int(found[1]) if int(found[1]) < layers else LAST
    return FIRST if "embed" in name or ".wte." in name or "visual" in name or "vision" in name else LAST


def _split_of(tensor: Tensor) -> str:
    if _EXPERT.search(tensor.name):
        return EXPERTS
    if len(tensor.shape) < 2 or _WHOLE.search(tensor.name):
        return WHOLE
    return HEADS if _KV.search(tensor.name) else TENSOR


def merged(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """One piece for each layer and way of splitting: a hundred thousand tensors are then quick to share out."""
    found: dict[tuple[int, str], int] = {}
    for piece in pieces:
        key = (piece.layer, piece.split)
        found[key] = found.get(key, 0) + piece.bytes
    return tuple(Piece(layer, split, size) for (layer, split), size in found.items())


def stages(layers: int, pp: int) -> tuple[range, ...]:
    """Which layers each stage of a pipeline holds; the first ones take what is over."""
    each, over = divmod(layers, pp)
    found, begin = [], 0
    for stage in range(pp):
        end = begin + each + (stage < over)
        found.append(range(begin, end))
        begin = end
    return tuple(found)


def rank_bytes(pieces: Sequence[Piece], shape: Shape | None, split: Split) -> int:
    """Of the fullest rank; ``pieces`` are merged."""
    by_place = {(piece.layer, piece.split): piece.bytes for piece in pieces}
    if shape is None:
        return ceil(sum(by_place.values()) / split.cards)
    shares = _shares(shape, split)
    held = [0.0] * split.pp
    for number, layers in enumerate(stages(shape.layers, split.pp)):
        places = [*layers, *((FIRST,) if number == 0 else ()), *((LAST,) if number == split.pp - 1 else ())]
        held[number] = sum(by_place.get((place, how), 0) * share for place in places for how, share in shares.items())
    return ceil(max(held))


def _shares(shape: Shape, split: Split) -> Mapping[str, float]:
    """Experts without EP are split over the ranks of TP and DP alike (vLLM: FusedMoEParallelConfig.make)."""
    experts = 1 / (split.tp * split.dp)
    if split.ep > 1 and shape.routed:
        experts = ceil(shape.routed / split.ep) / shape.routed
    return {
        WHOLE: 1.0,
        TENSOR: 1 / split.tp,
        HEADS: 1 / min(split.tp, shape.kv_heads),
        EXPERTS: experts,
        EVEN: 1 / split.cards,
    }
