"""Compression of many tokens into one entry that later tokens attend to.

Each element of an entry is a mean over the tokens of its window, weighted by a gate (softmax over the window). HCA
windows (128 tokens) stand side by side. CSA windows (4 tokens) overlap: each token gives two values and two gates, the
first for the entry after its own, the second for its own, so an entry is a mean over 8 tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from .caches import CompressorCache
from .norms import rms_norm
from .rotary import Rotary
from .weights import Weights


class Compressor:
    def __init__(self, weights: Weights, ratio: int, overlaps: bool, eps: float) -> None:
        self.weights, self.ratio, self.overlaps, self.eps = weights, ratio, overlaps, eps

    def __call__(self, x: Tensor, cache: CompressorCache, start: int, rotary: Rotary) -> Tensor:
        """All entries so far (batch, entries, width), with those whose window x (batch, positions, hidden) filled."""
        values, gates = linear(x, self.weights["value"]), linear(x, self.weights["gate"])
        done, full = start // self.ratio, (start + x.shape[1]) // self.ratio
        if full > done:
            first = (done - 1 if self.overlaps and done else done) * self.ratio
            count = full * self.ratio - first
            entries = self._entries(
                cache.values.followed_by(first, start, values)[:, :count],
                cache.gates.followed_by(first, start, gates)[:, :count],
                begins=done == 0,
            )
            cache.entries[:, done:full] = rotary.turned(entries, done * self.ratio, self.ratio)
        cache.values.write(start, values)
        cache.gates.write(start, gates)
        return cache.entries[:, :full]

    def _entries(self, values: Tensor, gates: Tensor, begins: bool) -> Tensor:
        """One entry for each window of ``ratio`` rows; where windows overlap, for each but the first.

        ``begins``: nothing stands before these rows, so the first window gets an empty one before it.
        """
        batch = values.shape[0]
        values = values.reshape(batch, -1, self.ratio, values.shape[-1])
        gates = gates.reshape(batch, -1, self.ratio, gates.shape[-1]) + self.weights["position"]
        if self.overlaps:
            if begins:
                values = pad(values, (0, 0, 0, 0, 1, 0))
                gates = pad(gates, (0, 0, 0, 0, 1, 0), value=float("-inf"))
            values, gates = self._overlapped(values), self._overlapped(gates)
        means = (values * gates.softmax(2, dtype=torch.float32).to(values.dtype)).sum(2)
        return rms_norm(means, self.weights["norm"], self.eps)

    @staticmethod
    def _overlapped(windows: Tensor) -> Tensor:
        """What the window before gives ahead, followed by what each window gives itself."""
        width = windows.shape[-1] // 2
        return torch.cat((windows[:, :-1, :, :width], windows[:, 1:, :, width:]), 2)
