"""The whole model with the golden run's choices: numbers against the golden ones, and against a second run."""

from __future__ import annotations

from torch import Tensor

from ..deepseek_v4.routing import Routing
from .bench import Bench, Measures
from .compare import compared, same, top1


def run(bench: Bench) -> bool:
    bench.need("golden", "forced")
    bench.need("model", "forced")
    bench.need("caches", "forced")
    passed = bench.steps.run("forced", "numbers", lambda: numbers(bench))
    return passed and bench.steps.run("forced", "repeated", lambda: repeated(bench))


def forced(bench: Bench) -> Tensor:
    """(positions, vocabulary) on the device, all positions at once."""
    golden, model, caches = (
        bench.need("golden", "forced"),
        bench.need("model", "forced"),
        bench.need("caches", "forced"),
    )
    caches.reset()
    replayed = Routing.replaying(golden.choices)
    logits: Tensor = model.forward(bench.tokens.to(bench.device), caches, 0, replayed)[0].clone()
    bench.synchronize()
    return logits


def numbers(bench: Bench) -> Measures:
    logits = bench.forced_logits = forced(bench)
    golden = bench.need("golden", "forced").logits
    return {**compared(golden, logits), "top1": top1(golden, logits), "positions": int(golden.shape[0])}


def repeated(bench: Bench) -> Measures:
    first = bench.forced_logits if bench.forced_logits is not None else forced(bench)
    return same(first, forced(bench))
