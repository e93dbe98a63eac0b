"""Each part of a layer alone: on the device, and in fp32 on the CPU from the same weights and inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from torch import Tensor

from ..deepseek_v4.layers import layer_probes
from ..deepseek_v4.routing import Routing
from .bench import Bench, Measures
from .compare import compared


def run(bench: Bench) -> bool:
    bench.need("weights", "layers")
    wide, placed = bench.need("wide", "layers"), bench.need("placed", "layers")
    for name, function in layer_probes(bench.config):
        bench.steps.run("layers", name, lambda function=function: measured(bench, wide, placed, function))  # type: ignore[misc]
    return True


def measured(bench: Bench, wide: Any, placed: Any, function: Callable[..., Mapping[str, Tensor]]) -> Measures:
    """The choices of the golden run are replayed, so that numbers are compared and no choices."""
    recorded = Routing.recording()
    golden = function(wide, bench.seed, recorded)
    assert recorded.choices is not None
    replayed = Routing.replaying(recorded.choices)
    other = function(placed, bench.seed, replayed)
    bench.synchronize()
    found = {name: compared(golden[name], other[name]) for name in golden}
    worst = max(found, key=lambda name: _badness(found[name]))
    return {**found[worst], "output": worst}


def _badness(measures: Measures) -> float:
    relative = measures["rel_l2"]
    return relative if isinstance(relative, float) and relative == relative else float("inf")
