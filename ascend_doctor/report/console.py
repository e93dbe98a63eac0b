"""A run on a terminal: verdict, what to do first, findings in two or three lines each, counts.

Off a terminal the same without colour; what hosts said is printed as text, whatever it holds.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text

from ascend_doctor.engine.findings import Finding, RemedyStep
from ascend_doctor.engine.run import Run
from ascend_doctor.host import Missing
from ascend_doctor.report.answers import answer_text, is_all
from ascend_doctor.report.summary import (
    by_missing,
    consequences,
    count_words,
    first_steps,
    gravity,
    headline,
    healthy_line,
    host_line,
)
from ascend_doctor.report.words import Words, words
from ascend_doctor.report.wrapping import breaks

WIDTH, WIDEST = 80, 120
"""Columns off a terminal, and the most on one: longer lines are hard to read."""

INDENT, LABEL = 2, 12
FOLLOWERS_NAMED = 6
STYLES = {
    "error": "bold red",
    "warning": "yellow",
    "info": "blue",
    "pass": "green",
    "unknown": "magenta",
    "skip": "dim",
    "waived": "dim",
    "explained": "dim",
}
MARKS = {"error": "✗", "warning": "▲", "info": "●", "pass": "✓", "unknown": "?", "skip": "-", "waived": "~"}


def print_run(run: Run, stream: TextIO, lang: str, quiet: bool = False, verbose: bool = False) -> None:
    """Writes the report; colours only where the stream is a terminal and NO_COLOR is not set."""
    if stream.isatty():
        console = Console(file=stream, highlight=False)
        console.width = min(console.width, WIDEST)
    else:
        console = Console(file=stream, highlight=False, width=WIDTH, no_color=True, color_system=None)
    _printer(run, console, words(lang), verbose).all(quiet)


def plain_text(run: Run, lang: str) -> str:
    """The same with everything shown, as plain text for a file."""
    stream = io.StringIO()
    console = Console(file=stream, highlight=False, width=WIDTH, color_system=None)
    _printer(run, console, words(lang), verbose=True).all(quiet=False)
    return stream.getvalue()


def _printer(run: Run, console: Console, words: Words, verbose: bool) -> Printer:
    if run.kind == "diff":
        from ascend_doctor.report.diff_console import DiffPrinter

        return DiffPrinter(run, console, words, verbose)
    if run.kind == "triage":
        from ascend_doctor.report.triage_console import TriagePrinter

        return TriagePrinter(run, console, words, verbose)
    if run.logs is None:
        return Printer(run, console, words, verbose)
    from ascend_doctor.report.logs_console import LogPrinter

    return LogPrinter(run, console, words, verbose)


class Printer:
    """Prints a run; what is of one kind of run alone is in a class of its own."""

    def __init__(self, run: Run, console: Console, words: Words, verbose: bool) -> None:
        self.run, self.console, self.words, self.verbose = run, console, words, verbose
        self.language = words.language
        self.steps = first_steps(run)

    def all(self, quiet: bool) -> None:
        """The verdict; not ``quiet``: what there is to do, what was found, and the counts."""
        run = self.run
        if is_all(run) and not quiet:
            self._answer_text(below=False)
            return
        healthy = "" if self.verbose else healthy_line(run, self.words)
        verdict = {"pass": "pass", "fail": "error", "undecided": "unknown"}[run.verdict]
        said = printable(healthy or headline(run, self.words))
        self._line(Text(f"{MARKS[verdict]} {said}", style=f"bold {STYLES[verdict]}"))
        if quiet:
            return
        if not healthy:
            self._who()
        self._notes()
        self._answer_text()
        self._do_first()
        top = [f for f in run.findings if f.verdict in ("fail", "waived") and not f.because]
        self._found(top)
        self._unknown([f for f in run.findings if f.verdict == "unknown" and not f.because])
        self._behind()
        if self.verbose:
            self._listed("does_not_apply", [f for f in run.findings if f.verdict == "skip"])
            self._listed("passed_checks", [f for f in run.findings if f.verdict == "pass"])
        if not healthy:
            self._counts(bool(top or run.counts["unknown"]))

    def _who(self) -> None:
        self._line(Text(printable(host_line(self.run)), style="dim"))

    def _behind(self) -> None:
        """What a kind of run tells behind its findings."""

    def _of_finding(self, finding: Finding) -> None:
        """What a kind of run tells of a finding below what was found."""

    def _notes(self) -> None:
        for note in self.run.notes:
            self._line(Text(printable(note.text[self.language]), style=STYLES["warning"]))

    def _answer_text(self, below: bool = True) -> None:
        text = answer_text(self.run, self.words, self.verbose)
        if text:
            if below:
                self.console.print()
            for line in text.splitlines():
                self.console.print(Text(printable(line)), soft_wrap=True)

    def _counts(self, more: bool) -> None:
        self.console.print()
        counted = Text(" · ").join(Text(text, style=STYLES[key]) for key, text in count_words(self.run, self.words))
        self._line(counted)
        if not self.verbose and more:
            self._line(Text(self.words["full_report"], style="dim"))

    def _do_first(self) -> None:
        if not self.steps:
            return
        self.console.print()
        self._line(Text(self.words["do_first"], style="bold"))
        for number, first in enumerate(self.steps, 1):
            text = Text(printable(first.step.text[self.language]))
            clears = f"; {self.words.count('clears', first.clears)}" if first.clears > 1 else ""
            text.append(f" ({self._name(first.finding)}{clears})", style="dim")
            self._line(text, indent=INDENT, label=Text(f"{number}. "))
            self._command(first.step, indent=INDENT + 3)

    def _found(self, findings: list[Finding]) -> None:
        """Each grave finding; mere notes in one line each."""
        grave = findings if self.verbose else [f for f in findings if f.severity != "info" and f.verdict == "fail"]
        for finding in grave:
            self._finding(finding)
        lesser = [f for f in findings if f not in grave]
        if lesser:
            self.console.print()
        self._in_short(lesser)

    def _in_short(self, findings: Sequence[Finding]) -> None:
        """Each in one line: what was found."""
        for finding in findings:
            mark = gravity(finding)
            said = (finding.found or finding.title)[self.language]
            label = Text(f"{MARKS[mark]} ", style=STYLES[mark])
            line = Text(f"{self._name(finding)}: ", style="dim").append(printable(said), style="not dim")
            if finding.waiver is not None:
                line.append(f"; {printable(self.words.waiver(finding.waiver))}", style="dim")
            self._line(line, label=label)

    def _name(self, finding: Finding) -> str:
        return finding.check if finding.subject == "host" else f"{finding.check} {printable(finding.subject)}"

    def _finding(self, finding: Finding) -> None:
        mark = gravity(finding)
        self.console.print()
        line = Text(printable(finding.title[self.language]), style="bold")
        line.append(f"  {self._name(finding)}", style="dim not bold")
        number = self._step_above(finding)
        if number:
            line.append(f"  ({self.words['console_step'].format(number=number)})", style="not bold")
        self._line(line, label=Text(f"{MARKS[mark]} {self.words[mark]}  ", style=STYLES[mark]), hang=INDENT)
        for name, texts in (("found", finding.found), ("expected", finding.expected)):
            if texts is not None:
                self._field(name, texts[self.language])
        self._of_finding(finding)
        if finding.waiver is not None:
            self._field("waived", self.words.waiver(finding.waiver))
        if self.verbose:
            if finding.why is not None:
                self._field("why", finding.why[self.language])
            for evidence in finding.evidence:
                self._field("evidence", f"{evidence.source}\n{evidence.text}")
        self._remedy_of(finding)
        if self.verbose:
            if finding.verify:
                self._field("verify", finding.verify)
            for source in finding.sources:
                self._field("sources", f"{source.title} ({source.confidence}) {source.url}")
        self._missing(finding.missing)
        below = consequences(finding, self.run.findings)
        if below:
            names = list(dict.fromkeys(f.check for f in below))
            kept = names if self.verbose else names[:FOLLOWERS_NAMED]
            left = len(names) - len(kept)
            more = f", {self.words.count('console_more', left)}" if left else ""
            self._field("follows", ", ".join(kept) + more, style="dim")

    def _step_above(self, finding: Finding) -> int:
        """The number under which its first step was printed already; 0: it was not, or all is wanted."""
        wanted = finding.remedy[:1] if not self.verbose else ()
        return next((n for n, first in enumerate(self.steps, 1) if (first.step,) == wanted), 0)

    def _remedy_of(self, finding: Finding) -> None:
        steps = finding.remedy if self.verbose else finding.remedy[: not self._step_above(finding)]
        for step in steps:
            self._field("remedy", step.text[self.language])
            self._command(step, indent=INDENT + LABEL)

    def _missing(self, missing: tuple[Missing, ...]) -> None:
        for one in missing:
            reason = self.words[f"reason_{one.reason.value}"]
            self._field("undetermined", f"{one.path}: {reason}{f' ({one.detail})' if one.detail else ''}", style="dim")

    def _unknown(self, findings: list[Finding]) -> None:
        if not findings:
            return
        self.console.print()
        self._line(Text(self.words["could_not_judge"], style=f"bold {STYLES['unknown']}"))
        for _, group in by_missing(findings):
            subjects = [f.check if f.subject == "host" else f"{f.check} {f.subject}" for f in group]
            self._line(Text(printable(", ".join(dict.fromkeys(subjects)))), label=Text(f"{MARKS['unknown']} "))
            self._missing(group[0].missing)

    def _listed(self, name: str, findings: list[Finding]) -> None:
        if not findings:
            return
        self.console.print()
        self._line(Text(self.words[name], style="bold"))
        for finding in findings:
            text = Text(
                f"{MARKS[finding.verdict]} {finding.check} {printable(finding.subject)}", STYLES[finding.verdict]
            )
            if finding.reason:
                text.append(f": {printable(finding.reason)}", style="dim")
            self._line(text, indent=2)

    def _field(self, name: str, text: str, style: str = "default") -> None:
        label = Text(self.words[name], style="dim")
        label.pad_right(LABEL - label.cell_len)
        for line in printable(text).split("\n"):
            self._line(Text(line, style=style), indent=INDENT, label=label)
            label = Text(" " * LABEL)

    def _command(self, step: RemedyStep, indent: int) -> None:
        marks = [self.words["needs_root"]] if step.needs_root else []
        effect = self.words[f"effect_{step.effect}"]
        marks += [effect] if effect else []
        if step.command:
            text = Text(f"$ {printable(step.command)}", style="bold")
            text.append(f"  ({', '.join(marks)})" if marks else "", style="dim not bold")
            # a command stays one line, so that it can be copied whole
            self.console.print(Text(" " * indent).append_text(text), soft_wrap=True)

    def _line(self, text: Text, indent: int = 0, label: Text | None = None, hang: int | None = None) -> None:
        """A text wrapped into its column, right of its label; further lines ``hang`` columns in."""
        head = Text(" " * indent).append_text(label or Text())
        further = head.cell_len if hang is None else hang
        width = max(20, self.console.width - max(head.cell_len, further))
        lines = text.divide(breaks(text.plain, width))
        for line in lines or [text]:
            line.rstrip()
            self.console.print(head + line, soft_wrap=True)
            head = Text(" " * further)


def printable(text: str) -> str:
    """Text from a host, safe on a terminal: control and direction characters are shown, not obeyed."""
    if "\t" in text:
        text = text.expandtabs()
    return "".join(c if c == "\n" or (c.isprintable() and not _turns(c)) else f"\\x{ord(c):02x}" for c in text)


def _turns(character: str) -> bool:
    return "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069" or character in "\u200e\u200f\u061c"
