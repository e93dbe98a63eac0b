"""Who decides which experts a token gets and which entries it sees: the model itself, or the notes of an earlier run.

Where two choices score nearly the same, rounding alone turns one into the other, and the outputs have nothing in common
any more. So numbers are compared with the choices of the golden run replayed, and choices are compared by themselves.
"""

from __future__ import annotations

from typing import Callable, Optional

import torch
from torch import Tensor

from .config import Config

EXPERTS, INDEX = "experts", "index"


class Choices:
    """Choices on the CPU by part, layer and position, so that they may be replayed in other chunks than recorded."""

    def __init__(self) -> None:
        self._chunks: dict[tuple[str, int], list[tuple[int, Tensor]]] = {}
        self._whole: dict[tuple[str, int], Tensor] = {}

    def note(self, part: str, layer: int, start: int, chosen: Tensor) -> None:
        """Those of (batch, positions, choices) from ``start`` on; what was noted beyond ``start`` is forgotten."""
        key = (part, layer)
        chunks = [(begin, rows[:, : start - begin]) for begin, rows in self._chunks.get(key, []) if begin < start]
        self._chunks[key] = [*chunks, (start, chosen.cpu())]
        self._whole.pop(key, None)

    def made(self) -> list[tuple[str, int]]:
        """(part, layer) of all that is recorded, in the order of the model."""
        return list(self._chunks)

    def all(self, part: str, layer: int) -> Tensor:
        """int64 (batch, positions, choices) from position 0 on. Raises KeyError where nothing was recorded."""
        key = (part, layer)
        if key not in self._whole:
            self._whole[key] = torch.cat([rows for _, rows in self._chunks[key]], 1)
        return self._whole[key]

    def experts(self, layer: int) -> Tensor:
        return self.all(EXPERTS, layer)

    def index(self, layer: int) -> Tensor:
        return self.all(INDEX, layer)


class Routing:
    """``choices``: what was recorded here, or what is replayed."""

    def __init__(self, choices: Optional[Choices] = None, replays: bool = False) -> None:
        self.choices = choices
        self.replays = replays

    @classmethod
    def free(cls) -> Routing:
        return cls()

    @classmethod
    def recording(cls) -> Routing:
        return cls(Choices())

    @classmethod
    def replaying(cls, choices: Choices) -> Routing:
        return cls(choices, replays=True)

    def chosen(self, part: str, layer: int, start: int, like: Tensor, choose: Callable[[], Tensor]) -> Tensor:
        """(batch, positions, choices) for the positions of ``like`` (batch, positions, ...), on its device."""
        if self.choices is None:
            return choose()
        if self.replays:
            stop = start + like.shape[1]
            recorded = self.choices.all(part, layer)
            if recorded.shape[1] < stop or recorded.shape[0] != like.shape[0]:
                raise ValueError(f"no choice of {part} is recorded for layer {layer}, positions {start} to {stop - 1}")
            return recorded[:, start:stop].to(like.device)
        chosen = choose()
        self.choices.note(part, layer, start, chosen)
        return chosen


def agreement(golden: Choices, other: Choices, config: Config) -> dict[str, object]:
    """How far the choices of two runs over the same tokens are the same sets, 0 to 1; None where the model has none.

    ``experts``: of layers that score; ``hash``: of those that look experts up; ``index``: of entries that a token may
    see, where it may see more than it chooses.
    """
    layers: dict[str, float] = {}
    groups: dict[str, list[float]] = {"experts": [], "hash": [], "index": []}
    for part, layer in golden.made():
        ours, theirs = golden.all(part, layer), other.all(part, layer)
        positions = min(ours.shape[1], theirs.shape[1])
        ours, theirs = ours[:, :positions], theirs[:, :positions]
        if part == INDEX:
            first = config.ratios[layer] * (config.index_topk + 1) - 1  # from here on a choice has to be made
            ours, theirs = ours[:, first:], theirs[:, first:]
        if not ours.numel():
            continue
        share = overlap(ours, theirs)
        layers[f"layers.{layer}.{part}"] = share
        groups["hash" if part == EXPERTS and config.hashed(layer) else part].append(share)
    means = {name: sum(shares) / len(shares) if shares else None for name, shares in groups.items()}
    return {**means, "layers": layers}


def overlap(ours: Tensor, theirs: Tensor) -> float:
    """Which share of the elements of our rows stands in their row, wherever."""
    return float((ours.unsqueeze(-1) == theirs.unsqueeze(-2)).any(-1).float().mean())
