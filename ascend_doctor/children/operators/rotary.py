"""Interleaved rotary embedding (pairs of neighbours turn together), and its inverse, as DeepSeek-V4 needs both."""

from __future__ import annotations

import torch

from .measuring import Context, Inputs, Measures, Probe, distance, each_dtype, moved, sized

WIDTH = 64
BASE = 160000.0


def probes() -> list[Probe]:
    return each_dtype("rotary", rotary)


def table(length: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin for each position and pair, computed on the CPU."""
    speeds = BASE ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * 37.0 * speeds
    return angles.cos().to(dtype), angles.sin().to(dtype)


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x[..., position, head, WIDTH] turned by the angles; by their inverse where sin is negative."""
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def golden(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The same through complex numbers."""
    pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], WIDTH // 2, 2))
    return torch.view_as_real(pairs * torch.complex(cos.double(), sin.double())[:, None, :]).flatten(-2)


def rotary(context: Context, dtype: torch.dtype) -> Measures:
    """Also ``inverse``: how far the inverse of the result is from where it began."""
    length = sized(context, 19, 512)
    x = Inputs(5).normal(2, length, 4, WIDTH, dtype=dtype)
    cos, sin = table(length)
    ours, c, s = moved((x, cos, sin), context)
    result = turned(ours.float(), c, s).to(dtype)
    back = turned(result.float(), c, -s).to(dtype)
    return {**distance(result, golden(x, cos, sin)), "inverse": distance(back, x).get("rel_l2", 9.0)}
