"""Public pastes and what they come to: the root's line, or rightly none; consequences are not called roots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from log_runs import CAPTURES, run_of

from ascend_doctor.engine.run import Run, run_as_json
from ascend_doctor.paths import data_folder
from ascend_doctor.report.console import plain_text
from ascend_doctor.report.html import page

LOGS = CAPTURES / "logs"
SAMPLES = sorted(path.name.removesuffix(".expected.yaml") for path in LOGS.glob("*.expected.yaml"))
CASES = {case["id"]: case for case in yaml.safe_load((CAPTURES / "log_cases.yaml").read_text(encoding="utf-8"))}
SCHEMA = json.loads((data_folder("reports") / "schema.json").read_text(encoding="utf-8"))


def expected(name: str) -> Any:
    return yaml.safe_load((LOGS / f"{name}.expected.yaml").read_text(encoding="utf-8"))


def sample(name: str) -> Run:
    folder = LOGS / name
    return run_of([folder if folder.is_dir() else LOGS / expected(name)["files"][0]])


def document(run: Run) -> Any:
    return json.loads(json.dumps(run_as_json(run)))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_root_is_the_line_that_an_expert_names(name: str) -> None:
    wanted, told = expected(name), document(sample(name))
    root = told["root_cause"]
    if wanted["clean"]:
        assert (told["log_verdict"], root, told["gate"]["exit_code"]) == ("clean", None, 0)
        return
    cause = wanted["root_cause"]
    lines = [cause, *cause["also_acceptable_lines"]]
    if cause["line"] is None:
        assert root is None
    else:
        assert root is not None
        assert any(root["file"].endswith(one["file"]) and root["line"] == one["line"] for one in lines), root["text"]
    verdict, code = ("evidence-missing", 3) if cause["symptom_only"] else ("fault", 1)
    assert (told["log_verdict"], told["gate"]["exit_code"]) == (verdict, code)
    if "rank" in wanted:
        assert root["rank"] == wanted["rank"]


@pytest.mark.parametrize("name", SAMPLES)
def test_what_followed_is_not_called_a_root(name: str) -> None:
    cascades = set(expected(name)["cascade_codes"])
    for incident in document(sample(name))["incidents"]:
        if incident["role"] == "root":
            assert not cascades & set(incident["codes"]), incident["text"]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_code_of_a_paste_is_in_the_report(name: str) -> None:
    wanted = {code.lower() for code in expected(name)["codes_seen"]}
    told = json.dumps(document(sample(name))["incidents"]).lower()
    bare = {code.rpartition(":")[2] for code in wanted}
    assert not [code for code in bare if code.strip("[]") not in told]


@pytest.mark.parametrize("name", SAMPLES)
def test_each_report_keeps_to_the_schema_and_can_be_shown(name: str) -> None:
    run = sample(name)
    jsonschema.Draft202012Validator(SCHEMA).validate(document(run))
    for language in ("en", "zh"):
        assert " style=" not in page(run, language)
        assert plain_text(run, language).strip()


@pytest.mark.parametrize("name", list(CASES))
def test_a_reported_failure_is_told_by_its_paste(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    (tmp_path / "paste.log").write_text(case["log"], encoding="utf-8")
    told = document(run_of([tmp_path / "paste.log"]))
    root = told["root_cause"]
    assert told["log_verdict"] == case["verdict"], root and root["text"]
    if case["root"]:
        assert root is not None
        assert any(words in root["text"] for words in case["root"].split("|")), root["text"]
    else:
        assert root is None


def test_a_rank_that_never_came_is_named() -> None:
    told = document(sample("plog-topo-detect-missing-rank"))
    assert told["suspects"]["absent"] == [7]


def test_the_clock_of_a_kernel_log_is_placed_by_the_uptime_beside_it() -> None:
    told = document(sample("bundle-three-layers-card-drop"))
    assert told["root_cause"]["time"].startswith("2026-09-02T13:45:01")
    assert [clock["how"] for clock in told["clocks"] if clock["clock"] == "boot"] == ["boot-facts"]
    assert any(note["kind"] == "log-clock-boot" for note in told["notes"])
