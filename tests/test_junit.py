"""JUnit XML as build servers read it: the elements and attributes of Jenkins' schema, and whole for any text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_runs import CAPTURES, run_of

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, preflight
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.paths import data_folder
from ascend_doctor.report import junit

ALLOWED = {
    "testsuites": ({"testsuite"}, {"name", "time", "tests", "failures", "errors"}, set()),
    "testsuite": (
        {"testcase", "properties", "system-out", "system-err"},
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id", "package"},
        {"name", "tests", "failures", "errors"},
    ),
    "testcase": ({"skipped", "error", "failure"}, {"name", "time", "classname", "group"}, {"name"}),
    "failure": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
}
"""Element -> children, attributes, and those that must be there: junit-10.xsd of Jenkins' xunit plugin, 2024."""

TIME = r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?"
"""SUREFIRE_TIME of the same schema."""


def is_as_jenkins_wants_it(text: str) -> None:
    for element in ElementTree.fromstring(text).iter():
        children, attributes, needed = ALLOWED[element.tag]
        assert {child.tag for child in element} <= children
        assert needed <= set(element.attrib) <= attributes
        assert re.fullmatch(TIME, element.get("time", "0"))


@pytest.fixture(scope="module")
def full() -> Run:
    checks = load_checks([data_folder("checks")])
    return preflight(open_snapshot(data_folder("reports") / "example"), Asked(checks, rulebook()))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_host_with_everything(full: Run, lang: str) -> None:
    is_as_jenkins_wants_it(junit.as_text(full, lang))


def test_logs() -> None:
    is_as_jenkins_wants_it(junit.as_text(run_of([CAPTURES / "logs" / "bundle-three-layers-card-drop"]), "en"))


def test_a_very_quick_run_has_a_time_that_is_a_time(full: Run) -> None:
    is_as_jenkins_wants_it(junit.as_text(replace(full, seconds=1e-05), "en"))


@given(st.text(max_size=80))
def test_any_text_gives_whole_xml(full: Run, text: str) -> None:
    texts = {"en": text, "zh": text}
    spoiled = replace(full.findings[0], subject=text, title=texts, found=texts, why=texts)
    is_as_jenkins_wants_it(junit.as_text(replace(full, findings=(spoiled,)), "en"))


def test_no_two_cases_have_one_name(full: Run) -> None:
    cases = ElementTree.fromstring(junit.as_text(full, "en")).findall(".//testcase")
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)


def test_a_case_says_layer_check_and_subject(full: Run) -> None:
    failed = ElementTree.fromstring(junit.as_text(full, "en")).find(".//testcase[failure]")
    assert failed is not None
    assert (failed.get("classname"), failed.get("name")) == ("preflight.hardware", "npu.health npu:5/0")
