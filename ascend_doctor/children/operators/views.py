"""Views: transposed, strided, at an odd offset, expanded. They are copied and multiplied as what they show."""

from __future__ import annotations

import torch

from .measuring import Context, Inputs, Measures, Probe, differing, distance, each_dtype, moved, sized


def probes() -> list[Probe]:
    return [*each_dtype("views", copies), *each_dtype("views_matmul", products)]


def copies(context: Context, dtype: torch.dtype) -> Measures:
    """Bit for bit, as contiguous copies, and written through."""
    rows, columns = sized(context, 45, 1001), sized(context, 67, 515)
    base = Inputs(13).normal(rows, columns, dtype=dtype)
    ours = base.to(context.device)
    wrong = of = 0
    for ours_view, view in zip(_views(ours), _views(base)):
        golden = view.contiguous()
        wrong += differing(ours_view.contiguous(), golden) + differing(ours_view.clone(), golden)
        of += 2 * golden.numel()
    expected = base.clone()
    ours[1:, 3::2].copy_(ours[:-1, 2:-1:2].clone())
    expected[1:, 3::2].copy_(base[:-1, 2:-1:2].clone())
    return {"differing": wrong + differing(ours, expected), "of": of + base.numel()}


def _views(x: torch.Tensor) -> list[torch.Tensor]:
    return [x.T, x[1:, 3:], x[::2, 1::3], x.flatten()[5:].unfold(0, 8, 5), x[:1].expand(4, -1), x.flip(0)]


def products(context: Context, dtype: torch.dtype) -> Measures:
    """A product of two views that are neither contiguous nor aligned."""
    inputs = Inputs(14)
    inner = sized(context, 130, 1030)
    a, b = inputs.normal(inner, 21, dtype=dtype), inputs.normal(29, inner + 7, dtype=dtype, scale=inner**-0.5)
    x, y = moved((a, b), context)
    return distance(x.T @ y[3:, 7:].T, a.double().T @ b.double()[3:, 7:].T)
