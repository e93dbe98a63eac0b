"""A run over logs: what the analysis found, told in the same findings, gate and report as any other run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Callable

from ascend_doctor.engine import gate as gates
from ascend_doctor.engine.gate import Gate
from ascend_doctor.engine.log_findings import Knowledge, Teller
from ascend_doctor.engine.log_report import LogReport, logs_as_json
from ascend_doctor.engine.rulebook import Rulebook
from ascend_doctor.engine.run import Run, host_words
from ascend_doctor.host import Host
from ascend_doctor.logs import Coverage
from ascend_doctor.logs import known as books
from ascend_doctor.logs.analysis import ALL, Wanted, analysed
from ascend_doctor.logs.boot import BootFact
from ascend_doctor.logs.causes import chain

DEFAULT_GATE = Gate()


def knowledge(book: Rulebook) -> Knowledge:
    """Raises RuleError for a file that cannot be used."""
    return books.load(book.rules)


def log_run(
    host: Host,
    files: Iterable[Any],
    read: Callable[[Any], Any],
    known: Knowledge,
    rulebook: Rulebook,
    gate: Gate = DEFAULT_GATE,
    wanted: Wanted = ALL,
    live: BootFact | None = None,
    engine: str = "",
    read_seen: Callable[[Coverage], None] | None = None,
    named: bool = True,
) -> Run:
    """``read``: a file's records; ``engine``: what scans; ``read_seen``: told of each file when it was read."""
    begun = time.perf_counter()
    now = host.now().replace(tzinfo=None)
    analysis = analysed(files, read, known.book(), now, wanted, live, read_seen, named)
    teller = Teller(analysis, known, rulebook)
    findings = gates.ordered(gates.numbered(teller.findings()))
    code = gates.exit_code(findings, gate)
    report = LogReport(
        analysis=analysis,
        titles=teller.titles(),
        chain=tuple(chain(analysis.answer.incidents, analysis.answer.root)),
        fetch=tuple(teller.fetch()),
        engine=engine,
    )
    return Run(
        kind="logs",
        host=host_words(host),
        started=host.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=round(time.perf_counter() - begun, 3),
        verdict=gates.verdict(code),
        gate=gate,
        exit_code=gates.PASSED if gate.fail_on == "never" else code,
        counts=gates.counts(findings),
        notes=tuple(teller.notes(engine)),
        findings=tuple(findings),
        collection=(),
        rules=rulebook.fingerprint(),
        answer=logs_as_json(report),
        logs=report,
    )
