"""Runs of ``logs`` for tests: over files of tests/captures, or over texts that a test writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from hosts import host

from ascend_doctor.engine.log_findings import Knowledge
from ascend_doctor.engine.log_run import knowledge, log_run
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Run
from ascend_doctor.logs import sources
from ascend_doctor.logs.analysis import ALL, Wanted
from ascend_doctor.logs.records import records_of
from ascend_doctor.logs.scanning import Scanner, scanner

CAPTURES = Path(__file__).parent / "captures"


@cache
def known() -> Knowledge:
    return knowledge(rulebook())


@cache
def pure() -> Scanner:
    return scanner(known().anchors(), fast=False)


def run_of(paths: Sequence[Path], wanted: Wanted = ALL) -> Run:
    """What ``logs PATHS`` finds, with the engine that everybody has."""
    files = sources.found([str(path) for path in paths])
    return log_run(
        host("a2-healthy"),
        files,
        lambda file: records_of(file, pure()),
        known(),
        rulebook(),
        wanted=wanted,
        engine="pure",
    )


def run_of_texts(folder: Path, texts: Mapping[str, str], wanted: Wanted = ALL) -> Run:
    """The same over files with these texts."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return run_of([folder], wanted)
