"""The sum of a model's memory: a line for each part with its formula, a bar, and what would fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len

from ascend_doctor.derive.budget import Sum, as_json
from ascend_doctor.engine.run import Run
from ascend_doctor.report.console import printable
from ascend_doctor.report.fields import Field
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


def table(run: Run, words: Words, verbose: bool = False) -> str:
    """For a terminal; nothing where no sum could be made, as the findings say why."""
    found = Field(run.answer or {})["memory"]
    lines = [_Line(row) for row in found["rows"].items()]
    return "".join(f"{line}\n" for line in _lines(found, lines, words)) if lines else ""


class _Line:
    def __init__(self, row: Field) -> None:
        self.name, self.bytes = row["name"].one_of((*MARKS, "ascend_mem_size")), row["bytes"].whole()
        self.formula, self.beside = row["formula"].text(), row["side"].text() == "beside"


def _lines(found: Field, lines: Sequence[_Line], words: Words) -> Iterator[str]:
    named = {name: found[name].text() for name in ("model", "format", "card")}
    yield printable(words["memory_head"].format(**named, cards=found["cards"].whole()))
    names = [words[f"memory_{line.name}"] for line in lines]
    width = max(cell_len(name) for name in names)
    for name, line in zip(names, lines):
        mark, size = ("(", f"{gib(line.bytes):>10} GiB)") if line.beside else (" ", f"{gib(line.bytes):>10} GiB")
        yield printable(f"  {mark}{name}{' ' * (width - cell_len(name))}  {size}  {line.formula}")
    card, free, usable = (found[name].or_none(Field.whole) for name in ("card_bytes", "free_bytes", "usable_mib"))
    if card is None or free is None:
        return
    yield "  " + bar([(line.name, line.bytes) for line in lines if not line.beside], card)
    share = words["memory_room"].format(
        total=gib(card),
        free=gib(free),
        share=found["usable_fraction"].number(),
        usable="?" if usable is None else f"{usable / 1024:.2f}",
    )
    holders = found["held_by"].text()
    yield printable("  " + share + (f"; {words['memory_held'].format(who=holders)}" if holders else ""))
    yield "  " + _verdict(found, words)
    yield from (f"  {text}" for text in _largest(found, words))


def _verdict(found: Field, words: Words) -> str:
    short, cards = found["short_bytes"].or_none(Field.whole), found["cards_needed"].or_none(Field.whole)
    if short is None or cards is None:
        return words["unknown"]
    text = words["memory_fits"] if found["fits"].flag() else words["memory_short"].format(size=gib(short))
    return f"{text}; {words['memory_floor'].format(cards=cards)}"


def _largest(found: Field, words: Words) -> Iterator[str]:
    largest, wanted = found["largest"], found["wanted"]
    tokens, sequences = largest["max_model_len"].or_none(Field.whole), largest["batch"].or_none(Field.whole)
    if tokens is None or sequences is None:
        return
    yield words["memory_largest"].format(
        tokens=tokens,
        batch=wanted["batch"].whole(),
        sequences=sequences,
        context=wanted["max_model_len"].whole(),
    )
    layout, smaller = largest["layout"].or_none(Field.text), largest["quantization"].or_none(Field.text)
    if layout:
        yield printable(words["memory_cards"].format(layout=layout))
    if not found["fits"].or_none(Field.flag) and smaller:
        yield printable(words["memory_format"].format(format=smaller))


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
