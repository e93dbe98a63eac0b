"""A run as Markdown that pastes into GitHub, Gitee and Jira: plain tables, lists and code blocks.

What hosts said is hostile: it stands in code, where neither markup nor mentions work.
"""

from __future__ import annotations

from collections.abc import Iterator

from ascend_doctor.engine.findings import Finding, RemedyStep
from ascend_doctor.engine.run import Run
from ascend_doctor.report.console import MARKS, printable
from ascend_doctor.report.summary import by_missing, consequences, count_words, first_steps, gravity, headline
from ascend_doctor.report.words import Words, words


def as_text(run: Run, lang: str) -> str:
    """Verdict, what to do first, a table of findings, then each in detail."""
    return "\n".join(_Page(run, words(lang)).lines()) + "\n"


class _Page:
    def __init__(self, run: Run, words: Words) -> None:
        self.run, self.words, self.language = run, words, words.language

    def lines(self) -> Iterator[str]:
        run, words = self.run, self.words
        mark = {"pass": "pass", "fail": "error", "undecided": "unknown"}[run.verdict]
        yield f"## {MARKS[mark]} {headline(run, words)}"
        yield ""
        known = [str(run.host[name]) for name in ("hostname", "arch", "kernel") if run.host.get(name)]
        yield " · ".join([*(code(word) for word in known), run.started, f"ascend-doctor {run.kind}"])
        yield ""
        yield " · ".join(text for _, text in count_words(run, words))
        for note in run.notes:
            yield ""
            yield f"> {plain(note.text[self.language])}"
        if run.logs is not None:
            from ascend_doctor.report.logs_markdown import lines

            yield from lines(run.logs, words)
        if run.rows:
            from ascend_doctor.report.smoke import markdown

            yield from markdown(run, words)
        yield from self._first()
        failed = [f for f in run.findings if f.verdict in ("fail", "waived") and not f.because]
        yield from self._table(failed)
        for finding in failed:
            yield from self._finding(finding)
        yield from self._unknown()

    def _first(self) -> Iterator[str]:
        steps = first_steps(self.run)
        if not steps:
            return
        yield ""
        yield f"### {self.words['do_first']}"
        for number, first in enumerate(steps, 1):
            yield ""
            yield f"{number}. {plain(first.step.text[self.language])}{self._marks(first.step)}"
            yield from self._command(first.step.command, "   ")

    def _table(self, findings: list[Finding]) -> Iterator[str]:
        if not findings:
            return
        words = self.words
        yield ""
        yield f"### {words['findings']}"
        yield ""
        yield f"| | {words['check']} | {words['found']} | {words['expected']} |"
        yield "|---|---|---|---|"
        for f in findings:
            mark = gravity(f)
            subject = "" if f.subject == "host" else f" {code(f.subject)}"
            found, expected = (cell(t[self.language]) if t else "" for t in (f.found, f.expected))
            yield f"| {MARKS[mark]} {words[mark]} | {code(f.check)}{bar_free(subject)} | {found} | {expected} |"

    def _finding(self, finding: Finding) -> Iterator[str]:
        words = self.words
        subject = "" if finding.subject == "host" else f" {code(finding.subject)}"
        yield ""
        yield f"#### {MARKS[gravity(finding)]} {code(finding.check)}{subject}: {plain(finding.title[self.language])}"
        for name, texts in (("found", finding.found), ("expected", finding.expected), ("why", finding.why)):
            if texts:
                yield ""
                yield f"**{words[name]}**: {plain(texts[self.language])}"
        if finding.waiver:
            yield ""
            yield f"**{words['waived']}**: {plain(words.waiver(finding.waiver))}"
        for step in finding.remedy:
            yield ""
            yield f"- {plain(step.text[self.language])}{self._marks(step)}"
            yield from self._command(step.command, "  ")
        for evidence in finding.evidence:
            yield ""
            yield f"{words['evidence']} {code(evidence.source)}"
            yield from block(evidence.text, "")
        followers = consequences(finding, self.run.findings)
        if followers:
            yield ""
            yield f"{words['follows']}: {', '.join(dict.fromkeys(code(f.check) for f in followers))}"
        for source in finding.sources:
            yield ""
            yield f"{words['sources']}: {plain(source.title)} ({source.confidence}) {source.url}".rstrip()

    def _unknown(self) -> Iterator[str]:
        unknown = [f for f in self.run.findings if f.verdict == "unknown" and not f.because]
        if not unknown:
            return
        yield ""
        yield f"### {self.words['could_not_judge']}"
        yield ""
        for _, group in by_missing(unknown):
            names = ", ".join(dict.fromkeys(code(f.check) for f in group))
            reasons = "; ".join(
                f"{code(m.path)} {self.words[f'reason_{m.reason.value}']}{f' ({code(m.detail)})' if m.detail else ''}"
                for m in group[0].missing
            )
            yield f"- {names}: {reasons}"

    def _command(self, command: str | None, indent: str) -> Iterator[str]:
        if command:
            yield ""
            yield from block(command, indent, "sh")

    def _marks(self, step: RemedyStep) -> str:
        marks = [self.words["needs_root"]] if step.needs_root else []
        marks += [self.words[f"effect_{step.effect}"]] if step.effect != "none" else []
        return f" ({', '.join(marks)})" if marks else ""


def code(text: str) -> str:
    """Text of a host as inline code, whatever backticks it has."""
    one_line = printable(text).replace("\n", " ")
    ticks = "`" * (_longest_run(one_line) + 1)
    pad = " " if one_line.startswith("`") or one_line.endswith("`") or not one_line.strip() else ""
    return f"{ticks}{pad}{one_line}{pad}{ticks}"


def cell(text: str) -> str:
    """A text in a table."""
    return bar_free(plain(text))


def bar_free(text: str) -> str:
    """A bar ends a table's cell even inside code."""
    return text.replace("|", "\\|")


def plain(text: str) -> str:
    """A sentence of ours with values of a host in it: no markup, no mention, no line break works in it."""
    escaped = printable(text).replace("\n", " ").replace("\\", "\\\\")
    for character in "`*_[]<>#~":
        escaped = escaped.replace(character, f"\\{character}")
    return escaped.replace("@", "@\u200b").replace("://", ":\u200b//")


def block(text: str, indent: str, language: str = "") -> Iterator[str]:
    """Text as a code block that nothing in it can end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    yield f"{indent}{fence}{language}"
    for line in printable(text).split("\n"):
        yield f"{indent}{line}"
    yield f"{indent}{fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
