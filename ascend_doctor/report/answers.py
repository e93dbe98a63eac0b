"""What a kind of run answers beside its findings, for a terminal: each kind's module, imported when it is told."""

from __future__ import annotations

from importlib import import_module

from ascend_doctor.engine.run import Run
from ascend_doctor.report.words import Words

TOLD_BY = {"memory": "memory", "numa": "numa", "versions": "versions", "diff": "diff", "triage": "triage"}
"""Kind -> the module of this package whose ``table`` tells it."""


def answer_text(run: Run, words: Words, verbose: bool = False) -> str:
    """Lines below the verdict, if any. Raises StoredError for a stored run whose answer is broken."""
    names = [TOLD_BY[run.kind]] if run.kind in TOLD_BY else []
    names += ["smoke"] if (run.answer or {}).get("smoke") else []
    return "\n".join(import_module(f"ascend_doctor.report.{name}").table(run, words, verbose) for name in names)


def is_all(run: Run) -> bool:
    """Whether the answer is all that there is to tell: nothing was judged."""
    return not run.findings and run.kind == "numa" and (run.answer or {})["numa"]["verb"] == "show"
