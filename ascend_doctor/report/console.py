"""A run on a terminal: verdict, what to do first, findings in two or three lines each, counts.

Off a terminal the same without colour; what hosts said is printed as text, whatever it holds.
"""

from __future__ import annotations

import io
from typing import TextIO

from rich.console import Console
from rich.text import Text

from ascend_doctor.engine.findings import Finding, RemedyStep
from ascend_doctor.engine.run import Run
from ascend_doctor.host import Missing
from ascend_doctor.report.summary import by_missing, consequences, count_words, first_steps, gravity, headline
from ascend_doctor.report.words import Words, words

WIDTH = 80
LABEL = 12
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
    console = Console(file=stream, highlight=False, soft_wrap=False)
    if not stream.isatty():
        console = Console(file=stream, highlight=False, width=WIDTH, no_color=True, color_system=None)
    _printer(run, console, words(lang), verbose).all(quiet)


def plain_text(run: Run, lang: str) -> str:
    """The same with everything shown, as plain text for a file."""
    stream = io.StringIO()
    console = Console(file=stream, highlight=False, width=WIDTH, color_system=None)
    _printer(run, console, words(lang), verbose=True).all(quiet=False)
    return stream.getvalue()


def _printer(run: Run, console: Console, words: Words, verbose: bool) -> Printer:
    if run.logs is None:
        return Printer(run, console, words, verbose)
    from ascend_doctor.report.logs_console import LogPrinter

    return LogPrinter(run, console, words, verbose)


class Printer:
    """Prints a run; what is of one kind of run alone is in a class of its own."""

    def __init__(self, run: Run, console: Console, words: Words, verbose: bool) -> None:
        self.run, self.console, self.words, self.verbose = run, console, words, verbose
        self.language = words.language

    def all(self, quiet: bool) -> None:
        run = self.run
        verdict = {"pass": "pass", "fail": "error", "undecided": "unknown"}[run.verdict]
        self._line(Text(f"{MARKS[verdict]} {headline(run, self.words)}", style=f"bold {STYLES[verdict]}"))
        if quiet:
            return
        self._line(Text(self._host(), style="dim"))
        for note in run.notes:
            self._line(Text(printable(note.text[self.language]), style=STYLES["warning"]))
        self._smoke()
        self._do_first()
        top = [f for f in run.findings if f.verdict in ("fail", "waived") and not f.because]
        for finding in top:
            self._finding(finding)
        self._unknown([f for f in run.findings if f.verdict == "unknown" and not f.because])
        if self.verbose:
            self._listed("does_not_apply", [f for f in run.findings if f.verdict == "skip"])
            self._listed("passed_checks", [f for f in run.findings if f.verdict == "pass"])
        self.console.print()
        counted = Text(" · ").join(Text(text, style=STYLES[key]) for key, text in count_words(run, self.words))
        self._line(counted)
        if not self.verbose and (top or run.counts["unknown"]):
            self._line(Text(self.words["full_report"], style="dim"))

    def _host(self) -> str:
        host = self.run.host
        known = [str(host[name]) for name in ("hostname", "arch", "kernel") if host.get(name)]
        user = [] if host.get("uid") is None else [f"uid {host['uid']}"]
        return printable(" · ".join([*known, *user, self.run.started]))

    def _smoke(self) -> None:
        """The ladder of stages, where the run has one."""
        if not self.run.rows:
            return
        from ascend_doctor.report import smoke

        for summary in smoke.summaries(self.run):
            self.console.print()
            for left, text, mark in smoke.lines(summary, self.run, self.words):
                style = STYLES.get(mark, "default")
                self._line(Text(text, style=style), label=Text(left, style=style))

    def _do_first(self) -> None:
        steps = first_steps(self.run)
        if not steps:
            return
        self.console.print()
        self._line(Text(self.words["do_first"], style="bold"))
        for number, first in enumerate(steps, 1):
            text = Text(printable(first.step.text[self.language]))
            if first.clears > 1:
                text.append(f" ({self.words.count('clears', first.clears)})", style="dim")
            self._line(text, indent=2, label=Text(f"{number}. "))
            self._command(first.step, indent=5)

    def _finding(self, finding: Finding) -> None:
        mark = gravity(finding)
        self.console.print()
        line = Text(f"{MARKS[mark]} {self.words[mark]}  ", style=STYLES[mark])
        line.append(f"{finding.check}", style="bold")
        line.append("" if finding.subject == "host" else f"  {printable(finding.subject)}")
        self._line(line)
        self._line(Text(printable(finding.title[self.language]), style="dim"), indent=2)
        for name, texts in (("found", finding.found), ("expected", finding.expected)):
            if texts is not None:
                self._field(name, texts[self.language])
        if finding.waiver is not None:
            self._field("waived", self.words.waiver(finding.waiver))
        if self.verbose:
            if finding.why is not None:
                self._field("why", finding.why[self.language])
            for evidence in finding.evidence:
                self._field("evidence", f"{evidence.source}\n{evidence.text}")
        steps = finding.remedy if self.verbose else finding.remedy[: finding.severity != "info"]
        for step in steps:
            self._field("remedy", step.text[self.language])
            self._command(step, indent=4 + LABEL)
        if self.verbose:
            if finding.verify:
                self._field("verify", finding.verify)
            for source in finding.sources:
                self._field("sources", f"{source.title} ({source.confidence}) {source.url}")
        self._missing(finding.missing)
        below = consequences(finding, self.run.findings)
        if below:
            names = ", ".join(dict.fromkeys(f.check for f in below))
            self._field("follows", names, style="dim")

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
            self._line(Text(f"{MARKS['unknown']} {printable(', '.join(dict.fromkeys(subjects)))}"), indent=2)
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
            self._line(Text(line, style=style), indent=4, label=label)
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

    def _line(self, text: Text, indent: int = 0, label: Text | None = None) -> None:
        """A text wrapped into its column, right of its label."""
        head = Text(" " * indent).append_text(label or Text())
        for line in text.wrap(self.console, max(20, self.console.width - head.cell_len)):
            self.console.print(head + line, soft_wrap=True)
            head = Text(" " * head.cell_len)


def printable(text: str) -> str:
    """Text from a host, safe on a terminal: control and direction characters are shown, not obeyed."""
    return "".join(c if c == "\n" or (c.isprintable() and not _turns(c)) else f"\\x{ord(c):02x}" for c in text)


def _turns(character: str) -> bool:
    return "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069" or character in "\u200e\u200f\u061c"
