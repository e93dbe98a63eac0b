"""A smoke run in reports: the sentence that says what it is and is not, the ladder of stages, latency and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len

from ascend_doctor.derive.smoke_summary import StageSeen, Summary
from ascend_doctor.engine.findings import Finding, Note
from ascend_doctor.engine.run import Run
from ascend_doctor.host import Missing
from ascend_doctor.records import dataclass
from ascend_doctor.report.console import MARKS, printable
from ascend_doctor.report.markdown_text import plain
from ascend_doctor.report.words import Words, words

ROWS = "smoke_summary.runs"
GRAVEST = ("error", "warning", "unknown", "info", "waived", "pass", "skip")
"""Of several findings on a stage the first of these is its mark."""

WIDTH, HEIGHT, LEFT, RIGHT, LANES = 720, 96, 8, 712, 5
"""Of the strip of dots, in units of its drawing; dots are spread over lanes so that they can be told apart."""


@dataclass(frozen=True)
class Rung:
    """A stage of one device. ``mark``: pass, error, warning, info, unknown, skip or waived; ``why``: of a skip."""

    stage: StageSeen
    mark: str
    why: str


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    milliseconds: float


@dataclass(frozen=True)
class Strip:
    """``marks``: (name, position, milliseconds) of P50 and P99; ``least`` and ``most``: the ends of the scale."""

    dots: tuple[Dot, ...]
    marks: tuple[tuple[str, float, float], ...]
    least: float
    most: float


def summaries(run: Run) -> tuple[Summary, ...]:
    """One for each device of the run; none where nothing was run."""
    found = run.rows.get(ROWS)
    return tuple(one for one in found if isinstance(one, Summary)) if isinstance(found, tuple) else ()


def answered(run: Run, kind: str) -> Run:
    """The run with what the smoke says beside findings, under its name in the document."""
    found = summaries(run)
    notes = list(run.notes)
    if found and not any(one.kind == "npu" for one in found):
        notes.append(Note("no-npu-tested", {language: words(language)["smoke_no_npu"] for language in ("en", "zh")}))
    answer: dict[str, Any] = dict(run.answer or {})
    answer["smoke"] = as_json(found[0], run, found) if found else None
    return replace(run, kind=kind, answer=answer, notes=tuple(notes))


def sentence(summary: Summary, words: Words) -> str:
    """``DeepSeek-V4 architecture smoke, reduced: ...``; never that the real model runs."""
    if summary.ranks:
        return words["smoke_ranks_sentence"].format(count=summary.ranks)
    config = summary.config
    ratios = config.get("ratios", ())
    return words["smoke_sentence"].format(
        size=summary.size,
        layers=len(ratios) if isinstance(ratios, (tuple, list)) else "?",
        hidden=config.get("hidden", "?"),
        experts=config.get("experts", "?"),
    )


def needs(summary: Summary, words: Words) -> str:
    """How many such cards the real model needs; empty where no model was run."""
    if summary.ranks:
        return ""
    needed = summary.needed
    if isinstance(needed.cards, Missing) or isinstance(needed.weights_bytes, Missing):
        return words["smoke_needs_unknown"].format(model=needed.model)
    return words["smoke_needs"].format(
        model=needed.model,
        cards=needed.cards,
        card=needed.card.partition(",")[0],
        weights=round(needed.weights_bytes / 1e9),
        share=f"{needed.fraction:g}",
    )


def on(summary: Summary, name: str, words: Words) -> str:
    """Where it ran, and against what it is compared."""
    word = "smoke_ranks_on" if summary.ranks else "smoke_on"
    return words[word].format(device=summary.device + name, dtype=summary.dtype)


def ladder(summary: Summary, findings: Sequence[Finding]) -> list[Rung]:
    """The stages in their order, each with the gravest of its findings on this device."""
    return [_rung(stage, summary, findings) for stage in summary.stages]


def _rung(stage: StageSeen, summary: Summary, findings: Sequence[Finding]) -> Rung:
    subjects = (summary.device, "host")
    mine = [f for f in findings if f.check == f"smoke.{stage.id}" and _subject(f) in subjects]
    graded = [(str(f.severity) if f.verdict == "fail" else f.verdict, f) for f in mine]
    if not graded:
        return Rung(stage, "skip", "")
    mark, finding = min(graded, key=lambda pair: GRAVEST.index(pair[0]))
    why = next((m.detail for m in finding.missing if m.detail), finding.reason or "")
    return Rung(stage, mark, why)


def _subject(finding: Finding) -> str:
    """The device: an operator may follow it, and a number where it comes twice."""
    return finding.subject.partition(" ")[0].partition("#")[0]


def strip(summary: Summary) -> Strip | None:
    """The timed tokens as dots from the fastest to the slowest; None where none was timed."""
    samples = summary.samples_ms
    if not samples or "p50_ms" not in summary.latency:
        return None
    least, most = min(samples), max(*samples, summary.latency.get("p99_ms", 0.0))
    span = (most - least) or 1.0

    def x(milliseconds: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (milliseconds - least) / span, 1)

    dots = tuple(Dot(x(ms), 30 + 8 * (number % LANES), ms) for number, ms in enumerate(samples))
    marks = tuple(
        (name, x(summary.latency[key]), summary.latency[key]) for name, key in (("P50", "p50_ms"), ("P99", "p99_ms"))
    )
    return Strip(dots, marks, least, most)


def as_json(first: Summary, run: Run, every: Sequence[Summary]) -> dict[str, Any]:
    """``smoke`` of a report: the first device, and all of them under ``devices``."""
    return {**_of_device(first, run), "devices": [_of_device(one, run) for one in every]}


def _of_device(summary: Summary, run: Run) -> dict[str, Any]:
    needed = summary.needed
    return {
        "sentence": {language: sentence(summary, words(language)) for language in ("en", "zh")},
        "device": summary.device,
        "name": summary.name,
        "dtype": summary.dtype,
        "size": summary.size,
        "refused": summary.refused,
        "config": _plain(summary.config),
        "cards_needed": {
            "model": needed.model,
            "card": needed.card,
            "card_bytes": _known(needed.card_bytes),
            "weights_bytes": _known(needed.weights_bytes),
            "usable_fraction": needed.fraction,
            "cards": _known(needed.cards),
        },
        "stages": [
            {
                "number": rung.stage.number,
                "name": rung.stage.id,
                "outcome": rung.mark,
                "seconds": rung.stage.seconds,
                "deadline": rung.stage.deadline,
                "reason": rung.why,
            }
            for rung in ladder(summary, run.findings)
        ],
        "latency": {**summary.latency, "samples_ms": list(summary.samples_ms)} if summary.latency else None,
        "memory": {
            "predicted_bytes": dict(summary.predicted),
            "measured_bytes": dict(summary.memory),
            "slope_bytes": _known(summary.slope),
        },
    }


def _plain(config: Mapping[str, object]) -> dict[str, object]:
    return {name: [int(v) for v in value] if isinstance(value, tuple) else value for name, value in config.items()}


def _known(value: object) -> object:
    return None if isinstance(value, Missing) else value


def lines(summary: Summary, run: Run, words: Words) -> Iterator[tuple[str, str, str]]:
    """For a terminal: what stands left, the text beside it, and the mark that gives its colour, "" for none."""
    yield "", printable(sentence(summary, words)), ""
    if needs(summary, words):
        yield "", printable(needs(summary, words)), "skip"
    if summary.refused:
        yield "", printable(words["smoke_refused"].format(why=summary.refused)), "unknown"
        return
    name = f" ({summary.name})" if summary.name else ""
    yield "", printable(on(summary, name, words)), "skip"
    rungs = ladder(summary, run.findings)
    width = max((cell_len(rung.stage.name[words.language]) for rung in rungs), default=0)
    for rung in rungs:
        title = rung.stage.name[words.language]
        pad = " " * (width - cell_len(title))
        time = f"{rung.stage.seconds:8.2f} s" if rung.stage.reached else " " * 10
        why = f": {rung.why}" if rung.mark in ("skip", "unknown") and rung.why else ""
        left = f"{MARKS[rung.mark]} {rung.stage.number:>2} {title}{pad} {time}  "
        yield printable(left), printable(words[rung.mark] + why), rung.mark
    for text in (latency(summary, words), memory(summary, words)):
        if text:
            yield "", printable(text), ""


def markdown(run: Run, words: Words) -> Iterator[str]:
    """A table of the stages for each device."""
    for summary in summaries(run):
        yield ""
        yield f"### {words['smoke_ladder']}: {plain(summary.device)}"
        yield ""
        yield plain(sentence(summary, words))
        yield ""
        if needs(summary, words):
            yield plain(needs(summary, words))
            yield ""
        if summary.refused:
            yield f"> {plain(words['smoke_refused'].format(why=summary.refused))}"
            continue
        yield f"| | {words['smoke_stage']} | s | |"
        yield "|---|---|---|---|"
        for rung in ladder(summary, run.findings):
            why = f": {rung.why}" if rung.mark in ("skip", "unknown") and rung.why else ""
            name = f"{rung.stage.number} {rung.stage.name[words.language]}"
            time = f"{rung.stage.seconds:.2f}" if rung.stage.reached else ""
            yield f"| {MARKS[rung.mark]} | {plain(name)} | {time} | {plain(words[rung.mark] + why)} |"
        for text in (latency(summary, words), memory(summary, words)):
            if text:
                yield ""
                yield plain(text)


def latency(summary: Summary, words: Words) -> str:
    """The figures of the strip in a line; empty where nothing was timed."""
    found = summary.latency
    if not {"first_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "tokens_per_second"} <= set(found):
        return ""
    return words["smoke_latency"].format(
        **{name.removesuffix("_ms"): f"{value:.3g}" for name, value in found.items() if name.endswith("_ms")},
        rate=f"{found['tokens_per_second']:.3g}",
    )


def memory(summary: Summary, words: Words) -> str:
    """Predicted and measured, in MiB; empty where nothing was measured."""
    found = summary.memory
    if "weights" not in found:
        return ""
    measured = found.get("reserved", found.get("peak_rss", 0))
    return words["smoke_memory"].format(
        weights=found["weights"] >> 20,
        caches=-(-found.get("caches", 0) // (1 << 20)),
        measured=measured >> 20,
        predicted=sum(summary.predicted.values()) >> 20,
        slope="?" if isinstance(summary.slope, Missing) else f"{summary.slope / 1024:.3g}",
    )
