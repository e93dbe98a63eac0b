"""What a user wants beyond the default: it reaches the host, and a snapshot says how it was taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command
from hosts import host

from ascend_doctor.host import Extent
from ascend_doctor.host.collection_log import CollectionLog
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.host.planned import Planned
from ascend_doctor.host.recorder import Recorder
from ascend_doctor.host.snapshot import open_snapshot

WIDE = Extent(deep=True, imports=True, libraries=("/opt/ops/libcust_opapi.so",), smoke=True)


@pytest.mark.parametrize("around", [Recorder, Planned, CollectionLog])
def test_a_host_around_another_wants_the_same(around: type[Recorder]) -> None:
    assert around(LiveHost(KnownEnv(), extent=WIDE)).extent == WIDE
    assert around(LiveHost(KnownEnv())).extent == Extent()


@pytest.mark.parametrize("extent", [WIDE, Extent()])
def test_a_snapshot_says_how_it_was_taken(tmp_path: Path, extent: Extent) -> None:
    Recorder(LiveHost(KnownEnv(), extent=extent)).save(tmp_path / "snapshot")
    assert open_snapshot(tmp_path / "snapshot").extent == extent


def test_of_a_snapshot_that_does_not_say_it_follows_from_its_answers() -> None:
    assert host("a2-healthy").extent == Extent()
    assert host("a2-imports").extent == Extent(imports=True)
    assert host("a2-deep-healthy").extent.deep


def test_a_library_that_the_user_names_is_looked_at(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    (tmp_path / "libmine.so").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    done = doctor("facts", "libraries", "--library", "libmine.so", "--library", "/nowhere/libx.so", "--format", "json")
    assert done.returncode == 0
    targets = json.loads(done.stdout)["libraries"]["targets"]
    assert [target["path"] for target in targets][-2:] == [str(tmp_path / "libmine.so"), "/nowhere/libx.so"]
    report = doctor.report("--only", "loading.*", "--library", "libmine.so")
    told = [finding for finding in report["findings"] if finding["verdict"] == "fail"]
    assert any(str(tmp_path / "libmine.so") in str(finding["found"]) for finding in told)


def test_imports_are_tried_only_where_the_user_wants_it(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    doctor.tool("python3", "touch started; exit 9")
    call = ("--only", "import.*", "--python", tmp_path / "tools" / "python3")
    assert {finding["verdict"] for finding in doctor.report(*call)["findings"]} == {"skip"}
    assert "(import_probe)" in doctor("preflight", *call, "--import", "--plan").stdout
    assert not (tmp_path / "started").exists()
    assert {finding["verdict"] for finding in doctor.report(*call, "--import")["findings"]} == {"fail"}
    assert (tmp_path / "started").exists()
