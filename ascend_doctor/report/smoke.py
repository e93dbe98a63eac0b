"""A smoke run in reports: the sentence that says what it is and is not, the ladder of stages, latency and memory.

Told from the run's document alone, so that a run that was read back is told in the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.cells import cell_len

from ascend_doctor.engine.run import Run
from ascend_doctor.records import dataclass
from ascend_doctor.report.console import MARKS, printable
from ascend_doctor.report.fields import Field
from ascend_doctor.report.smoke_answer import GRAVEST
from ascend_doctor.report.words import Words

TOLD = ("first_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "tokens_per_second")


@dataclass(frozen=True)
class Stage:
    """``mark``: its outcome; ``reason``: of a skip, or why it could not be judged."""

    number: int
    title: Mapping[str, str]
    mark: str
    reached: bool
    seconds: float
    deadline: float
    reason: str


@dataclass(frozen=True)
class Device:
    """What was run on one device, or on several together (``ranks``); milliseconds and bytes, maps may be empty."""

    device: str
    name: str
    dtype: str
    ranks: int
    refused: str
    sentence: Mapping[str, str]
    needed: Field
    stages: tuple[Stage, ...]
    latency: Mapping[str, float]
    samples_ms: tuple[float, ...]
    measured: Mapping[str, int]
    predicted: int
    slope: float | None


def devices(run: Run) -> tuple[Device, ...]:
    """Those of the run; none where nothing was run. Raises StoredError for a stored run whose answer is broken."""
    smoke = Field(run.answer or {})["smoke"]
    return () if smoke.value is None else smoke["devices"].each(_device)


def _device(found: Field) -> Device:
    latency, memory = found["latency"], found["memory"]
    figures = {} if latency.value is None else latency.mapping()
    return Device(
        device=found["device"].text(),
        name=found["name"].text(),
        dtype=found["dtype"].text(),
        ranks=found["ranks"].whole(),
        refused=found["refused"].text(),
        sentence=found["sentence"].texts(),
        needed=found["cards_needed"],
        stages=found["stages"].each(_stage),
        latency={name: latency[name].number() for name in figures if name != "samples_ms"},
        samples_ms=latency["samples_ms"].each(Field.number) if "samples_ms" in figures else (),
        measured={name: memory["measured_bytes"][name].whole() for name in memory["measured_bytes"].mapping()},
        predicted=sum(memory["predicted_bytes"][name].whole() for name in memory["predicted_bytes"].mapping()),
        slope=memory["slope_bytes"].or_none(Field.number),
    )


def _stage(found: Field) -> Stage:
    return Stage(
        number=found["number"].whole(),
        title=found["title"].texts(),
        mark=found["outcome"].one_of(GRAVEST),
        reached=found["reached"].flag(),
        seconds=found["seconds"].number(),
        deadline=found["deadline"].number(),
        reason=found["reason"].text(),
    )


def table(run: Run, words: Words, verbose: bool = False) -> str:
    """For a terminal: the sentences, the stages in their order, latency and memory of each device."""
    return "\n".join(f"{line}" for device in devices(run) for line in (*_lines(device, words), ""))


def _lines(device: Device, words: Words) -> Iterator[str]:
    yield printable(device.sentence[words.language])
    if needs(device, words):
        yield printable(needs(device, words))
    if device.refused:
        yield printable(words["smoke_refused"].format(why=device.refused))
        return
    yield printable(on(device, words))
    width = max((cell_len(stage.title[words.language]) for stage in device.stages), default=0)
    for stage in device.stages:
        title = stage.title[words.language]
        time = f"{stage.seconds:8.2f} s" if stage.reached else " " * 10
        pad = " " * (width - cell_len(title))
        yield printable(f"{MARKS[stage.mark]} {stage.number:>2} {title}{pad} {time}  {outcome(stage, words)}")
    yield from (printable(text) for text in (latency(device, words), memory(device, words)) if text)


def outcome(stage: Stage, words: Words) -> str:
    """``passed``, ``skipped: why``."""
    why = f"{words['colon']}{stage.reason}" if stage.mark in ("skip", "unknown") and stage.reason else ""
    return f"{words[stage.mark]}{why}"


def needs(device: Device, words: Words) -> str:
    """How many such cards the real model needs; empty where no model was run."""
    if device.ranks:
        return ""
    needed = device.needed
    model, cards, weights = needed["model"].text(), needed["cards"].value, needed["weights_bytes"].value
    if cards is None or weights is None:
        return words["smoke_needs_unknown"].format(model=model)
    return words["smoke_needs"].format(
        model=model,
        cards=needed["cards"].whole(),
        card=needed["card"].text().partition(",")[0],
        weights=round(needed["weights_bytes"].whole() / 1e9),
        share=f"{needed['usable_fraction'].number():g}",
    )


def on(device: Device, words: Words) -> str:
    """Where it ran, and against what it is compared."""
    name = f" ({device.name})" if device.name else ""
    word = "smoke_ranks_on" if device.ranks else "smoke_on"
    return words[word].format(device=device.device + name, dtype=device.dtype)


def latency(device: Device, words: Words) -> str:
    """The figures of the strip in a line; empty where nothing was timed."""
    found = device.latency
    if not found.keys() >= set(TOLD):
        return ""
    return words["smoke_latency"].format(
        **{name.removesuffix("_ms"): f"{found[name]:.3g}" for name in TOLD if name.endswith("_ms")},
        rate=f"{found['tokens_per_second']:.3g}",
    )


def memory(device: Device, words: Words) -> str:
    """Predicted and measured, in MiB; empty where nothing was measured."""
    found = device.measured
    if "weights" not in found:
        return ""
    return words["smoke_memory"].format(
        weights=found["weights"] >> 20,
        caches=-(-found.get("caches", 0) // (1 << 20)),
        measured=found.get("reserved", found.get("peak_rss", 0)) >> 20,
        predicted=device.predicted >> 20,
        slope="?" if device.slope is None else f"{device.slope / 1024:.3g}",
    )
