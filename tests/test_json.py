"""The JSON report keeps to its published schema, and the same findings give the same bytes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from hosts import all_hosts, host

from ascend_doctor.cli import cli
from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, preflight, run_as_json
from ascend_doctor.paths import data_folder

CHECKS = load_checks([data_folder("checks")])


def document(name: str) -> Any:
    run = preflight(host(name), Asked(CHECKS, rulebook(), with_facts=True))
    return json.loads(json.dumps(run_as_json(run)))


@pytest.mark.parametrize("name", all_hosts())
def test_each_report_keeps_to_the_schema(name: str) -> None:
    schema = json.loads((data_folder("reports") / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document(name))


VERBS = {
    "memory": ["memory", "--model", "Qwen3-32B", "--tp", "4", "--card", "910B3"],
    "numa": ["numa", "plan"],
    "versions": ["versions"],
    "logs": ["logs"],
    "triage": ["triage"],
    "diff": ["diff", "example", "example"],
}


@pytest.mark.parametrize("kind", VERBS)
def test_each_kind_of_run_keeps_to_the_schema(kind: str) -> None:
    where = [] if kind == "diff" else ["--snapshot", "example"]
    done = CliRunner().invoke(cli, [*VERBS[kind], *where, "--format", "json"])
    schema = json.loads((data_folder("reports") / "schema.json").read_text(encoding="utf-8"))
    found = json.loads(done.stdout)
    assert found["kind"] == kind
    jsonschema.Draft202012Validator(schema).validate(found)


def test_the_same_host_gives_the_same_report_times_aside() -> None:
    first, second = document("a2-healthy"), document("a2-healthy")
    for one in (first, second):
        one["seconds"] = 0
        for question in one["collection"]:
            question["seconds"] = 0
    assert first == second
