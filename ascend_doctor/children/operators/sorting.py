"""Stable sort with ties, and top-k as sets: what routing, the indexer and sampling stand on."""

from __future__ import annotations

import torch

from .measuring import Context, Inputs, Measures, Probe, differing, sized

ROWS = 8


def probes() -> list[Probe]:
    return [("sort.stable", stable_sort), ("topk.fp32", lambda c: topk(c, torch.float32)), ("topk.bf16", _topk_bf16)]


def stable_sort(context: Context) -> Measures:
    """Few different values: equal ones have to stay in their order."""
    count = sized(context, 500, 8192)
    x = Inputs(6).whole(-20, 20, ROWS, count, dtype=torch.float32)
    values, order = torch.sort(x.to(context.device), dim=-1, descending=True, stable=True)
    wanted = torch.sort(x.double(), dim=-1, descending=True, stable=True)
    return {
        "differing": differing(values, wanted.values.float()) + differing(order.long(), wanted.indices),
        "of": 2 * x.numel(),
    }


def topk(context: Context, dtype: torch.dtype) -> Measures:
    """Values that all differ, so that there is one right set. bf16 tells 512 whole numbers apart."""
    inputs = Inputs(7)
    count, wanted = (384, 6) if dtype is torch.bfloat16 else (sized(context, 1000, 16384), sized(context, 100, 512))
    x = torch.stack([inputs.shuffled(count) for _ in range(ROWS)]).float()
    x = (torch.where(x < 256, x, 255 - x) if dtype is torch.bfloat16 else x - count // 2).to(dtype)
    values, chosen = torch.topk(x.to(context.device), wanted, dim=-1)
    right = torch.sort(x.double(), dim=-1, descending=True, stable=True).indices[:, :wanted]
    sets = zip(chosen.cpu().tolist(), right.tolist())
    overlap = [len(set(ours) & set(theirs)) / wanted for ours, theirs in sets]
    found = x.gather(-1, chosen.cpu().long().clamp(0, count - 1))
    return {"overlap": min(overlap), "differing": differing(values, found), "of": ROWS * wanted}


def _topk_bf16(context: Context) -> Measures:
    return topk(context, torch.bfloat16)
