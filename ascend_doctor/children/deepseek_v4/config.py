"""The sizes of one model of this architecture. Needs no torch: who plans a run computes with it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

SLIDING, CSA, HCA = "sliding", "csa", "hca"
"""Kinds of attention: a sliding window alone, with compressed entries that an indexer chooses, with all of them."""

KIND_OF_RATIO = {0: SLIDING, 4: CSA, 128: HCA}
"""How many tokens one compressed entry stands for; the model has no other ratios."""


@dataclass(frozen=True)
class Config:
    """Widths are numbers of elements, ``window`` and ``yarn_context`` tokens; defaults are those of every DeepSeek-V4.

    ``ratios`` has one number a layer (KIND_OF_RATIO); the first ``hash_layers`` choose experts by the token alone.
    """

    vocabulary: int
    hidden: int
    ratios: tuple[int, ...]
    heads: int
    head_dim: int
    rotary_dim: int
    query_rank: int
    output_groups: int
    output_rank: int
    window: int
    index_heads: int
    index_dim: int
    index_topk: int
    experts: int
    experts_per_token: int
    expert_width: int
    hash_layers: int
    routed_scale: float
    swiglu_limit: float = 10.0
    streams: int = 4
    sinkhorn_steps: int = 20
    norm_eps: float = 1e-6
    stream_eps: float = 1e-6
    theta: float = 10000.0
    compressed_theta: float = 160000.0
    yarn_factor: float = 16.0
    yarn_context: int = 65536
    yarn_fast: float = 32.0
    yarn_slow: float = 1.0

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Config:
        """From plain JSON. Raises ValueError, in words, for what is missing, unknown or makes no model."""
        known = {field.name: field for field in fields(cls)}
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ValueError(f"a model has no {', '.join(unknown)}; known are {', '.join(known)}")
        defaults = {name: field.default for name, field in known.items() if isinstance(field.default, (int, float))}
        missing = [name for name in known if name not in values and name not in defaults]
        if missing:
            raise ValueError(f"a model needs {', '.join(missing)}")
        config = cls(**{name: _value(name, values[name], defaults.get(name)) for name in known if name in values})
        config.check()
        return config

    def check(self) -> None:
        """Raises ValueError for numbers that make no model together."""
        for wrong, words in (
            (not self.ratios, "a model has at least one layer"),
            (any(ratio not in KIND_OF_RATIO for ratio in self.ratios), f"ratios are of {sorted(KIND_OF_RATIO)}"),
            (self.heads % self.output_groups, f"{self.heads} heads make no {self.output_groups} output_groups"),
            (self.rotary_dim % 2, f"rotary_dim {self.rotary_dim} is odd"),
            (self.rotary_dim > min(self.head_dim, self.index_dim), "rotary_dim is above head_dim or index_dim"),
            (
                self.experts_per_token > self.experts,
                f"{self.experts_per_token} experts for each token of {self.experts} experts",
            ),
        ):
            if wrong:
                raise ValueError(words)

    @property
    def layers(self) -> int:
        return len(self.ratios)

    def kind(self, layer: int) -> str:
        return KIND_OF_RATIO[self.ratios[layer]]

    def hashed(self, layer: int) -> bool:
        """Whether this layer's experts follow from the token alone."""
        return layer < self.hash_layers


def _value(name: str, value: Any, default: float | None) -> Any:
    if name == "ratios":
        if not isinstance(value, (list, tuple)) or not all(type(ratio) is int for ratio in value):
            raise ValueError(f"ratios is a list of whole numbers, not {value!r}")
        return tuple(value)
    may_be_zero = name == "hash_layers"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or value < 0 or (value == 0 and not may_be_zero):
        raise ValueError(f"{name} is a number above 0, not {value!r}")
    if isinstance(default, float) or name == "routed_scale":
        return float(value)
    if type(value) is not int:
        raise ValueError(f"{name} is a whole number, not {value!r}")
    return value
