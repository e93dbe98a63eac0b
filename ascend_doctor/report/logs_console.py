"""A run over logs on a terminal: the answer, the lines that prove it, what followed, what to do, what was read."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ascend_doctor.engine.log_findings import check_of
from ascend_doctor.engine.log_report import LogReport
from ascend_doctor.engine.run import Run
from ascend_doctor.logs import Incident
from ascend_doctor.report.console import MARKS, STYLES, Printer, printable
from ascend_doctor.report.logs import (
    base_of,
    followed,
    log_headline,
    others,
    place,
    proof,
    ranks_said,
    reached,
    since,
    span,
    stamp,
    sums,
    where,
)
from ascend_doctor.report.words import Words

FEW = 8
TEXT_SHOWN = 600


class LogPrinter(Printer):
    """Prints what a LogReport adds; the rest is the printer of any run."""

    def __init__(self, run: Run, console: Console, words: Words, verbose: bool) -> None:
        super().__init__(run, console, words, verbose)
        assert run.logs is not None
        self.report: LogReport = run.logs
        self.base = base_of(self.report)
        self.few = 10**6 if verbose else FEW

    def all(self, quiet: bool) -> None:
        mark = {"pass": "pass", "fail": "error", "undecided": "unknown"}[self.run.verdict]
        headline = printable(log_headline(self.report, self.words))
        self._line(Text(f"{MARKS[mark]} {headline}", style=f"bold {STYLES[mark]}"))
        if quiet:
            return
        self._answer()
        self._proof()
        self._chain()
        self._remedy()
        for name, incidents in others(self.report).items():
            self._listed_incidents(name, incidents)
        self._fetch()
        self._coverage()
        for note in self.run.notes:
            self._line(Text(printable(note.text[self.language]), style=STYLES["warning"]))
        if not self.verbose and self.run.findings and self.run.verdict != "pass":
            self._line(Text(self.words["full_report"], style="dim"))

    def _answer(self) -> None:
        root = self.report.root
        if root is None:
            return
        finding = next((f for f in self.run.findings if f.check == check_of(root)), None)
        if finding is not None and finding.why is not None:
            self._line(Text(printable(finding.why[self.language])), indent=2)
        for said in (where(root, self.words), *ranks_said(self.report, self.words), place(root, self.base)):
            if said:
                self._field("log_where", said)
        if others_hit := reached(self.report, self.words):
            self._field("log_reached", others_hit)
        self._field("log_since", since(root, self.words))
        self._field("log_confidence", self.words[f"confidence_{self.report.analysis.answer.confidence}"])

    def _proof(self) -> None:
        lines = proof(self.report, self.base)
        if lines:
            self._title("log_proof")
        for source, text in lines:
            self._line(Text(printable(source), style="bold"), indent=2)
            self._line(Text(printable(text[:TEXT_SHOWN] + ("…" if len(text) > TEXT_SHOWN else ""))), indent=4)

    def _chain(self) -> None:
        incidents = followed(self.report)
        if incidents:
            self._listed_incidents("log_chain", incidents)

    def _listed_incidents(self, name: str, incidents: Sequence[Incident]) -> None:
        self._title(name)
        for incident in incidents[: self.few]:
            times = f" ({self.words.count('log_times', incident.count)})" if incident.count > 1 else ""
            text = Text(f"{stamp(incident.at, self.words)}  ", style="dim")
            text.append(printable(self.report.title(incident)[self.language]), style="default not dim")
            text.append(f"{times}  {printable(place(incident, self.base))}", style="dim")
            self._line(text, indent=2)
        if len(incidents) > self.few:
            self._line(Text(self.words.count("log_more", len(incidents) - self.few), style="dim"), indent=2)

    def _remedy(self) -> None:
        root = self.report.root
        finding = next((f for f in self.run.findings if root is not None and f.check == check_of(root)), None)
        if finding is None or not finding.remedy:
            return
        self._title("remedy")
        for number, step in enumerate(finding.remedy, 1):
            self._line(Text(printable(step.text[self.language])), indent=2, label=Text(f"{number}. "))
            self._command(step, indent=5)
        if finding.verify:
            self._field("verify", finding.verify)
        if self.verbose:
            for source in finding.sources:
                self._field("sources", f"{source.title} ({source.confidence}) {source.url}")

    def _fetch(self) -> None:
        if self.report.fetch:
            self._title("log_fetch")
        for note in self.report.fetch:
            self._line(Text(printable(note.text[self.language])), indent=2, label=Text("- "))

    def _coverage(self) -> None:
        coverage = self.report.analysis.coverage
        self._title("log_coverage")
        engine = f" · {self.report.engine}" if self.report.engine else ""
        self._line(Text(f"{sums(coverage, self.words)}{engine}"), indent=2)
        if self.base:
            self._line(Text(printable(self.base)), indent=2)
        ordered = sorted(coverage, key=lambda one: not one.skipped)
        for one in ordered[: self.few]:
            files = self.words.count("log_files", one.files) if one.files > 1 else ""
            parts = [files, one.kind, one.encoding, span(one, self.words), one.skipped]
            text = Text(printable(one.path.removeprefix(self.base) or one.path))
            text.append("  " + printable(" · ".join(part for part in parts if part)), style="dim")
            self._line(text, indent=2)
        if len(ordered) > self.few:
            more = sum(one.files for one in ordered[self.few :])
            self._line(Text(self.words.count("log_more", more), style="dim"), indent=2)

    def _title(self, name: str) -> None:
        self.console.print()
        self._line(Text(self.words[name], style="bold"))
