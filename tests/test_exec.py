"""--exec as a container's entry point: the first process of a PID namespace, as unshare(1) makes it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
UNSHARE = shutil.which("unshare")
SPACE = [str(UNSHARE), "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


def can_unshare() -> bool:
    return UNSHARE is not None and subprocess.run([*SPACE, "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_unshare(), reason="no namespace of PIDs may be made here")
GATE = ("--exec", "--only", "kernel-log.*", "--fail-on", "never")


def line(*command: str, gate: tuple[str, ...] = GATE) -> list[str]:
    return [*SPACE, sys.executable, "-m", "ascend_doctor", "preflight", *gate, "--", *command]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def entry_point(argv: list[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The running container, and its first process as the host numbers it."""
    with subprocess.Popen(argv, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        found: list[int] = []
        while not found and process.poll() is None:
            found = children(process.pid)
            time.sleep(0.01)
        try:
            yield process, found[0]
        finally:
            process.kill()


def test_the_service_is_the_first_process_and_its_exit_code_is_the_containers() -> None:
    done = subprocess.run(
        line("sh", "-c", "echo $$; exit 7"), cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (7, "1\n")


def test_a_signal_to_the_container_reaches_the_service() -> None:
    script = "trap 'echo stopping; exit 5' TERM; echo up; while :; do sleep 0.05; done"
    with entry_point(line("sh", "-c", script)) as (process, first):
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        Path(f"/proc/{first}").stat()
        subprocess.run(["kill", "-TERM", str(first)], check=True)
        assert process.stdout.readline() == "stopping\n"
        assert process.wait(20) == 5


def test_a_signal_ends_the_gate_before_the_service_is_started(tmp_path: Path) -> None:
    """The kernel drops what the first process of a namespace does not handle."""
    ready, go = tmp_path / "ready", tmp_path / "go"
    slow = tmp_path / "npu-smi"
    slow.write_text(f"#!/bin/sh\ntouch {ready}\nwhile [ ! -e {go} ]; do sleep 0.05; done\n")
    slow.chmod(0o755)
    gate = ("--exec", "--only", "npu.*", "--fail-on", "never")
    argv = ["env", f"PATH={tmp_path}:/usr/bin:/bin", *line("echo", "started", gate=gate)]
    with entry_point(argv) as (process, first):
        deadline = time.monotonic() + 30
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        subprocess.run(["kill", "-TERM", str(first)], check=True)
        code = process.wait(20)
        go.touch()
        assert code == 128 + signal.SIGTERM
        assert process.stdout is not None
        assert process.stdout.read() == ""


def test_the_service_finds_its_signals_as_they_were() -> None:
    done = subprocess.run(
        line("grep", "-E", "SigIgn|SigCgt", "/proc/self/status"),
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    ignored = int(done.stdout.split("SigIgn:")[1].split()[0], 16)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGINT):
        assert not ignored & 1 << (number - 1)
