"""Rotation by position of the last ``rotary_dim`` elements, neighbours being a pair.

Layers with compressed entries turn slower (YaRN); since one vector is key and value, what attention gives carries the
rotation and is turned back. Source: transformers 5.24.0 models/deepseek_v4 and modeling_rope_utils (YaRN).
"""

from __future__ import annotations

import math
from typing import Union

import torch
from torch import Tensor

from .config import Config

Device = Union[str, torch.device]


class Rotary:
    """``cosines`` and ``sines``: fp32, one row a position, made on the CPU, so that every device turns by the same."""

    def __init__(self, frequencies: Tensor, length: int, device: Device) -> None:
        angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies)
        self.cosines = angles.cos().to(device)
        self.sines = angles.sin().to(device)

    def turned(self, x: Tensor, start: int, step: int = 1, back: bool = False) -> Tensor:
        """x is (batch, positions, ..., width), its first position is ``start``, the next ``start + step``."""
        stop = start + step * x.shape[1]
        cosines, sines = self.cosines[start:stop:step], self.sines[start:stop:step]
        for _ in range(x.dim() - 3):
            cosines, sines = cosines.unsqueeze(1), sines.unsqueeze(1)
        width = 2 * cosines.shape[-1]
        pairs = x[..., -width:].float()
        even, odd = pairs[..., 0::2], pairs[..., 1::2]
        if back:
            sines = -sines
        turned = torch.stack((even * cosines - odd * sines, odd * cosines + even * sines), -1).flatten(-2)
        return torch.cat((x[..., :-width], turned.to(x.dtype)), -1)


def plain_frequencies(config: Config) -> Tensor:
    """Of layers with a sliding window alone: radians a position, one for each pair."""
    return _frequencies(config.theta, config.rotary_dim)


def compressed_frequencies(config: Config) -> Tensor:
    """Of layers with compressed entries: slow pairs are slowed by ``yarn_factor``, fast ones kept, a ramp between."""
    frequencies = _frequencies(config.compressed_theta, config.rotary_dim)
    low = max(math.floor(_pair_of(config, config.yarn_fast)), 0)
    high = min(math.ceil(_pair_of(config, config.yarn_slow)), config.rotary_dim - 1)
    pairs = torch.arange(config.rotary_dim // 2, dtype=torch.float32)
    slowed = ((pairs - low) / (high - low if high > low else 0.001)).clamp(0, 1)
    return frequencies / config.yarn_factor * slowed + frequencies * (1 - slowed)


def _frequencies(theta: float, width: int) -> Tensor:
    return 1.0 / (theta ** (torch.arange(0, width, 2, dtype=torch.float32) / width))


def _pair_of(config: Config, turns: float) -> float:
    """Which pair makes that many turns within the context of the first training, as a fraction."""
    whole = math.log(config.yarn_context / (turns * 2 * math.pi))
    return config.rotary_dim * whole / (2 * math.log(config.compressed_theta))
