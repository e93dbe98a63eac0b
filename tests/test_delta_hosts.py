from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hosts import all_hosts, expectations
from hosts import host as named_host

from ascend_doctor.host import Missing, Output, Reason, Stat
from ascend_doctor.host.delta import HostError, changed, open_host
from ascend_doctor.host.snapshot import SnapshotHost


@pytest.fixture
def bases(tmp_path: Path) -> Path:
    document = {
        "schema": "ascend-doctor/snapshot/1",
        "taken_at": "2026-11-30T09:00:00Z",
        "complete": True,
        "identity": {"hostname": "a", "uid": 0},
        "env": {"PATH": "/bin", "OLD": "1"},
        "commands": [{"argv": ["npu-smi", "info"], "rc": 0, "stdout": "commands/0"}],
        "entries": [
            {"path": "/dev/davinci0", "type": "char", "mode": "0660", "uid": 0, "gid": 7},
            {"path": "/sys/pci", "type": "dir", "names": ["d0", "d1"]},
            {"path": "/sys/pci/d0", "type": "link", "target": "../devices/d0"},
            {"path": "/sys/closed", "missing": "denied"},
        ],
    }
    for name, data in {
        "snapshot.json": json.dumps(document),
        "commands/0": "table",
        "files/proc/meminfo": "MemTotal: 1 kB\n",
        "files/sys/devices/d0/width": "16\n",
        "files/opt/cann/version": "9\n",
    }.items():
        path = tmp_path / "base" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data)
    return tmp_path


def delta(folder: Path, name: str = "delta", **parts: Any) -> Path:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "host.yaml").write_text(yaml.safe_dump({"says": "different", "base": "base", **parts}))
    return folder / name


def with_set(bases: Path, **changes: Any) -> SnapshotHost:
    return open_host(delta(bases, set=changes), bases)


def reason(value: object) -> Reason:
    assert isinstance(value, Missing), value
    return value.reason


def test_a_delta_changes_what_it_says_and_nothing_else(bases: Path) -> None:
    host = with_set(
        bases,
        env={"OLD": None, "NEW": "2"},
        files={"/proc/meminfo": "MemTotal: 2 kB\n", "/proc/new": {"base64": "/wA="}},
        entries=[{"path": "/dev/davinci0", "type": "char", "mode": "0600", "uid": 0, "gid": 0}],
        commands=[{"argv": ["npu-smi", "info"], "rc": 1, "stderr": "dcmi\n"}, {"argv": ["ls"], "stdout": "x"}],
        identity={"uid": 1000},
        observations={"smoke": {"ok": True}},
    )
    assert host.read("/proc/meminfo").value == b"MemTotal: 2 kB\n"
    assert host.read("/proc/new").value == b"\xff\x00"
    assert host.list("/proc").value == ("meminfo", "new")
    assert host.stat("/dev/davinci0").value == Stat("char", 0o600, 0, 0)
    assert host.run(["npu-smi", "info"]).value == Output(1, b"", b"dcmi\n")
    assert host.run(["ls"]).value == Output(0, b"x", b"")
    assert reason(host.env("OLD").value) is Reason.ABSENT
    assert host.env_names().value == ("NEW", "PATH")
    assert (host.identity.hostname, host.identity.uid) == ("a", 1000)
    assert host.observed("smoke", dict).value == {"ok": True}
    assert host.read("/sys/pci/d0/width").value == b"16\n"


def test_a_missing_path_takes_all_below_it(bases: Path) -> None:
    host = with_set(bases, missing={"/proc/meminfo": "denied", "/opt/cann": "absent", "/sys/devices": "not_collected"})
    assert reason(host.read("/proc/meminfo").value) is Reason.DENIED
    assert host.list("/proc").value == ("meminfo",)
    assert reason(host.read("/opt/cann/version").value) is Reason.ABSENT
    assert reason(host.list("/opt/cann").value) is Reason.ABSENT
    assert reason(host.read("/sys/pci/d0/width").value) is Reason.NOT_COLLECTED


def test_an_absent_path_leaves_the_list_of_its_folder(bases: Path) -> None:
    host = with_set(bases, missing={"/sys/pci/d0": "absent"}, files={"/sys/pci/d2/width": "8"})
    assert host.list("/sys/pci").value == ("d1", "d2")
    assert reason(host.read("/sys/pci/d0/width").value) is Reason.ABSENT


def test_a_file_below_a_missing_path_ends_its_being_missing(bases: Path) -> None:
    host = with_set(bases, missing={"/opt/cann": "absent"}, files={"/opt/cann/new": "n", "/sys/closed/f": "f"})
    assert host.list("/opt/cann").value == ("new",)
    assert reason(host.read("/opt/cann/version").value) is Reason.ABSENT
    assert host.read("/sys/closed/f").value == b"f"


def test_a_file_takes_the_place_of_a_link(bases: Path) -> None:
    host = with_set(bases, files={"/sys/pci/d0": "now a file"})
    assert host.read("/sys/pci/d0").value == b"now a file"
    assert host.stat("/sys/pci/d0").value == Stat("file", 0o644, 0, 0)


def test_a_link_takes_the_place_of_a_folder(bases: Path) -> None:
    link = {"path": "/opt/cann", "type": "link", "target": "/sys/devices/d0"}
    host = with_set(bases, entries=[link])
    assert host.list("/opt/cann").value == ("width",)
    assert reason(host.read("/opt/cann/version").value) is Reason.ABSENT


def test_one_question_of_a_path_may_be_missing(bases: Path) -> None:
    host = with_set(
        bases, entries=[{"path": "/proc/meminfo", "missing": "failed", "detail": "I/O error", "of": "read"}]
    )
    assert host.read("/proc/meminfo").value == Missing(Reason.FAILED, "I/O error")
    assert host.stat("/proc/meminfo").value == Stat("file", 0o644, 0, 0)


def test_a_missing_command_is_named_by_its_line(bases: Path) -> None:
    host = with_set(
        bases, missing={"npu-smi info": "timeout", "npu-smi info -l": {"missing": "timeout", "detail": "10 s"}}
    )
    assert reason(host.run(["npu-smi", "info"]).value) is Reason.TIMEOUT
    assert host.run(["npu-smi", "info", "-l"]).value == Missing(Reason.TIMEOUT, "10 s")


def test_deltas_stand_on_deltas(bases: Path) -> None:
    delta(bases, "first", set={"files": {"/a": "1", "/b": "1"}, "commands": [{"argv": ["x"], "stdout": "1"}]})
    second = delta(
        bases, "second", base="first", set={"files": {"/b": "2"}, "commands": [{"argv": ["y"], "stdout": "2"}]}
    )
    host = open_host(second, bases)
    assert [host.read(path).value for path in ("/a", "/b")] == [b"1", b"2"]
    assert [host.run([name]).value for name in "xy"] == [Output(0, b"1", b""), Output(0, b"2", b"")]
    more = changed(second, bases, {"files": {"/a": "3"}})
    assert more.read("/a").value == b"3"
    delta(bases, "first", base="second")
    with pytest.raises(HostError, match="do they name each other"):
        open_host(second, bases)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"bases": "x"}, "bases is unknown; give says, base, set, profile, asked, expect"),
        ({"base": "nowhere"}, "base: nowhere is no folder"),
        ({"base": None}, "base: None is no folder"),
        ({"set": {"file": {}}}, "set: file is unknown; give env, files"),
        ({"set": ["files"]}, "set: give some of env, files"),
        ({"set": {"files": {"proc/meminfo": "x"}}}, "set.files: proc/meminfo is no absolute path"),
        ({"set": {"files": {"/a/../b": "x"}}}, "set.files: /a/../b is no absolute path"),
        ({"set": {"files": {"/a": 1}}}, "set.files./a: give the text, in quotes, or {base64: ...}"),
        ({"set": {"files": {"/a": {"base64": "?"}}}}, "set.files./a: no valid base64"),
        ({"set": {"files": ["/a"]}}, "set.files: give NAME: VALUE for each"),
        ({"set": {"entries": {"/a": {}}}}, 'set: entries: {"/a": {}} is no list'),
        ({"set": {"entries": [{"type": "file"}]}}, "set: entries[0].path: null is no text"),
        (
            {"set": {"entries": [{"path": "/a", "type": "file", "mode": "9"}]}},
            'set: entries[0].mode: "9" is no',
        ),
        ({"set": {"commands": [{"argv": "npu-smi info"}]}}, "set.commands: argv is npu-smi info; give a list of texts"),
        ({"set": {"commands": [{"argv": ["a"], "out": "x"}]}}, "out is unknown; give argv, rc, stdout"),
        ({"set": {"commands": [{"argv": ["a"], "stdout": 1}]}}, "set.commands: a: stdout: give the text, in quotes"),
        ({"set": {"missing": {"/a": "gone"}}}, '/a.missing: "gone" is no reason'),
        ({"set": {"missing": {1: "absent"}}}, "set.missing: 1 is neither a path nor a command line"),
        ({"set": {"env": {"A": 1}}}, "env.A: 1 is no text"),
    ],
)
def test_a_typo_is_told_by_its_place(bases: Path, parts: dict[str, Any], message: str) -> None:
    folder = delta(bases, **parts)
    with pytest.raises(HostError) as caught:
        open_host(folder, bases)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{folder}/host.yaml")


def test_what_is_no_yaml_is_told_by_its_line(bases: Path) -> None:
    (delta(bases) / "host.yaml").write_text("says: x\nset: {")
    with pytest.raises(HostError, match=r"host\.yaml:3: no valid YAML"):
        open_host(bases / "delta", bases)
    with pytest.raises(HostError, match="neither"):
        open_host(bases / "nothing", bases)


@pytest.mark.parametrize("name", all_hosts())
def test_every_test_host_opens_and_says_what_it_expects(name: str) -> None:
    assert isinstance(named_host(name), SnapshotHost)
    for expected in expectations(name):
        assert {"check", "verdict"} <= set(expected)
