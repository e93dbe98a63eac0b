"""What is waited for is shown on a terminal, while it is, and nowhere else."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import CHECKOUT, TABLE, Command

from ascend_doctor.cli.progress import Files, of_commands, of_file
from ascend_doctor.host.commands import Waiting
from ascend_doctor.report.words import words


@pytest.mark.parametrize(
    ("running", "shown"),
    [
        ([], ""),
        ([Waiting("npu-smi info", 100.0, 10.0)], "npu-smi info (3 s of 10 s)"),
        ([Waiting("b", 102.0, 10.0), Waiting("a", 101.0, 10.0)], "a (2 s of 10 s), and 1 more"),
        ([Waiting("x\x1b[2J\ny", 103.0, 10.0)], r"x\x1b[2J y (0 s of 10 s)"),
    ],
)
def test_the_line_of_commands(running: list[Waiting], shown: str) -> None:
    assert of_commands(running, 103.0, words("en")) == shown


def test_the_line_in_chinese() -> None:
    running = [Waiting("npu-smi info", 1.0, 10.0)]
    assert of_commands(running, 4.0, words("zh")) == "npu-smi info（已等 3 秒，最多 10 秒）"


@pytest.mark.parametrize(
    ("name", "size", "shown"),
    [("plog/a.log", 300 << 20, "plog/a.log (300 MiB)"), ("a.log", 5, "a.log"), ("a\n.gz", None, "a .gz")],
)
def test_the_line_of_a_file(name: str, size: int | None, shown: str) -> None:
    assert of_file(name, size, words("en")) == shown


def test_large_files_are_shown_and_the_line_is_taken_away() -> None:
    stream = io.StringIO()
    with Files(stream, "en") as files:
        files.reads("small.log", 10)
        files.reads("large.log", 64 << 20)
    assert stream.getvalue() == "\r\x1b[Klarge.log (64 MiB)\r\x1b[K"


def said_on_a_terminal(doctor: Command, *arguments: str) -> str:
    """What comes on stderr where that is a terminal; stdout is a pipe."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "ascend_doctor", *arguments],
        cwd=doctor.folder,
        env={**doctor.environment(), "TERM": "xterm", "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        said, ends = b"", time.monotonic() + 30
        while time.monotonic() < ends:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    data = os.read(ours, 4096)
                except OSError:  # the last one who had it open has gone
                    break
                if not data:
                    break
                said += data
        process.wait(30)
    os.close(ours)
    return said.decode()


@pytest.fixture
def slow(tmp_path: Path) -> Command:
    doctor = Command(tmp_path)
    (tmp_path / "output").write_bytes(TABLE)
    doctor.tool("npu-smi", f"sleep 1.5; cat {tmp_path}/output")
    return doctor


def test_a_slow_command_is_shown_and_taken_away(slow: Command) -> None:
    said = said_on_a_terminal(slow, "preflight", "--only", "npu.*")
    assert re.search(r"\r\x1b\[Knpu-smi info \(\d s of \d+ s\)", said)
    assert said.endswith("\r\x1b[K")


def test_quiet_shows_nothing(slow: Command) -> None:
    assert said_on_a_terminal(slow, "preflight", "--only", "npu.*", "--quiet") == ""


def test_off_a_terminal_nothing_is_shown(slow: Command) -> None:
    assert slow("preflight", "--only", "npu.*").stderr == ""
