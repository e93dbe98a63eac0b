"""Log lines are a stranger's: scripts, colours, turned text, markup and mentions do nothing in any report."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree

import pytest
from log_runs import run_of_texts

from ascend_doctor.engine.run import Run
from ascend_doctor.report import html, junit, markdown
from ascend_doctor.report.console import plain_text, print_run

SCRIPT = "</script></pre><script>alert(1)</script><img src=x onerror=alert(2)>"
MARKUP = "](http://evil.example/) **bold** | <b>x</b> ``` ~~~ `x` # Title @all @here #1 !99 {{ 7*7 }} {% raw %}"
TURNED = "\u202e\u2066\u2069\u200f\u2028"
COLOURS = "\x1b[31m\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\x9b31m\x07\x08"
HOSTILE = f"{SCRIPT} {MARKUP} {TURNED} {COLOURS}"
LINES = f"""\
[ERROR] HCCL(67203,python3):2025-11-21-11:38:29.576.860 [hccl_socket.cc:110] [67203]{HOSTILE} listen on ip fail
RuntimeError: NPU out of memory. Tried to allocate 5.03 GiB {HOSTILE}
# Title of a stranger
ERROR 12-04 14:46:08 [core.py:824] ValueError: {HOSTILE} {"x" * 10_000}
@everybody look: RuntimeError: {HOSTILE}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("logs")
    found = run_of_texts(folder, {"plog-67203_20251121113829576.log": LINES, "a<b>|`@all.log": LINES})
    assert found.logs is not None
    assert len(found.logs.analysis.answer.incidents) >= 3
    return found


def test_no_script_of_a_line_is_one_in_the_page(run: Run) -> None:
    text = html.page(run, "en")
    allowed = re.findall(r"<script\b[^>]*>", text)
    assert all("alert" not in body for body in re.findall(r"(?s)<script(?![^>]*json)[^>]*>(.*?)</script>", text))
    assert len(allowed) == text.count("</script>")
    assert not re.search(r"<img\b|<b>x|onerror=alert\(2\)>", re.sub(r"(?s)<script.*?</script>", "", text))
    assert "49 " not in re.findall(r"#1 !99 (.{0,4})", text)


def test_no_terminal_is_coloured_or_turned(run: Run) -> None:
    stream = io.StringIO()
    print_run(run, stream, "en", verbose=True)
    for text in (stream.getvalue(), plain_text(run, "zh")):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)


def test_a_line_is_no_markup_in_markdown(run: Run) -> None:
    text = markdown.as_text(run, "en")
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", re.sub(r"(?ms)^ *(`{3,}|~{3,}).*?^ *\1`*$", "", text))
    assert not re.search(r"(?<!\\)<(?:b|img|script)\b|(?<![\\\w])@(?:all|here|everybody)\b|\*\*bold\*\*", outside)
    assert "](http://evil" not in outside.replace("\\](http", "")
    assert not re.search("[\x1b\u202a-\u202e\u2066-\u2069]", text)
    assert "# Title of a stranger" not in text.splitlines()


def test_junit_stays_xml(run: Run) -> None:
    assert ElementTree.fromstring(junit.as_text(run, "en")).tag == "testsuites"


def test_a_long_line_is_cut(run: Run) -> None:
    assert max(map(len, markdown.as_text(run, "en").splitlines())) < 5_000
