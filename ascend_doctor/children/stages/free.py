"""The whole model as it chooses itself: how far its choices of experts and entries are those of the golden run."""

from __future__ import annotations

from ..deepseek_v4.routing import Routing, agreement
from .bench import Bench, Measures
from .compare import compared, top1


def run(bench: Bench) -> bool:
    for name in ("golden", "model", "caches"):
        bench.need(name, "forced")
    return bench.steps.run("free", "choices", lambda: choices(bench))


def choices(bench: Bench) -> Measures:
    golden, model, caches = (bench.need(name, "forced") for name in ("golden", "model", "caches"))
    caches.reset()
    routing = Routing.recording()
    logits = model.forward(bench.tokens.to(bench.device), caches, 0, routing)[0]
    bench.synchronize()
    assert routing.choices is not None
    found = agreement(golden.choices, routing.choices, bench.config)
    layers = found["layers"]
    assert isinstance(layers, dict)
    worst = min(layers, key=lambda name: layers[name]) if layers else ""
    numbers = compared(golden.logits, logits)
    return {
        **{name: share for name, share in found.items() if isinstance(share, float)},
        "worst": worst,
        "worst_overlap": layers.get(worst, 1.0),
        "rel_l2_mean": numbers["rel_l2_mean"],
        "finite": numbers["finite"],
        "top1": top1(golden.logits, logits),
    }
