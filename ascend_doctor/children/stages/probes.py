"""Each operator alone, as operators/ has them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

from ..operators import probes
from .bench import Bench, Measures


@dataclass(frozen=True)
class Context:
    """What a probe is told: where it runs, and torch_npu where there is one."""

    device: torch.device
    kind: str
    npu: Any


def run(bench: Bench) -> bool:
    """Where not even one number comes back, no operator is tried, and nothing that needs them."""
    stage, step = bench.steps.again("operators", "tensor")
    if not bench.steps.run(stage, step, lambda: tensor(bench)):
        return False
    context = Context(bench.device, bench.kind, sys.modules.get("torch_npu"))
    for name, function in probes(bench.kind):
        bench.steps.run("operators", name, lambda function=function: function(context))  # type: ignore[misc]
    if bench.kind != "cpu":  # what the probes took is not the model's
        bench.backend.empty_cache()
        bench.backend.reset_peak_memory_stats()
    return True


def tensor(bench: Bench) -> Measures:
    """The first memory that is taken on the device, and a number from there."""
    sent = torch.arange(8, dtype=torch.float32)
    back = (sent.to(bench.device) + 1).to("cpu")
    return {"exact": bool(torch.equal(back, sent + 1))}
