"""Each operator alone, as operators/ has them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

from ..operators import probes
from .bench import Bench


@dataclass(frozen=True)
class Context:
    """What a probe is told: where it runs, and torch_npu where there is one."""

    device: torch.device
    kind: str
    npu: Any


def run(bench: Bench) -> bool:
    context = Context(bench.device, bench.kind, sys.modules.get("torch_npu"))
    for name, function in probes(bench.kind):
        bench.steps.run("operators", name, lambda function=function: function(context))  # type: ignore[misc]
    return True
