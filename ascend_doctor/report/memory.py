"""The sum of a model's memory: a line for each part with its formula, a bar, and what would fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len

from ascend_doctor.derive.budget import Sum, as_json
from ascend_doctor.engine.run import Run
from ascend_doctor.host import Missing
from ascend_doctor.report.console import printable
from ascend_doctor.report.words import Words

ROWS = "budget.sums"
BAR = 40
MARKS = {"weights": "W", "kv_cache": "K", "activations": "a", "runtime": "r", "graphs": "g", "communication": "c"}


def answered(run: Run) -> Run:
    """The run as one of the verb ``memory``, with the sum under its name."""
    found = run.rows[ROWS]
    one = found[0] if isinstance(found, tuple) and found else None
    answer = as_json(one) if isinstance(one, Sum) else {"rows": [], "fits": None}
    return replace(run, kind="memory", answer={"memory": answer})


def table(run: Run, words: Words) -> str:
    """For a terminal; nothing where no sum could be made, as the findings say why."""
    found = run.rows[ROWS]
    if not isinstance(found, tuple) or not found or not found[0].lines:
        return ""
    return "".join(f"{line}\n" for line in _lines(found[0], words))


def _lines(found: Sum, words: Words) -> Iterator[str]:
    yield printable(
        words["memory_head"].format(model=found.model, format=found.format, card=found.card, cards=found.cards)
    )
    rows = [(words[f"memory_{line.name}"], gib(line.bytes), line.formula) for line in found.lines]
    width = max(cell_len(name) for name, _, _ in rows)
    beside = [line.side == "beside" for line in found.lines]
    for (name, size, formula), apart in zip(rows, beside):
        mark = " " if not apart else "("
        shown = f"{size:>10} GiB" if not apart else f"{size:>10} GiB)"
        yield printable(f"  {mark}{name}{' ' * (width - cell_len(name))}  {shown}  {formula}")
    if isinstance(found.card_bytes, Missing) or isinstance(found.free_bytes, Missing):
        return
    yield "  " + bar([(line.name, line.bytes) for line in found.lines if line.side != "beside"], found.card_bytes)
    share = words["memory_room"].format(
        total=gib(found.card_bytes), free=gib(found.free_bytes), share=found.fraction, usable=_mib(found.usable_mib)
    )
    yield printable("  " + share + (f"; {words['memory_held'].format(who=found.holders)}" if found.holders else ""))
    yield "  " + _verdict(found, words)
    yield from (f"  {text}" for text in _largest(found, words))
    yield ""


def _verdict(found: Sum, words: Words) -> str:
    if isinstance(found.short_bytes, Missing) or isinstance(found.cards_needed, Missing):
        return words["unknown"]
    text = words["memory_fits"] if found.fits else words["memory_short"].format(size=gib(found.short_bytes))
    return f"{text}; {words['memory_floor'].format(cards=found.cards_needed)}"


def _largest(found: Sum, words: Words) -> Iterator[str]:
    tokens, sequences = found.largest_tokens, found.largest_sequences
    if isinstance(tokens, Missing) or isinstance(sequences, Missing):
        return
    yield words["memory_largest"].format(
        tokens=tokens, batch=found.wanted_sequences, sequences=sequences, context=found.wanted_tokens
    )
    if found.fewest:
        yield words["memory_cards"].format(layout=found.fewest)
    if not found.fits and found.smaller_format:
        yield words["memory_format"].format(format=found.smaller_format)


def bar(parts: Sequence[tuple[str, int]], total: int) -> str:
    """``[WWWWWKKag......]``: a letter for each fortieth of the device, ``!`` for what is over."""
    text, done = "", 0
    for name, size in parts:
        done += size
        text += MARKS.get(name, "?") * (round(done * BAR / total) - len(text)) if total else ""
    if len(text) > BAR:
        return f"[{text[:BAR]}]{'!' * min(10, len(text) - BAR)}"
    return f"[{text}{'.' * (BAR - len(text))}]"


def gib(size: int) -> str:
    return f"{size / (1 << 30):.2f}"


def _mib(value: Any) -> str:
    return "?" if isinstance(value, Missing) else f"{value / 1024:.2f}"
