"""The command as users call it: what it withstands, what it says, and its exit codes."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import CHECKOUT, DOCTOR, SECONDS, TABLE, Command, findings
from hosts import FOLDER

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.paths import data_folder

HEALTHY = FOLDER / "a2-healthy"
EVERY_CHECK = {check.id for check in load_checks([data_folder("checks")])}
NOBODY = 65534


@pytest.fixture
def doctor(tmp_path: Path) -> Command:
    return Command(tmp_path)


def is_whole(report: dict[str, Any]) -> bool:
    """No finding was lost, and no part of ours broke."""
    return {f["check"] for f in report["findings"]} == EVERY_CHECK and not any(
        note["kind"] == "broken" for note in report["notes"]
    )


# Outputs of npu-smi

CHINESE = "警告：驱动包可能未完整安装。\n".encode()
READ_WELL: dict[str, bytes] = {
    "CRLF": TABLE.replace(b"\n", b"\r\n"),
    "coloured": re.sub(rb"\| OK", b"| \x1b[32mOK\x1b[0m", TABLE),
    "Chinese": CHINESE + TABLE,
    "GB18030": CHINESE.decode().encode("gb18030") + TABLE,
    "UTF-16": TABLE.decode().encode("utf-16"),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + TABLE,
    "bytes of no encoding around it": b"\xff\xfa\x80\n" + TABLE + b"\n\xfe\xfd",
    "NULs": TABLE.replace(b"Power", b"Po\0wer"),
}


def each_output(doctor: Command, outputs: dict[str, bytes], *call: str) -> dict[str, dict[str, Any]]:
    """The JSON of one call after the other, each of which sees the next output; npu-smi exits with 172."""
    for number, data in enumerate(outputs.values()):
        (doctor.folder / f"output{number}").write_bytes(data)
    doctor.tool(
        "npu-smi",
        f'test "$*" = info || exit 1; cd {doctor.folder}; f=$(ls output* | head -n 1); cat $f; mv $f shown; exit 172',
    )
    answers = doctor.each([[*call, "--format", "json"]] * len(outputs))
    assert {err for _, _, err in answers} == {""}
    return {name: json.loads(out) for name, (_, out, _) in zip(outputs, answers)}


def test_a_table_is_read_whatever_it_was_put_into(doctor: Command) -> None:
    for name, facts in each_output(doctor, READ_WELL, "facts", "npu").items():
        assert [chip["health"] for chip in facts["npu"]["chips"]] == ["OK"] * 8, name


NO_TABLE: dict[str, bytes] = {
    "empty": b"",
    "binary": bytes(range(256)) * 40,
    "a failure in GB18030": "错误：没有权限\n".encode("gb18030"),
    "a page of another tool": b"<html>502</html>\n" * 200,
    "a card that is held": b"dcmi model initialized failed, because the device is used. ret is -8020\n",
}


def test_what_is_no_table_is_an_npu_smi_that_fails_and_no_healthy_card(doctor: Command) -> None:
    reports = each_output(doctor, NO_TABLE, "preflight", "--facts")
    for name, report in reports.items():
        assert is_whole(report), name
        assert report["facts"]["npu"]["status"] == "error"
        assert {f["verdict"] for f in findings(report, "npu.health")} <= {"unknown", "skip"}
        assert [f["verdict"] for f in findings(report, "npu.answers")] == ["fail"]
    assert reports["a card that is held"]["facts"]["npu"]["error"]["kind"] == "device_occupied"


def test_a_truncated_table_shows_no_card_that_it_does_not_have(doctor: Command) -> None:
    cut = {f"{share} %": TABLE[: len(TABLE) * share // 100] for share in (20, 50, 90)}
    for name, report in each_output(doctor, cut, "preflight", "--facts").items():
        assert is_whole(report), name
        chips = report["facts"]["npu"]["chips"] or []
        assert len(chips) <= 8
        assert all(chip["health"] in ("OK", None) for chip in chips)
        assert report["verdict"] != "pass"


def alive(pid: str) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize(
    "script",
    [
        "echo $$ >> pids; exec sleep 60",
        "trap '' TERM INT HUP; echo $$ >> pids; while :; do sleep 1; done",
        "echo $$ >> pids; (trap '' TERM; sleep 60 & echo $! >> pids; wait) & wait",
    ],
    ids=["hangs", "ignores TERM", "forks"],
)
def test_an_npu_smi_that_hangs_is_ended_with_all_that_it_started(doctor: Command, script: str) -> None:
    doctor.tool("npu-smi", f"cd {doctor.folder}; {script}")
    begun = time.monotonic()
    report = doctor.report("--timeout", "0.7", "--facts")
    assert time.monotonic() - begun < 6
    assert is_whole(report)
    assert report["facts"]["npu"]["error"]["kind"] == "hang"
    assert report["verdict"] == "fail"
    time.sleep(0.1)
    pids = (doctor.folder / "pids").read_text().split()
    assert pids
    assert not [pid for pid in pids if alive(pid)]


def test_a_child_that_keeps_the_output_open_is_not_waited_for(doctor: Command) -> None:
    (doctor.folder / "table").write_bytes(TABLE)
    doctor.tool("npu-smi", f"cat {doctor.folder}/table; sleep 20 & echo $! >> {doctor.folder}/pids")
    begun = time.monotonic()
    done = doctor("facts", "npu", "--format", "json")
    assert time.monotonic() - begun < 6
    assert len(json.loads(done.stdout)["npu"]["chips"]) == 8
    for pid in (doctor.folder / "pids").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


def test_a_flood_is_cut_and_said(doctor: Command) -> None:
    doctor.tool("npu-smi", "trap '' TERM PIPE; cat /dev/zero")
    report = doctor.report("--facts", "--only", "npu.*")
    assert report["facts"]["npu"]["status"] == "error"
    assert any("64 MiB" in str(question["missing"]) for question in report["collection"])


def test_every_tool_may_print_nonsense_at_once(doctor: Command) -> None:
    for name in ("npu-smi", "hccn_tool", "getconf", "dmesg"):
        doctor.tool(name, "head -c 70000 /dev/urandom; head -c 5000 /dev/urandom >&2; kill -SEGV $$")
    assert is_whole(doctor.report())


# Users, file systems and places


def test_a_user_without_any_permission_gets_the_whole_report(doctor: Command) -> None:
    """Root loads everything as a user would, then is nobody and starts over: the modules may be out of its reach."""
    script = (
        "import contextlib, io, os, sys\n"
        "from ascend_doctor.__main__ import main\n"
        "sys.argv = ['ascend-doctor', 'preflight', '--format', 'json']\n"
        "if os.getuid() == 0:\n"
        "    with contextlib.redirect_stdout(io.StringIO()):\n"
        "        main()\n"
        f"    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "sys.exit(main())\n"
    )
    copy_of_checkout(doctor.folder)
    for folder in (doctor.folder, *doctor.folder.parents):
        mode = folder.stat().st_mode
        if folder.stat().st_uid == os.getuid() and not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)
    doctor.npu_smi_prints(TABLE)
    env = {"PYTHONPATH": str(doctor.folder / "checkout")}
    done = doctor("-c", script, command=[sys.executable], env=env)
    report = json.loads(done.stdout)
    assert report["host"]["uid"] == (NOBODY if os.getuid() == 0 else os.getuid())
    assert is_whole(report)
    assert done.returncode == report["gate"]["exit_code"]


def test_a_read_only_file_system_without_a_home_is_enough(doctor: Command) -> None:
    bwrap = shutil.which("bwrap")
    if not bwrap:
        pytest.skip("needs bubblewrap")
    doctor.npu_smi_prints(TABLE)
    before = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    report = doctor.report(before=before, env={"HOME": None, "TMPDIR": None})
    assert is_whole(report)
    done = doctor("preflight", "--only", "npu.answers", "-o", "report.html", before=before, env={"HOME": None})
    assert "1 check passed" in done.stdout
    assert (done.returncode, "report.html: cannot be written" in done.stderr) == (2, True)


def test_nothing_is_left_in_the_folder_or_the_home(doctor: Command) -> None:
    doctor.npu_smi_prints(TABLE)
    before = sorted(doctor.folder.rglob("*"))
    doctor("preflight")
    assert sorted(doctor.folder.rglob("*")) == before


def test_a_poor_environment_is_enough(doctor: Command) -> None:
    env = {"PATH": None, "HOME": None, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = doctor("preflight", "--snapshot", HEALTHY, "--verbose", "--lang", "zh", env=env)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) > 10


# Snapshots of strangers


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for info, data in members:
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    return path


def member(name: str, **about: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in about.items():
        setattr(info, key, value)
    return info


DOCUMENT = b'{"schema": "ascend-doctor/snapshot/1", "taken_at": "2026-11-30T09:00:00Z", "complete": false}'


def refused_snapshots() -> dict[str, Callable[[Path], Path]]:
    """Name -> what makes it in a folder."""
    document = (member("snapshot.json"), DOCUMENT)
    link = {"type": tarfile.SYMTYPE}
    return {
        "up": lambda p: archive(p / "s.tar.gz", document, (member("files/../../x"), b"x")),
        "absolute": lambda p: archive(p / "s.tar.gz", document, (member("/etc/passwd"), b"x")),
        "a link that leaves": lambda p: archive(
            p / "s.tar.gz", document, (member("files/a", linkname="../../../etc/passwd", **link), b"")
        ),
        "a hard link": lambda p: archive(
            p / "s.tar.gz", document, (member("files/a", type=tarfile.LNKTYPE, linkname="/etc/passwd"), b"")
        ),
        "a device": lambda p: archive(p / "s.tar.gz", document, (member("files/a", type=tarfile.CHRTYPE), b"")),
        "a bomb": bomb,
        "no document": lambda p: archive(p / "s.tar.gz", (member("files/a"), b"x")),
        "a wrong document": lambda p: archive(p / "s.tar.gz", (member("snapshot.json"), b'{"schema": 1}')),
        "a document cut short": lambda p: archive(p / "s.tar.gz", (member("snapshot.json"), DOCUMENT[:-9])),
        "no archive": lambda p: written(p / "s.tar.gz", b"no archive\n"),
        "a cut archive": lambda p: written(p / "s.tar.gz", archive(p / "w.tar.gz", document).read_bytes()[:-20]),
        "nothing": lambda p: p / "not-there",
        "an empty folder": lambda p: folder(p / "empty"),
        "a folder with a wrong document": lambda p: written(folder(p / "f") / "snapshot.json", b"[]").parent,
    }


def bomb(path: Path) -> Path:
    with gzip.open(path / "s.tar.gz", "wb") as packed:
        info = member("files/zeros")
        info.size = 60 << 20
        packed.write(info.tobuf())
        for _ in range(60):
            packed.write(bytes(1 << 20))
    return path / "s.tar.gz"


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_snapshot_that_cannot_be_used_is_refused_with_its_place(doctor: Command) -> None:
    made = {name: make(folder(doctor.folder / name)) for name, make in refused_snapshots().items()}
    answers = doctor.each([["preflight", "--snapshot", path] for path in made.values()])
    for (name, path), (code, out, err) in zip(made.items(), answers):
        assert (code, out) == (2, ""), name
        assert str(path) in err
        assert len(err.splitlines()) == 1, err


def test_links_of_a_snapshot_lead_nowhere_on_this_machine(doctor: Command) -> None:
    (doctor.folder / "secret").write_text("NAME=xyzzy")
    path = doctor.folder / "snapshot"
    (path / "files/etc").mkdir(parents=True)
    (path / "snapshot.json").write_bytes(DOCUMENT)
    (path / "files/etc/os-release").symlink_to(doctor.folder / "secret")
    (path / "files/etc/passwd").symlink_to("passwd")
    (path / "files/etc/group").symlink_to("/etc/passwd")
    report = doctor.report("--snapshot", path)
    assert is_whole(report)
    assert "xyzzy" not in json.dumps(report)
    assert report["verdict"] == "undecided"


# Files of ours and of the user


def copy_of_checkout(path: Path) -> Path:
    for name in ("ascend_doctor", "checks", "rules", "reports"):
        shutil.copytree(CHECKOUT / name, path / "checkout" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return path / "checkout"


def test_a_shipped_file_with_a_slip_is_our_fault_and_named_with_its_line(doctor: Command) -> None:
    checkout = copy_of_checkout(doctor.folder)
    env = {"PYTHONPATH": str(checkout)}
    for name, right, wrong in (
        ("checks/thp.yaml", "  layer: settings\n", "  layre: settings\n"),
        ("checks/numa.yaml", "  when: ", "  when: numa.countt and "),
        ("checks/npu.yaml", "  title: {en: ", "  title: {en: [ "),
        ("rules/limits.yaml", "value: ", "value: : "),
    ):
        path = checkout / name
        text = path.read_text(encoding="utf-8")
        assert right in text
        path.write_text(text.replace(right, wrong, 1), encoding="utf-8")
        line = text[: text.index(right)].count("\n") + 1
        done = doctor("preflight", "--snapshot", HEALTHY, env=env)
        assert (done.returncode, done.stdout) == (4, ""), name
        assert re.search(rf"{name}:(\d+)", done.stderr), done.stderr
        found = int(re.findall(rf"{name}:(\d+)", done.stderr)[0])
        assert abs(found - line) <= 2, done.stderr
        path.write_text(text, encoding="utf-8")


def test_a_fault_of_ours_loses_no_other_finding(doctor: Command) -> None:
    checkout = copy_of_checkout(doctor.folder)
    broken = checkout / "ascend_doctor/facts/thp.py"
    broken.write_text(
        broken.read_text() + "\n\ndef collect(host: Host) -> Collected[Thp]:\n    raise KeyError('planted')\n"
    )
    done = doctor("preflight", "--snapshot", HEALTHY, "--format", "json", env={"PYTHONPATH": str(checkout)})
    report = json.loads(done.stdout)
    assert done.returncode == 4
    assert {f["check"] for f in report["findings"]} == EVERY_CHECK
    assert any("planted" in note["text"]["en"] for note in report["notes"])


def test_a_report_that_cannot_be_written_does_not_lose_the_others(doctor: Command) -> None:
    (doctor.folder / "folder.json").mkdir()
    done = doctor("preflight", "--snapshot", HEALTHY, "-o", "no/such/a.html")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no/such" in done.stderr
    done = doctor("preflight", "--snapshot", HEALTHY, "-o", "folder.json", "-o", "b.json")
    assert done.returncode == 2
    assert "folder.json" in done.stderr
    if Path("/dev/full").exists():
        (doctor.folder / "full.json").symlink_to("/dev/full")
        done = doctor("preflight", "--snapshot", HEALTHY, "-o", "full.json", "-o", "b.json")
        assert done.returncode == 2
        assert "Fit to deploy" in done.stdout
        assert "full.json: cannot be written" in done.stderr
        assert json.loads((doctor.folder / "b.json").read_text())["verdict"] == "pass"


# The terminal, signals, streams


def test_a_reader_that_goes_away_changes_no_verdict(doctor: Command) -> None:
    """Nor does it lose a file that was asked for: ``preflight -o report.html | head -n 1``."""
    calls: dict[tuple[str, ...], int] = {
        ("preflight", "--verbose", "--snapshot", str(HEALTHY), "-o", "a.json"): 0,
        ("preflight", "--format", "json", "--snapshot", "example", "--quiet", "-o", "b.json"): 1,
    }
    for call, code in calls.items():
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*DOCTOR, *call],
            cwd=doctor.folder,
            env=doctor.environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
            check=False,
        )
        os.close(writing)
        assert done.returncode == code, call
        assert b"Traceback" not in done.stderr
    assert (doctor.folder / "a.json").exists()
    assert (doctor.folder / "b.json").exists()


def test_ctrl_c_ends_with_130_and_leaves_no_tool_behind(doctor: Command) -> None:
    doctor.tool(
        "npu-smi", f"echo $$ > {doctor.folder}/starting; mv {doctor.folder}/starting {doctor.folder}/pid\nsleep 60"
    )
    running = subprocess.Popen(
        [*DOCTOR, "preflight"],
        cwd=doctor.folder,
        env=doctor.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ends = time.monotonic() + 10
    while not (doctor.folder / "pid").exists() and time.monotonic() < ends:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    begun = time.monotonic()
    out, err = running.communicate(timeout=10)
    assert time.monotonic() - begun < 3
    assert (running.returncode, out, err.strip()) == (130, "", "interrupted")
    time.sleep(0.1)
    assert not alive((doctor.folder / "pid").read_text().strip())


ESCAPE = "\x1b"


def test_there_is_no_colour_off_a_terminal(doctor: Command) -> None:
    env = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    done = doctor("preflight", "--snapshot", "example", "--verbose", env=env)
    assert done.returncode == 1
    assert ESCAPE not in done.stdout + done.stderr


def on_a_terminal(doctor: Command, env: dict[str, str | None], *arguments: str) -> str:
    """What a terminal gets."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*DOCTOR, *arguments],
        cwd=doctor.folder,
        env=doctor.environment(env),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the terminal has no writer any more
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert process.communicate(timeout=20)[1] == b""
    return text.decode()


def test_no_color_is_kept_on_a_terminal(doctor: Command) -> None:
    arguments = ("preflight", "--snapshot", "example")
    assert ESCAPE in on_a_terminal(doctor, {"TERM": "xterm-256color"}, *arguments)
    plain = on_a_terminal(doctor, {"TERM": "xterm-256color", "NO_COLOR": "1"}, *arguments)
    assert not re.search(ESCAPE + r"\[[\d;]*(?<![\d])(?:3|4|9|10)\d", plain)


def test_no_text_of_a_host_reaches_the_terminal_as_a_control_sequence(doctor: Command) -> None:
    doctor.npu_smi_prints(
        b"\x1b]0;title\x07\x1b[2Jdcmi module initialize failed. ret is -8005 \x1b[31m\x9b31m\x08\x08\n"
    )
    for arguments in (["--verbose"], ["--format", "json"]):
        done = doctor("preflight", "--only", "npu.*", *arguments)
        assert not set(done.stdout) & {chr(n) for n in [*range(9), *range(11, 32), *range(127, 160)]}


def test_stdout_is_only_what_was_asked_for(doctor: Command) -> None:
    done = doctor("preflight", "--snapshot", "example", "--format", "json", "-o", "a.html", "-o", "b.txt")
    assert json.loads(done.stdout)["verdict"] == "fail"
    assert "a.html" in done.stderr
    assert "b.txt" in done.stderr
    quiet = doctor("preflight", "--snapshot", "example", "--quiet", "-o", "a.html")
    assert (len(quiet.stdout.splitlines()), quiet.stderr, quiet.returncode) == (1, "", 1)


def test_every_text_can_be_written_in_the_c_locale(doctor: Command) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = doctor("preflight", "--snapshot", "example", "--lang", "zh", "-o", "a.html", env=env)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) > 20
    assert "可" in (doctor.folder / "a.html").read_text(encoding="utf-8")
    assert json.loads(doctor("preflight", "--snapshot", "example", "--format", "json", env=env).stdout)


# Bad calls


BAD_CALLS = (
    (["prefligth"], "did you mean preflight"),
    (["nonsense"], "there is no verb nonsense"),
    (["preflight", "--snapshoot", "x"], "--snapshoot"),
    (["preflight", "-o", "a.pdf"], "unknown suffix"),
    (["preflight", "--fail-on", "sometimes"], "sometimes"),
    (["preflight", "--timeout", "soon"], "soon"),
    (["preflight", "--only", "no.such"], "no check is left"),
    (["preflight", "--host-root", "/no/such"], "/no/such"),
    (["preflight", "--host-root", "/", "--snapshot", "example"], "one of them"),
    (["facts", "nonsense"], "there is no area nonsense"),
    (["collect"], "PATH"),
    (["explain", "npu.helth"], "npu.health"),
    (["preflight", "--snapshot"], "--snapshot"),
)


def test_a_bad_call_is_told_on_stderr_with_exit_code_2(doctor: Command) -> None:
    answers = doctor.each([arguments for arguments, _ in BAD_CALLS])
    for (arguments, message), (code, out, err) in zip(BAD_CALLS, answers):
        assert (code, out) == (2, ""), arguments
        assert message in err


def test_help_and_version_end_well(doctor: Command) -> None:
    for code, out, err in doctor.each([["--help"], ["-h"], ["--version"], ["preflight", "--help"], ["collect", "-h"]]):
        assert (code, err) == (0, "")
        assert out


def test_the_exit_code_is_the_verdict(doctor: Command) -> None:
    calls: dict[tuple[str, ...], int] = {
        ("example",): 1,
        ("example", "--fail-on", "never"): 0,
        (str(HEALTHY),): 0,
        (str(HEALTHY), "--strict"): 0,
        (str(FOLDER / "bare-linux"),): 1,
    }
    answers = doctor.each([["preflight", "--snapshot", *call] for call in calls])
    assert [code for code, _, _ in answers] == list(calls.values())


def test_this_machine_without_an_npu_is_one_error(doctor: Command) -> None:
    if Path("/dev/davinci_manager").exists():
        pytest.skip("this machine has an NPU")
    report = doctor.report()
    assert (report["counts"]["error"], report["verdict"]) == (1, "fail")
    assert is_whole(report)
