"""What a model remembers of earlier tokens: allocated once, written in place, so that addresses never change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Optional, Union

import torch
from torch import Tensor

from .config import Config
from .shapes import cache_shapes
from .weights import DTYPES


@dataclass(frozen=True)
class Ring:
    """The last rows: the row of a position stands at ``position % rows``."""

    rows: Tensor

    def write(self, start: int, new: Tensor) -> None:
        """New rows for the positions from ``start`` on; of more than the ring has only the last ones stay."""
        count = self.rows.shape[1]
        first = max(0, new.shape[1] - count)
        for begin, end, slot in _pieces(start + first, start + new.shape[1], count):
            self.rows[:, slot : slot + end - begin] = new[:, begin - start : end - start]

    def followed_by(self, first: int, start: int, new: Tensor) -> Tensor:
        """The rows of the positions from ``first`` to ``start``, then the new ones."""
        count = self.rows.shape[1]
        old = [self.rows[:, slot : slot + end - begin] for begin, end, slot in _pieces(first, start, count)]
        return torch.cat((*old, new), 1) if old else new


def _pieces(first: int, last: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Positions first to last, cut where the ring begins again: (begin, end, slot of begin)."""
    while first < last:
        slot = first % count
        end = min(last, first + count - slot)
        yield first, end, slot
        first = end


@dataclass(frozen=True)
class CompressorCache:
    """``values`` and ``gates`` wait until a window is full; ``entries`` has what came of the full ones."""

    values: Ring
    gates: Ring
    entries: Tensor


@dataclass(frozen=True)
class LayerCache:
    window: Ring
    compressor: Optional[CompressorCache]
    indexer: Optional[CompressorCache]


class Caches:
    """Of all layers, for ``length`` positions. A model knows from ``start`` how far they are filled."""

    def __init__(
        self,
        config: Config,
        batch: int,
        length: int,
        dtype: Union[str, torch.dtype],
        device: Union[str, torch.device] = "cpu",
    ) -> None:
        wanted = DTYPES[dtype] if isinstance(dtype, str) else dtype
        self.length = length
        self._tensors = {
            name: torch.zeros(shape, dtype=wanted, device=device)
            for name, shape in cache_shapes(config, batch, length).items()
        }
        self.layers = [_layer(self._tensors, layer) for layer in range(config.layers)]

    def tensors(self) -> Mapping[str, Tensor]:
        return self._tensors

    def addresses(self) -> dict[str, int]:
        return {name: tensor.data_ptr() for name, tensor in self._tensors.items()}

    def bytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in self._tensors.values())

    def reset(self) -> None:
        for tensor in self._tensors.values():
            tensor.zero_()


def _layer(tensors: Mapping[str, Tensor], layer: int) -> LayerCache:
    at = f"layers.{layer}."
    return LayerCache(
        Ring(tensors[f"{at}window"]), _compressor(tensors, f"{at}compressor."), _compressor(tensors, f"{at}indexer.")
    )


def _compressor(tensors: Mapping[str, Tensor], at: str) -> Optional[CompressorCache]:
    if f"{at}entries" not in tensors:
        return None
    return CompressorCache(Ring(tensors[f"{at}values"]), Ring(tensors[f"{at}gates"]), tensors[f"{at}entries"])
