"""One cause from a host and its logs: which wins, what is joined, and what is handed to maintainers."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command import Command
from hosts import FOLDER, host
from log_runs import CAPTURES, run_of, run_of_texts

from ascend_doctor.cli.reports import rendered
from ascend_doctor.engine import lint_triage
from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.gate import Gate
from ascend_doctor.engine.issue_block import issue_block
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, preflight, run_as_json
from ascend_doctor.engine.triage import triage
from ascend_doctor.knowledge import triage as rules
from ascend_doctor.paths import data_folder
from ascend_doctor.report.stored import run_of_bytes
from ascend_doctor.report.summary import first_steps

BOOK = rulebook()
RULES = rules.load(BOOK.rules)
CHECKS = load_checks([data_folder("checks")])
LOGS = CAPTURES / "logs"


@cache
def run_of_host(name: str) -> Run:
    return preflight(host(name), Asked(CHECKS, BOOK, with_facts=True, workers=1))


@cache
def run_of_log(name: str) -> Run:
    return run_of([LOGS / name])


def of(host_run: Run, logs: Run, gate: Gate | None = None, **more: Any) -> Run:
    return triage(host_run, logs, RULES, gate or Gate(), **more)


def named(run: Run) -> tuple[str, str]:
    assert run.answer
    cause = run.answer["triage"]["cause"]
    return cause["way"], cause["check"]


@pytest.mark.parametrize(
    ("name", "log", "way", "check"),
    [
        ("bare-linux", "stderr-halDeviceOpen-drvret7.log", "same", "ascend.present"),
        ("a2-chip-alarm", "stderr-507013-sdma.log", "host-explains", "npu.health"),
        ("a2-healthy", "stderr-npu-oom-kvcache.log", "log-root", "logs.memory-npu-oom"),
        ("a2-thp-defrag-always", "stderr-npu-oom-kvcache.log", "log-root", "logs.memory-npu-oom"),
        ("a2-driver-too-old", "plog-run-clean-info.log", "host-error", "compat.driver-cann"),
        ("a2-thp-defrag-always", "plog-run-clean-info.log", "host-warning", "thp.direct-compaction"),
    ],
)
def test_which_cause_is_named(name: str, log: str, way: str, check: str) -> None:
    assert named(of(run_of_host(name), run_of_log(log))) == (way, check)


def test_on_a_host_without_npus_a_crash_in_its_own_logs_is_not_the_cause() -> None:
    crash = run_of_log("stderr-npu-oom-kvcache.log")
    assert crash.logs
    live = replace(crash, logs=replace(crash.logs, analysis=replace(crash.logs.analysis, named=False)))
    assert named(of(run_of_host("bare-linux"), live)) == ("nothing-runs", "ascend.present")


def test_logs_that_were_named_may_be_of_another_host() -> None:
    run = of(run_of_host("bare-linux"), run_of_log("stderr-npu-oom-kvcache.log"))
    assert named(run) == ("log-root", "logs.memory-npu-oom")


def test_a_symptom_alone_is_named_with_little_confidence() -> None:
    run = of(run_of_host("a2-healthy"), run_of_log("plog-truncated-cascade-only.log"))
    assert run.answer
    assert run.answer["triage"]["cause"]["way"] == "log-symptom"
    assert run.answer["triage"]["cause"]["confidence"] == "low"
    assert run.verdict == "undecided"


@pytest.mark.parametrize("log", ["stderr-npu-oom-kvcache.log", "stderr-halDeviceOpen-drvret7.log"])
@pytest.mark.parametrize("name", ["a2-healthy", "bare-linux", "a2-chip-alarm", "a2-thp-defrag-always"])
def test_the_first_step_is_that_of_the_cause(name: str, log: str) -> None:
    run = of(run_of_host(name), run_of_log(log))
    assert first_steps(run)[0].finding.check == run.findings[0].check == named(run)[1]


@pytest.mark.parametrize("log", ["stderr-npu-oom-kvcache.log", "plog-run-clean-info.log"])
@pytest.mark.parametrize("name", ["a2-healthy", "bare-linux", "a2-chip-alarm"])
def test_nothing_is_lost_and_the_gate_is_that_of_both(name: str, log: str) -> None:
    one, other = run_of_host(name), run_of_log(log)
    run = of(one, other)
    assert sorted((f.check, f.subject) for f in run.findings) == sorted(
        (f.check, f.subject) for f in (*one.findings, *other.findings)
    )
    assert run.exit_code == (1 if 1 in (one.exit_code, other.exit_code) else max(one.exit_code, other.exit_code))


def test_what_the_cause_explains_stands_below_it() -> None:
    run = of(run_of_host("bare-linux"), run_of_log("stderr-halDeviceOpen-drvret7.log"))
    root = next(f for f in run.findings if f.check == "logs.device-hal-open")
    assert root.because == "ascend.present"
    assert run.counts["error"] == 1


def test_a_warning_does_not_hide_an_error_of_the_logs(tmp_path: Path) -> None:
    oom = "[ 8012.1] Out of memory: Killed process 77 (vllm) total-vm:9kB, anon-rss:9kB, file-rss:0kB, shmem-rss:0kB\n"
    logs = run_of_texts(tmp_path, {"dmesg.txt": oom})
    run = of(run_of_host("a2-node-full"), logs)
    assert named(run) == ("same", "numa.free-memory")
    assert run.counts["error"] == logs.counts["error"] == 1
    assert [f.check for f in run.findings[:2]] == ["numa.free-memory", "logs.kernel-oom-kill"]


def test_a_fit_host_without_logs_is_fit(tmp_path: Path) -> None:
    run = of(run_of_host("a2-healthy"), run_of([tmp_path]))
    assert (run.verdict, run.exit_code) == ("pass", 0)
    assert rendered(run, "console", "en").startswith("✓ No cause found: the host is fit, and there are no logs\n")


def test_a_fit_host_with_clean_logs_is_fit() -> None:
    run = of(run_of_host("a2-healthy"), run_of_log("plog-run-clean-info.log"))
    assert rendered(run, "console", "zh").startswith("✓ 未发现原因：")


def test_the_first_lines_are_the_cause_and_the_next_step() -> None:
    text = rendered(of(run_of_host("a2-healthy"), run_of_log("stderr-npu-oom-kvcache.log")), "console", "en")
    assert text.startswith("✗ Most probable cause: The framework ran out of NPU memory\n")
    assert text.index("Do this first") < text.index("✗ error")


def test_a_probe_that_failed_is_judged_like_the_host() -> None:
    healthy, faulty = run_of_host("a2-healthy"), run_of_host("a2-chip-alarm")
    probe = replace(faulty, kind="smoke", findings=faulty.findings[:1], answer={"smoke": {}})
    run = of(healthy, run_of_log("plog-run-clean-info.log"), probes=[probe])
    assert named(run) == ("host-error", "npu.health")
    assert run.answer
    assert "smoke" in run.answer


def test_what_the_rules_name_is_there() -> None:
    assert list(lint_triage.lint(BOOK)) == []


def test_a_glob_that_names_nothing_is_found(tmp_path: Path) -> None:
    shutil.copytree(data_folder("rules"), tmp_path / "rules")
    shutil.copytree(data_folder("checks"), tmp_path / "checks")
    file = tmp_path / "rules" / "triage.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("disks.room", "disks.rom").replace("[driver,", "[drivr,"))
    differing = tmp_path / "rules" / "differences.yaml"
    differing.write_text(differing.read_text(encoding="utf-8").replace("kernel_log.*", "kernal_log.*"))
    said = "\n".join(lint_triage.lint(rulebook(pack=tmp_path)))
    assert "triage.yaml: disks.rom: no check is called so" in said
    assert "explains: drivr is no layer of logs" in said
    assert "differences.yaml: kernal_log.*: there is no area kernal_log of facts" in said


def test_the_block_holds_what_maintainers_ask_for() -> None:
    asked = host("a2-container-healthy")
    run = preflight(asked, Asked(CHECKS, BOOK, with_facts=True))
    assert run.facts
    parts = {part["name"]: part["text"] for part in issue_block(asked, run.facts, "vllm serve /models/x")}
    assert "torch_npu: 2.8.0.post2" in parts["versions"]
    assert "vllm_ascend: 0.13.0" in parts["versions"]
    assert "| npu-smi 25.5.0" in parts["npu"]
    assert "version=8.5.0" in parts["cann"].lower()
    assert "ASCEND_HOME_PATH=/usr/local/Ascend/cann-8.5.0" in parts["environment"]
    assert parts["command"] == "vllm serve /models/x"


def test_the_block_says_why_npu_smi_is_silent() -> None:
    asked = host("bare-linux")
    parts = {part["name"]: part["text"] for part in issue_block(asked, {})}
    assert parts["npu"] == "(absent)"


@pytest.mark.parametrize("name", ["a2-healthy", "bare-linux", "a2-chip-alarm"])
def test_a_triage_keeps_to_the_schema_and_is_told_in_every_form(name: str) -> None:
    asked = host(name)
    block = issue_block(asked, run_of_host(name).facts or {})
    run = of(run_of_host(name), run_of_log("bundle-three-layers-card-drop"), block=block)
    schema = json.loads((data_folder("reports") / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(run_as_json(run))))
    again = run_of_bytes(rendered(run, "json", "en").encode())
    for form in ("console", "markdown", "html", "junit", "json"):
        for lang in ("en", "zh"):
            assert rendered(again, form, lang) == rendered(run, form, lang)


def test_triage_from_the_command_line(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    log = LOGS / "stderr-npu-oom-kvcache.log"
    done = doctor("triage", "--snapshot", FOLDER / "a2-healthy", log)
    assert done.returncode == 1
    assert done.stdout.startswith("✗ Most probable cause: The framework ran out of NPU memory\n")
    assert doctor("triage", "--snapshot", FOLDER / "a2-healthy").returncode == 0
    assert doctor("triage", "--snapshot", FOLDER / "bare-linux", "--fail-on", "never").returncode == 0


def test_the_markdown_to_paste_names_nobody(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    log = LOGS / "stderr-npu-oom-kvcache.log"
    text = doctor("triage", "--snapshot", FOLDER / "a2-container-healthy", "--format", "markdown", log).stdout
    assert "5f3a9c1e7b42" not in text
    assert "<summary>npu-smi info</summary>" in text
    kept = doctor(
        "triage", "--snapshot", FOLDER / "a2-container-healthy", "--format", "markdown", "--no-redact", log
    ).stdout
    assert "5f3a9c1e7b42" in kept
