"""The model: embedding, layers around residual streams, and logits of the next token."""

from __future__ import annotations

from typing import Optional

from torch import Tensor
from torch.nn.functional import embedding, linear

from .attention import Attention
from .caches import Caches, LayerCache
from .config import SLIDING, Config
from .experts import Experts
from .hyper_connections import HyperConnection, summed
from .norms import rms_norm
from .rotary import Rotary, compressed_frequencies, plain_frequencies
from .routing import Routing
from .weights import Weights, part


class Layer:
    """Attention, then experts, each with its hyper-connection."""

    def __init__(self, config: Config, layer: int, weights: Weights) -> None:
        self.attention_streams = HyperConnection(config, part(weights, "attention_streams."))
        self.attention = Attention(config, layer, part(weights, "attention."))
        self.expert_streams = HyperConnection(config, part(weights, "expert_streams."))
        self.experts = Experts(config, layer, part(weights, "experts."))

    def __call__(
        self, streams: Tensor, tokens: Tensor, cache: LayerCache, start: int, rotary: Rotary, routing: Routing
    ) -> Tensor:
        streams = self.attention_streams(streams, lambda x: self.attention(x, cache, start, rotary, routing))
        return self.expert_streams(streams, lambda x: self.experts(x, tokens, start, routing))


class Model:
    """For at most ``length`` positions; runs where its weights are and in their dtype."""

    def __init__(self, config: Config, weights: Weights, length: int) -> None:
        self.config, self.weights, self.length = config, weights, length
        device = weights["embedding"].device
        self.plain = Rotary(plain_frequencies(config), length, device)
        self.compressed = Rotary(compressed_frequencies(config), length, device)
        self.layers = [Layer(config, layer, part(weights, f"layers.{layer}.")) for layer in range(config.layers)]
        self.final_streams = part(weights, "final_streams.")

    def rotary(self, layer: int) -> Rotary:
        return self.plain if self.config.kind(layer) == SLIDING else self.compressed

    def forward(
        self, tokens: Tensor, caches: Caches, start: int, routing: Optional[Routing] = None, last_only: bool = False
    ) -> Tensor:
        """Logits (batch, positions, vocabulary) of int64 tokens (batch, positions), the first at position ``start``.

        ``caches`` hold the positions before ``start``; a prompt may come in several calls. ``last_only``: the logits of
        the last position alone. Raises ValueError beyond the length.
        """
        if start + tokens.shape[1] > min(self.length, caches.length):
            room = min(self.length, caches.length)
            raise ValueError(f"{tokens.shape[1]} tokens from position {start} on are more than the {room} positions")
        routing = routing or Routing.free()
        streams = embedding(tokens, self.weights["embedding"]).unsqueeze(2)
        streams = streams.expand(-1, -1, self.config.streams, -1).contiguous()
        for number, layer in enumerate(self.layers):
            streams = layer(streams, tokens, caches.layers[number], start, self.rotary(number), routing)
        if last_only:
            streams = streams[:, -1:]
        out = rms_norm(summed(streams, self.final_streams, self.config), self.weights["norm"], self.config.norm_eps)
        return linear(out, self.weights["head"])
