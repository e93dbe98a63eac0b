"""A smoke run at one look: what was run and what the real model needs, the latency, and the memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ascend_doctor.derive import rows
from ascend_doctor.derive.budget import LIVE, sums
from ascend_doctor.facts.demand import Demand, Wishes
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.smoke import DeviceRun, Smoke, Step
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.cards import Cards
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.knowledge.models import Models
from ascend_doctor.knowledge.remedies import Texts
from ascend_doctor.knowledge.smoke_gates import SmokeGates
from ascend_doctor.records import dataclass

REAL = "DeepSeek-V4-Pro"
USUAL_CARD = "64GB"
"""Where no card is found: what most NPU servers of its support matrix have."""

LATENCY = ("first_ms", "prefill_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "device_p50_ms", "tokens_per_second")
MEMORY = ("weights", "caches", "need", "allocated", "reserved", "peak_rss")


@dataclass(frozen=True)
class NeededCards:
    """Of the real model: devices of this kind whose memory holds its weights alone."""

    model: str
    card: str
    card_bytes: int | Missing
    weights_bytes: int | Missing
    fraction: float
    cards: int | Missing


@dataclass(frozen=True)
class StageSeen:
    """``seconds`` and ``deadline`` are 0 where the stage was not reached."""

    id: str
    number: int
    name: Texts
    seconds: float
    deadline: float
    reached: bool


@dataclass(frozen=True)
class Summary:
    """One device, or several together (``ranks``). ``latency`` (milliseconds) and ``memory`` (bytes) may be empty."""

    device: str
    kind: str
    name: str
    dtype: str
    size: str
    ranks: int
    refused: str
    config: Mapping[str, object]
    needed: NeededCards
    stages: tuple[StageSeen, ...]
    latency: Mapping[str, float]
    samples_ms: tuple[float, ...]
    memory: Mapping[str, int]
    predicted: Mapping[str, int]
    slope: float | Missing
    reads: tuple[str, ...]


@rows("smoke_summary.runs")
def runs(
    smoke: Smoke,
    smoke_gates: SmokeGates,
    npu: Npu,
    env: Mapping[str, str | Missing],
    models: Models,
    cards: Cards,
    limits: Limits,
) -> tuple[Summary, ...] | Missing:
    """One row for each device of the run."""
    if isinstance(smoke.devices, Missing):
        return smoke.devices
    plan = smoke.plan
    size = "" if isinstance(plan, Missing) else plan.size
    config: Mapping[str, object] = {} if isinstance(plan, Missing) else plan.config
    wanted = () if isinstance(plan, Missing) else plan.stages
    found = []
    for index, device in enumerate(smoke.devices):
        card = _card(device, npu, cards)
        latency = _measures(device, "latency", "decode")
        leak = _measures(device, "memory", "leak").get("slope")
        samples = latency.get("samples_ms", ())
        found.append(
            Summary(
                device=device.device,
                kind=device.kind,
                name=device.name,
                dtype=device.dtype,
                size=size,
                ranks=0 if isinstance(plan, Missing) else plan.ranks,
                refused=device.refused,
                config=config,
                needed=needed(card, npu, env, models, cards, limits),
                stages=_stages(device, wanted, smoke_gates),
                latency=_numbers(latency, LATENCY),
                samples_ms=samples if isinstance(samples, tuple) else (),
                memory={
                    name: int(value) for name, value in _numbers(_measures(device, "memory", "budget"), MEMORY).items()
                },
                predicted=device.memory,
                slope=float(leak) if isinstance(leak, (int, float)) else Missing(Reason.ABSENT, "not measured"),
                reads=(f"smoke.devices[{index}]",),
            )
        )
    return tuple(found)


def needed(
    card: str, npu: Npu, env: Mapping[str, str | Missing], models: Models, cards: Cards, limits: Limits
) -> NeededCards:
    """How many of them the weights of the real model fill, by the sum that ``memory`` makes."""
    named = Missing(Reason.ABSENT, "named, not a folder")
    demand = Demand(REAL, Wishes(REAL, card=card), named, named)
    found = sums(demand, npu, env, models, cards, limits)
    if isinstance(found, Missing) or not found:
        why = found if isinstance(found, Missing) else Missing(Reason.FAILED, "no sum")
        return NeededCards(REAL, card, why, why, 0.0, why)
    one = found[0]
    return NeededCards(REAL, one.card, one.card_bytes, one.weights_bytes, one.fraction, one.cards_needed)


def _card(device: DeviceRun, npu: Npu, cards: Cards) -> str:
    if device.kind != "npu":
        return USUAL_CARD
    if cards.named(device.name.partition("_")[0]) is not None:
        return device.name.partition("_")[0]
    return LIVE if isinstance(npu.chips, tuple) and npu.chips else USUAL_CARD


def _stages(device: DeviceRun, wanted: tuple[str, ...], gates: SmokeGates) -> tuple[StageSeen, ...]:
    found = []
    for stage in gates.stages:
        if stage.id in wanted:
            steps = [s for s in device.steps if s.stage == stage.id and not isinstance(s.outcome, Missing)]
            found.append(
                StageSeen(
                    stage.id,
                    stage.number,
                    stage.name,
                    round(sum(step.seconds for step in steps), 3),
                    max((step.deadline for step in steps), default=0.0),
                    bool(steps),
                )
            )
    return tuple(found)


def _measures(device: DeviceRun, stage: str, name: str) -> Mapping[str, Any]:
    found: Step | None = next((s for s in device.steps if (s.stage, s.step) == (stage, name)), None)
    return found.measures if found else {}


def _numbers(measures: Mapping[str, object], names: tuple[str, ...]) -> dict[str, float]:
    return {
        name: value
        for name in names
        if isinstance(value := measures.get(name), (int, float)) and not isinstance(value, bool)
    }
