"""How a fused operator is told: its arguments on the CPU, how it is called, and what its results are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import torch

from .measuring import Measures, differing, distance

Call = Callable[[Any, list[Any], dict[str, Any]], list[torch.Tensor]]
"""Gets torch_npu, the arguments and the named ones, and gives the results to be compared."""


@dataclass(frozen=True)
class Case:
    """``compared`` gets the results on the CPU and measures them; without ``called``: the first one of a plain call."""

    arguments: Sequence[Any]
    compared: Callable[[list[torch.Tensor]], Measures]
    named: dict[str, Any] = field(default_factory=dict)
    called: Optional[Call] = None


@dataclass(frozen=True)
class Fused:
    """``name``: of torch_npu; ``dtypes``: words of measuring.DTYPES, "" where it has one type of its own."""

    name: str
    dtypes: tuple[str, ...]
    case: Callable[[torch.dtype], Case]

    def results(self, npu: Any, case: Case, arguments: list[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        if case.called is not None:
            return case.called(npu, arguments, named)
        result = getattr(npu, self.name)(*arguments, **named)
        return [result[0] if isinstance(result, (tuple, list)) else result]


HALF = ("fp16", "bf16")


def near(golden: torch.Tensor) -> Callable[[list[torch.Tensor]], Measures]:
    return lambda results: distance(results[0], golden)


def equal(golden: torch.Tensor) -> Callable[[list[torch.Tensor]], Measures]:
    return lambda results: {"differing": differing(results[0], golden), "of": golden.numel()}
