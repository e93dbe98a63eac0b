"""The law of snapshots: a run that was recorded and is judged again gives equal findings (times aside)."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from zlib import crc32

import pytest
from command import TABLE, Command
from hosts import FOLDER, all_hosts, host
from trees import planted

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.host import Host
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.host.recorder import Recorder
from ascend_doctor.host.rooted import RootedHost
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.knowledge.environment import known_env
from ascend_doctor.paths import data_folder

CHECKS = load_checks([data_folder("checks")])
RULES = [data_folder("rules")]
AREAS = sorted({area for check in CHECKS for area in check.areas})
KINDS = ("snapshot", "snapshot.tar.gz")
BASES = sorted(path.parent.name for path in FOLDER.glob("*/snapshot.json"))
GROUPS = 4


def findings_of(asked: Host, workers: int = 1) -> list[Finding]:
    situation = Situation(asked, RULES, workers)
    situation.collect(AREAS)
    assert not situation.broken
    return judged(CHECKS, situation)


def assert_replays(inner: Host, folder: Path, kinds: tuple[str, ...] = KINDS, workers: int = 1) -> None:
    recorder = Recorder(inner)
    live = findings_of(recorder, workers)
    for kind in kinds:
        recorder.save(folder / kind)
        assert findings_of(open_snapshot(folder / kind)) == live, kind


@pytest.mark.parametrize("name", BASES)
def test_every_whole_host_replays_equal(name: str, tmp_path: Path) -> None:
    assert_replays(host(name), tmp_path)


def collected(asked: Host) -> dict[str, object]:
    """Facts and what shows them; findings are made of nothing else, and to judge takes longer than to collect."""
    return {area: import_module(f"ascend_doctor.facts.{area}").collect(asked) for area in AREAS}


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_third_of_the_other_hosts_replays_with_equal_facts(group: int, tmp_path: Path) -> None:
    """Chosen by their names, so that a new host changes nothing for the others."""
    chosen = [name for name in all_hosts() if name not in BASES and crc32(name.encode()) % 3 == 0]
    for number, name in enumerate(chosen[group::GROUPS]):
        path = tmp_path / f"{name}{('', '.tar.gz')[number % 2]}"
        recorder = Recorder(host(name))
        facts = collected(recorder)
        recorder.save(path)
        assert collected(open_snapshot(path)) == facts, name


def this_machine() -> LiveHost:
    names, prefixes = known_env(RULES)
    return LiveHost(KnownEnv(frozenset(names), tuple(prefixes)))


def test_this_machine_replays_equal(tmp_path: Path) -> None:
    assert_replays(this_machine(), tmp_path, workers=8)


def test_this_machine_with_a_card_replays_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "table").write_bytes(TABLE)
    (tmp_path / "bin/npu-smi").write_text(f'#!/bin/sh\ntest "$*" = info && cat {tmp_path}/table\n')
    (tmp_path / "bin/npu-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "1, 2")
    monkeypatch.setenv("HCCL_CONNECT_TIMEOUT", "soon")
    assert_replays(this_machine(), tmp_path, workers=8)


def test_a_host_below_a_root_replays_equal(tmp_path: Path) -> None:
    assert_replays(RootedHost(planted(host("a2-healthy"), tmp_path / "root")), tmp_path, workers=8)


def test_a_snapshot_of_a_snapshot_gives_equal_findings(tmp_path: Path) -> None:
    first, second = Recorder(host("a2-thp-defrag-always")), tmp_path / "second.tar.gz"
    findings = findings_of(first)
    first.save(tmp_path / "first")
    again = Recorder(open_snapshot(tmp_path / "first"))
    assert findings_of(again) == findings
    again.save(second)
    assert findings_of(open_snapshot(second)) == findings


# The command


def judged_by_command(doctor: Command, *arguments: str | Path) -> object:
    report = json.loads(doctor("preflight", "--format", "json", *arguments).stdout)
    return {part: report[part] for part in ("findings", "verdict", "counts", "host", "gate")}


@pytest.mark.parametrize("name", KINDS)
def test_collect_takes_what_preflight_judges(name: str, tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    doctor.npu_smi_prints(TABLE)
    env = {"ASCEND_RT_VISIBLE_DEVICES": "0,1", "HF_TOKEN": "S3CRET", "ASCEND_API_TOKEN": "S3CRET"}
    done = doctor("collect", name, env=env)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"preflight --snapshot {name}" in done.stderr
    live = json.loads(doctor("preflight", "--redact", "--format", "json", env=env).stdout)
    replay = json.loads(doctor("preflight", "--format", "json", "--snapshot", name).stdout)
    for run in (live, replay):
        assert run["host"].pop("origin") == ("live" if run is live else "snapshot")
    moving = {"host.memory-available", "numa.free-memory", "disks.room", "disks.shared-memory"}
    for part in ("verdict", "host", "gate"):
        assert replay[part] == live[part]
    stable = [[f for f in run["findings"] if f["check"] not in moving] for run in (live, replay)]
    assert [(f["check"], f["subject"], f["verdict"]) for f in stable[0]] == [
        (f["check"], f["subject"], f["verdict"]) for f in stable[1]
    ]
    assert (tmp_path / name).stat().st_mode & 0o077 == 0
    again = doctor("collect", name)
    assert (again.returncode, again.stdout) == (2, "")
    assert name in again.stderr


def test_no_secret_is_collected(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    doctor.npu_smi_prints(b"Authorization: Bearer S3CRET\nHF_TOKEN=S3CRET\n")
    env = {"ASCEND_TOKEN": "S3CRET", "HF_TOKEN": "S3CRET", "LD_LIBRARY_PATH": "/kept"}
    assert doctor("collect", "--quiet", "snapshot", env=env).stderr == ""
    for path in (tmp_path / "snapshot").rglob("*"):
        assert not path.is_file() or b"S3CRET" not in path.read_bytes(), path
    assert json.loads((tmp_path / "snapshot/snapshot.json").read_text())["env"]["LD_LIBRARY_PATH"] == "/kept"


def test_collect_of_a_snapshot_is_a_snapshot_of_the_same_host(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    assert doctor("collect", "--snapshot", "example", "copy.tar.gz").returncode == 0
    redacted = judged_by_command(doctor, "--snapshot", "example", "--redact")
    assert judged_by_command(doctor, "--snapshot", "copy.tar.gz") == redacted
