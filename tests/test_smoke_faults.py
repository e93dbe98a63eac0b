"""Each fault of a device that can be played on a CPU is found at its stage, with words that name it."""

from __future__ import annotations

from pathlib import Path

import pytest
from smoke_runs import MODEL, TORCH, failed, findings, plain, smoked, with_faults

from ascend_doctor.facts.smoke import DeviceRun

pytestmark = TORCH

ON_DEVICE = "x.dtype == torch.bfloat16"
"""The golden run is fp32."""

NAN_EXPERT = f"""
through = Experts._through
def _through(self, x, gate_up, down):
    out = through(self, x, gate_up, down)
    shared = gate_up.data_ptr() == self.weights["shared_gate_up"].data_ptr()
    third = gate_up.data_ptr() == self.weights["gate_up"][3].data_ptr()
    return out * float("nan") if third and not shared and {ON_DEVICE} else out
Experts._through = _through
"""
WRONG_EXPERT = f"""
routed = Experts._routed
def _routed(self, x, chosen, shares):
    if {ON_DEVICE}:
        chosen = torch.where(chosen == 3, torch.full_like(chosen, 4), chosen)
    return routed(self, x, chosen, shares)
Experts._routed = _routed
"""
WRONG_CHOICE = """
chosen_before = Experts.chosen
def chosen(self, scores, tokens):
    found = chosen_before(self, scores, tokens)
    if self.weights["gate_up"].dtype == torch.bfloat16 and not self.hashed:
        found = torch.cat((found[..., :1], (found[..., 1:] + 1) % self.config.experts), -1)
    return found
Experts.chosen = chosen
"""
TRANSPOSED_PAIR = f"""
turned = Rotary.turned
def swapped(self, x, start, step=1, back=False):
    out = turned(self, x, start, step, back)
    if {ON_DEVICE}:
        first = out.shape[-1] - 2 * self.cosines.shape[-1]
        out = out.clone()
        out[..., first : first + 2] = out[..., first : first + 2].flip(-1)
    return out
Rotary.turned = swapped
"""
CACHE_ROW = """
forward = Model.forward
def overwriting(self, tokens, caches, start, *args, **kwargs):
    out = forward(self, tokens, caches, start, *args, **kwargs)
    if tokens.shape[1] == 1:
        rows = caches.tensors()["layers.0.window"]
        rows[:, (start - 3) % rows.shape[1]] = rows[:, start % rows.shape[1]]
    return out
Model.forward = overwriting
"""
DIFFERS = """
import itertools
calls = itertools.count()
forward = Model.forward
def drifting(self, *args, **kwargs):
    out = forward(self, *args, **kwargs)
    return out * (1 + 0.004 * (next(calls) % 3)) if out.dtype == torch.bfloat16 else out
Model.forward = drifting
"""
LEAK = """
held = []
forward = Model.forward
def leaking(self, tokens, caches, start, routing=None, last_only=False):
    if start == 0 and last_only:
        held.append(torch.ones(1 << 18))
    return forward(self, tokens, caches, start, routing, last_only)
Model.forward = leaking
"""
SLOW_FIRST = """
import time
slow = [True]
quick = Model.forward
def slow_at_first(self, tokens, *args, **kwargs):
    begun = time.perf_counter()
    out = quick(self, tokens, *args, **kwargs)
    if slow and tokens.shape[1] == 1 and out.dtype == torch.bfloat16:
        slow.clear()
        time.sleep(20 * (time.perf_counter() - begun) + 0.5)
    return out
Model.forward = slow_at_first
"""
EXHAUSTED = """
def no_memory(self, *args, **kwargs):
    return torch.empty(1 << 60)
Caches.__init__ = no_memory
"""


def on_device(action: str) -> str:
    """In the middle of the whole model's first pass on the device."""
    return f"""
forward = Model.forward
def faulty(self, *args, **kwargs):
    if self.weights["embedding"].dtype == torch.bfloat16:
        {action}
    return forward(self, *args, **kwargs)
Model.forward = faulty
"""


NOISE = """
import os, subprocess, sys
print('{"stage": "device", "step": "memory", "event": "end"}' * 50)
print("Warning: ASCEND_HOME_PATH environment variable is not set.", flush=True)
if os.fork() == 0:
    try:
        os.write(3, b'{"stage": "forced", "step": "numbers", "event": "begin", "deadline": 0.01}')
    except OSError:
        pass
    import time
    time.sleep(600)
subprocess.Popen(["sleep", "600"], close_fds=False)
"""


@pytest.mark.parametrize(
    ("module", "fault", "check", "words"),
    [
        ("experts", NAN_EXPERT, "smoke.layers", ["experts", "NaN"]),
        ("experts", WRONG_EXPERT, "smoke.layers", ["experts", "relative error"]),
        ("rotary", TRANSPOSED_PAIR, "smoke.layers", ["relative error"]),
        ("model", CACHE_ROW, "smoke.decode", ["row", "layers.0.window", "off by"]),
        ("caches", EXHAUSTED, "smoke.layers", ["no memory left"]),
    ],
)
def test_a_wrong_result_is_found_where_it_is_made(
    module: str, fault: str, check: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_faults(tmp_path / "faults", monkeypatch, {f"{MODEL}.{module}": fault})
    found = failed(smoked())
    assert check in found, found
    text = (found[check].found or {})["en"]
    assert all(word in text for word in words), text
    assert found[check].severity == "error"


def test_an_operator_that_is_one_percent_off_is_found_among_the_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = """
import torch
matmul = torch.matmul
def off(a, b, **kwargs):
    out = matmul(a, b, **kwargs)
    return out * 1.01 if out.dtype == torch.bfloat16 else out
torch.matmul = off
"""
    with_faults(tmp_path / "faults", monkeypatch, {f"{MODEL}.config": off})
    found = failed(smoked())
    assert found["smoke.operators"].severity == "error"
    assert "matmul" in found["smoke.operators"].subject + str(found["smoke.operators"].found)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("__import__('ctypes').string_at(0)", ["forced.numbers crashed with SIGSEGV", "string_at"]),
        ("__import__('os').kill(__import__('os').getpid(), 9)", ["forced.numbers", "killed from outside (SIGKILL)"]),
    ],
)
def test_an_end_names_the_step_and_what_is_left_is_skipped(
    action: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_faults(tmp_path / "faults", monkeypatch, {f"{MODEL}.model": on_device(action)})
    collected = smoked()
    verdicts = plain(collected)
    assert verdicts["smoke.layers"] == "pass"
    assert verdicts["smoke.forced"] == "error"
    assert {verdicts[f"smoke.{stage}"] for stage in ("free", "decode", "latency", "memory")} == {"skip"}
    text = (failed(collected)["smoke.forced"].found or {})["en"]
    assert all(word in text for word in words), text
    reasons = [f.reason for f in findings(collected) if f.check == "smoke.decode"]
    assert "it needs stage forced, which did not pass" in str(reasons)


PLOG = (
    "[ERROR] RUNTIME(%d,python3):2026-11-30-12:00:00.000.001 [task_info.cc:1234]%d PrintErrorInfo:[INIT][DEFAULT]"
    "The error from device(chipId:0, dieId:0), serial number is 7, there is an aivec error exception, core id is 3, "
    "error code = 0x800000, dump info: pc start: 0x12404066a000\n"
)
"""As CANN writes it; its layout is that of the captures in logs/."""


def test_the_plog_of_the_child_is_read_and_its_cause_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    action = (
        "import os; folder = os.environ['ASCEND_PROCESS_LOG_PATH'] + '/debug/plog'; os.makedirs(folder); "
        "pid = os.getpid(); "
        f"open(f'{{folder}}/plog-{{pid}}_20261130120000000.log', 'w').write({PLOG!r} % (pid, pid)); "
        "raise RuntimeError('synchronize failed, error code:507035')"
    )
    with_faults(tmp_path / "faults", monkeypatch, {f"{MODEL}.model": on_device(f"exec({action!r})")})
    finding = failed(smoked())["smoke.forced"]
    assert "aivec error exception" in (finding.found or {})["en"]
    assert finding.remedy


def test_a_hang_ends_at_its_deadline_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_faults(tmp_path / "faults", monkeypatch, {f"{MODEL}.model": on_device("__import__('time').sleep(600)")})
    found = failed(smoked(step_seconds=15.0))
    text = (found["smoke.forced"].found or {})["en"]
    assert "forced.numbers hangs: no end within 15 s" in text
    assert "(faulty)" in text


def test_after_a_crash_of_one_layer_a_new_child_goes_on_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = """
def crash(*args):
    __import__("ctypes").string_at(0)
before = layer_probes
def layer_probes(config):
    return [(name, crash if name == "csa" else function) for name, function in before(config)]
"""
    with_faults(tmp_path / "faults", monkeypatch, {f"{MODEL}.layers": fault})
    collected = smoked()
    (device,) = collected.facts.devices  # type: ignore[misc]
    assert isinstance(device, DeviceRun)
    steps = [(step.step, step.outcome) for step in device.steps if step.stage == "layers"]
    assert ("csa", "signal") in steps
    assert ("hyper_connections", "passed") in steps
    assert len([step for step in device.steps if step.stage == "import"]) == 1
    verdicts = plain(collected)
    assert verdicts["smoke.layers"] == "error"
    assert {verdicts[f"smoke.{stage}"] for stage in ("forced", "free", "decode", "latency", "memory")} == {"pass"}


def test_what_is_wrong_at_several_stages_is_told_at_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise on stdout and on descriptor 3, and with processes that were forked and go on, which change nothing."""
    faults = {f"{MODEL}.model": LEAK + SLOW_FIRST + NOISE, f"{MODEL}.experts": WRONG_CHOICE}
    with_faults(tmp_path / "faults", monkeypatch, faults)
    found = failed(smoked())
    assert {check: finding.severity for check, finding in found.items()} == {
        "smoke.free": "error",
        "smoke.latency": "info",
        "smoke.memory": "error",
    }
    texts = {check: (finding.found or {})["en"] for check, finding in found.items()}
    assert "of the chosen experts are the golden run's" in texts["smoke.free"]
    assert texts["smoke.latency"].startswith("the first token took")
    assert texts["smoke.memory"].startswith("the process grows by")


def test_results_that_differ_between_two_runs_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_faults(tmp_path / "faults", monkeypatch, {f"{MODEL}.model": DIFFERS})
    finding = failed(smoked())["smoke.forced"]
    assert finding.severity == "warning"
    assert "nondeterministic" in (finding.found or {})["en"]
