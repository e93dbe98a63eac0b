"""Caches that are written in place: the address stays, what was not written stays, what was written is there."""

from __future__ import annotations

import torch

from .measuring import Context, Inputs, Measures, Probe, differing, each_dtype, moved, sized


def probes() -> list[Probe]:
    return each_dtype("cache_update", cache_update)


def cache_update(context: Context, dtype: torch.dtype) -> Measures:
    """``differing``: elements that are not as they should be, in the rows that were written and in all others."""
    inputs = Inputs(12)
    batch, rows, width = 2, sized(context, 50, 4096), sized(context, 33, 512)
    before, first, second = (inputs.normal(batch, n, width, dtype=dtype) for n in (rows, 5, 3))
    wanted = before.clone()
    wanted[:, 7:12] = first
    places = torch.tensor([rows - 1, 0, 20])
    for number, place in enumerate(places.tolist()):
        wanted[:, place] = second[:, number]
    cache, a, b, i = moved((before.clone(), first, second, places), context)
    address = cache.data_ptr()
    cache[:, 7:12] = a
    cache.index_copy_(1, i, b)
    return {
        "differing": differing(cache, wanted),
        "of": wanted.numel(),
        "address_changed": cache.data_ptr() != address,
    }
