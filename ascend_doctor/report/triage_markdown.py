"""A triage in Markdown, as an issue wants it: the cause, the lines that prove it, and what maintainers ask for."""

from __future__ import annotations

from collections.abc import Iterator

from ascend_doctor.engine.run import Run
from ascend_doctor.report.logs import base_of, proof, sums
from ascend_doctor.report.markdown_text import block, code, in_html, plain
from ascend_doctor.report.triage import block_of, cause_of
from ascend_doctor.report.words import Words


def lines(run: Run, words: Words) -> Iterator[str]:
    """What stands between the verdict and what to do."""
    cause = cause_of(run, words)
    if cause is not None:
        subject = "" if cause.subject == "host" else f" {code(cause.subject)}"
        yield ""
        yield f"**{words['triage_why']}**{words['colon']}{plain(cause.why)} ({code(cause.check)}{subject})"
        yield ""
        yield f"**{words['log_confidence']}**{words['colon']}{cause.confidence}"
    report = run.logs
    if report is None:
        return
    if cause is not None and cause.of_logs:
        for source, text in proof(report, base_of(report)):
            yield ""
            yield code(source)
            yield ""
            yield from block(text)
    verdict = words[f"log_{report.analysis.verdict.replace('-', '_')}"]
    yield ""
    yield f"**{words['triage_logs']}**{words['colon']}{verdict} · {sums(report.analysis.coverage, words)}"
    if report.fetch:
        yield from ("", f"### {words['log_fetch']}", "")
        yield from (f"- {plain(note.text[words.language])}" for note in report.fetch)


def behind(run: Run, words: Words) -> Iterator[str]:
    """The block, folded, part by part."""
    yield ""
    yield f"### {words['triage_block']}"
    for section in block_of(run, words):
        yield ""
        yield "<details>"
        yield f"<summary>{in_html(section.title)}</summary>"
        yield ""
        yield from block(section.text)
        yield ""
        yield "</details>"
