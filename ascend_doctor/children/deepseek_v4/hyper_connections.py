"""Manifold-constrained hyper-connections: several residual streams instead of one, mixed anew around each block.

From the streams of a token follow, by one projection: how they are summed into the block's input, how much of its
output each gets back, and a matrix by which they are mixed, made doubly stochastic by Sinkhorn's steps so that nothing
grows.
"""

from __future__ import annotations

from typing import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear

from .config import Config
from .norms import rms_norm
from .weights import Weights


class HyperConnection:
    """Around one block."""

    def __init__(self, config: Config, weights: Weights) -> None:
        self.config, self.weights = config, weights

    def __call__(self, streams: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """(batch, positions, streams, hidden) -> the same, with what the block made of them."""
        taken, given, mixed = self.factors(streams)
        dtype = streams.dtype
        out = block((taken.unsqueeze(-1) * streams).sum(2).to(dtype))
        kept = torch.matmul(mixed.to(dtype).transpose(-1, -2), streams)
        return given.to(dtype).unsqueeze(-1) * out.unsqueeze(2) + kept

    def factors(self, streams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """fp32: what the block takes of each stream and gives to each, (..., streams), and the mixing matrix."""
        c, n = self.config, self.config.streams
        projected = linear(rms_norm(streams.flatten(2).float(), None, c.norm_eps), self.weights["mix"])
        scales = self.weights["scale"]
        take, give, mix = (
            part * scales[number] + base
            for number, (part, base) in enumerate(
                zip(projected.split([n, n, n * n], -1), self.weights["base"].split([n, n, n * n]))
            )
        )
        stochastic = sinkhorn(mix.unflatten(-1, (n, n)), c.sinkhorn_steps, c.stream_eps)
        return torch.sigmoid(take) + c.stream_eps, 2 * torch.sigmoid(give), stochastic


def sinkhorn(logits: Tensor, steps: int, eps: float) -> Tensor:
    """A matrix of positive numbers whose rows and columns sum to 1, nearly: columns are made so last."""
    matrix = logits.softmax(-1) + eps
    matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    for _ in range(steps - 1):
        matrix = matrix / (matrix.sum(-1, keepdim=True) + eps)
        matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    return matrix


def summed(streams: Tensor, weights: Weights, config: Config) -> Tensor:
    """After the last layer: the streams as one, (batch, positions, hidden)."""
    projected = linear(rms_norm(streams.flatten(2).float(), None, config.norm_eps), weights["mix"])
    taken = torch.sigmoid(projected * weights["scale"] + weights["base"]) + config.stream_eps
    return (taken.unsqueeze(-1) * streams).sum(2).to(streams.dtype)
