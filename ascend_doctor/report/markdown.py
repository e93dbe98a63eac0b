"""A run as Markdown that pastes into GitHub, Gitee and Jira: plain tables, lists and code blocks.

What hosts said is hostile: it stands in code, or in sentences in which neither markup nor mentions work. The only HTML
is ``<details>``, which GitHub and Gitee fold and Jira shows open.
"""

from __future__ import annotations

from collections.abc import Iterator

from ascend_doctor.engine.findings import Finding, RemedyStep
from ascend_doctor.engine.run import Run
from ascend_doctor.report.answers import answer_text
from ascend_doctor.report.console import MARKS
from ascend_doctor.report.markdown_text import block, code, code_cell, in_html, link, plain
from ascend_doctor.report.summary import by_missing, consequences, count_words, first_steps, gravity, headline
from ascend_doctor.report.words import Words, words

LIMIT = 60_000
"""Characters; GitHub takes 65,536 for an issue or a comment, and its reader wants to add some."""

EXCERPT = 2000
"""Characters of one piece of evidence."""


def as_text(run: Run, lang: str) -> str:
    """Verdict, what to do first, a table of findings, then each in detail; cut where a tracker would refuse it."""
    page = _Page(run, words(lang))
    text = "\n".join([*page.head(), *page.behind()]) + "\n"
    details = ["\n".join(part) + "\n" for part in page.details()]
    for number, part in enumerate(details):
        if len(text) + len(part) > LIMIT:
            return f"{text}\n{plain(page.words.count('markdown_cut', len(details) - number))}\n"
        text += part
    return text


class _Page:
    def __init__(self, run: Run, words: Words) -> None:
        self.run, self.words, self.language = run, words, words.language
        self.failed = [f for f in run.findings if f.verdict in ("fail", "waived") and not f.because]

    def head(self) -> Iterator[str]:
        """What every reader sees: all but the details."""
        run, words = self.run, self.words
        mark = {"pass": "pass", "fail": "error", "undecided": "unknown"}[run.verdict]
        yield f"## {MARKS[mark]} {plain(headline(run, words))}"
        yield ""
        known = [str(run.host[name]) for name in ("hostname", "arch", "kernel") if run.host.get(name)]
        yield " · ".join([*(code(word) for word in known), plain(run.started), f"ascend-doctor {plain(run.version)}"])
        yield ""
        yield " · ".join(text for _, text in count_words(run, words))
        for note in run.notes:
            yield ""
            yield f"> {plain(note.text[self.language])}"
        yield from self._answer()
        yield from self._first()
        yield from self._table()
        yield from self._unknown()

    def details(self) -> Iterator[Iterator[str]]:
        """Each a part of its own, the gravest first."""
        for finding in self.failed:
            yield self._finding(finding)

    def behind(self) -> Iterator[str]:
        """What a kind of run has behind its findings; never cut."""
        if self.run.kind == "triage":
            from ascend_doctor.report import triage_markdown

            yield from triage_markdown.behind(self.run, self.words)

    def _answer(self) -> Iterator[str]:
        if self.run.kind == "triage":
            from ascend_doctor.report import triage_markdown

            yield from triage_markdown.lines(self.run, self.words)
            return
        if self.run.logs is not None:
            from ascend_doctor.report.logs_markdown import lines

            yield from lines(self.run.logs, self.words)
        if self.run.kind == "diff":
            from ascend_doctor.report import diff_markdown

            yield from diff_markdown.lines(self.run, self.words)
            return
        text = answer_text(self.run, self.words, verbose=True)
        if text:
            yield ""
            yield from block(text.rstrip("\n"))

    def _first(self) -> Iterator[str]:
        steps = first_steps(self.run)
        if not steps:
            return
        yield ""
        yield f"### {self.words['do_first']}"
        for number, first in enumerate(steps, 1):
            yield ""
            name = code(first.finding.check)
            yield f"{number}. {plain(first.step.text[self.language])}{self._marks(first.step)} {name}"
            yield from self._command(first.step.command, "   ")

    def _table(self) -> Iterator[str]:
        if not self.failed:
            return
        words = self.words
        yield ""
        yield f"### {words['findings']}"
        yield ""
        yield f"| | {words['check']} | {words['found']} | {words['expected']} |"
        yield "|---|---|---|---|"
        for f in self.failed:
            mark = gravity(f)
            subject = "" if f.subject == "host" else f" {code_cell(f.subject)}"
            found, expected = (plain(t[self.language]) if t else "" for t in (f.found, f.expected))
            yield f"| {MARKS[mark]} {words[mark]} | {code_cell(f.check)}{subject} | {found} | {expected} |"

    def _finding(self, finding: Finding) -> Iterator[str]:
        words = self.words
        subject = "" if finding.subject == "host" else f" {in_html(finding.subject)}"
        title = f"{in_html(finding.title[self.language])} ({in_html(finding.check)}{subject})"
        yield ""
        yield "<details>"
        yield f"<summary>{MARKS[gravity(finding)]} {title}</summary>"
        for name, texts in (("found", finding.found), ("expected", finding.expected), ("why", finding.why)):
            if texts:
                yield ""
                yield f"**{words[name]}**{words['colon']}{plain(texts[self.language])}"
        if finding.waiver:
            yield ""
            yield f"**{words['waived']}**{words['colon']}{plain(words.waiver(finding.waiver))}"
        for step in finding.remedy:
            yield ""
            yield f"- {plain(step.text[self.language])}{self._marks(step)}"
            yield from self._command(step.command, "  ")
        if finding.verify:
            yield ""
            yield f"**{words['verify']}**"
            yield ""
            yield from block(finding.verify, language="sh")
        for evidence in finding.evidence:
            yield ""
            yield f"{words['evidence']} {code(evidence.source)}"
            yield ""
            yield from block(excerpt(evidence.text))
        followers = consequences(finding, self.run.findings)
        if followers:
            yield ""
            yield f"{words['follows']}{words['colon']}{', '.join(dict.fromkeys(code(f.check) for f in followers))}"
        for source in finding.sources:
            yield ""
            told = f"{plain(source.title)} ({plain(source.confidence)}) {link(source.url)}".rstrip()
            yield f"{words['sources']}{words['colon']}{told}"
        yield ""
        yield "</details>"

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
            yield f"- {names}{self.words['colon']}{reasons}"

    def _command(self, command: str | None, indent: str) -> Iterator[str]:
        if command:
            yield ""
            yield from block(command, indent, "sh")

    def _marks(self, step: RemedyStep) -> str:
        marks = [self.words["needs_root"]] if step.needs_root else []
        marks += [self.words[f"effect_{step.effect}"]] if step.effect != "none" else []
        return f" ({', '.join(marks)})" if marks else ""


def excerpt(text: str) -> str:
    """The head and the tail of what is long."""
    if len(text) <= EXCERPT:
        return text
    half = EXCERPT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} …\n{text[-half:]}"
