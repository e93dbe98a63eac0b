"""A run over logs in Markdown: what stands above the findings."""

from __future__ import annotations

from collections.abc import Iterator

from ascend_doctor.engine.log_report import LogReport
from ascend_doctor.report.logs import (
    base_of,
    followed,
    others,
    place,
    proof,
    ranks_said,
    reached,
    since,
    stamp,
    sums,
    where,
)
from ascend_doctor.report.markdown_text import block, code, plain
from ascend_doctor.report.words import Words

FEW = 20


def lines(report: LogReport, words: Words) -> Iterator[str]:
    """Where and since when, the lines that prove it, what followed, what is missing, what was read."""
    base, root, language = base_of(report), report.root, words.language
    if root is not None:
        yield ""
        places = [where(root, words), *ranks_said(report, words), reached(report, words)]
        yield f"**{words['log_where']}**: {' · '.join(plain(one) for one in places if one)} {code(place(root, base))}"
        yield f"**{words['log_since']}**: {since(root, words)}"
        yield f"**{words['log_confidence']}**: {words[f'confidence_{report.analysis.answer.confidence}']}"
        for source, text in proof(report, base):
            yield ""
            yield code(source)
            yield from block(text)
    groups = {"log_chain": followed(report), **others(report)}
    for name, incidents in groups.items():
        if not incidents:
            continue
        yield ""
        yield f"### {words[name]}"
        yield ""
        for incident in incidents[:FEW]:
            title = plain(report.title(incident)[language])
            yield f"- {stamp(incident.at, words)} {title} {code(place(incident, base))}"
        if len(incidents) > FEW:
            yield f"- {words.count('log_more', len(incidents) - FEW)}"
    if report.fetch:
        yield ""
        yield f"### {words['log_fetch']}"
        yield ""
        yield from (f"- {plain(note.text[language])}" for note in report.fetch)
    yield ""
    yield f"{words['log_coverage']}: {sums(report.analysis.coverage, words)}"
