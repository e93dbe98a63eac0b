"""``ascend-doctor versions``: the table, the set that a release wants, and a run that every report can render."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from ascend_doctor.cli.versions import command
from ascend_doctor.paths import data_folder

HOSTS = Path(__file__).parent / "hosts"


def answered(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return getattr(done.exception, "exit_code", 1), str(done.exception)
    return int(done.return_value or 0), done.output


def test_the_table_names_each_part_and_what_it_wants() -> None:
    code, text = answered("--snapshot", str(HOSTS / "a2-container-healthy"), "--lang", "en")
    assert code == 0
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert lines["torch_npu"].split()[1:3] == ["2.8.0.post2", "yes"]
    assert "cann 8.5.0 | 8.5.1" in lines["torch_npu"]
    assert "driver 25.5.0 | 25.5.1" in lines["cann"]
    assert "[1]" in text
    assert "https://" in text


def test_the_run_keeps_to_the_schema_and_holds_the_table() -> None:
    code, text = answered("--snapshot", "example", "--format", "json")
    run = json.loads(text)
    jsonschema.validate(run, json.loads((data_folder("reports") / "schema.json").read_text(encoding="utf-8")))
    assert run["kind"] == "versions"
    assert code == run["gate"]["exit_code"]
    table = {line["part"]: line for line in run["facts"]["versions"]}
    assert table["driver"]["fits"] == "error"
    assert table["driver"]["where"] == "/usr/local/Ascend/driver/version.info"
    assert all(finding["components"] is not None for finding in run["findings"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_release_that_is_not_here_says_what_it_wants(language: str) -> None:
    code, text = answered("--for", "vllm-ascend==0.23.0", "--lang", language)
    assert code == 0
    rows = {line.split()[0]: line.split()[2] for line in text.splitlines() if "[" in line and line[0] != "["}
    assert rows["vllm"] == "0.23.0"
    assert rows["torch_npu"] == "2.10.0.post4"
    assert rows["cann"] == "9.1.0"
    assert "versioning_policy.md" in text


def test_as_json_it_has_a_source_for_each_part() -> None:
    code, text = answered("--for", "torch_npu==2.9.0", "--format", "json")
    document = json.loads(text)
    assert code == 0
    assert document["schema"] == "ascend-doctor/wanted/1"
    assert {want["part"]: want["versions"] for want in document["wants"]} == {
        "torch": ["2.9.0"],
        "cann": ["8.5.0", "8.5.1"],
    }
    assert all(want["sources"] for want in document["wants"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("cann==7.0.RC2", "nearest known are 6.3.RC3.1, 7.0.RC1, 7.0.0, 7.0.1"),
        ("vllm-ascend==99", "nearest known are"),
        ("vllm-ascend==%s", "nearest known are"),
        ("numpy==1.26", "known are vllm-ascend"),
        ("", "known are vllm-ascend"),
    ],
)
def test_a_release_that_no_table_knows_is_refused_with_the_nearest(asked: str, said: str) -> None:
    code, text = answered("--for", asked)
    assert code == 2
    assert said in text
