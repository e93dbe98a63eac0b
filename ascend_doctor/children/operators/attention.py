"""Attention: the softmax with a sink written out, and torch's own scaled_dot_product_attention."""

from __future__ import annotations

from typing import Callable

import torch
from torch.nn import functional

from .measuring import DTYPES, Context, Inputs, Measures, Probe, distance, each_dtype, moved, sized

WIDTHS = (64, 512)
"""Of a head: a usual one, and that of DeepSeek-V4, which exceeds what most fused kernels take."""


def probes() -> list[Probe]:
    own = [(f"sdpa.{word}.d{width}", _sdpa(dtype, width)) for word, dtype in DTYPES.items() for width in WIDTHS]
    return [*each_dtype("sink_softmax", sink_softmax), *own]


def golden(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sink: torch.Tensor | None = None) -> torch.Tensor:
    """Causal attention in float64; ``sink``: one more score for each head, which takes weight and brings no value."""
    length = q.shape[-2]
    scores = q.double() @ k.double().transpose(-1, -2) * q.shape[-1] ** -0.5
    ahead = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(ahead, float("-inf")).exp()
    total = weights.sum(-1, keepdim=True)
    if sink is not None:
        total = total + sink.double().exp()[:, None, None]
    return weights / total @ v.double()


def sink_softmax(context: Context, dtype: torch.dtype) -> Measures:
    inputs = Inputs(11)
    heads, length, width = 4, sized(context, 33, 512), 64
    q, k, v = (inputs.normal(1, heads, length, width, dtype=dtype) for _ in range(3))
    sink = inputs.normal(heads)
    a, b, c, s = moved((q, k, v, sink), context)
    scores = (a @ b.transpose(-1, -2)).float() * width**-0.5
    ahead = torch.ones(length, length, dtype=torch.bool, device=context.device).triu(1)
    scores = scores.masked_fill(ahead, float("-inf"))
    scores = torch.cat((scores, s.reshape(1, heads, 1, 1).expand(1, heads, length, 1)), dim=-1)
    weights = scores.softmax(-1)[..., :-1].to(dtype)
    return distance(weights @ c, golden(q, k, v, sink))


def _sdpa(dtype: torch.dtype, width: int) -> Callable[[Context], Measures]:
    def probe(context: Context) -> Measures:
        inputs = Inputs(width)
        q, k, v = (inputs.normal(1, 2, sized(context, 40, 512), width, dtype=dtype) for _ in range(3))
        a, b, c = moved((q, k, v), context)
        return distance(functional.scaled_dot_product_attention(a, b, c, is_causal=True), golden(q, k, v))

    return probe
