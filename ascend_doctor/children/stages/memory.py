"""Memory: what was taken against what was predicted, and whether every iteration takes some more."""

from __future__ import annotations

import gc
import os
import resource

from ..deepseek_v4.weights import tensor_bytes
from .bench import Bench, Measures

POOLS = 64 << 20
"""Bytes that the allocator may keep beside what is asked for: it takes blocks of 2 and 20 MiB."""
COUNTED = 8
"""Of the iterations the last ones count: the first may still fill pools."""


def run(bench: Bench) -> bool:
    bench.need("model", "forced")
    bench.need("caches", "forced")
    passed = bench.steps.run("memory", "budget", lambda: budget(bench))
    return bench.steps.run("memory", "leak", lambda: leak(bench)) and passed


def budget(bench: Bench) -> Measures:
    """The tensors themselves on any device; what the allocator took where the device counts that."""
    weights, caches = tensor_bytes(bench.need("weights", "layers")), bench.need("caches", "forced").bytes()
    predicted = bench.plan["predicted"]
    of_weights, of_caches = (int(predicted[part][bench.dtype]) for part in ("weights", "caches"))
    found: dict[str, object] = {
        "weights": weights,
        "weights_predicted": of_weights,
        "weights_off": weights - of_weights,
        "caches": caches,
        "caches_predicted": of_caches,
        "caches_off": caches - of_caches,
        "need": int(bench.plan["need_bytes"]),
        "peak_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
    }
    if bench.kind != "cpu":
        bench.synchronize()
        found.update(
            allocated=int(bench.backend.max_memory_allocated()), reserved=int(bench.backend.max_memory_reserved())
        )
        found["tensors"] = int(bench.plan["tensor_bytes"]) + POOLS
        found["reserved_over_predicted"] = int(bench.backend.max_memory_reserved()) / int(
            bench.plan["tensor_bytes"] + POOLS
        )
    return found


def leak(bench: Bench) -> Measures:
    """Bytes that an iteration adds, by a line through the last ones: of the device, on a CPU of the process."""
    model, caches = bench.need("model", "forced"), bench.need("caches", "forced")
    tokens = bench.tokens.to(bench.device)
    held, reserved = [], []
    gc.collect()
    for _ in range(int(bench.plan["iterations"])):
        caches.reset()
        length = min(bench.seq, 32)
        model.forward(tokens[:, :length], caches, 0, last_only=True)
        model.forward(tokens[:, length : length + 1], caches, length)
        bench.synchronize()
        if bench.kind == "cpu":
            held.append(resident())
        else:
            held.append(int(bench.backend.memory_allocated()))
            reserved.append(int(bench.backend.memory_reserved()))
    found: dict[str, object] = {"slope": slope(held[-COUNTED:]), "iterations": len(held), "held": held}
    if reserved:
        found["reserved_slope"] = slope(reserved[-COUNTED:])
    return found


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def slope(values: list[int]) -> float:
    """By least squares, a step."""
    count = len(values)
    if count < 2:
        return 0.0
    middle, mean = (count - 1) / 2, sum(values) / count
    return sum((n - middle) * (value - mean) for n, value in enumerate(values)) / sum(
        (n - middle) ** 2 for n in range(count)
    )
