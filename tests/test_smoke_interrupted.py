"""A run that is interrupted, or whose terminal closes, leaves no child behind; one that nothing ends is named."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import DOCTOR, Command
from smoke_runs import MODEL, PYTHON, needs_torch, with_faults
from test_smoke_faults import on_device

from ascend_doctor.host import watching
from ascend_doctor.host.children import Ended, child

SECONDS = 120


def alive(pid: int) -> bool:
    return watching.state_of(pid) not in ("?", "Z", "X")


def wait_for(path: Path) -> str:
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        if path.is_file() and path.read_text():
            return path.read_text()
        time.sleep(0.05)
    raise AssertionError(f"{path} was never written")


@needs_torch
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGHUP, 129)],
    ids=lambda value: str(value),
)
def test_no_child_is_left(number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the one that computes nor what it started."""
    note = tmp_path / "pids"
    hang = (
        f"import os, subprocess, time; other = subprocess.Popen(['sleep', '600']); "
        f"open({str(note)!r} + '.new', 'w').write(f'{{os.getpid()}} {{other.pid}}'); "
        f"os.rename({str(note)!r} + '.new', {str(note)!r}); time.sleep(600)"
    )
    with_faults(tmp_path / "faults", monkeypatch, {f"{MODEL}.model": on_device(f"exec({hang!r})")})
    doctor = Command(tmp_path)
    env = doctor.environment({"PYTHONPATH": f"{tmp_path / 'faults'}:{doctor.environment()['PYTHONPATH']}"})
    call = [*DOCTOR, "smoke", "--device", "cpu", "--size", "tiny", "--python", PYTHON]
    running = subprocess.Popen(
        call,
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell's background ignores it
    )
    try:
        pids = [int(word) for word in wait_for(note).split()]
        assert all(map(alive, pids))
        running.send_signal(number)
        assert running.wait(SECONDS) == code
        ends = time.monotonic() + 10
        while any(map(alive, pids)) and time.monotonic() < ends:
            time.sleep(0.02)
        assert not any(map(alive, pids))
    finally:
        running.kill()
        running.wait()
        assert running.stdout is not None
        running.stdout.close()


def test_a_child_that_no_signal_ends_is_named_where_it_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As it is with one that waits in the kernel."""
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    pipes = [os.pipe() for _ in range(3)]
    watched = watching.Watched(other.pid, [reading for reading, _ in pipes], 60)
    with monkeypatch.context() as stuck:
        stuck.setattr(watching.os, "killpg", lambda group, number: None)
        stuck.setattr(watching, "DEATH_SECONDS", 0.1)
        watched.end()
    other.kill()
    other.wait()
    for pipe in pipes:
        for descriptor in pipe:
            os.close(descriptor)
    assert f"left behind: process {other.pid} (state S)" in capfd.readouterr().err


def test_a_step_that_no_signal_ends_is_stuck_with_its_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = (
        "import json, os, sys, time\n"
        "def tell(**entry): os.write(3, json.dumps(dict(entry, pid=os.getpid())).encode() + b'\\n')\n"
        "tell(stage='device', step='set', event='begin', deadline=0.2)\ntime.sleep(30)\n"
    )
    (tmp_path / "fake.py").write_text(script, encoding="utf-8")
    from ascend_doctor.smoke.told import Listening, Told

    seconds = {"device": 0.2}
    with monkeypatch.context() as stuck:
        stuck.setattr(watching.os, "killpg", lambda group, number: None)
        stuck.setattr(watching, "DEATH_SECONDS", 0.1)
        stuck.setattr(watching, "TERM_SECONDS", 0.1)
        stuck.setattr("ascend_doctor.host.children.SCRIPTS", tmp_path)
        ended = child(sys.executable, "fake.py", [], 20, Listening(seconds, lambda stage: None))
    assert isinstance(ended, Ended)
    os.kill(ended.pid, signal.SIGKILL)
    os.waitpid(ended.pid, 0)
    culprit = Told(ended).culprit
    assert culprit is not None
    assert (culprit["stage"], culprit["step"], culprit["outcome"]) == ("device", "set", "stuck")
    assert re.fullmatch("[SRD]", culprit["state"])
