"""Ranks that compute together: what they tell, and which of them is named when one does not come along.

They run in the interpreter of smoke_runs.py.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from smoke_runs import PYTHON, needs_torch

from ascend_doctor.children.collectives.culprits import State, culprits
from ascend_doctor.children.stages.protocol import plain
from ascend_doctor.derive.smoke_gates import failing
from ascend_doctor.facts.smoke import DeviceRun, Step
from ascend_doctor.host import Missing
from ascend_doctor.host.children import child
from ascend_doctor.knowledge.smoke_gates import load
from ascend_doctor.paths import data_folder

GATES = load([data_folder("rules")])
SECONDS = 90


def lines(count: int, patience: float = SECONDS) -> list[dict[str, Any]]:
    """What the launcher of that many ranks tells, line by line."""
    plan = {"kind": "cpu", "devices": ["cpu"] * count, "seconds": SECONDS, "patience": patience}
    ended = child(PYTHON, "ranks.py", [json.dumps(plan)], 2 * SECONDS)
    assert not isinstance(ended, Missing)
    assert (ended.how, ended.code) == ("exit", 0), ended.stderr
    return [json.loads(line) for line in ended.answer.splitlines()]


def measures(told: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {line["step"]: line["measures"] for line in told if line["event"] == "end"}


def found_in(told: list[dict[str, Any]]) -> list[str]:
    """The gates that are not kept, over all steps; their texts are whole."""
    found = []
    device = DeviceRun("cpu:0-1", "cpu", "", "bf16", "", {}, 0, ())
    for name, numbers in measures(told).items():
        step = Step("ranks", name, "passed", 0.1, SECONDS, plain(numbers), (), "", 0, "", "", 0, "", "", "", {})
        for failure in failing(step, GATES, device):
            found.append(failure.id)
            texts = (failure.found, failure.expected, failure.why, *(one.text for one in failure.remedy))
            assert not [text for each in texts for text in each.values() if re.search(r"\{[a-z_]+\}", text)]
    return found


# Who it was


def state(rank: int, **shown: Any) -> State:
    return State(rank, **shown)


@pytest.mark.parametrize(
    ("states", "over", "places", "fault", "ranks"),
    [
        # the neighbours of a dead rank raise, as their connections close
        (
            [state(0, entered=True, raised="closed"), state(1, end="SIGKILL"), state(2, entered=True, raised="closed")],
            False,
            {},
            "ended",
            [1],
        ),
        # one could not begin; the others wait for it
        ([state(0, entered=True), state(1, raised="ImportError"), state(2, entered=True)], False, {}, "raised", [1]),
        # one does not come; another one gave up waiting
        ([state(0, entered=True, raised="timed out"), state(1)], True, {}, "silent", [1]),
        ([state(0, entered=True), state(1), state(2, entered=True)], True, {}, "silent", [1]),
        # all came, one stands elsewhere
        (
            [state(0, entered=True), state(1, entered=True), state(2, entered=True)],
            True,
            {0: "c10d.py:9", 1: "c10d.py:9", 2: "time.py:1"},
            "silent",
            [2],
        ),
        # all came, and all wait at the same place, or of two nobody knows which
        ([state(0, entered=True), state(1, entered=True)], True, {0: "a:1", 1: "a:1"}, "stuck", [0, 1]),
        ([state(0, entered=True), state(1, entered=True)], True, {0: "a:1", 1: "b:1"}, "stuck", [0, 1]),
        # one raised while all were in it
        (
            [state(0, left=True), state(1, entered=True, raised="507015"), state(2, entered=True)],
            False,
            {},
            "raised",
            [1],
        ),
    ],
)
def test_the_rank_at_fault_is_told_by_what_all_of_them_showed(
    states: list[State], over: bool, places: dict[int, str], fault: str, ranks: list[int]
) -> None:
    assert culprits(states, over, places) == (fault, ranks)


# Real ranks


@needs_torch
@pytest.mark.parametrize("count", [2, 4])
def test_ranks_that_work_sum_and_gather_what_they_should(count: int) -> None:
    told = lines(count)
    found = measures(told)
    assert found_in(told) == []
    assert list(found) == ["start", "connect", "all_reduce.fp32", "all_reduce.fp16", "all_gather.fp32", "end"]
    assert {step: (m.get("fault", ""), m.get("wrong_ranks", "")) for step, m in found.items()} == dict.fromkeys(
        found, ("", "")
    )
    assert found["all_gather.fp32"]["wrong_senders"] == found["end"]["left_behind"] == ""
    assert found["all_reduce.fp32"]["gib_s"] > 0
    assert told[-2:] == [
        {"stage": "ranks", "event": "left", "passed": True, "pid": told[-1]["pid"]},
        {"event": "done", "pid": told[-1]["pid"]},
    ]


def spoilt(monkeypatch: pytest.MonkeyPatch, site: Path, rank: int, source: str) -> None:
    """The source runs in that rank before all else; ``distributed`` and ``torch`` are there."""
    head = f"import os, signal, sys, time\nif os.environ.get('RANK') == '{rank}':\n"
    body = f"import torch, torch.distributed as distributed\nreal = distributed.all_reduce\ncalls = []\n{source}"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(head + "".join(f"    {line}\n" for line in body.splitlines()))
    monkeypatch.setenv("PYTHONPATH", str(site))


SECOND_CALL = """
def all_reduce(tensor, *others, **named):
    calls.append(1)
    if len(calls) == 2:
        {}
    return real(tensor, *others, **named)
distributed.all_reduce = all_reduce
"""


@needs_torch
def test_a_rank_that_dies_is_named_with_its_signal_though_the_others_raise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spoilt(monkeypatch, tmp_path, 2, SECOND_CALL.format("os.kill(os.getpid(), signal.SIGSEGV)"))
    told = lines(3)
    assert found_in(told) == ["ranks.ended"]
    found = measures(told)["all_reduce.fp32"]
    assert (found["fault"], found["ended"], found["how"]) == ("ended", "2", "SIGSEGV")
    assert "all_reduce.fp16" not in measures(told)
    assert told[-2]["passed"] is False


@needs_torch
def test_a_rank_that_never_comes_is_named_with_where_it_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = "real_arange = torch.arange\ndef arange(*a, **n):\n    time.sleep(600)\ntorch.arange = arange\n"
    spoilt(monkeypatch, tmp_path, 1, source)
    told = lines(2, patience=3)
    assert found_in(told) == ["ranks.silent"]
    found = measures(told)["all_reduce.fp32"]
    assert (found["fault"], found["silent"], found["waiting"]) == ("silent", "1", "0")
    assert "sitecustomize.py" in found["places"]
    assert "(arange)" in found["places"]


@needs_torch
def test_a_rank_that_hangs_among_others_that_wait_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spoilt(monkeypatch, tmp_path, 0, SECOND_CALL.format("time.sleep(600)"))
    found = measures(lines(3, patience=3))["all_reduce.fp32"]
    assert (found["fault"], found["silent"], found["waiting"]) == ("silent", "0", "1, 2")


@needs_torch
def test_a_rank_that_raises_is_named_with_its_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spoilt(monkeypatch, tmp_path, 1, SECOND_CALL.format("raise RuntimeError('HCCL function error: 4')"))
    told = lines(2)
    assert found_in(told) == ["ranks.raised"]
    found = measures(told)["all_reduce.fp32"]
    assert (found["fault"], found["raised"]) == ("raised", "1")
    assert found["how"] == "RuntimeError: HCCL function error: 4"


@needs_torch
def test_a_rank_with_a_wrong_sum_and_a_rank_that_gives_wrong_parts_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = """
def all_reduce(tensor, *others, **named):
    done = real(tensor, *others, **named)
    tensor[0] += 1
    return done
real_gather = distributed.all_gather
def all_gather(parts, tensor, *others, **named):
    tensor[-1] += 1
    return real_gather(parts, tensor, *others, **named)
distributed.all_reduce, distributed.all_gather = all_reduce, all_gather
"""
    spoilt(monkeypatch, tmp_path, 1, source)
    told = lines(3)
    assert found_in(told) == [*["ranks.wrong-numbers"] * 4, "ranks.wrong-part"]
    found = measures(told)
    assert [found[step]["wrong_ranks"] for step in ("connect", "all_reduce.fp32", "all_reduce.fp16")] == ["1"] * 3
    assert found["all_gather.fp32"]["wrong_senders"] == "1"


@needs_torch
def test_no_rank_outlives_a_launcher_that_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    source = f"open({str(pids)!r}, 'w').write(str(os.getpid()))\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)"
    spoilt(monkeypatch, tmp_path / "site", 1, source)
    plan = {"kind": "cpu", "devices": ["cpu", "cpu"], "seconds": SECONDS}
    ended = child(PYTHON, "ranks.py", [json.dumps(plan)], SECONDS)
    assert not isinstance(ended, Missing)
    assert ended.signal == "SIGKILL"
    assert_gone(pids.read_text())


@needs_torch
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, None)])
def test_a_run_that_is_interrupted_or_whose_terminal_closes_leaves_no_rank(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sent: signal.Signals, code: int | None
) -> None:
    pids = tmp_path / "pids"
    source = f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{os.getppid()}}')\ntime.sleep(600)"
    spoilt(monkeypatch, tmp_path / "site", 1, source)
    command = [sys.executable, "-m", "ascend_doctor", "smoke", "--device", "cpu", "--ranks", "2", "--python", PYTHON]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hears) as verb:
        for _ in range(3000):
            if pids.exists() and len(pids.read_text().split()) == 2:
                break
            time.sleep(0.02)
        verb.send_signal(sent)
        verb.communicate(timeout=20)
    assert code is None or verb.returncode == code
    assert_gone(*pids.read_text().split())


def hears() -> None:
    """Also where the tests run in the background of a shell, which lets its jobs ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def assert_gone(*pids: str) -> None:
    for _ in range(250):
        states = [Path(f"/proc/{pid}/stat") for pid in pids]
        if not any(stat.exists() and " Z " not in stat.read_text() for stat in states):
            return
        time.sleep(0.02)
    pytest.fail(f"still there: {pids}")
