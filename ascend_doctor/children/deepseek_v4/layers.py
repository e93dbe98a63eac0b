"""Each kind of layer by itself, over inputs from a seed: which part is wrong, before all are asked together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Callable, Optional

import torch
from torch import Tensor

from .attention import Attention
from .caches import Caches
from .config import CSA, HCA, SLIDING, Config
from .experts import Experts
from .hyper_connections import HyperConnection
from .rotary import Rotary, compressed_frequencies, plain_frequencies
from .routing import Routing
from .weights import Weights, part

Probe = Callable[[Weights, int, Optional[Routing]], Mapping[str, Tensor]]
"""Of the weights of the whole model, wherever and in whatever dtype they are, a seed, and the routing: the outputs."""

STEPS = 4
"""Tokens after the prompt, one by one, so that the cache is read where it was written."""


def layer_probes(config: Config) -> list[tuple[str, Probe]]:
    """One for each kind that this model has, under its name."""
    layers = range(config.layers)
    names = {SLIDING: "sliding_window", CSA: "csa", HCA: "hca"}
    found = []
    for kind, name in names.items():
        layer = next((number for number in layers if config.kind(number) == kind), None)
        if layer is not None:
            found.append((name, _attention(config, layer)))
    for hashed, name in ((True, "hash_experts"), (False, "scored_experts")):
        layer = next((number for number in layers if config.hashed(number) == hashed), None)
        if layer is not None:
            found.append((name, _experts(config, layer)))
    return [*found, ("hyper_connections", _hyper_connections(config))]


def prompt_length(config: Config, layer: int) -> int:
    """Positions that this kind of attention needs to show all that it does."""
    ratio = config.ratios[layer]
    return {
        SLIDING: config.window + config.window // 2,  # the window leaves tokens behind
        CSA: ratio * (config.index_topk + 8) + 1,  # the indexer has to choose; a window is not yet full
        HCA: 2 * ratio + 1,
    }[config.kind(layer)]


def _attention(config: Config, layer: int) -> Probe:
    def probe(weights: Weights, seed: int, routing: Optional[Routing] = None) -> Mapping[str, Tensor]:
        alone = replace(config, ratios=(config.ratios[layer],))
        attention = Attention(alone, 0, part(weights, f"layers.{layer}.attention."))
        like = weights["embedding"]
        count = prompt_length(config, layer)
        length = count + STEPS
        sliding = config.kind(layer) == SLIDING
        frequencies = plain_frequencies(config) if sliding else compressed_frequencies(config)
        rotary = Rotary(frequencies, length, like.device)
        cache = Caches(alone, 1, length, like.dtype, like.device).layers[0]
        x = _inputs((1, length, config.hidden), seed, like)
        routing = routing or Routing.free()
        prompt = attention(x[:, :count], cache, 0, rotary, routing)
        steps = [attention(x[:, at : at + 1], cache, at, rotary, routing) for at in range(count, length)]
        return {"prompt": prompt, "steps": torch.cat(steps, 1)}

    return probe


def _experts(config: Config, layer: int) -> Probe:
    def probe(weights: Weights, seed: int, routing: Optional[Routing] = None) -> Mapping[str, Tensor]:
        experts = Experts(config, layer, part(weights, f"layers.{layer}.experts."))
        like = weights["embedding"]
        count = max(64, 4 * config.experts)
        x = _inputs((1, count, config.hidden), seed, like)
        generator = torch.Generator("cpu").manual_seed(seed)
        tokens = torch.randint(0, config.vocabulary, (1, count), generator=generator).to(like.device)
        return {"out": experts(x, tokens, 0, routing or Routing.free())}

    return probe


def _hyper_connections(config: Config) -> Probe:
    def probe(weights: Weights, seed: int, routing: Optional[Routing] = None) -> Mapping[str, Tensor]:
        connection = HyperConnection(config, part(weights, "layers.0.attention_streams."))
        streams = _inputs((1, 64, config.streams, config.hidden), seed, weights["embedding"])
        taken, given, mixed = connection.factors(streams)
        return {"taken": taken, "given": given, "mixed": mixed, "streams": connection(streams, lambda x: 2 * x)}

    return probe


def _inputs(shape: tuple[int, ...], seed: int, like: Tensor) -> Tensor:
    generator = torch.Generator("cpu").manual_seed(seed)
    return torch.randn(shape, generator=generator).to(like.dtype).to(like.device)
