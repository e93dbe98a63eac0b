"""Public pastes of the most different kinds: the verdict, the line that is named, and what is put before lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from log_runs import CAPTURES, run_of

from ascend_doctor.engine.run import run_as_json

CASES = {case["id"]: case for case in yaml.safe_load((CAPTURES / "log_cases_public.yaml").read_text(encoding="utf-8"))}
WRAPPINGS = {
    "vllm": "(EngineCore_DP0 pid=4242) {}",
    "ray": "\x1b[36m(WorkerDict pid=4242, ip=192.0.2.7)\x1b[0m {}",
    "kubectl": "[pod/vllm-0/vllm] {}",
    "compose": "vllm-1  | {}",
    "torchrun": "[rank3]: {}",
    "grep": "run/out.log:12:{}",
}
WRAPPED = (
    "tilelang82-507015",
    "vllm5707-kv-blocks",
    "vllm6484-awq-keyerror",
    "docs-cannot-find-bin",
    "paddleocr-libhccl",
)


def told(path: Path) -> Any:
    return json.loads(json.dumps(run_as_json(run_of([path]))))


def judged(case: Any, document: Any) -> None:
    root = document["root_cause"]
    assert document["log_verdict"] == case["verdict"], root and root["text"]
    if not case["root"]:
        assert root is None
        return
    assert root is not None
    assert any(words in root["text"] for words in case["root"].split("|")), root["text"]


@pytest.mark.parametrize("name", list(CASES))
def test_a_public_paste_is_judged_as_an_expert_would(name: str, tmp_path: Path) -> None:
    path = tmp_path / "paste.log"
    path.write_text(CASES[name]["log"], encoding="utf-8")
    judged(CASES[name], told(path))


@pytest.mark.parametrize("wrapping", list(WRAPPINGS))
@pytest.mark.parametrize("name", WRAPPED)
def test_what_others_put_before_lines_changes_nothing(name: str, wrapping: str, tmp_path: Path) -> None:
    path = tmp_path / "paste.log"
    lines = [WRAPPINGS[wrapping].format(line) for line in CASES[name]["log"].splitlines()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    judged(CASES[name], told(path))


@pytest.mark.parametrize("name", WRAPPED)
def test_a_packed_paste_is_the_same_paste(name: str, tmp_path: Path) -> None:
    path = tmp_path / "paste.log.gz"
    path.write_bytes(gzip.compress(CASES[name]["log"].encode()))
    judged(CASES[name], told(path))


def test_an_exception_that_nobody_knows_is_the_first_sign_and_no_finding(tmp_path: Path) -> None:
    path = tmp_path / "paste.log"
    path.write_text(CASES["vllm-notimplemented-capture"]["log"], encoding="utf-8")
    document = told(path)
    assert (document["root_cause"]["role"], document["root_cause"]["confidence"]) == ("unknown", "low")
    assert document["gate"]["exit_code"] == 3


def test_ranks_that_hccl_lists_as_not_connected_are_named(tmp_path: Path) -> None:
    path = tmp_path / "paste.log"
    path.write_text(CASES["docs-hccl-agent-only"]["log"], encoding="utf-8")
    assert told(path)["suspects"]["absent"] == [9]
