"""A smoke run: what a healthy one tells, that a snapshot tells the same, and what the verb says and never says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command import Command
from hosts import host
from hypothesis import given, settings
from hypothesis import strategies as st
from smoke_runs import CHECKS, ENV, PYTHON, RULES, needs_torch

from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.smoke import DeviceRun, Plan, Smoke, collect, collected, smoke
from ascend_doctor.host import Answer, Extent, Missing, Reason
from ascend_doctor.host.live import LiveHost
from ascend_doctor.host.recorder import Recorder
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.paths import data_folder
from ascend_doctor.smoke.plan import Wishes, planned
from ascend_doctor.smoke.running import run

SECONDS = 240
"""On a machine that is busy with other tests."""

STAGES = ("libraries", "import", "device", "operators", "layers", "forced", "free", "decode", "latency", "memory")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One run of the verb in every format."""
    folder = tmp_path_factory.mktemp("smoke")
    doctor = Command(folder)
    files = {suffix: folder / f"smoke.{suffix}" for suffix in ("html", "md", "xml", "txt")}
    outputs = [word for path in files.values() for word in ("-o", str(path))]
    call = ("smoke", "--device", "cpu", "--size", "tiny", "--python", PYTHON, "--format", "json", *outputs)
    done = doctor(*call, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return {"json": done.stdout, **{suffix: path.read_text(encoding="utf-8") for suffix, path in files.items()}}


@needs_torch
def test_every_stage_of_a_healthy_run_passes(reports: dict[str, str]) -> None:
    """The first token of a machine that does other things may be slow, which is only said."""
    document = json.loads(reports["json"])
    stages = document["smoke"]["stages"]
    assert [(s["number"], s["name"]) for s in stages] == list(enumerate(STAGES, 1))
    assert {s["outcome"] for s in stages if s["name"] != "latency"} == {"pass"}
    assert stages[8]["outcome"] in ("pass", "info")
    assert document["verdict"] == "pass"
    assert document["counts"]["error"] == document["counts"]["warning"] == document["counts"]["unknown"] == 0
    assert all(s["deadline"] > 0 and s["seconds"] < s["deadline"] for s in stages)


@needs_torch
def test_the_document_is_as_the_schema_says(reports: dict[str, str]) -> None:
    schema = json.loads((data_folder("reports") / "schema.json").read_text(encoding="utf-8"))
    document = json.loads(reports["json"])
    jsonschema.Draft202012Validator(schema).validate(document)
    latency = document["smoke"]["latency"]
    assert len(latency["samples_ms"]) >= 50
    assert latency["p50_ms"] <= latency["p95_ms"] <= latency["p99_ms"] <= latency["max_ms"]


@needs_torch
@pytest.mark.parametrize("format_", ["json", "html", "md", "txt"])
def test_every_report_says_that_it_is_reduced_and_what_the_real_model_needs(
    format_: str, reports: dict[str, str]
) -> None:
    text = reports[format_].replace("\n", " ")
    assert "DeepSeek-V4 architecture smoke, reduced" in text
    assert re.search(r"DeepSeek-V4-Pro itself\s+needs at least 15 devices", text) or format_ == "json"
    assert "No NPU was tested" in text


@needs_torch
def test_no_report_says_that_the_real_model_is_good(reports: dict[str, str]) -> None:
    for text in reports.values():
        assert not re.search(r"V4-Pro\W{0,3}(?:is )?(?:OK|ok|passed|works|runs)", text)


@needs_torch
def test_the_page_draws_the_ladder_and_a_dot_for_each_token(reports: dict[str, str]) -> None:
    page = reports["html"]
    ladder = page.partition('class="ladder"')[2].partition("</ol>")[0]
    assert ladder.count("<li") == len(STAGES)
    assert page.count("<circle cx=") >= 50
    assert "P50 " in page
    assert "P99 " in page
    assert " style=" not in page


@needs_torch
def test_a_snapshot_of_a_run_gives_equal_findings_and_the_verb_judges_it(tmp_path: Path) -> None:
    recorder = Recorder(LiveHost(ENV, python=PYTHON, extent=Extent(smoke=True)))
    wishes = Wishes(device="cpu", size="tiny", seq=136, decode=8, dtype="fp32")
    given_ = run(recorder, planned(recorder, wishes, RULES), lambda text: None)
    found = judged(CHECKS, Situation(recorder, RULES, given=(given_,)))
    assert {f.verdict for f in found if f.check not in ("smoke.ranks", "smoke.latency")} == {"pass"}
    recorder.save(tmp_path / "snapshot")
    again = open_snapshot(tmp_path / "snapshot")
    assert again.extent.smoke
    assert judged(CHECKS, Situation(again, RULES)) == found
    done = Command(tmp_path)("smoke", "--snapshot", tmp_path / "snapshot", "--format", "json")
    assert [s["outcome"] for s in json.loads(done.stdout)["smoke"]["stages"]][4:8] == ["pass"] * 4


@needs_torch
def test_preflight_takes_it_along_and_collect_keeps_it(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    taken = doctor("collect", "--smoke", "tiny", "--python", PYTHON, tmp_path / "snapshot", timeout=SECONDS)
    assert taken.returncode == 0, taken.stderr
    call = ("preflight", "--smoke", "--snapshot", tmp_path / "snapshot", "--format", "json")
    document = json.loads(doctor(*call).stdout)
    assert document["kind"] == "preflight"
    assert {s["outcome"] for s in document["smoke"]["stages"] if s["name"] != "latency"} == {"pass"}
    checks = {finding["check"] for finding in document["findings"]}
    assert {"smoke.forced", "ascend.present", "numa.free-memory"} <= checks
    assert "smoke.ranks" not in checks


def test_nothing_is_started_unless_it_is_wanted() -> None:
    facts = collect(LiveHost(ENV)).facts
    assert isinstance(facts.devices, Missing)
    assert facts.devices.reason is Reason.UNSUPPORTED
    assert {f.verdict for f in judged(CHECKS, Situation(host("a2-healthy"), RULES))} == {"skip"}


def test_an_interpreter_without_torch_is_told_at_the_import(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n', encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    call = ("smoke", "--device", "cpu", "--size", "tiny", "--python", tmp_path / "python", "--format", "json")
    done = doctor(*call, timeout=SECONDS)
    document = json.loads(done.stdout)
    failed = {f["check"]: f["found"]["en"] for f in document["findings"] if f["verdict"] == "fail"}
    assert list(failed) == ["smoke.import"]
    assert "torch" in failed["smoke.import"]
    assert done.returncode == 1


def test_an_interpreter_that_is_not_there_is_no_all_clear(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    done = doctor("smoke", "--device", "cpu", "--size", "tiny", "--python", "/nowhere/python3", "--format", "json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["smoke"] is None


@pytest.mark.parametrize("verb", [["smoke"], ["preflight", "--smoke"]])
def test_a_snapshot_without_a_run_is_refused(verb: list[str], tmp_path: Path) -> None:
    done = Command(tmp_path)(*verb, "--snapshot", "example")
    assert done.returncode == 2
    assert "has no smoke run" in done.stderr


def observation(**device: Any) -> dict[str, Any]:
    plan = {"size": "tiny", "seq": 16, "decode": 4, "stages": list(STAGES), "config": {"hidden": 64}}
    return {"plan": plan, "devices": [{"device": "npu:0", "dtype": "bf16", "steps": [], **device}]}


def verdicts(value: object) -> dict[str, tuple[str, str]]:
    """Check -> verdict, and why it was not judged."""
    situation = Situation(host("a2-container-healthy"), RULES, given=(collected(Answer("observed:smoke", value)),))
    found = judged(CHECKS, situation)
    assert not situation.broken
    return {f.check: (f.verdict, f.reason or next((m.detail for m in f.missing), "")) for f in found}


def test_a_device_that_was_left_alone_is_unknown_and_says_why() -> None:
    told = verdicts(observation(refused="NPU 0 is held by 78617 python3 57010 MiB"))
    assert told["smoke.forced"] == ("unknown", "NPU 0 is held by 78617 python3 57010 MiB")
    assert told["smoke.memory"][0] == "unknown"


def test_a_stage_whose_weights_could_not_be_made_is_not_passed() -> None:
    step = {"stage": "forced", "step": "model", "outcome": "unprepared", "seconds": 0.1, "deadline": 60}
    assert verdicts(observation(steps=[step]))["smoke.forced"] == (
        "skip",
        "smoke.devices[0]: not run: model could not be made, as an earlier stage tells",
    )


def test_a_stage_that_no_step_tells_of_is_not_passed() -> None:
    assert verdicts(observation())["smoke.forced"][0] == "skip"


def test_less_free_memory_than_predicted_is_not_a_fault_of_the_host() -> None:
    step = {"stage": "device", "step": "memory", "outcome": "refused", "detail": "300 MiB of 65536 MiB are free"}
    assert verdicts(observation(steps=[step]))["smoke.device"] == ("unknown", "300 MiB of 65536 MiB are free")


def test_the_log_of_a_failed_step_names_the_cause() -> None:
    plog = (
        "[ERROR] RUNTIME(4711,python3):2026-11-30-12:00:00.000.001 [task_info.cc:1234]4711 PrintErrorInfo:"
        "[INIT][DEFAULT]The error from device(chipId:0, dieId:0), serial number is 7, there is an aivec error exc"
        "eption, core id is 3, error code = 0x800000, dump info: pc start: 0x12404066a000\n"
    )
    step = {
        "stage": "forced",
        "step": "numbers",
        "outcome": "raised",
        "errors": [
            {"type": "RuntimeError", "text": "ACL stream synchronize failed, error code:507035", "where": "x:1"}
        ],
        "logs": {"debug/plog/plog-4711_20261130120000000.log": plog},
    }
    situation = Situation(
        host("a2-container-healthy"), RULES, given=(collected(Answer("observed:smoke", observation(steps=[step]))),)
    )
    found = next(f for f in judged(CHECKS, situation) if f.check == "smoke.forced" and f.verdict == "fail")
    text = (found.found or {})["en"]
    assert "507035" in text
    assert "aivec error exception" in text or "vector core" in text.lower()


KEYS = [
    "plan",
    "devices",
    "steps",
    "stage",
    "step",
    "outcome",
    "measures",
    "errors",
    "logs",
    "device",
    "size",
    "memory",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=12,
)


@settings(max_examples=200)
@given(JSON, st.sampled_from(KEYS))
def test_any_observation_is_facts_or_missing(value: object, key: str) -> None:
    step = {"stage": "forced", "step": "numbers", "outcome": "passed", key: value}
    for one in (value, {"plan": value, "devices": [value]}, observation(**{key: value}), observation(steps=[step])):
        assert isinstance(smoke(one), (Smoke, Missing))


def test_a_good_observation_is_read() -> None:
    found = smoke(observation())
    assert isinstance(found, Smoke)
    assert isinstance(found.plan, Plan)
    assert isinstance(found.devices, tuple)
    assert isinstance(found.devices[0], DeviceRun)
