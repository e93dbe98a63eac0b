"""Runs as reports meet them: the example, healthy and faulty machines, a crowded one, logs small and large."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from hosts import host
from log_runs import CAPTURES, run_of, run_of_texts

from ascend_doctor.engine import gate
from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, preflight, run_as_json
from ascend_doctor.host import Host
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.paths import data_folder

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}\u202e\x1b[31m\u2066</pre></script>"
FAULTY = ("a2-node-full", "a2-chip-alarm", "a2-pcie-x8", "a2-settings-unseen", "a2-env-values-wrong", "a2-untuned")
EVENTS = 5000


def judged(asked: Host) -> Run:
    return preflight(asked, Asked(load_checks([data_folder("checks")]), rulebook()))


@cache
def example() -> Run:
    return judged(open_snapshot(data_folder("reports") / "example"))


@cache
def of_host(name: str) -> Run:
    return judged(host(name))


@cache
def crowded() -> Run:
    """An A3 of 16 chips with 200 findings that fail or could not be judged: those of faulty hosts, on many subjects."""
    base = of_host("a3-healthy")
    bad = [f for name in FAULTY for f in of_host(name).findings if f.verdict in ("fail", "unknown") and not f.because]
    chips = [f"npu:{card}/{die}" for card in range(8) for die in range(2)]
    made: dict[tuple[str, str], Finding] = {}
    for number in range(10_000):
        if len(made) == 200:
            break
        one = bad[number % len(bad)]
        found = replace(one, subject=chips[number % 16] if number % 3 else f"case:{number}")
        made[found.check, found.subject] = found
    findings = gate.ordered([*made.values(), *base.findings])
    return with_findings(base, findings)


def with_findings(run: Run, findings: list[Finding]) -> Run:
    code = gate.exit_code(findings, run.gate)
    counts = gate.counts(findings)
    return replace(run, findings=tuple(findings), counts=counts, verdict=gate.verdict(code), exit_code=code)


@cache
def logs(name: str = "multi-oom-then-hccl-cascade.log") -> Run:
    return run_of([CAPTURES / "logs" / name])


def many_logs(folder: Path) -> Run:
    """5,000 lines that report something, of 16 ranks, each of its own kind, over ten minutes."""
    texts: dict[str, str] = {}
    for number in range(EVENTS):
        rank = number % 16
        stamp = f"2026-01-01-00:{number // 600 % 60:02}:{number // 10 % 60:02}.{number % 10}00.000"
        head = f"[ERROR] HCCL({100 + rank},python):{stamp} [a.cc:{number}]{rank}"
        line = f"{head} call {_word(number)} of rank {rank} failed\n"
        name = f"rank{rank}/plog-{100 + rank}_20260101000000000.log"
        texts[name] = texts.get(name, "") + line
    return run_of_texts(folder, texts)


def _word(number: int) -> str:
    """Letters only, so that no two lines are of one template."""
    return "".join(chr(97 + number // 26**place % 26) for place in range(4))


def plain(run: Run) -> Mapping[str, Any]:
    """Its document as programs read it."""
    document: Mapping[str, Any] = json.loads(json.dumps(run_as_json(run)))
    return document
