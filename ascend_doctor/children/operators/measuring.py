"""What every probe does: seeded inputs, and how far a result is from what the CPU computes from the same inputs.

Inputs are made on the CPU and rounded to the probe's type before the golden result is computed in float64, so that only
the operator's own error is measured. Randomness of devices differs, so nothing is seeded there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Protocol, Union

import torch

Measure = Union[bool, int, float, str]
Measures = dict[str, Measure]

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}


class Context(Protocol):
    """Where a probe runs. ``kind``: npu, cuda or cpu; ``npu``: the module torch_npu, or None."""

    device: torch.device
    kind: str
    npu: Any


Probe = tuple[str, Callable[[Context], Measures]]
"""Its name, such as matmul.bf16.k1024: the operator is what stands before the first dot."""


class Inputs:
    """Tensors on the CPU, the same for the same seed in each run."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator("cpu").manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
        """Normally distributed, then rounded."""
        return (torch.randn(*shape, generator=self._generator) * scale).to(dtype)

    def whole(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Whole numbers from low up to high, high not included."""
        return torch.randint(low, high, shape, generator=self._generator).to(dtype)

    def shuffled(self, count: int) -> torch.Tensor:
        """The numbers below count, each once."""
        return torch.randperm(count, generator=self._generator)


def sized(context: Context, small: int, large: int) -> int:
    """The small one on the CPU, where a run has to be quick, the large one on a device."""
    return small if context.kind == "cpu" else large


def distance(result: torch.Tensor, golden: torch.Tensor) -> Measures:
    """``rel_l2`` of the whole, ``worst_row``: the largest of a row, where a fault in a corner shows.

    Only ``nonfinite``, a count, where elements are not finite; only ``shape`` where it is another one.
    """
    ours, wanted = result.detach().cpu().double(), golden.double()
    if ours.shape != wanted.shape:
        return {"shape": f"{tuple(ours.shape)} instead of {tuple(wanted.shape)}"}
    nonfinite = int((~torch.isfinite(ours)).sum())
    if nonfinite:
        return {"nonfinite": nonfinite}
    apart, size = (ours - wanted).reshape(-1, wanted.shape[-1]), wanted.norm()
    rows = wanted.reshape(apart.shape).norm(dim=-1)
    rows = rows.clamp_min(1e-3 * float(size) / len(rows) ** 0.5)  # a row of zeros has no relative error
    return {
        "nonfinite": 0,
        "rel_l2": float(apart.norm() / size.clamp_min(1e-30)),
        "worst_row": float((apart.norm(dim=-1) / rows).max()),
        "max_abs": float(apart.abs().max()),
    }


def worse(one: Measures, other: Measures) -> Measures:
    """Of two distances."""
    return max(one, other, key=lambda found: float(found.get("rel_l2", "inf")))


def differing(result: torch.Tensor, golden: torch.Tensor) -> int:
    """How many elements are not equal; all of them where the shapes or types differ."""
    ours = result.detach().cpu()
    if ours.shape != golden.shape or ours.dtype != golden.dtype:
        return max(1, int(golden.numel()))
    return int(torch.ne(ours, golden).sum())


def repeatable(operator: Callable[[], torch.Tensor]) -> bool:
    """Whether two runs give the same bits."""
    first, second = operator().cpu(), operator().cpu()
    return bool(torch.equal(first, second))


def each_dtype(operator: str, probe: Callable[[Context, torch.dtype], Measures]) -> list[Probe]:
    """The probe for each type, as operator.dtype."""
    return [(f"{operator}.{word}", _bound(probe, dtype)) for word, dtype in DTYPES.items()]


def _bound(probe: Callable[[Context, torch.dtype], Measures], dtype: torch.dtype) -> Callable[[Context], Measures]:
    return lambda context: probe(context, dtype)


def moved(tensors: Sequence[torch.Tensor], context: Context) -> list[torch.Tensor]:
    return [tensor.to(context.device) for tensor in tensors]
