"""Fused products of 8-bit numbers, and the quantisation of activations."""

from __future__ import annotations

from typing import Any

import torch

from .fusing import HALF, Case, Fused, equal, near
from .measuring import Inputs, Measures, distance

ROWS, INNER, COLUMNS = 24, 1024, 256


def fused() -> list[Fused]:
    return [
        Fused("npu_quant_matmul", ("int32",), whole_matmul),
        Fused("npu_quant_matmul", HALF, quant_matmul),
        Fused("npu_dynamic_quant", HALF, dynamic_quant),
        Fused("npu_weight_quant_batchmatmul", HALF, weight_quant),
    ]


def whole_matmul(_: torch.dtype) -> Case:
    """The sum before any scale: whole numbers, so that each bit counts."""
    inputs = Inputs(83)
    a = inputs.whole(-127, 128, 64, 7168, dtype=torch.int8)
    b = inputs.whole(-127, 128, 7168, COLUMNS, dtype=torch.int8)
    golden = (a.double() @ b.double()).to(torch.int32)
    return Case([a, b, torch.ones(COLUMNS)], equal(golden), {"output_dtype": torch.int32})


def quant_matmul(dtype: torch.dtype) -> Case:
    """int8 by int8, each row and each column with its scale (W8A8); the sum itself is of whole numbers."""
    inputs = Inputs(80)
    a = inputs.whole(-127, 128, ROWS, INNER, dtype=torch.int8)
    b = inputs.whole(-127, 128, INNER, COLUMNS, dtype=torch.int8)
    rows, columns = inputs.normal(ROWS).abs() / 1000 + 1e-3, inputs.normal(COLUMNS).abs() / 1000 + 1e-3
    golden = a.double() @ b.double() * rows.double()[:, None] * columns.double()
    return Case([a, b, columns], near(golden), {"pertoken_scale": rows, "output_dtype": dtype})


def dynamic_quant(dtype: torch.dtype) -> Case:
    """Each row by its largest: ``steps`` is how far the largest difference of a whole number is."""
    x = Inputs(81).normal(ROWS, INNER, dtype=dtype)
    scale = x.double().abs().amax(-1) / 127
    golden = (x.double() / scale[:, None]).round()

    def called(npu: Any, arguments: list[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        return list(npu.npu_dynamic_quant(*arguments, **named)[:2])

    def compared(results: list[torch.Tensor]) -> Measures:
        steps = int((results[0].double() - golden).abs().max())
        return {"steps": steps, **distance(results[1].flatten(), scale)}

    return Case([x], compared, called=called)


def weight_quant(dtype: torch.dtype) -> Case:
    """Weights of 8 bits with a scale for each column, activations as they are (W8A16)."""
    inputs = Inputs(82)
    x = inputs.normal(ROWS, INNER, dtype=dtype)
    weight = inputs.whole(-127, 128, INNER, COLUMNS, dtype=torch.int8)
    scale = (inputs.normal(1, COLUMNS).abs() / 1000 + 1e-3).to(dtype)
    golden = x.double() @ (weight.double() * scale.double())
    return Case([x, weight, scale], near(golden))
