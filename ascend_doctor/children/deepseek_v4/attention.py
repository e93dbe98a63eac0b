"""Attention: the last tokens of a window, compressed entries of all earlier ones, and a sink.

One vector a token is key and value of all heads. The sink is one more logit of each head that takes attention and gives
nothing. Heads go out through a grouped projection: each group of heads to its own few numbers, then all to the model.
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import linear

from .caches import LayerCache
from .compressor import Compressor
from .config import CSA, SLIDING, Config
from .indexer import Indexer
from .norms import rms_norm
from .rotary import Rotary
from .routing import INDEX, Routing
from .shapes import QUERIES_AT_ONCE
from .weights import Weights, part


class Attention:
    def __init__(self, config: Config, layer: int, weights: Weights) -> None:
        self.config, self.layer, self.weights = config, layer, weights
        self.kind, self.ratio = config.kind(layer), config.ratios[layer]
        self.compressor: Optional[Compressor] = None
        self.indexer: Optional[Indexer] = None
        if self.kind != SLIDING:
            overlaps = self.kind == CSA
            self.compressor = Compressor(part(weights, "compressor."), self.ratio, overlaps, config.norm_eps)
        if self.kind == CSA:
            self.indexer = Indexer(config, self.ratio, part(weights, "indexer."))

    def __call__(self, x: Tensor, cache: LayerCache, start: int, rotary: Rotary, routing: Routing) -> Tensor:
        """(batch, positions, hidden) -> the same; writes the cache. ``rotary`` is the one of this layer's kind."""
        c, stop = self.config, start + x.shape[1]
        x = rms_norm(x, self.weights["norm"], c.norm_eps)
        latent = rms_norm(linear(x, self.weights["query_down"]), self.weights["query_norm"], c.norm_eps)
        key = rms_norm(linear(x, self.weights["key"]), self.weights["key_norm"], c.norm_eps)
        key = rotary.turned(key, start)
        first = max(0, start - c.window + 1)
        keys = cache.window.followed_by(first, start, key)
        cache.window.write(start, key)
        entries = index_keys = None
        if self.compressor is not None and cache.compressor is not None:
            entries = self.compressor(x, cache.compressor, start, rotary)
        if self.indexer is not None and cache.indexer is not None:
            index_keys = self.indexer.compressor(x, cache.indexer, start, rotary)
        out = []
        for begin in range(start, stop, QUERIES_AT_ONCE):
            end = min(begin + QUERIES_AT_ONCE, stop)
            here = slice(begin - start, end - start)
            near = max(0, begin - c.window + 1)
            seen, visible = keys[:, near - first : end - first], _in_window(begin, end, near, c.window, x.device)
            if entries is not None:
                chosen = self._visible(x[:, here], latent[:, here], entries, index_keys, begin, rotary, routing)
                seen = torch.cat((seen, entries), 1)
                visible = torch.cat((visible.expand(chosen.shape[0], -1, -1), chosen), -1)
            out.append(self._attended(latent[:, here], seen, visible, begin, rotary))
        return self._projected(out[0] if len(out) == 1 else torch.cat(out, 1))

    def _visible(
        self,
        x: Tensor,
        latent: Tensor,
        entries: Tensor,
        index_keys: Optional[Tensor],
        begin: int,
        rotary: Rotary,
        routing: Routing,
    ) -> Tensor:
        """bool (batch or 1, positions, entries): the entry's window has ended, and the indexer chose it."""
        count = entries.shape[1]
        ended = (torch.arange(begin, begin + x.shape[1], device=x.device) + 1).div(self.ratio, rounding_mode="floor")
        visible = torch.arange(count, device=x.device) < ended.unsqueeze(-1)
        indexer = self.indexer
        if indexer is None or index_keys is None:
            return visible.unsqueeze(0)
        keys = index_keys
        chosen = routing.chosen(
            INDEX, self.layer, begin, x, lambda: indexer.chosen(x, latent, keys, visible, begin, rotary)
        )
        beyond = x.new_zeros((*x.shape[:2], count + 1))  # choices of entries that are not there yet go last
        return beyond.scatter(-1, chosen.clamp(max=count), 1.0)[..., :count].bool() & visible

    def _attended(self, latent: Tensor, keys: Tensor, visible: Tensor, start: int, rotary: Rotary) -> Tensor:
        """(batch, positions, heads, head_dim), turned back, so that it tells distances and not positions."""
        c = self.config
        batch, count, _ = latent.shape
        queries = linear(latent, self.weights["query_up"]).view(batch, count, c.heads, c.head_dim)
        queries = rotary.turned(rms_norm(queries, None, c.norm_eps), start)
        flat = queries.reshape(batch, count * c.heads, c.head_dim)
        scores = torch.bmm(flat, keys.transpose(1, 2)).view(batch, count, c.heads, -1).float() * c.head_dim**-0.5
        shares = softmax_with_sink(scores.masked_fill(~visible.unsqueeze(2), float("-inf")), self.weights["sinks"])
        mixed = torch.bmm(shares.to(keys.dtype).view(batch, count * c.heads, -1), keys)
        return rotary.turned(mixed.view(batch, count, c.heads, c.head_dim), start, back=True)

    def _projected(self, heads: Tensor) -> Tensor:
        c = self.config
        batch, count = heads.shape[:2]
        groups = heads.reshape(batch * count, c.output_groups, -1).transpose(0, 1)
        down = torch.bmm(groups, self.weights["output_down"].transpose(1, 2)).transpose(0, 1)
        return linear(down.reshape(batch, count, -1), self.weights["output_up"])


def softmax_with_sink(scores: Tensor, sinks: Tensor) -> Tensor:
    """Over the last dimension of (batch, positions, heads, keys), fp32; the shares sum to less than 1."""
    sink = sinks.view(-1, 1).expand(*scores.shape[:-1], 1)
    return torch.cat((scores, sink), -1).softmax(-1)[..., :-1].contiguous()


def _in_window(begin: int, end: int, first: int, window: int, device: torch.device) -> Tensor:
    """bool (1, queries, keys): a query sees itself and the ``window - 1`` tokens before it."""
    queries = torch.arange(begin, end, device=device).unsqueeze(-1)
    keys = torch.arange(first, end, device=device)
    return ((keys <= queries) & (keys > queries - window)).unsqueeze(0)
