"""Console, Markdown and JUnit: the same run for a reader, a tracker and a build server."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hosts import all_hosts, host

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, preflight
from ascend_doctor.host import Host
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.paths import data_folder
from ascend_doctor.report import junit, markdown
from ascend_doctor.report.console import plain_text, print_run

CHECKS = load_checks([data_folder("checks")])
HOSTILE = "</code>`|<b>@all\x1b[31m\u202e\n# x"


def run_of(asked: Host) -> Run:
    return preflight(asked, Asked(CHECKS, rulebook()))


@pytest.fixture(scope="module")
def example() -> Run:
    return run_of(open_snapshot(data_folder("reports") / "example"))


@pytest.fixture(scope="module")
def hostile() -> Run:
    return run_of(host("a2-healthy", set={"env": {"LD_LIBRARY_PATH": f"/x/{HOSTILE}", "ASCEND_MEM_SIZE": HOSTILE}}))


def console(run: Run, lang: str = "en", **how: bool) -> str:
    stream = io.StringIO()
    print_run(run, stream, lang, **how)
    return stream.getvalue()


def test_the_console_starts_with_the_verdict_and_fits_eighty_columns(example: Run) -> None:
    lines = console(example).splitlines()
    assert lines[0].startswith("✗ Not fit to deploy: ")
    assert not [line for line in lines if len(line) > 80 and not line.lstrip().startswith("$")]


def test_the_console_off_a_terminal_has_no_colour(example: Run) -> None:
    assert "\x1b" not in console(example, verbose=True)


@pytest.mark.parametrize(
    ("lang", "says"),
    [
        ("en", r"✓ Fit to deploy: \d+ checks passed, \d+ not applicable\n"),
        ("zh", r"✓ 可以部署：\d+ 项检查通过，\d+ 项不适用\n"),
    ],
)
def test_a_healthy_host_takes_one_line(lang: str, says: str) -> None:
    assert re.fullmatch(says, console(run_of(host("a2-healthy")), lang))


def test_a_host_with_something_open_is_not_told_in_one_line() -> None:
    run = run_of(host("a2-container-healthy"))
    assert run.verdict == "pass"
    assert "could not be judged" in console(run).splitlines()[0]
    assert "kernel_log.lines: permission denied" in console(run)


@pytest.mark.parametrize("name", ["a2-thp-defrag-always", "a2-driver-too-old", "bare-linux"])
def test_a_host_with_one_fault_fits_on_one_screen(name: str) -> None:
    assert len(console(run_of(host(name))).splitlines()) <= 24


def test_a_step_that_stands_above_is_not_printed_twice(example: Run) -> None:
    first = example.findings[0].remedy[0].text["en"]
    assert console(example).count(first) == 1
    assert "(step 1)" in console(example)


def test_quiet_is_the_verdict_alone(example: Run) -> None:
    assert len(console(example, quiet=True).splitlines()) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["a2-nonroot-healthy", "bare-linux", "a2-node-full", "a2-container-healthy"])
def test_every_kind_of_host_can_be_told_in_every_form(name: str, lang: str) -> None:
    run = run_of(host(name))
    assert plain_text(run, lang)
    assert markdown.as_text(run, lang)
    assert ElementTree.fromstring(junit.as_text(run, lang)).tag == "testsuites"


def test_what_a_host_says_neither_colours_nor_turns_the_terminal(hostile: Run) -> None:
    text = console(hostile, verbose=True)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_what_a_host_says_is_no_markup_in_markdown(hostile: Run) -> None:
    text = markdown.as_text(hostile, "en")
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", re.sub(r"(?ms)^ *(`{3,}).*?^ *\1$", "", text))
    assert "<b>" not in outside.replace("\\<b\\>", "")
    assert "@all" not in outside
    assert not [line for line in outside.splitlines() if line.startswith("# ")]


def test_every_row_of_the_markdown_table_has_its_cells(hostile: Run) -> None:
    table = markdown.as_text(hostile, "en").split("### Findings\n\n")[1].split("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {6}


def test_junit_counts_what_it_holds(example: Run) -> None:
    root = ElementTree.fromstring(junit.as_text(example, "en"))
    assert int(root.attrib["tests"]) == len(root.findall(".//testcase")) == len(example.findings)
    assert int(root.attrib["failures"]) == len(root.findall(".//failure")) >= 3
    suites = root.findall("testsuite")
    assert sum(int(suite.attrib["skipped"]) for suite in suites) == len(root.findall(".//skipped"))


def test_junit_is_xml_whatever_a_host_says(hostile: Run) -> None:
    assert ElementTree.fromstring(junit.as_text(hostile, "zh")).tag == "testsuites"


def test_all_hosts_are_many() -> None:
    assert len(all_hosts()) >= 25
