"""A diff on a terminal: the two sides, what got worse with what to do, what got better or changed, the facts."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import Run
from ascend_doctor.report.console import STYLES, Printer, printable
from ascend_doctor.report.diff import FACTS_SHOWN, ChangeLine, counted, diff_of, fact_text
from ascend_doctor.report.words import Words


class DiffPrinter(Printer):
    """Prints what a diff adds; the findings are those of any run."""

    def __init__(self, run: Run, console: Console, words: Words, verbose: bool) -> None:
        super().__init__(run, console, words, verbose)
        self.diff = diff_of(run, words)
        self.few = len(self.diff.facts) if verbose else FACTS_SHOWN
        self.by_name = {(change.check, change.subject): change for change in self.diff.changes}

    def _who(self) -> None:
        for name in ("before", "after"):
            self._field(f"diff_{name}", getattr(self.diff, name), style="dim")

    def _answer_text(self, below: bool = True) -> None:
        """What there is stands behind the findings."""

    def _of_finding(self, finding: Finding) -> None:
        """What it was before, and which facts differ."""
        change = self.by_name.get((finding.check, finding.subject))
        if change is not None:
            self._field("diff_before", change.before)
            self._facts_of(change)

    def _behind(self) -> None:
        for kind in ("better", "changed"):
            changes = self.diff.of(kind)
            if changes:
                self.console.print()
                style = STYLES["pass" if kind == "better" else "info"]
                self._line(Text(self.words[f"diff_{kind}"], style=f"bold {style}"))
            for change in changes:
                name = change.check if change.subject == "host" else f"{change.check} {change.subject}"
                line = Text(f"{printable(name)}  ", style="dim").append(printable(change.before), style="not dim")
                line.append(" → ").append(printable(change.after), style="not dim")
                self._line(line, indent=2, hang=4)
                self._facts_of(change)
        if self.diff.facts:
            self.console.print()
            self._line(Text(self.words["diff_facts"], style="bold"))
            for fact in self.diff.facts[: self.few]:
                self._line(Text(printable(fact_text(fact))), indent=2, hang=4)
            if len(self.diff.facts) > self.few:
                left = self.words.count("console_more", len(self.diff.facts) - self.few)
                self._line(Text(left, style="dim"), indent=2)

    def _facts_of(self, change: ChangeLine) -> None:
        for fact in change.facts[: None if self.verbose else 3]:
            self._field("diff_fact", fact, style="dim")

    def _counts(self, more: bool) -> None:
        self.console.print()
        self._line(Text(printable(counted(self.diff, self.words))))
        if not self.verbose and more:
            self._line(Text(self.words["full_report"], style="dim"))
