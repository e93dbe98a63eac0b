"""RMSNorm as the model writes it: in fp32, from rows whose sizes differ a millionfold."""

from __future__ import annotations

import torch

from .measuring import Context, Inputs, Measures, Probe, distance, each_dtype, moved, sized

EPSILON = 1e-6
ROW_SCALES = (1e-3, 1.0, 1e3)
"""fp16 ends at 65504: rows of a thousand overflow where the squares are not taken in fp32."""


def probes() -> list[Probe]:
    return each_dtype("rms_norm", rms_norm)


def inputs_of(context: Context, dtype: torch.dtype) -> list[torch.Tensor]:
    """x and gamma."""
    inputs = Inputs(4)
    hidden = sized(context, 1024, 7168)
    x = torch.cat([inputs.normal(3, hidden, dtype=dtype, scale=scale) for scale in ROW_SCALES])
    return [x, inputs.normal(hidden, dtype=dtype)]


def golden(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    wide = x.double()
    return wide / (wide.pow(2).mean(-1, keepdim=True) + EPSILON).sqrt() * gamma.double()


def rms_norm(context: Context, dtype: torch.dtype) -> Measures:
    x, gamma = inputs_of(context, dtype)
    ours, weight = moved((x, gamma), context)
    wide = ours.float()
    result = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON) * weight.float()).to(dtype)
    return distance(result, golden(x, gamma))
