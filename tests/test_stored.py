"""A run that was written is read back whole: it is told again in the same bytes, in every form and both languages."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any, Callable

import pytest
from command import Command
from hosts import all_hosts, host
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_runs import CAPTURES, run_of

from ascend_doctor.cli.reports import rendered
from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, preflight, run_as_json
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.paths import data_folder
from ascend_doctor.report.console import print_run
from ascend_doctor.report.fields import StoredError
from ascend_doctor.report.stored import run_of_bytes, run_of_document

FORMS = ("json", "html", "markdown", "junit", "console")
LOGS = sorted(path for path in (CAPTURES / "logs").iterdir() if not path.name.endswith(".expected.yaml"))
EXAMPLE = data_folder("reports") / "example"
VERBS = {
    "memory": ["memory", "--model", "Qwen3-32B", "--tp", "4", "--card", "910B3"],
    "memory-unknown": ["memory", "--model", "Qwen3-32B", "--tp", "4"],
    "numa-show": ["numa", "show"],
    "numa-plan": ["numa", "plan"],
    "numa-lint": ["numa", "lint", "numactl --cpunodebind=4 --membind=4 vllm serve"],
    "versions": ["versions"],
    "facts": ["preflight", "--facts"],
}


def forms(run: Run) -> dict[tuple[str, str], str]:
    return {(form, lang): rendered(run, form, lang) for form in FORMS for lang in ("en", "zh")}


def console(run: Run, verbose: bool) -> str:
    stream = io.StringIO()
    print_run(run, stream, "en", verbose=verbose)
    return stream.getvalue()


def is_told_again_in_the_same_bytes(run: Run) -> None:
    for form in ("json", "html"):
        again = run_of_bytes(rendered(run, form, "en").encode())
        told, said = forms(again), forms(run)
        for lang in ("en", "zh") if form == "html" else ():
            del told["json", lang], said["json", lang]  # a page leaves out the evidence of what passed
        assert told == said
        assert console(again, verbose=False) == console(run, verbose=False)


@cache
def checks() -> Any:
    return load_checks([data_folder("checks")])


@pytest.mark.parametrize("name", all_hosts()[::12])
def test_a_host(name: str) -> None:
    is_told_again_in_the_same_bytes(preflight(host(name), Asked(checks(), rulebook())))


@pytest.mark.parametrize("path", LOGS[::4], ids=lambda path: path.name)
def test_logs(path: Path) -> None:
    is_told_again_in_the_same_bytes(run_of([path]))


@pytest.mark.parametrize("call", VERBS.values(), ids=list(VERBS))
def test_what_other_verbs_answer(call: list[str], tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    where = ("--snapshot", str(EXAMPLE))
    doctor(*call, *where, "-o", "run.json", "-o", "run.html")
    first, again = (run_of_bytes((tmp_path / name).read_bytes()) for name in ("run.json", "run.html"))
    of_json, of_page = forms(first), forms(again)
    for lang in ("en", "zh"):  # a page leaves out the evidence of what passed
        del of_json["json", lang], of_page["json", lang]
    assert of_json == of_page
    is_told_again_in_the_same_bytes(first)


def test_what_a_verb_shows_is_what_its_stored_run_shows(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    for call in ("memory", "numa-plan", "numa-lint", "versions"):
        shown = doctor(*VERBS[call], "--snapshot", EXAMPLE).stdout
        document = doctor(*VERBS[call], "--snapshot", EXAMPLE, "--format", "json").stdout
        (tmp_path / "run.json").write_text(document, encoding="utf-8")
        assert doctor("report", "run.json").stdout == shown
        assert doctor("report", "-", input=document, stdin=None).stdout == shown


@cache
def example() -> dict[str, Any]:
    run = preflight(open_snapshot(EXAMPLE), Asked(checks(), rulebook()))
    document: dict[str, Any] = json.loads(json.dumps(run_as_json(run)))
    return document


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "line 1, column 1: no valid JSON"),
        (b"\xff\xfe{}", "no UTF-8 text at byte 0"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"[]", "no report of ascend-doctor"),
        (b'{"results": []}', "no report of ascend-doctor"),
        (b"<html><script>{}</script></html>", "a page without a run in it"),
        (b'{"schema": "ascend-doctor/snapshot/1"}', "the index of a snapshot"),
        (b'{"schema": "ascend-doctor/report/2"}', "is not ascend-doctor/report/1"),
        (b'{"schema": "ascend-doctor/report/1"}', "kind: expected one of"),
        (b'{"schema": NaN}', "NaN is no number of JSON"),
        (b'{"schema": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested"),
        (b'{"schema": "ascend-doctor/report/1", "x": "\\ud800"}', "x: holds half of a character"),
    ],
)
def test_what_is_no_run_is_refused_in_words(content: bytes, says: str) -> None:
    with pytest.raises(StoredError, match=says):
        run_of_bytes(content)


def changed(change: Callable[[Any], None]) -> dict[str, Any]:
    document = json.loads(json.dumps(example()))
    change(document)
    return dict(document)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["findings"][0].update(verdict="fine"), r"findings\[0\].verdict: expected one of pass, fail"),
        (lambda d: d["findings"][2].update(title={"en": "x"}), r"findings\[2\].title: expected a text in en and zh"),
        (lambda d: d["findings"][0].update(remedy=3), r"findings\[0\].remedy: expected a list, found 3"),
        (lambda d: d["counts"].update(error="3"), "counts.error: expected a whole number, found '3'"),
        (lambda d: d.pop("gate"), "gate: expected an object, found None"),
        (lambda d: d["findings"][0]["sources"][0].update(url="javascript:alert(1)"), "begins with http"),
        (lambda d: d.update(kind="memory"), "memory: expected an object"),
    ],
)
def test_a_run_that_was_tampered_with_is_refused_with_its_place(change: Any, says: str) -> None:
    with pytest.raises(StoredError, match=says):
        run_of_document(changed(change))


ODD = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=40))
STRANGE = st.one_of(ODD, st.lists(ODD, max_size=2), st.dictionaries(st.text(max_size=4), ODD, max_size=2))


@pytest.mark.parametrize("kind", ["preflight", "logs", "memory", "numa"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_strange_value_anywhere_is_refused_or_told(kind: str, data: st.DataObject) -> None:
    document = json.loads(json.dumps(document_of_kind(kind)))
    place: Any = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], (dict, list)) and place[key] and data.draw(st.integers(0, 5)):
            place = place[key]
            continue
        place[key] = data.draw(STRANGE)
        break
    try:
        run = run_of_document(document)
    except StoredError:
        return
    for form in FORMS:
        assert rendered(run, form, "en")


@cache
def document_of_kind(kind: str) -> dict[str, Any]:
    if kind == "preflight":
        return example()
    if kind == "logs":
        return dict(run_as_json(run_of([CAPTURES / "logs" / "bundle-three-layers-card-drop"])))
    from click.testing import CliRunner

    from ascend_doctor.cli import cli

    name = {"memory": "memory", "numa": "numa-plan"}[kind]
    done = CliRunner().invoke(cli, [*VERBS[name], "--snapshot", str(EXAMPLE), "--format", "json"])
    document: dict[str, Any] = json.loads(done.stdout)
    return document
