"""A host that is mounted below a folder: it answers as itself, and nothing outside of the folder is read."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from command import Command
from hosts import FOLDER, host
from trees import planted

from ascend_doctor.host import Missing, Output, Reason, Stat
from ascend_doctor.host.rooted import RootedHost, RootError

BASES = sorted(path.parent.name for path in FOLDER.glob("*/snapshot.json"))
ROOT = os.getuid() == 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small host with files beside it that are none of its own."""
    for folder in ("host/etc", "host/proc/1", "host/proc/sys/kernel", "host/sys/kernel", "host/dev", "host/usr/bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "host/proc/self").symlink_to(str(os.getpid()))
    (tmp_path / "host/dev/null").touch()
    (tmp_path / "host/etc/hostname").write_text("node-7\n")
    (tmp_path / "host/etc/passwd").write_text("inside")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("outside")
    return tmp_path / "host"


def why(value: object) -> Missing:
    assert isinstance(value, Missing), value
    return value


@pytest.mark.parametrize("name", BASES)
def test_a_planted_host_answers_as_its_snapshot_does(name: str, tmp_path: Path) -> None:
    snapshot = host(name)
    planted(snapshot, tmp_path)
    rooted = RootedHost(tmp_path)
    files = [member[len("files") :] for member in snapshot.members.index if member.startswith("files/")]
    compared = 0
    for path in [*files, *snapshot.document.places, "/not/there", "/etc/not"]:
        for question in ("read", "list", "stat", "link"):
            expected = getattr(snapshot, question)(path).value
            found = getattr(rooted, question)(path).value
            if not (_is_unknown(expected) or _is_unknown(found) or _needs_root(question, expected)):
                assert found == expected, f"{question} {path}"
                compared += 1
    assert compared > len(files)
    assert rooted.identity.hostname != os.uname().nodename


def _is_unknown(value: object) -> bool:
    """Not in the snapshot; or in a folder that is empty in the snapshot, as if nothing were mounted there."""
    return isinstance(value, Missing) and value.reason is Reason.NOT_COLLECTED


def _needs_root(question: str, value: object) -> bool:
    """Owners, and nodes of devices."""
    return not ROOT and (question == "stat" or "not a regular file" in str(value))


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "../etc/passwd", "../../../../etc/passwd", "../../etc/../../../etc/passwd", "/../../etc/passwd"],
)
def test_links_stay_inside(root: Path, target: str) -> None:
    (root / "etc/link").symlink_to(target)
    (root / "up").symlink_to("../..")
    found = RootedHost(root)
    assert found.read("/etc/link").value == b"inside"
    assert found.read("/up/etc/passwd").value == b"inside"
    assert found.read("/../../etc/passwd").value == b"inside"
    assert found.link("/etc/link").value == target
    assert found.list("/..").value == found.list("/").value


def test_a_link_to_what_stands_outside_only_is_absent(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside")
    (root / "a").symlink_to(tmp_path / "secret")
    (root / "b").symlink_to("../secret")
    for path in ("/a", "/b"):
        for ask in (RootedHost(root).read, RootedHost(root).open, RootedHost(root).stat, RootedHost(root).list):
            assert why(ask(path).value) == Missing(Reason.ABSENT, "no such file")  # type: ignore[operator]


def test_links_are_followed_forty_times_and_no_more(root: Path) -> None:
    (root / "l0").write_text("end")
    for n in range(1, 42):
        (root / f"l{n}").symlink_to(f"l{n - 1}")
    (root / "loop").symlink_to("loop")
    found = RootedHost(root)
    assert found.read("/l40").value == b"end"
    assert why(found.read("/l41").value).detail == "too many links"
    assert why(found.stat("/loop").value).detail == "too many links"
    assert found.link("/loop").value == "loop"


def test_a_file_is_no_folder_on_the_way(root: Path) -> None:
    found = RootedHost(root)
    for path in ("/etc/passwd/x", "/etc/passwd/../passwd"):
        assert found.read(path).value == Missing(Reason.ABSENT, "not a directory")
    assert found.list("/etc/passwd").value == Missing(Reason.ABSENT, "not a directory")


def test_paths_that_are_none_fail(root: Path) -> None:
    found = RootedHost(root)
    for path in ("relative", "", "/nul\0byte", "/" + "x" * 5000, "/lone\ud800"):
        for ask in (found.read, found.open, found.list, found.stat, found.statvfs, found.link):
            assert why(ask(path).value).reason is Reason.FAILED  # type: ignore[operator]


def test_pipes_and_devices_are_not_opened(root: Path) -> None:
    os.mkfifo(root / "fifo")
    found = RootedHost(root)
    assert found.read("/fifo").value == Missing(Reason.FAILED, "not a regular file: fifo")
    assert found.open("/fifo").value == Missing(Reason.FAILED, "not a regular file: fifo")
    assert found.read("/").value == Missing(Reason.FAILED, "is a directory")
    stream = found.open("/etc/passwd").value
    assert not isinstance(stream, Missing)
    with stream:
        assert stream.read() == b"inside"
    assert not isinstance(found.statvfs("/etc").value, Missing)


def test_nobody_who_changes_links_meanwhile_leads_out(root: Path, tmp_path: Path) -> None:
    """A folder and a link to a folder outside take turns under the same name."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_text("outside")
    (root / "real").mkdir()
    (root / "real/f").write_text("inside")
    (root / "turns").symlink_to("real")
    (root / "leads").symlink_to(tmp_path / "outside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "turns", root / "third")
            os.rename(root / "leads", root / "turns")
            os.rename(root / "third", root / "leads")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    try:
        ends = time.monotonic() + 0.5
        while time.monotonic() < ends:
            value = RootedHost(root).read("/turns/f").value
            seen.add(value if isinstance(value, bytes) else why(value).reason)
    finally:
        stop.set()
        swapping.join()
    assert b"inside" in seen
    assert seen <= {b"inside", Reason.ABSENT}


def test_the_first_process_stands_for_the_host(root: Path) -> None:
    (root / "proc/1/status").write_text("Name:\tsystemd\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t7 0 \n")
    (root / "proc/1/cgroup").write_text("0::/init.scope\n")
    (root / f"proc/{os.getpid()}").mkdir()
    (root / f"proc/{os.getpid()}/cgroup").write_text("0::/ours\n")
    (root / "proc/sys/kernel/osrelease").write_text("5.10.0-216.aarch64\n")
    (root / "proc/mounts").symlink_to("self/cgroup")
    found = RootedHost(root)
    assert found.read("/proc/self/cgroup").value == b"0::/init.scope\n"
    assert found.read("/proc/mounts").value == b"0::/init.scope\n"
    assert found.link("/proc/self").value == "1"
    identity = found.identity
    assert (identity.hostname, identity.kernel) == ("node-7", "5.10.0-216.aarch64")
    assert (identity.uid, identity.gids, identity.arch) == (0, (0, 7), os.uname().machine)


def test_what_the_kernel_would_mount_is_not_absent_where_nothing_is_mounted(root: Path) -> None:
    shutil.rmtree(root / "proc")
    shutil.rmtree(root / "sys")
    (root / "sys").mkdir()
    (root / "dev/null").unlink()
    (root / "run").mkdir()
    (root / "var").symlink_to("run")
    found = RootedHost(root)
    for path in ("/proc/meminfo", "/sys/devices", "/dev/davinci0", "/var/docker.sock", "/proc", "/dev"):
        assert why(found.stat(path).value).reason is Reason.NOT_COLLECTED, path
        assert why(found.list(path).value).reason is Reason.NOT_COLLECTED, path
    identity = found.identity
    assert {why(value).reason for value in (identity.arch, identity.kernel, identity.uid)} == {Reason.NOT_COLLECTED}
    assert identity.hostname == "node-7"


def test_nobodys_environment_is_asked_and_nothing_is_measured(root: Path) -> None:
    found = RootedHost(root)
    assert why(found.env("PATH").value).reason is Reason.NOT_COLLECTED
    assert why(found.env_names().value).reason is Reason.NOT_COLLECTED
    assert why(found.observed("smoke", lambda: 1 / 0).value).reason is Reason.NOT_COLLECTED
    assert abs(found.now().timestamp() - time.time()) < 60


def test_the_interpreter_of_the_host_is_found(root: Path) -> None:
    (root / "usr/lib64/python3.9/site-packages").mkdir(parents=True)
    (root / "usr/bin/python3.9").write_text("#!/bin/false\n")
    (root / "usr/bin/python3.9").chmod(0o755)
    (root / "usr/bin/python3").symlink_to("/etc/alternatives/python3")
    (root / "etc/alternatives").mkdir()
    (root / "etc/alternatives/python3").symlink_to("/usr/bin/python3.9")
    value = RootedHost(root).python.value
    assert not isinstance(value, Missing)
    assert (value.executable, value.version) == ("/usr/bin/python3", "3.9")
    assert value.site == ("/usr/lib64/python3.9/site-packages",)
    venv = root / "opt/of-the-host"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to("/usr/bin/python3.9")
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.9.18\n")
    (venv / "lib/python3.9/site-packages").mkdir(parents=True)
    value = RootedHost(root, python="/opt/of-the-host/bin/python").python.value
    assert not isinstance(value, Missing)
    assert (value.version, value.site) == ("3.9.18", ("/opt/of-the-host/lib/python3.9/site-packages",))
    ours = RootedHost(root, python=sys.executable).python.value
    assert ours == Missing(Reason.ABSENT, f"{sys.executable}: no such program")


@pytest.mark.parametrize(
    ("name", "message"), [("none", "no such file"), ("file", "not a directory"), ("empty", "neither etc nor usr")]
)
def test_a_folder_that_is_no_host_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(RootError, match=message) as error:
        RootedHost(tmp_path / name)
    assert str(error.value).startswith(f"{tmp_path}/{name}: ")
    assert "give the folder" in str(error.value)


def with_a_shell(root: Path) -> None:
    """Copies /bin/sh and what it is linked with."""
    linked = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=False).stdout
    for library in ["/bin/sh", *re.findall(r"(/\S+) \(", linked)]:
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])


def test_commands_run_below_the_root_as_root_and_are_denied_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "ours")
    with_a_shell(root)
    for name, script in {
        "npu-smi": "read -r who < /etc/passwd || :; echo $who $LC_ALL-$SECRET $0; pwd; echo err >&2; exit 172",
        "hangs": "while :; do :; done",
    }.items():
        (root / "usr/bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (root / "usr/bin" / name).chmod(0o755)
    (root / "usr/bin/orphan").write_text("#!/no/such\n")
    (root / "usr/bin/orphan").chmod(0o755)
    (root / "usr/bin/none").write_text("#!/bin/sh\n")
    (root / "usr/bin/none").chmod(0o644)
    found = RootedHost(root)
    assert found.run(["no-such-tool"]).value == Missing(Reason.ABSENT, "no such program")
    assert why(found.run(["none"]).value).reason is Reason.DENIED
    if not ROOT:
        assert found.run(["npu-smi", "info"]).value == Missing(Reason.DENIED, "needs root: chroot")
        return
    output = found.run(["npu-smi", "info"]).value
    assert output == Output(172, b"inside C- /usr/bin/npu-smi\n/\n", b"err\n")
    assert why(found.run(["hangs"], timeout=0.3).value).reason is Reason.TIMEOUT
    assert found.run(["orphan"]).value == Missing(Reason.FAILED, "/usr/bin/orphan: its interpreter is not there")


def test_modes_and_owners_are_those_of_the_host(root: Path) -> None:
    (root / "etc/passwd").chmod(0o640)
    assert RootedHost(root).stat("/etc/passwd").value == Stat("file", 0o640, os.getuid(), os.getgid())


def test_the_command_judges_the_host_at_a_folder(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    tree = planted(host("a2-healthy"), tmp_path / "host")
    done = doctor("facts", "pci", "numa", "env", "--host-root", tree, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert len(facts["numa"]["nodes"]) == 8
    assert {m["reason"] for path, m in facts["missing"].items() if path.startswith("env")} == {"not_collected"}
    report = doctor.report("--host-root", tree)
    assert report["host"]["hostname"] == "a2-healthy"
    assert report["host"]["kernel"] == "5.10.0-216.0.0.115.oe2203sp4.aarch64"
    known = {f["check"] for f in report["findings"] if f["verdict"] == "pass"}
    assert {"thp.direct-compaction", "compat.driver-cann"} <= known
    assert doctor("collect", "--host-root", tree, "snapshot").returncode == 0
    again = doctor.report("--snapshot", "snapshot")
    verdicts = [[(f["check"], f["subject"], f["verdict"]) for f in run["findings"]] for run in (report, again)]
    assert verdicts[0] == verdicts[1]
