"""Fused norms, rotary embeddings, activations and cache updates."""

from __future__ import annotations

from typing import Any

import torch

from . import rotary
from .fusing import HALF, Call, Case, Fused, equal, near
from .measuring import Inputs, Measures, distance, worse
from .norms import EPSILON, ROW_SCALES
from .norms import golden as normed

ROWS, WIDTH = 6, 1024


def fused() -> list[Fused]:
    return [
        Fused("npu_rms_norm", ("fp16", "bf16", "fp32"), rms_norm),
        Fused("npu_add_rms_norm", HALF, add_rms_norm),
        Fused("npu_rotary_mul", HALF, rotary_mul),
        Fused("npu_interleave_rope", HALF, interleave_rope),
        Fused("npu_apply_rotary_pos_emb", HALF, apply_rotary),
        Fused("npu_swiglu", HALF, swiglu),
        Fused("npu_clipped_swiglu", HALF, clipped_swiglu),
        Fused("npu_scatter_nd_update_", HALF, scatter_nd_update),
        Fused("scatter_update_", HALF, scatter_update),
        Fused("npu_transpose_batchmatmul", HALF, transpose_batchmatmul),
        Fused("npu_mhc_sinkhorn", ("",), mhc_sinkhorn),
        Fused("npu_mhc_post", HALF, mhc_post),
    ]


def rms_norm(dtype: torch.dtype) -> Case:
    inputs = Inputs(20)
    x = torch.cat([inputs.normal(ROWS, WIDTH, dtype=dtype, scale=scale) for scale in ROW_SCALES])
    gamma = inputs.normal(WIDTH, dtype=dtype)
    return Case([x, gamma], near(normed(x, gamma)), {"epsilon": EPSILON})


def add_rms_norm(dtype: torch.dtype) -> Case:
    """Gives the norm of the sum, and the sum. Whether the sum is rounded before the norm is left to it."""
    inputs = Inputs(21)
    x, residual, gamma = (inputs.normal(*shape, dtype=dtype) for shape in ((ROWS, WIDTH), (ROWS, WIDTH), (WIDTH,)))
    total = x.double() + residual.double()

    def called(npu: Any, arguments: list[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        result, _, added = npu.npu_add_rms_norm(*arguments, **named)
        return [result, added]

    def compared(results: list[torch.Tensor]) -> Measures:
        return worse(distance(results[0], normed(total, gamma)), distance(results[1], total))

    return Case([x, residual, gamma, EPSILON], compared, called=called)


def rotary_mul(dtype: torch.dtype) -> Case:
    """Interleaved: cos and sin are given twice for each pair."""
    length = 24
    x = Inputs(22).normal(2, 4, length, rotary.WIDTH, dtype=dtype)
    cos, sin = rotary.table(length, dtype)
    wide = [values.repeat_interleave(2, dim=-1)[None, None] for values in (cos, sin)]
    golden = rotary.golden(x.transpose(1, 2), cos, sin).transpose(1, 2)
    return Case([x, *wide, "interleave"], near(golden))


def interleave_rope(dtype: torch.dtype) -> Case:
    """Takes pairs of neighbours, and gives all first halves before all second ones (B, N, S, 64)."""
    x = Inputs(23).normal(2, 4, 1, 64, dtype=dtype)
    cos, sin = (values[5:7] for values in rotary.table(8, dtype))
    halves = [torch.cat((values, values), dim=-1)[:, None, None] for values in (cos, sin)]
    even, odd = x.double()[..., 0::2], x.double()[..., 1::2]
    c, s = cos.double()[:, None, None], sin.double()[:, None, None]
    return Case([x, *halves], near(torch.cat((even * c - odd * s, odd * c + even * s), dim=-1)))


def apply_rotary(dtype: torch.dtype) -> Case:
    """Halves of 128, as most other models turn them; query and key in one call."""
    inputs = Inputs(24)
    query, key = inputs.normal(1, 16, 8, 128, dtype=dtype), inputs.normal(1, 16, 2, 128, dtype=dtype)
    angles = torch.arange(16, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(64, dtype=torch.float64) / 64)
    cos, sin = (torch.cat((v, v), dim=-1)[None, :, None].to(dtype) for v in (angles.cos(), angles.sin()))

    def golden(x: torch.Tensor) -> torch.Tensor:
        low, high = x.double().chunk(2, dim=-1)
        return x.double() * cos.double() + torch.cat((-high, low), dim=-1) * sin.double()

    wanted = torch.cat((golden(query), golden(key)), dim=2)

    def called(npu: Any, arguments: list[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        return [torch.cat(tuple(npu.npu_apply_rotary_pos_emb(*arguments, **named)), dim=2)]

    return Case([query, key, cos, sin], near(wanted), {"layout": "BSND", "rotary_mode": "half"}, called)


def swiglu(dtype: torch.dtype) -> Case:
    x = Inputs(25).normal(ROWS, 2 * WIDTH, dtype=dtype)
    gate, up = x.double().chunk(2, dim=-1)
    return Case([x], near(gate * gate.sigmoid() * up), {"dim": -1})


def clipped_swiglu(dtype: torch.dtype) -> Case:
    """With the clamp of DeepSeek-V4: gate up to 10, up between -10 and 10."""
    x = Inputs(26).normal(ROWS, 2 * WIDTH, dtype=dtype, scale=6.0)
    gate, up = x.double().chunk(2, dim=-1)
    gate, up = gate.clamp(max=10.0), up.clamp(-10.0, 10.0)
    options = {"dim": -1, "alpha": 1.0, "limit": 10.0, "bias": 0.0, "interleaved": False}
    return Case([x], near(gate * gate.sigmoid() * up), options)


def scatter_nd_update(dtype: torch.dtype) -> Case:
    inputs = Inputs(27)
    cache, rows = inputs.normal(24, 128, dtype=dtype), inputs.normal(5, 128, dtype=dtype)
    places = torch.tensor([[3], [23], [0], [11], [7]], dtype=torch.int32)
    golden = cache.clone()
    golden[places.flatten().long()] = rows
    return Case([cache, places, rows], equal(golden), called=in_place("npu_scatter_nd_update_"))


def scatter_update(dtype: torch.dtype) -> Case:
    """One index for each of the batch, along the rows of the cache."""
    inputs = Inputs(28)
    cache, rows = inputs.normal(1, 2, 16, 128, dtype=dtype), inputs.normal(1, 2, 1, 128, dtype=dtype)
    golden = cache.clone()
    golden[:, :, 9:10] = rows
    return Case([cache, torch.tensor([9]), rows], equal(golden), {"axis": -2}, in_place("scatter_update_"))


def in_place(name: str) -> Call:
    """What the first argument is afterwards."""

    def called(npu: Any, arguments: list[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        getattr(npu, name)(*arguments, **named)
        return [arguments[0]]

    return called


def transpose_batchmatmul(dtype: torch.dtype) -> Case:
    inputs = Inputs(29)
    x, weight = inputs.normal(32, 4, 512, dtype=dtype), inputs.normal(4, 512, 128, dtype=dtype, scale=512**-0.5)
    golden = (x.double().transpose(0, 1) @ weight.double()).transpose(0, 1)
    return Case([x, weight], near(golden), {"perm_x1": [1, 0, 2], "perm_y": [1, 0, 2]})


def mhc_sinkhorn(_: torch.dtype) -> Case:
    """A softmax over rows, then columns and rows in turn; epsilon is added as op-plugin's own test adds it."""
    x = Inputs(30).normal(1, 128, 4, 4)
    golden = x.double().softmax(-1) + EPSILON
    golden = golden / (golden.sum(-2, keepdim=True) + EPSILON)
    for _ in range(19):
        golden = golden / (golden.sum(-1, keepdim=True) + EPSILON)
        golden = golden / (golden.sum(-2, keepdim=True) + EPSILON)
    return Case([x], near(golden), {"eps": EPSILON, "num_iters": 20, "out_flag": 0})


def mhc_post(dtype: torch.dtype) -> Case:
    """Four streams, mixed by the transposed matrix, and what the layer gave added to each by its weight."""
    inputs = Inputs(31)
    x, given = inputs.normal(1, 16, 4, 512, dtype=dtype), inputs.normal(1, 16, 512, dtype=dtype)
    mixing, weights = inputs.normal(1, 16, 4, 4).softmax(-1), inputs.normal(1, 16, 4).sigmoid() * 2
    golden = mixing.double().transpose(-1, -2) @ x.double() + weights.double()[..., None] * given.double()[..., None, :]
    return Case([x, mixing, given, weights], near(golden))
