"""Matrix products at the inner sizes of DeepSeek-V4, aligned and not; batched; of 8-bit whole numbers.

K 1000 and 1008 are no multiple of the 16 elements, nor of the 512 bytes, that the cube unit works on.
"""

from __future__ import annotations

from typing import Callable

import torch
from torch.nn import functional

from ..stages.protocol import Absent, Unsupported
from .measuring import DTYPES, Context, Inputs, Measures, Probe, differing, distance, moved, repeatable, sized, worse

INNER = (1000, 1008, 1024, 7168)


def probes() -> list[Probe]:
    found: list[Probe] = []
    for word, dtype in DTYPES.items():
        found += [(f"matmul.{word}.k{inner}", _product(dtype, inner)) for inner in INNER]
        found += [(f"matmul.{word}.linear", _linear(dtype)), (f"matmul.{word}.batched", _batched(dtype))]
    return [*found, ("int8.int32", int8)]


def _product(dtype: torch.dtype, inner: int) -> Callable[[Context], Measures]:
    def probe(context: Context) -> Measures:
        rows, columns = sized(context, 17, 256), sized(context, 40, 512)
        inputs = Inputs(inner)
        a = inputs.normal(rows, inner, dtype=dtype)
        b = inputs.normal(inner, columns, dtype=dtype, scale=inner**-0.5)
        x, y = moved((a, b), context)
        measures = distance(torch.matmul(x, y), a.double() @ b.double())
        measures["repeatable"] = repeatable(lambda: torch.matmul(x, y))
        return {**measures, **_hf32(context)}

    return probe


def _linear(dtype: torch.dtype) -> Callable[[Context], Measures]:
    """One row, as in a decode step, with weights that stand transposed."""

    def probe(context: Context) -> Measures:
        inputs = Inputs(1)
        a = inputs.normal(1, 1024, dtype=dtype)
        weight = inputs.normal(sized(context, 72, 4096), 1024, dtype=dtype, scale=1024**-0.5)
        x, w = moved((a, weight), context)
        return {**distance(functional.linear(x, w), a.double() @ weight.double().T), **_hf32(context)}

    return probe


def _batched(dtype: torch.dtype) -> Callable[[Context], Measures]:
    """Heads over one shared matrix: the left side has a batch that the right side lacks."""

    def probe(context: Context) -> Measures:
        inputs = Inputs(2)
        a = inputs.normal(2, 4, 9, 65, dtype=dtype)
        b = inputs.normal(2, 1, 65, 33, dtype=dtype, scale=65**-0.5)
        x, y = moved((a, b), context)
        wide = distance(torch.matmul(x, y), a.double() @ b.double())
        flat = distance(torch.bmm(x[:, 0], y[:, 0]), a[:, 0].double() @ b[:, 0].double())
        return {**worse(wide, flat), **_hf32(context)}

    return probe


def int8(context: Context) -> Measures:
    """The product of int8 matrices as int32: whole numbers, so that each bit counts."""
    if not hasattr(torch, "_int_mm"):
        raise Absent("torch._int_mm")
    inputs = Inputs(3)
    rows, inner, columns = sized(context, 32, 256), sized(context, 512, 7168), sized(context, 32, 512)
    a = inputs.whole(-127, 128, rows, inner, dtype=torch.int8)
    b = inputs.whole(-127, 128, inner, columns, dtype=torch.int8)
    golden = (a.double() @ b.double()).to(torch.int32)
    try:
        result = torch._int_mm(*moved((a, b), context))
    except RuntimeError as error:
        raise Unsupported(f"torch._int_mm: {error}") from error
    return {"differing": differing(result, golden), "of": golden.numel()}


def _hf32(context: Context) -> Measures:
    """Whether the cube unit may shorten fp32 to 10 bits of fraction."""
    if context.kind != "npu":
        return {}
    return {"hf32": bool(context.npu.npu.matmul.allow_hf32)}
