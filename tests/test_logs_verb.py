"""``ascend-doctor logs`` as a user calls it: what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tarfile
import threading
import time
from pathlib import Path

import pytest
from command import DOCTOR, SECONDS, Command
from log_runs import CAPTURES

LOGS = CAPTURES / "logs"
CLEAN = LOGS / "stderr-clean-vllm-startup.log"
FAULT = LOGS / "messages-oom-killer.log"
SYMPTOM = LOGS / "plog-truncated-cascade-only.log"


@pytest.fixture
def doctor(tmp_path: Path) -> Command:
    return Command(tmp_path)


def call(doctor: Command, *arguments: str, text: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*DOCTOR, "logs", *arguments],
        cwd=doctor.folder,
        env=doctor.environment(),
        input=text,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [
        (CLEAN, 0, "No fault in these logs"),
        (FAULT, 1, "Root cause: "),
        (SYMPTOM, 3, "These logs do not show the cause"),
        (Path("/nowhere/at.log"), 3, "No log of a known form was found"),
    ],
)
def test_the_exit_code_and_the_first_line_are_the_answer(doctor: Command, path: Path, code: int, says: str) -> None:
    done = call(doctor, str(path))
    assert done.returncode == code, done.stderr
    assert says in done.stdout.decode().splitlines()[0]


def test_a_fault_is_told_with_place_time_proof_consequence_and_remedy(doctor: Command) -> None:
    text = call(doctor, str(LOGS / "bundle-three-layers-card-drop")).stdout.decode()
    place = 0
    for words in ("Root cause", "confidence", "What proves it", "dmesg.txt:1", "What followed", "what to do", "read"):
        place = text.index(words, place)
    assert "2026-09-02 13:45:01" in text
    assert not [line for line in text.splitlines() if len(line) > 80 and not line.lstrip().startswith("$")]


def test_standard_input_and_archives_are_read(doctor: Command) -> None:
    assert call(doctor, "-", text=FAULT.read_bytes()).returncode == 1
    with tarfile.open(doctor.folder / "bundle.tar.gz", "w:gz") as bundle:
        bundle.add(LOGS / "bundle-4rank-first-failure", "bundle")
    document = json.loads(call(doctor, "bundle.tar.gz", "--format", "json").stdout)
    assert document["root_cause"]["rank"] == 1
    assert document["root_cause"]["file"].startswith("bundle.tar.gz!bundle/rank1/")


def test_a_pipe_by_name_is_read_whole(doctor: Command) -> None:
    """As the shell gives it: logs <(zcat x.gz)."""
    pipe = doctor.folder / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(FAULT.read_bytes()))
    writer.start()
    document = json.loads(call(doctor, "pipe", "--format", "json").stdout)
    writer.join(SECONDS)
    assert document["root_cause"]["line"] == 2
    assert document["coverage"][0]["lines"] == 5


def test_reports_are_written_in_every_format(doctor: Command) -> None:
    names = ["report.json", "report.html", "report.md", "report.xml", "report.txt"]
    done = call(doctor, str(FAULT), "--quiet", *(word for name in names for word in ("-o", name)))
    assert done.returncode == 1
    for name in names:
        assert "messages-oom-killer.log" in (doctor.folder / name).read_text(encoding="utf-8")
    assert "<h1" in (doctor.folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [["--since", "yesterday-ish"], ["--pid", "-4"], ["--nope"]])
def test_a_bad_call_is_told_so(doctor: Command, arguments: list[str]) -> None:
    done = call(doctor, str(FAULT), *arguments)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_time_of_the_logs_can_be_chosen(doctor: Command) -> None:
    kernel = LOGS / "bundle-three-layers-card-drop"
    late = call(doctor, str(kernel), "--since", "2026-09-02 13:45:05", "--format", "json")
    assert json.loads(late.stdout)["root_cause"]["time"] > "2026-09-02T13:45:05"
    assert call(doctor, str(kernel), "--until", "2026-09-01").returncode == 0


def test_an_interrupt_tells_what_was_found_so_far(doctor: Command) -> None:
    fifo = doctor.folder / "growing.log"
    os.mkfifo(fifo)
    command = [*DOCTOR, "logs", str(FAULT), str(fifo)]
    started = subprocess.Popen(
        command, cwd=doctor.folder, env=doctor.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with fifo.open("wb", buffering=0) as writer:  # opens when the doctor reads it: the file before is read by then
        writer.write(b"INFO: still writing\n")
        time.sleep(0.5)  # python notices a signal that comes just before it blocks only afterwards
        started.send_signal(signal.SIGINT)
        out, _ = started.communicate(timeout=SECONDS)
    assert started.returncode == 130
    assert "Root cause" in out.decode()
    assert "Interrupted" in out.decode()
