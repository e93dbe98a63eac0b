"""How long one token takes: the first one apart, then many, by the clock around a synchronisation and by the device."""

from __future__ import annotations

import time
from typing import Any

from torch import Tensor

from .bench import Bench, Measures


def run(bench: Bench) -> bool:
    bench.need("model", "forced")
    bench.need("caches", "forced")
    return bench.steps.run("latency", "decode", lambda: timed(bench))


def timed(bench: Bench) -> Measures:
    model, caches = bench.need("model", "forced"), bench.need("caches", "forced")
    tokens = bench.tokens.to(bench.device)
    caches.reset()
    begun = time.perf_counter()
    model.forward(tokens[:, : bench.seq], caches, 0, last_only=True)
    bench.synchronize()
    prefill = 1000 * (time.perf_counter() - begun)
    samples, on_device = [], []
    for number in range(bench.warmup + bench.timed):
        milliseconds, by_event = _step(bench, model, caches, tokens[:, :1], bench.seq + number)
        if bench.first_decode_ms is None:
            bench.first_decode_ms = milliseconds
        if number >= bench.warmup:
            samples.append(milliseconds)
            on_device.append(by_event)
    measured = [value for value in on_device if value is not None]
    steady = quantile(samples, 0.5)
    return {
        "first_ms": bench.first_decode_ms,
        "prefill_ms": prefill,
        "p50_ms": steady,
        "p95_ms": quantile(samples, 0.95),
        "p99_ms": quantile(samples, 0.99),
        "max_ms": max(samples),
        "device_p50_ms": quantile(measured, 0.5) if measured else None,
        "tokens_per_second": 1000 * len(samples) / sum(samples),
        "first_over_p50": (bench.first_decode_ms or 0.0) / steady,
        "p99_over_p50": quantile(samples, 0.99) / steady,
        "samples_ms": [round(value, 4) for value in samples],
    }


def _step(bench: Bench, model: Any, caches: Any, token: Tensor, position: int) -> tuple[float, float | None]:
    if bench.kind == "cpu":
        begun = time.perf_counter()
        model.forward(token, caches, position)
        return 1000 * (time.perf_counter() - begun), None
    begin, end = (bench.backend.Event(enable_timing=True) for _ in range(2))
    begun = time.perf_counter()
    begin.record()
    model.forward(token, caches, position)
    end.record()
    bench.synchronize()
    return 1000 * (time.perf_counter() - begun), float(begin.elapsed_time(end))


def quantile(values: list[float], share: float) -> float:
    """The smallest value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * round(share * 100) // 100) - 1))]
