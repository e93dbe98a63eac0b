"""What the stages share: the device, and the weights, golden run and model, each made once when first needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch import Tensor

from ..deepseek_v4.caches import Caches
from ..deepseek_v4.config import Config
from ..deepseek_v4.model import Model
from ..deepseek_v4.routing import Choices, Routing
from ..deepseek_v4.weights import moved, seeded_weights, tensor_bytes, weights_digest, widened
from .protocol import Steps, Unprepared

Measures = Mapping[str, object]


@dataclass(frozen=True)
class Golden:
    """The same tokens through the same weights in fp32 on the CPU: (positions, vocabulary), and what was chosen."""

    logits: Tensor
    choices: Choices


class Bench:
    """``length``: positions that the caches have; ``tokens``: as many as the golden run sees."""

    def __init__(self, plan: Mapping[str, Any], steps: Steps) -> None:
        self.plan, self.steps = plan, steps
        self.kind: str = plan["kind"]
        self.config = Config.of(plan["config"])
        self.seed, self.seq, self.decode = int(plan["seed"]), int(plan["seq"]), int(plan["decode"])
        self.warmup, self.timed = int(plan["warmup"]), int(plan["timed"])
        self.length = self.seq + max(self.decode, self.warmup + self.timed)
        self.device = torch.device("cpu" if self.kind == "cpu" else f"{self.kind}:{plan['index']}")
        self.dtype: str = plan["dtype"]
        self.first_decode_ms: float | None = None
        self.forced_logits: Tensor | None = None
        self._made: dict[str, Any] = {}

    @property
    def backend(self) -> Any:
        """``torch.npu`` or ``torch.cuda``."""
        return getattr(torch, self.kind)

    def synchronize(self) -> None:
        if self.kind != "cpu":
            self.backend.synchronize()

    @property
    def tokens(self) -> Tensor:
        """(1, positions), on the CPU."""
        generator = torch.Generator("cpu").manual_seed(self.seed + 1)
        return torch.randint(0, self.config.vocabulary, (1, self.seq + self.decode), generator=generator)

    def need(self, name: str, stage: str) -> Any:
        """Made in a step of this name, in this stage at the first time. Raises Unprepared where that failed."""
        if name not in self._made:
            at, step = self.steps.again(stage, name)
            if not self.steps.run(at, step, lambda: self._make(name)):
                self._made[name] = None
        if self._made[name] is None:
            raise Unprepared(name)
        return self._made[name]

    def let_go(self, name: str) -> None:
        self._made.pop(name, None)

    def _make(self, name: str) -> Measures:
        makers: dict[str, Callable[[], tuple[Any, Measures]]] = {
            "weights": self._weights,
            "wide": self._wide,
            "placed": self._placed,
            "golden": self._golden,
            "model": self._model,
            "caches": self._caches,
        }
        self._made[name], measures = makers[name]()
        return measures

    def _weights(self) -> tuple[Any, Measures]:
        weights = seeded_weights(self.config, self.seed, self.dtype)
        return weights, {"bytes": tensor_bytes(weights), "sha256": weights_digest(weights), "torch": torch.__version__}

    def _wide(self) -> tuple[Any, Measures]:
        """Let go after the golden run: on a large model it is what takes most of the host's memory."""
        wide = widened(self.need("weights", "layers"))
        return wide, {"bytes": tensor_bytes(wide)}

    def _placed(self) -> tuple[Any, Measures]:
        weights = self.need("weights", "layers")
        if self.kind == "cpu":
            return weights, {"bytes": tensor_bytes(weights)}
        placed = moved(weights, self.device)
        return placed, {"bytes": tensor_bytes(placed), "copied": weights_digest(placed) == weights_digest(weights)}

    def _golden(self) -> tuple[Any, Measures]:
        model = Model(self.config, self.need("wide", "layers"), self.length)
        caches = Caches(self.config, 1, self.length, "fp32")
        routing = Routing.recording()
        logits = model.forward(self.tokens, caches, 0, routing)[0].clone()
        assert routing.choices is not None
        self.let_go("wide")
        scale = float(logits.abs().max())
        return Golden(logits, routing.choices), {"logit_scale": scale, "finite": bool(logits.isfinite().all())}

    def _model(self) -> tuple[Any, Measures]:
        model = Model(self.config, self.need("placed", "layers"), self.length)
        self.synchronize()
        return model, {}

    def _caches(self) -> tuple[Any, Measures]:
        caches = Caches(self.config, 1, self.length, self.dtype, self.device)
        self.synchronize()
        return caches, {"bytes": caches.bytes()}
