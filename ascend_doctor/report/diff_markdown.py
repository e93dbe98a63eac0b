"""A diff in Markdown: the two sides, what got worse, better or changed, and the facts that differ, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from ascend_doctor.engine.differences import KINDS
from ascend_doctor.engine.run import Run
from ascend_doctor.report.diff import counted, diff_of
from ascend_doctor.report.markdown_text import code, code_cell, plain
from ascend_doctor.report.words import Words

FACTS = 100


def lines(run: Run, words: Words) -> Iterator[str]:
    """What stands between the verdict and what to do."""
    found = diff_of(run, words)
    for name, side in (("before", found.before), ("after", found.after)):
        yield ""
        yield f"**{words[f'diff_{name}']}**{words['colon']}{code(side)}"
    yield ""
    yield plain(counted(found, words))
    for kind in KINDS:
        changes = found.of(kind)
        if not changes:
            continue
        yield from ("", f"### {words[f'diff_{kind}']}", "")
        yield f"| {words['check']} | {words['diff_before']} | {words['diff_after']} | {words['diff_fact']} |"
        yield "|---|---|---|---|"
        for one in changes:
            name = code_cell(one.check if one.subject == "host" else f"{one.check} {one.subject}")
            facts = ", ".join(code_cell(fact) for fact in one.facts[:3])
            yield f"| {name} | {plain(one.before)} | {plain(one.after)} | {facts} |"
    if found.facts:
        yield from ("", f"### {words['diff_facts']}", "")
        yield f"| {words['diff_fact']} | {words['diff_before']} | {words['diff_after']} |"
        yield "|---|---|---|"
        for fact in found.facts[:FACTS]:
            yield f"| {code_cell(fact.path)} | {code_cell(fact.before)} | {code_cell(fact.after)} |"
        if len(found.facts) > FACTS:
            yield from ("", plain(words.count("console_more", len(found.facts) - FACTS)))
