"""A triage on a terminal: the cause, why it is one, the lines that prove it, what to do; then all else in short."""

from __future__ import annotations

from rich.text import Text

from ascend_doctor.engine.findings import Finding
from ascend_doctor.report.console import STYLES, Printer, printable
from ascend_doctor.report.logs import base_of, place, proof, since, sums, where
from ascend_doctor.report.summary import host_line
from ascend_doctor.report.triage import block_of, cause_of

PROOF_SHOWN = 300


class TriagePrinter(Printer):
    """Prints what a triage adds; the findings are those of any run."""

    def _who(self) -> None:
        cause = cause_of(self.run, self.words)
        if cause is not None:
            subject = "" if cause.subject == "host" else f" {cause.subject}"
            self._field("triage_why", cause.why)
            self._field("log_confidence", f"{cause.confidence} ({cause.check}{subject})")
            if cause.of_logs:
                self._proof()
        self._line(Text(printable(host_line(self.run)), style="dim"))

    def _proof(self) -> None:
        report = self.run.logs
        if report is None or report.root is None:
            return
        base = base_of(report)
        said = " · ".join(text for text in (where(report.root, self.words), place(report.root, base)) if text)
        self._field("log_where", said)
        self._field("log_since", since(report.root, self.words))
        for _, text in proof(report, base)[: None if self.verbose else 1]:
            self._field("evidence", text[:PROOF_SHOWN] + ("…" if len(text) > PROOF_SHOWN else ""))

    def _found(self, findings: list[Finding]) -> None:
        """The cause stands above; what else was found is for later."""
        if self.verbose:
            super()._found(findings)
            return
        cause = cause_of(self.run, self.words)
        others = [f for f in findings if cause is None or (f.check, f.subject) != (cause.check, cause.subject)]
        if others:
            self.console.print()
            self._line(Text(self.words["triage_others"], style="bold"))
        self._in_short(others)

    def _answer_text(self, below: bool = True) -> None:
        """The block stands at the end."""

    def _behind(self) -> None:
        report = self.run.logs
        if report is not None:
            self.console.print()
            verdict = self.words[f"log_{report.analysis.verdict.replace('-', '_')}"]
            self._field("triage_logs", f"{verdict} · {sums(report.analysis.coverage, self.words)}")
            if report.fetch:
                self._line(Text(self.words["log_fetch"], style="bold"))
            for note in report.fetch:
                self._line(Text(printable(note.text[self.language])), indent=2, label=Text("- "))
        if not self.verbose:
            if cause_of(self.run, self.words):
                self._line(Text(self.words["triage_block_hint"], style="dim"))
            return
        self.console.print()
        self._line(Text(self.words["triage_block"], style=f"bold {STYLES['info']}"))
        for section in block_of(self.run, self.words):
            self._line(Text(printable(section.title), style="bold"), indent=2)
            for line in printable(section.text).split("\n"):
                self.console.print(Text(f"    {line}"), soft_wrap=True)
