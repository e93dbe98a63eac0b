from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ascend_doctor.host import Missing, Output, Reason, Stat, commands
from ascend_doctor.host.interpreter import target_python
from ascend_doctor.host.live import KnownEnv, LiveHost

Tool = Callable[[str, str], Path]


@pytest.fixture
def host() -> LiveHost:
    return LiveHost(KnownEnv())


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Puts a program on PATH: a shell script, or Python where it begins with import."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def written(name: str, script: str) -> Path:
        first = sys.executable if script.startswith("import") else "/bin/sh"
        (folder / name).write_text(f"#!{first}\n{script}\n")
        (folder / name).chmod(0o755)
        return folder / name

    return written


def why(value: object) -> Missing:
    assert isinstance(value, Missing), value
    return value


def output(value: object) -> Output:
    assert isinstance(value, Output), value
    return value


def alive(pid: int) -> bool:
    """Running, and no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


# Files


def test_files_folders_and_links_are_told(host: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\xff\0")
    (tmp_path / "a").mkdir()
    (tmp_path / "l").symlink_to("b")
    (tmp_path / "b").chmod(0o640)
    assert host.read(f"{tmp_path}/l").value == b"\xff\0"
    assert host.read(f"{tmp_path}/l").source == f"file:{tmp_path}/l"
    assert host.list(str(tmp_path)).value == ("a", "b", "l")
    assert host.stat(f"{tmp_path}/l").value == Stat("file", 0o640, os.getuid(), os.getgid())
    assert host.link(f"{tmp_path}/l").value == "b"
    assert not isinstance(host.statvfs(str(tmp_path)).value, Missing)
    stream = host.open(f"{tmp_path}/b").value
    assert not isinstance(stream, Missing)
    with stream:
        assert stream.read() == b"\xff\0"


def test_what_is_not_there_is_absent(host: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for path in ("none", "file/below", "gone", "loop", "none/x"):
        for ask in (host.read, host.open, host.list, host.stat, host.statvfs):
            assert why(ask(f"{tmp_path}/{path}").value).reason is Reason.ABSENT  # type: ignore[operator]
    assert host.list(f"{tmp_path}/file").value == Missing(Reason.ABSENT, "not a directory")
    assert why(host.link(f"{tmp_path}/file").value).reason is Reason.UNSUPPORTED
    assert host.link(f"{tmp_path}/gone").value == "nowhere"


def test_pipes_sockets_and_devices_are_not_opened(host: LiveHost, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path, kind in ((tmp_path / "fifo", "fifo"), (tmp_path / "socket", "socket"), (Path("/dev/zero"), "char")):
            assert host.read(str(path)).value == Missing(Reason.FAILED, f"not a regular file: {kind}")
            assert host.open(str(path)).value == Missing(Reason.FAILED, f"not a regular file: {kind}")
            answer = host.stat(str(path)).value
            assert isinstance(answer, Stat)
            assert answer.type == kind
    assert host.read(str(tmp_path)).value == Missing(Reason.FAILED, "is a directory")


def test_paths_that_are_none_fail(host: LiveHost) -> None:
    for path in ("relative", "", "/nul\0byte", "/" + "x" * 5000, "/lone\ud800"):
        for ask in (host.read, host.open, host.list, host.stat, host.statvfs, host.link):
            assert why(ask(path).value).reason is Reason.FAILED  # type: ignore[operator]


def test_a_file_over_the_limit_is_not_read(host: LiveHost, tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.truncate((16 << 20) + 1)
    assert host.read(f"{tmp_path}/large").value == Missing(Reason.FAILED, "larger than 16 MiB")
    stream = host.open(f"{tmp_path}/large").value
    assert not isinstance(stream, Missing)
    stream.close()


def test_files_of_proc_are_read_whole(host: LiveHost) -> None:
    assert b"MemTotal" in bytes(host.read("/proc/meminfo").value)  # type: ignore[arg-type]


def test_the_same_question_has_the_same_answer_in_one_run(host: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1")
    first = host.read(f"{tmp_path}/f")
    (tmp_path / "f").write_text("2")
    assert host.read(f"{tmp_path}/f") is first
    assert host.now() == host.now()
    assert host.now().tzinfo


def test_without_permission_the_answer_is_denied(tmp_path: Path) -> None:
    """As nobody when the tests run as root, since root may read everything."""
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0)
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed/f").write_text("x")
    (tmp_path / "closed").chmod(0)
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o644)
    for folder in (tmp_path, *tmp_path.parents):
        mode = folder.stat().st_mode
        if folder.stat().st_uid == os.getuid() and not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)

    def ask() -> None:
        host = LiveHost(KnownEnv())
        denied = [
            host.read(f"{tmp_path}/secret"),
            host.open(f"{tmp_path}/secret"),
            host.list(f"{tmp_path}/closed"),
            host.read(f"{tmp_path}/closed/f"),
            host.stat(f"{tmp_path}/closed/f"),
            host.run([str(script)]),
        ]
        assert [why(answer.value).reason for answer in denied] == [Reason.DENIED] * 6
        assert isinstance(host.stat(f"{tmp_path}/secret").value, Stat)

    try:
        as_nobody(ask)
    finally:
        (tmp_path / "closed").chmod(0o755)


def as_nobody(ask: Callable[[], None]) -> None:
    if os.getuid() != 0:
        ask()
        return
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            ask()
            code = 0
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


# Commands


def test_any_exit_status_is_an_answer(host: LiveHost, tool: Tool) -> None:
    tool("a", "echo out; echo err >&2; exit 172")
    tool("b", "printf '\\377\\000\\1'; kill -SEGV $$")
    assert host.run(["a"]).value == Output(172, b"out\n", b"err\n")
    assert host.run(["a"]).source == "command:a"
    assert host.run(["b"]).value == Output(-signal.SIGSEGV, b"\xff\0\1", b"")


def test_a_command_runs_in_the_c_locale_with_no_input(
    host: LiveHost, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGUAGE", "zh_CN")
    monkeypatch.setenv("LC_ALL", "zh_CN.GB18030")
    tool("a", 'cat; echo "$LC_ALL,$LANGUAGE,$LD_TEST"; pwd')
    monkeypatch.setenv("LD_TEST", "kept")
    assert output(host.run(["a"]).value).stdout == b"C,,kept\n/\n"


def test_a_program_that_is_not_there_is_absent(host: LiveHost, tool: Tool) -> None:
    assert host.run(["no-such-tool"]).value == Missing(Reason.ABSENT, "no such program")
    assert host.run(["/no/such/tool"]).value == Missing(Reason.ABSENT, "no such program")


def test_a_program_that_cannot_run_says_why(host: LiveHost, tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "bin/folder").mkdir()
    (tmp_path / "bin/empty").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "bin/empty").chmod(0o755)
    tool("orphan", "").write_text("#!/no/interpreter\n")
    for argv, detail in (
        (["folder"], "not a program"),
        (["empty"], "Exec format error"),
        (["orphan"], "its interpreter is not there"),
        (["./relative"], "not an absolute path"),
        (["orphan", "a\0b"], "not started: embedded null byte"),
        ([], "no command"),
    ):
        assert why(host.run(argv).value).reason is Reason.FAILED
        assert detail in why(host.run(argv).value).detail


def test_programs_are_found_with_a_poor_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho found\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.setattr(commands, "ALSO_SEARCHED", (str(tmp_path),))
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", "/nowhere:", "relative"):
        monkeypatch.setenv("PATH", path)
        assert commands.Here().program("tool") == f"{tmp_path}/tool"
    monkeypatch.delenv("PATH")
    assert output(LiveHost(KnownEnv()).run(["tool"]).value).stdout == b"found\n"


def test_a_hang_ends_at_the_deadline_with_its_whole_group(host: LiveHost, tool: Tool, tmp_path: Path) -> None:
    tool("a", f"trap '' TERM INT HUP\nsleep 60 & echo $$ $! > {tmp_path}/pids\nwhile :; do sleep 60; done")
    begin = time.monotonic()
    assert host.run(["a"], timeout=0.4).value == Missing(Reason.TIMEOUT, "0.4 s")
    assert time.monotonic() - begin < 1.5
    time.sleep(0.05)
    assert not any(alive(int(pid)) for pid in (tmp_path / "pids").read_text().split())


def test_a_flood_is_cut(host: LiveHost, tool: Tool) -> None:
    tool("ends", "head -c 6000000 /dev/zero; head -c 5000000 /dev/zero >&2; exit 3")
    value = output(host.run(["ends"]).value)
    assert (value.rc, len(value.stdout), len(value.stderr)) == (3, 4 << 20, 4 << 20)
    tool("never", "trap '' TERM PIPE; cat /dev/zero")
    begin = time.monotonic()
    assert host.run(["never"], timeout=5).value == Missing(Reason.FAILED, "printed more than 64 MiB")
    assert time.monotonic() - begin < 3


def test_a_child_that_keeps_the_pipe_does_not_hold_us_up(host: LiveHost, tool: Tool, tmp_path: Path) -> None:
    tool("a", f"echo before; (sleep 30 & echo $! > {tmp_path}/pid) ; echo after; exit 7")
    begin = time.monotonic()
    assert host.run(["a"]).value == Output(7, b"before\nafter\n", b"")
    assert time.monotonic() - begin < 1.5
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_closed_pipes_do_not_end_a_command(host: LiveHost, tool: Tool) -> None:
    tool("a", "exec >&- 2>&-; sleep 0.2; exit 4")
    assert host.run(["a"]).value == Output(4, b"", b"")
    tool("b", "exec >&- 2>&-; sleep 60")
    assert why(host.run(["b"], timeout=0.2).value).reason is Reason.TIMEOUT


def test_a_process_that_cannot_be_killed_is_left_behind(
    host: LiveHost, tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("a", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    with monkeypatch.context() as stuck:
        stuck.setattr(commands.os, "killpg", lambda group, number: None)  # as a wait in the kernel would
        stuck.setattr(commands, "_DEATH_SECONDS", 0.1)
        answer = why(host.run(["a"], timeout=0.3).value)
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, signal.SIGKILL)
    assert answer == Missing(Reason.TIMEOUT, f"0.3 s; process {pid} cannot be killed")


def test_after_one_hang_nothing_else_of_that_tool_is_started(host: LiveHost, tool: Tool, tmp_path: Path) -> None:
    tool("a", f"echo x >> {tmp_path}/starts; sleep 60")
    tool("b", "echo fine")
    assert why(host.run(["a", "1"], timeout=0.2).value).detail == "0.2 s"
    assert host.run(["a", "2"]).value == Missing(Reason.TIMEOUT, "not started: a 1 hung")
    assert output(host.run(["b"]).value).rc == 0
    assert (tmp_path / "starts").read_text() == "x\n"


def test_npu_smi_info_is_the_canary(host: LiveHost, tool: Tool, tmp_path: Path) -> None:
    tool("npu-smi", f'echo "$*" >> {tmp_path}/starts; sleep 0.2; exit 1')
    many = [["npu-smi", "info", "-t", "board", "-i", str(n)] for n in range(3)]
    asked_together(host, [*many, ["npu-smi", "info"]])
    starts = (tmp_path / "starts").read_text().splitlines()
    assert starts[0] == "info"
    assert sorted(starts) == sorted(" ".join(argv[1:]) for argv in [*many, ["npu-smi", "info"]])


def test_when_the_canary_hangs_nothing_else_is_started(
    host: LiveHost, tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "COMMAND_SECONDS", 0.3)
    tool("npu-smi", f'echo "$*" >> {tmp_path}/starts; sleep 60')
    answers = asked_together(host, [["npu-smi", "info", "-l"], ["npu-smi", "info", "-t", "topo"]])
    assert [why(value).detail for value in answers] == ["not started: npu-smi info hung"] * 2
    assert (tmp_path / "starts").read_text() == "info\n"


def test_at_most_four_of_a_tool_run_at_a_time(host: LiveHost, tool: Tool, tmp_path: Path) -> None:
    tool("a", f"echo + >> {tmp_path}/log; sleep 0.15; echo - >> {tmp_path}/log")
    asked_together(host, [["a", str(n)] for n in range(9)])
    running = most = 0
    for sign in (tmp_path / "log").read_text().split():
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert 2 <= most <= 4


def test_the_same_command_is_started_once(host: LiveHost, tool: Tool, tmp_path: Path) -> None:
    tool("a", f"echo x >> {tmp_path}/starts; sleep 0.1")
    asked_together(host, [["a"]] * 5)
    assert (tmp_path / "starts").read_text() == "x\n"


def test_all_commands_together_have_a_budget(tool: Tool) -> None:
    host = LiveHost(KnownEnv(), timeout=0.5)
    for name in "abcd":
        tool(name, "sleep 0.3")
    begin = time.monotonic()
    answers = [host.run([name]).value for name in "abcd"]
    assert time.monotonic() - begin < 1.5
    assert output(answers[0]).rc == 0
    assert why(answers[1]).reason is Reason.TIMEOUT
    assert why(answers[3]).detail == "not started: the 0.5 s for all commands are over"


def asked_together(host: LiveHost, commands_asked: Sequence[list[str]]) -> list[object]:
    answers: list[object] = [None] * len(commands_asked)

    def ask(n: int) -> None:
        answers[n] = host.run(commands_asked[n]).value

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(len(commands_asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# The rest


def test_only_known_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    host = LiveHost(KnownEnv(frozenset(["LD_TEST", "GONE"]), ("HCCL_",)))
    monkeypatch.setenv("LD_TEST", "1")
    monkeypatch.setenv("HCCL_X", "2")
    monkeypatch.setenv("OTHER", "3")
    monkeypatch.delenv("GONE", raising=False)
    assert host.env("LD_TEST").value == "1"
    assert host.env("HCCL_X").value == "2"
    assert why(host.env("GONE").value).reason is Reason.ABSENT
    assert why(host.env("OTHER").value).reason is Reason.NOT_COLLECTED
    assert host.env_names().value == ("HCCL_X", "LD_TEST")


def test_the_host_tells_who_asks(host: LiveHost) -> None:
    assert host.identity.uid == os.getuid()
    assert host.identity.hostname == os.uname().nodename
    assert isinstance(host.identity.gids, tuple)
    assert os.getgid() in host.identity.gids


def test_what_is_measured_may_fail_in_any_way(host: LiveHost) -> None:
    assert host.observed("a", lambda: {"x": (1, 2)}).value == {"x": [1, 2]}
    assert host.observed("a", lambda: 1 / 0).value == {"x": [1, 2]}
    assert host.observed("b", lambda: 1 / 0).value == Missing(Reason.FAILED, "ZeroDivisionError: division by zero")
    assert why(host.observed("c", lambda: {1, 2}).value).reason is Reason.FAILED
    assert why(host.observed("d", lambda: float("nan")).value).reason is Reason.FAILED
    assert host.observed("e", lambda: Missing(Reason.DENIED, "no")).value == Missing(Reason.DENIED, "no")


def interpreter(prefix: Path, version: str, settings: str = "") -> str:
    for folder in ("bin", f"lib/python{version}/site-packages"):
        (prefix / folder).mkdir(parents=True, exist_ok=True)
    for name in (f"python{version}", "python3", "python"):
        (prefix / "bin" / name).unlink(missing_ok=True)
    (prefix / f"bin/python{version}").write_text("#!/bin/false\n")
    (prefix / f"bin/python{version}").chmod(0o755)
    (prefix / "bin/python3").symlink_to(f"python{version}")
    (prefix / "bin/python").symlink_to("python3")
    if settings:
        (prefix / "pyvenv.cfg").write_text(settings)
    return str(prefix / "bin/python3")


def test_the_target_python_is_found_without_running_it(tmp_path: Path) -> None:
    venv, conda, system = tmp_path / "venv", tmp_path / "conda", tmp_path / "system"
    interpreter(venv, "3.11", "home = /usr/bin\nversion = 3.11.9\n")
    interpreter(conda, "3.10")
    interpreter(system, "3.9")
    environ = {"PATH": f"relative:{system}/bin", "CONDA_PREFIX": str(conda), "VIRTUAL_ENV": str(venv)}
    found = target_python(None, environ)
    assert not isinstance(found, Missing)
    assert (found.executable, found.version) == (f"{venv}/bin/python", "3.11.9")
    assert found.site == (f"{venv}/lib/python3.11/site-packages",)
    del environ["VIRTUAL_ENV"]
    found = target_python(None, environ)
    assert not isinstance(found, Missing)
    assert (found.version, found.site) == ("3.10", (f"{conda}/lib/python3.10/site-packages",))
    del environ["CONDA_PREFIX"]
    found = target_python(None, environ)
    assert not isinstance(found, Missing)
    assert (found.executable, found.version) == (f"{system}/bin/python3", "3.9")
    given = target_python(f"{conda}/bin/python", environ)
    assert not isinstance(given, Missing)
    assert given.version == "3.10"
    assert why(target_python("/no/python", environ)).reason is Reason.ABSENT
    assert why(target_python("python9", environ)).reason is Reason.ABSENT
    assert why(target_python(None, {"PATH": "/nowhere"})).reason is Reason.ABSENT


def test_our_own_environment_is_not_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    interpreter(own, "3.11", "version = 3.11.9\n")
    interpreter(other, "3.10")
    monkeypatch.setattr(sys, "prefix", str(own))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    found = target_python(None, {"PATH": f"{own}/bin:{other}/bin"})
    assert not isinstance(found, Missing)
    assert found.executable == f"{other}/bin/python3"
    monkeypatch.setattr(sys, "base_prefix", str(own))  # the system's interpreter is everyone's
    found = target_python(None, {"PATH": f"{own}/bin:{other}/bin"})
    assert not isinstance(found, Missing)
    assert found.executable == f"{own}/bin/python3"


def test_a_version_that_cannot_be_told_is_not_guessed(tmp_path: Path) -> None:
    for version in ("3.9", "3.11"):
        interpreter(tmp_path / "x", version)
    (tmp_path / "x/bin/python3").unlink()
    (tmp_path / "x/bin/python3").write_text("")
    found = target_python(f"{tmp_path}/x/bin/python3", {})
    assert not isinstance(found, Missing)
    assert why(found.version).reason is Reason.FAILED
    assert why(found.site).reason is Reason.FAILED
