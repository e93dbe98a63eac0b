"""The operator probes: each runs one operator on the device and measures how far it is from what the CPU computes.

They need torch alone, on an npu torch_npu too. Nothing is judged here: rules/smoke/operators.yaml has the gates.
"""

from __future__ import annotations

import torch

from . import attention, caches, copies, fused, indexing, matmul, norms, rotary, sampling, sorting, streams, views
from .measuring import Probe
from .watching import watched

BASIC = (copies, matmul, norms, rotary, sorting, indexing, attention, caches, views, sampling, streams)
"""In this order: what all others stand on comes first."""

NOT_ON = {"npu": ("int8.int32",), "cpu": ("copies.pinned",)}
"""On an npu torch has no int8 product of its own, the fused one stands for it; the CPU has no device to pin for."""


def probes(kind: str) -> list[Probe]:
    """Those for a kind of device, npu, cuda or cpu, in order; fused operators last, since one may end the context.

    Those of bf16 only where the device has it: Ascend 910 of the first generation and 310P do not.
    """
    found = [probe for module in BASIC for probe in module.probes() if probe[0] not in NOT_ON.get(kind, ())]
    found += fused.probes() if kind == "npu" else []
    bf16 = has_bf16(kind)
    return [(name, watched(function)) for name, function in found if bf16 or ".bf16" not in name]


def has_bf16(kind: str) -> bool:
    asked = getattr(getattr(torch, kind, None), "is_bf16_supported", None)
    return True if asked is None else bool(asked())
