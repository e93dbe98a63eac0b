"""Copies between host and device: each byte, in all small sizes, and how fast; from pageable and from pinned memory."""

from __future__ import annotations

import time
from typing import Callable

import torch

from .measuring import Context, Inputs, Measures, Probe, differing, sized

SMALL = (1, 2, 3, 31, 32, 33, 511, 512, 513, 4095, 4097)
"""Bytes: around what a transfer is aligned to."""
GIB = 1 << 30
TRIES = 3


def probes() -> list[Probe]:
    return [("copies.small", small), ("copies.pageable", pageable), ("copies.pinned", pinned)]


def small(context: Context) -> Measures:
    wrong = 0
    for size in SMALL:
        data = Inputs(size).whole(0, 256, size + 1, dtype=torch.uint8)[1:]
        there = data.to(context.device, copy=True)
        wrong += differing(there, data) + differing(there.clone().to("cpu", copy=True), data)
    return {"differing": wrong, "of": 2 * sum(SMALL)}


def pageable(context: Context) -> Measures:
    return _timed(context, _pattern(context), torch.empty_like)


def pinned(context: Context) -> Measures:
    return _timed(context, _pattern(context).pin_memory(), lambda data: torch.empty_like(data).pin_memory())


def _pattern(context: Context) -> torch.Tensor:
    """Numbers that differ from their neighbours in each byte."""
    count = sized(context, 1 << 18, 1 << 24)
    return torch.arange(count, dtype=torch.int32) * 0x01030507


def _timed(context: Context, data: torch.Tensor, empty: Callable[[torch.Tensor], torch.Tensor]) -> Measures:
    """The best of a few tries, so that what else the host does hardly counts."""
    there, back = torch.empty_like(data, device=context.device), empty(data)
    up, down = _seconds(context, there, data), _seconds(context, back, there)
    size = data.numel() * data.element_size() / GIB
    return {
        "differing": differing(back, data),
        "of": data.numel(),
        "mib": data.numel() * data.element_size() >> 20,
        "to_device_gib_s": size / up,
        "to_host_gib_s": size / down,
    }


def _seconds(context: Context, target: torch.Tensor, source: torch.Tensor) -> float:
    best = float("inf")
    for _ in range(TRIES):
        synchronize(context)
        begun = time.perf_counter()
        target.copy_(source, non_blocking=True)
        synchronize(context)
        best = min(best, time.perf_counter() - begun)
    return max(best, 1e-9)


def synchronize(context: Context) -> None:
    """Waits until the device has done all that it was given."""
    _, wait = _backend(context)
    wait()


def _backend(context: Context) -> tuple[str, Callable[[], None]]:
    if context.kind == "npu":
        return "npu", context.npu.npu.synchronize
    return context.kind, torch.cuda.synchronize if context.kind == "cuda" else _nothing


def _nothing() -> None:
    """On the CPU each operator is done when it returns."""
