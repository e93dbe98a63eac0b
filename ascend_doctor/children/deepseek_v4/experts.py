"""Mixture of experts: each token through a few of many, and through one that all share.

Scores are sqrt(softplus(router . token)). The best ``experts_per_token`` are taken, a bias counts for the choice only;
in the first layers a table says which, by the token alone. Their weights are the scores, brought to the sum
``routed_scale``.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear, silu, softplus

from .config import Config
from .norms import rms_norm
from .routing import EXPERTS, Routing
from .weights import Weights


class Experts:
    def __init__(self, config: Config, layer: int, weights: Weights) -> None:
        self.config, self.layer, self.weights = config, layer, weights
        self.hashed = config.hashed(layer)

    def __call__(self, x: Tensor, tokens: Tensor, start: int, routing: Routing) -> Tensor:
        """(batch, positions, hidden) -> the same; tokens is int64 (batch, positions)."""
        x = rms_norm(x, self.weights["norm"], self.config.norm_eps)
        scores = softplus(linear(x.float(), self.weights["router"])).sqrt()
        chosen = routing.chosen(EXPERTS, self.layer, start, x, lambda: self.chosen(scores, tokens))
        shares = scores.gather(-1, chosen)
        shares = shares / (shares.sum(-1, keepdim=True) + 1e-20) * self.config.routed_scale
        routed = self._routed(x.flatten(0, 1), chosen.flatten(0, 1), shares.flatten(0, 1)).view_as(x)
        return routed + self._through(x, self.weights["shared_gate_up"], self.weights["shared_down"])

    def chosen(self, scores: Tensor, tokens: Tensor) -> Tensor:
        """int64 (batch, positions, experts_per_token)."""
        if self.hashed:
            return self.weights["table"][tokens]
        order = torch.sort(scores + self.weights["choice"], dim=-1, descending=True, stable=True).indices
        return order[..., : self.config.experts_per_token]

    def _routed(self, x: Tensor, chosen: Tensor, shares: Tensor) -> Tensor:
        """Tokens stand in line by expert, so that each expert's weights are used once; sums have a fixed order."""
        each = chosen.shape[1]
        line = torch.sort(chosen.flatten(), stable=True).indices
        counts = (chosen.flatten().unsqueeze(-1) == torch.arange(self.config.experts, device=x.device)).sum(0).tolist()
        rows = x[line.div(each, rounding_mode="floor")]
        out, begin = [], 0
        for expert, count in enumerate(counts):
            if count:
                gate_up, down = self.weights["gate_up"][expert], self.weights["down"][expert]
                out.append(self._through(rows[begin : begin + count], gate_up, down))
                begin += count
        answers = torch.empty_like(rows)
        answers[line] = torch.cat(out)
        return (answers.view(-1, each, x.shape[1]) * shares.unsqueeze(-1)).sum(1).to(x.dtype)

    def _through(self, x: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
        """One expert: SwiGLU with both factors clamped."""
        limit = self.config.swiglu_limit
        gate, up = linear(x, gate_up).chunk(2, -1)
        return linear(silu(gate.clamp(max=limit)) * up.clamp(-limit, limit), down)
