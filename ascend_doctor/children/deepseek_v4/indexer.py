"""The indexer: which compressed entries a token attends to in CSA layers.

It has keys of its own, compressed as the others are but narrower. A score is a sum over heads of ReLU(query . key),
each head weighted by the token. Scores are sorted stably: ReLU gives equal scores where there are few heads, and top-k
kernels break ties each in its own way.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear, relu

from .compressor import Compressor
from .config import Config
from .rotary import Rotary
from .weights import Weights, part


class Indexer:
    def __init__(self, config: Config, ratio: int, weights: Weights) -> None:
        self.heads, self.width, self.topk = config.index_heads, config.index_dim, config.index_topk
        self.weights = weights
        self.compressor = Compressor(part(weights, "compressor."), ratio, True, config.norm_eps)

    def chosen(self, x: Tensor, latent: Tensor, keys: Tensor, visible: Tensor, start: int, rotary: Rotary) -> Tensor:
        """int64 (batch, positions, topk): numbers of entries, the best first; what is not visible stands last.

        ``visible``: (positions, entries). Where there are no more entries than may be chosen, all are.
        """
        batch, count, _ = x.shape
        if keys.shape[1] <= self.topk:
            return torch.arange(self.topk, device=x.device).expand(batch, count, -1)
        scores = self.scores(x, latent, keys, start, rotary).masked_fill(~visible, float("-inf"))
        return torch.sort(scores, dim=-1, descending=True, stable=True).indices[..., : self.topk]

    def scores(self, x: Tensor, latent: Tensor, keys: Tensor, start: int, rotary: Rotary) -> Tensor:
        """fp32 (batch, positions, entries), of invisible entries too."""
        batch, count, _ = x.shape
        queries = linear(latent, self.weights["query"]).view(batch, count, self.heads, self.width)
        queries = rotary.turned(queries, start).reshape(batch, count * self.heads, self.width).float()
        near = relu(torch.bmm(queries, keys.float().transpose(1, 2))) * self.width**-0.5
        weights = linear(x, self.weights["weights"]).float() * self.heads**-0.5
        return (near.view(batch, count, self.heads, -1) * weights.unsqueeze(-1)).sum(2)
