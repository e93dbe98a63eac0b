"""Markdown as trackers read it: nothing that a host said is markup, a mention, a reference or a link."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from hosts import host
from hypothesis import given, settings
from hypothesis import strategies as st
from log_runs import CAPTURES, run_of
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.findings import Evidence
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, preflight
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.paths import data_folder
from ascend_doctor.report import markdown
from ascend_doctor.report.markdown_text import block, code, code_cell, in_html, link, plain

HOSTILE = (
    "</details>`|<b>@all\x1b[31m\u202e\n# x\n```\n~~~\n![a](http://b/c.png) [x](javascript:y) #123 GH-7 !9 &#64;all "
    "{noformat} {color:red} [~user] www.evil.example https://evil.example \\| \\` | -- |\n"
)
LINKED = re.compile(r"(?i)(?<![\w/])@\w|(?<!\w)#\w|(?<!\w)!\d|\bGH-\d|\bwww\.\w|https?://\w")
"""What GitHub, Gitee or Jira make a link or a mention of in rendered text."""


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def inline(text: str) -> list[Token]:
    return [token for one in parsed(text) for token in one.children or ()]


def said(text: str) -> str:
    """What a reader sees of a text, code aside."""
    return "".join(token.content for token in inline(text) if token.type == "text")


@pytest.fixture(scope="module")
def example() -> Run:
    checks = load_checks([data_folder("checks")])
    return preflight(open_snapshot(data_folder("reports") / "example"), Asked(checks, rulebook()))


@pytest.fixture(scope="module")
def hostile(example: Run) -> Run:
    """Every text of the first findings says something hostile; so do subject, command, evidence and notes."""
    texts = {"en": HOSTILE, "zh": HOSTILE}
    spoiled = [
        replace(
            finding,
            subject=HOSTILE,
            title=texts,
            found=texts,
            expected=texts,
            why=texts,
            verify=HOSTILE,
            evidence=(Evidence(HOSTILE, HOSTILE),),
            remedy=tuple(replace(step, text=texts, command=HOSTILE) for step in finding.remedy),
        )
        for finding in example.findings[:4]
    ]
    host_words = {**example.host, "hostname": HOSTILE}
    return replace(example, findings=(*spoiled, *example.findings[4:]), host=host_words)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nothing_that_a_host_says_is_markup(hostile: Run, lang: str) -> None:
    tokens = parsed(markdown.as_text(hostile, lang))
    html = [token.content for token in tokens if token.type == "html_block"]
    assert not [one for one in html if re.sub(r"</?details>|</?summary>", "", one).count("<")]
    kinds = {child.type for token in tokens for child in token.children or ()}
    assert kinds <= {"text", "code_inline", "strong_open", "strong_close", "text_special"}


def test_nothing_that_a_host_says_is_a_mention_a_reference_or_a_link(hostile: Run) -> None:
    text = markdown.as_text(hostile, "en")
    shown = re.sub(r"sources: .*", "", said(text)) + unescape("".join(re.findall("<summary>(.*)</summary>", text)))
    ours = re.compile(r"https://[\w.-]+/(?!/)")
    assert not [found for found in LINKED.findall(ours.sub("", shown)) if found]


def test_each_details_is_closed(hostile: Run) -> None:
    text = markdown.as_text(hostile, "en")
    assert len(re.findall("(?m)^<details>$", text)) == len(re.findall("(?m)^</details>$", text)) == 9


def test_a_code_block_holds_what_was_said_and_nothing_else(hostile: Run) -> None:
    fences = [token.content for token in parsed(markdown.as_text(hostile, "en")) if token.type == "fence"]
    assert len([one for one in fences if "# x\n```\n~~~\n" in one]) >= 8


def test_every_row_of_the_table_has_its_cells(hostile: Run) -> None:
    tokens = [token.type for token in parsed(markdown.as_text(hostile, "en"))]
    assert tokens.count("td_open") == 4 * 9
    assert tokens.count("tr_open") == 10


@given(st.text(max_size=60))
def test_a_sentence_reads_as_it_was(text: str) -> None:
    shown = "".join(token.content for token in inline(f"x {plain(text)} x") if token.type.startswith("text"))
    assert not LINKED.search(shown[2:-2])
    assert {token.type for token in inline(f"x {plain(text)} x")} <= {"text", "text_special"}


@given(st.text(alphabet="`ab |\\\n", max_size=20))
def test_code_is_one_piece_of_code(text: str) -> None:
    assert [token.type for token in inline(f"x{code(text)}x")] == ["text", "code_inline", "text"]


@given(st.text(alphabet="`ab |\\", max_size=20))
def test_code_stays_in_its_cell(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {code_cell(text)} | x |\n"
    cells = [token for token in parsed(table) if token.type == "td_open"]
    assert len(cells) == 2


@given(st.text(alphabet="`~\n ab#>-", max_size=40))
def test_a_block_ends_where_it_should(text: str) -> None:
    tokens = parsed("\n".join([*block(text), "", "behind"]))
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>&amp;</b>", "&lt;b&gt;&amp;amp;&lt;/b&gt;"),
        ("@all #12", "@\u200ball #\u200b12"),
        ("a\u202eb", "a\\x202eb"),
    ],
)
def test_text_between_tags(text: str, shown: str) -> None:
    assert in_html(text) == shown


def test_an_address_holds_no_markup() -> None:
    assert link("https://x.y/a b(c)|<d>") == "https://x.y/a%20b%28c%29%7C%3Cd%3E"


def test_what_a_tracker_would_refuse_is_cut_and_said(example: Run) -> None:
    first = example.findings[0]
    many = [replace(first, subject=f"npu:{n}", evidence=(Evidence("x", "line\n" * 5000),)) for n in range(200)]
    text = markdown.as_text(replace(example, findings=tuple(many)), "en")
    assert len(text) < 65_536
    assert re.search(r"The details of \d+ more findings did not fit", text)
    assert text.count("| `npu.health` `npu:") == 200


def test_the_order_is_verdict_steps_table_details(example: Run) -> None:
    text = markdown.as_text(example, "en")
    marks = ["## ✗ Not fit", "### Do this first", "### Findings", "| ✗ error |", "<details>"]
    assert sorted(marks, key=text.index) == marks


@settings(max_examples=5)
@given(st.sampled_from(["en", "zh"]))
def test_logs_are_told_in_the_same_safety(lang: str) -> None:
    run = run_of([CAPTURES / "logs" / "stderr-e30003-ocr-noise.log"])
    kinds = {child.type for token in parsed(markdown.as_text(run, lang)) for child in token.children or ()}
    assert kinds <= {"text", "code_inline", "strong_open", "strong_close", "text_special", "softbreak"}


def test_a_host_in_order_is_told_without_a_table() -> None:
    run = preflight(host("a2-healthy"), Asked(load_checks([data_folder("checks")]), rulebook()))
    text = markdown.as_text(run, "en")
    assert "|" not in text
    assert "<details>" not in text
