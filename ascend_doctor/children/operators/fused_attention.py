"""Fused attention, the sparse indexer, and the filter of top-k and top-p."""

from __future__ import annotations

from typing import Callable

import torch

from .attention import golden as attention
from .fusing import HALF, Case, Fused
from .measuring import Inputs, Measures, distance

HEADS, LENGTH, WIDTH = 4, 128, 128


def fused() -> list[Fused]:
    return [
        Fused("npu_fusion_attention", HALF, fusion_attention),
        Fused("npu_fused_infer_attention_score", HALF, fused_infer),
        Fused("npu_lightning_indexer", HALF, lightning_indexer),
        Fused("npu_top_k_top_p", ("fp32",), top_k_top_p),
    ]


def _queries(dtype: torch.dtype, seed: int) -> list[torch.Tensor]:
    inputs = Inputs(seed)
    return [inputs.normal(1, HEADS, LENGTH, WIDTH, dtype=dtype) for _ in range(3)]


def _compared(golden: torch.Tensor) -> Callable[[list[torch.Tensor]], Measures]:
    return lambda results: distance(results[0], golden)


def _ahead() -> torch.Tensor:
    """True where a position is not to be seen."""
    return torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)


def fusion_attention(dtype: torch.dtype) -> Case:
    q, k, v = _queries(dtype, 60)
    options = {"atten_mask": _ahead(), "scale": WIDTH**-0.5, "keep_prob": 1.0, "next_tockens": 0}
    return Case([q, k, v, HEADS, "BNSD"], _compared(attention(q, k, v)), options)


def fused_infer(dtype: torch.dtype) -> Case:
    q, k, v = _queries(dtype, 61)
    options = {"num_heads": HEADS, "input_layout": "BNSD", "scale": WIDTH**-0.5, "atten_mask": _ahead()}
    return Case([q, k, v], _compared(attention(q, k, v)), options)


def lightning_indexer(dtype: torch.dtype) -> Case:
    """64 heads over one key: the positions of the largest weighted sums of what is positive. Compared as sets.

    How many are chosen leaves a gap between the last one that is and the first one that is not.
    """
    inputs = Inputs(62)
    length, chosen = 512, 64
    query, key = inputs.normal(1, 1, 64, WIDTH, dtype=dtype), inputs.normal(1, length, 1, WIDTH, dtype=dtype)
    weights = inputs.normal(1, 1, 64, dtype=dtype)
    scores = (query.double()[0, 0] @ key.double()[0, :, 0].T).relu()
    total = (weights.double()[0, 0, :, None] * scores).sum(0)
    order = total.argsort(descending=True)
    gaps = (total[order[:-1]] - total[order[1:]])[chosen - 16 : chosen + 16]
    chosen = chosen - 16 + int(gaps.argmax()) + 1
    wanted = set(order[:chosen].tolist())

    def compared(results: list[torch.Tensor]) -> Measures:
        return {"overlap": len(wanted & set(results[0].flatten().tolist())) / chosen, "of": chosen}

    options = {"layout_query": "BSND", "layout_key": "BSND", "sparse_count": chosen, "sparse_mode": 0}
    return Case([query, key, weights], compared, options)


def top_k_top_p(dtype: torch.dtype) -> Case:
    """Keeps the k largest logits, and of them those that make up p; all others become minus infinity."""
    inputs = Inputs(63)
    rows, width = 4, 512
    logits = torch.stack([inputs.shuffled(width) for _ in range(rows)]).to(dtype) / 32
    p, k = torch.full((rows,), 0.9, dtype=dtype), torch.tensor([50, 20, 5, 1], dtype=torch.int32)
    golden = torch.full_like(logits, float("-inf"))
    for row in range(rows):
        values, places = logits[row].double().topk(int(k[row]))
        chances = values.softmax(-1)
        before = chances.cumsum(-1) - chances
        kept = places[before < 0.9]
        golden[row, kept] = logits[row, kept]

    def compared(results: list[torch.Tensor]) -> Measures:
        return {"differing": int((results[0] != golden).sum()), "of": golden.numel()}

    return Case([logits, p, k], compared)
