"""Order between streams by events alone: what a stream waits for is done before it goes on; the host never waits."""

from __future__ import annotations

from typing import Any

import torch

from ..stages.protocol import Absent
from .measuring import Context, Measures, Probe, differing, sized

ROUNDS = 8
DETOUR = 4
"""Matrix products that make a turn slow."""


def probes() -> list[Probe]:
    return [("streams.events", events)]


def events(context: Context) -> Measures:
    """Two streams take turns on one tensor: one adds one, the other doubles, and first the one, then the other is slow.

    A stream that does not wait for the slow one gives another number. ``milliseconds`` is between the first and the
    last event, by the device's clock; -1 where it has none.
    """
    backend = module(context)
    width = sized(context, 64, 2048)
    numbers = torch.ones(16, device=context.device)
    ballast = torch.eye(width, device=context.device)
    turns = [backend.Stream(), backend.Stream()]
    here = backend.current_stream()
    begun, last = _event(backend), _event(backend)
    begun.record(here)
    previous = begun
    for number in range(2 * ROUNDS):
        mine = turns[number % 2]
        previous.wait(mine)
        with backend.stream(mine):
            if number % 2 == int(number >= ROUNDS):
                for _ in range(DETOUR):
                    ballast.copy_(ballast @ ballast)
            if number % 2:
                numbers.mul_(2.0)
            else:
                numbers.add_(1.0)
        previous = last if number == 2 * ROUNDS - 1 else _event(backend)
        previous.record(mine)
    last.wait(here)
    result = numbers.cpu()
    wanted = 1.0
    for _ in range(ROUNDS):
        wanted = (wanted + 1.0) * 2.0
    return {
        "differing": differing(result, torch.full((16,), wanted)),
        "of": 16,
        "milliseconds": _milliseconds(begun, last),
    }


def module(context: Context) -> Any:
    """torch.npu, torch.cuda or torch.cpu."""
    backend = context.npu.npu if context.kind == "npu" else getattr(torch, context.kind)
    if not hasattr(backend, "Event") or not hasattr(backend, "Stream"):
        raise Absent(f"torch.{context.kind}.Event")
    return backend


def _event(backend: Any) -> Any:
    try:
        return backend.Event(enable_timing=True)
    except (TypeError, RuntimeError):
        return backend.Event()  # the CPU's have no clock


def _milliseconds(begun: Any, last: Any) -> float:
    try:
        return float(begun.elapsed_time(last))
    except (AttributeError, TypeError, NotImplementedError, RuntimeError):
        return -1.0
