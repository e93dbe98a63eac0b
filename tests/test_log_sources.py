"""What is found: files, folders, globs, archives in archives, the live places; what cannot be read is said."""

from __future__ import annotations

import contextlib
import gc
import gzip
import io
import os
import signal
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hosts import host
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_doctor.logs import Coverage, parts
from ascend_doctor.logs.files import hint_of
from ascend_doctor.logs.flood import Flood
from ascend_doctor.logs.live_places import places
from ascend_doctor.logs.parts import PartedRecords
from ascend_doctor.logs.records import Records, records_of
from ascend_doctor.logs.scanning import Anchors, scanner
from ascend_doctor.logs.sources import found, of_path, rotation

SCANNER = scanner(Anchors(("507015",)), fast=False)
LINE = "[ERROR] HCCL({0},p):2025-03-01-00:00:00.000.001 [a.cc:1][1]507015\n"


def read(*paths: object) -> list[Coverage]:
    """The coverage of what is found, in order."""
    found_there = []
    for file in found([str(path) for path in paths]):
        records = Records(file, SCANNER)
        list(records)
        found_there.append(records.coverage)
    return found_there


def names(*paths: object, below: Path) -> list[str]:
    return [one.path.replace(f"{below}/", "") for one in read(*paths) if one.lines]


def tar(members: dict[str, bytes], mode: str = "w:gz") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


LOG = LINE.format(7).encode()


def test_a_folder_is_read_with_all_below_it_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x.log").write_bytes(LOG)
    (tmp_path / "link.log").symlink_to(tmp_path / "a" / "b" / "x.log")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert len(names(tmp_path, below=tmp_path)) == 1


def test_what_is_no_log_by_its_name_is_said_and_read_when_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(LOG)
    (coverage,) = read(tmp_path)
    assert "no log by its name" in coverage.skipped
    assert read(tmp_path / "x.py")[0].lines == 1


def test_a_pattern_gives_the_files_that_match_it(tmp_path: Path) -> None:
    for name in ("a.log", "b.log", "c.txt"):
        (tmp_path / name).write_bytes(LOG)
    assert names(tmp_path / "*.log", below=tmp_path) == ["a.log", "b.log"]
    assert "no file of that pattern" in read(tmp_path / "*.err")[0].skipped


def test_what_is_not_there_or_vanishes_is_said(tmp_path: Path) -> None:
    assert "No such file" in read(tmp_path / "x")[0].skipped
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(LOG)
    files = found([str(tmp_path)])
    first = next(files)
    (tmp_path / "b.log").unlink()
    second = Records(next(files), SCANNER)
    assert list(second) == []
    assert "No such file" in second.coverage.skipped
    assert len(list(Records(first, SCANNER))) == 1


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """As a user without rights, where we are root and may read everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_folder_that_may_not_be_listed_is_said(tmp_path: Path) -> None:
    tmp_path.joinpath("x").mkdir(mode=0)
    with nobody():
        assert "Permission denied" in read(tmp_path)[0].skipped


def test_a_pipe_among_the_files_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in read(tmp_path)[0].skipped


def test_stdin_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG * 9000)))
    (coverage,) = read("-")
    assert (coverage.path, coverage.lines) == ("-", 9000)


@pytest.mark.parametrize("pack", [lambda members: tar(members), lambda members: tar(members, "w"), zipped])
def test_an_archive_is_told_by_its_content_and_its_members_are_named(tmp_path: Path, pack: object) -> None:
    members = {"plog/a.log": LOG, "messages-1.gz": gzip.compress(LOG), "big.log": LOG * 20_000}
    (tmp_path / "bundle").write_bytes(pack(members))  # type: ignore[operator]
    assert names(tmp_path, below=tmp_path) == ["bundle!plog/a.log", "bundle!messages-1.gz", "bundle!big.log"]


def test_archives_within_archives_are_read_to_a_depth(tmp_path: Path) -> None:
    inner = zipped({"x.log": LOG})
    (tmp_path / "b.tar.gz").write_bytes(tar({"a.zip": inner, "t.tar.gz": tar({"y.log": LOG})}))
    assert names(tmp_path, below=tmp_path) == ["b.tar.gz!a.zip!x.log", "b.tar.gz!t.tar.gz!y.log"]
    deep = LOG
    for _ in range(6):
        deep = zipped({"x": deep})
    (tmp_path / "deep").write_bytes(deep)
    assert "packed more than 3 times" in read(tmp_path / "deep")[0].skipped


def test_a_tar_that_climbs_out_only_has_a_strange_name(tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_bytes(tar({"../../etc/x": LOG, "/etc/passwd": LOG}))
    assert names(tmp_path, below=tmp_path) == ["b.tar!../../etc/x", "b.tar!/etc/passwd"]


def test_a_bomb_is_left_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ascend_doctor.logs.archives.FREE", 1 << 20)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"a\n" * (8 << 20)))
    (tmp_path / "bomb.zip").write_bytes(zipped({"x": b"a\n" * (8 << 20)}))
    (tmp_path / "ok.log").write_bytes(LOG)
    first, second, last = read(tmp_path)
    assert "500 times its size" in first.skipped
    assert "500 times its size" in second.skipped
    assert first.bytes < 9 << 20
    assert last.lines == 1


@pytest.mark.parametrize("name", ["x.gz", "x.tar.gz", "x.zip", "x.tar"])
def test_what_an_archive_holds_before_it_breaks_is_read(tmp_path: Path, name: str) -> None:
    members = {"a.log": LOG, "b.log": os.urandom(50_000)}
    packed = {
        "x.gz": gzip.compress(LOG * 5000 + os.urandom(50_000).hex().encode()),
        "x.tar.gz": tar(members),
        "x.tar": tar(members, "w"),
        "x.zip": zipped(members),
    }[name]
    (tmp_path / name).write_bytes(packed[:-20_000])
    covered = read(tmp_path)
    assert any(one.skipped for one in covered)
    if name != "x.zip":  # its list of members is at its end
        assert any(one.lines for one in covered)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"", b"PK\x03\x04", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0"]))
def test_any_bytes_are_read_or_said(data: bytes, magic: bytes) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        Path(folder, "x").write_bytes(magic + data)
        assert len(read(folder)) == 1


def test_files_come_in_the_order_in_which_they_were_written() -> None:
    written = ["k.log.10.gz", "k.log.2.gz", "k.log.1", "k.log", "plog-9_1.log", "plog-9_2.log", "plog-10_1.log"]
    written += ["slogdlog.old", "slogdlog"]
    assert sorted({*written}, key=rotation) == written


@pytest.mark.parametrize(
    ("path", "pid", "device", "rank"),
    [
        ("log/debug/plog/plog-4711_20240408022001125.log", 4711, None, None),
        ("log/debug/device-3/device-4711_20240408022001125.log", 4711, 3, None),
        ("rank1/debug/plog/plog-5_1.log", 5, None, 1),
        ("logs/worker_rank_12.err", None, None, 12),
        ("plog/franklin-2.log", None, None, None),
    ],
)
def test_names_tell_process_device_and_rank(path: str, pid: int | None, device: int | None, rank: int | None) -> None:
    hint = hint_of(path)
    assert (hint.pid, hint.device, hint.rank) == (pid, device, rank)


def test_the_places_that_variables_name_come_first() -> None:
    there = places(host("a2-healthy", set={"env": {"ASCEND_PROCESS_LOG_PATH": "/data/plog", "HOME": "/root"}}))
    assert there[0] == "/data/plog"
    assert "/root/ascend/log" in there


def test_the_live_places_are_asked_through_the_host() -> None:
    path = "/root/ascend/log/debug/plog/plog-7_20250301000000000.log"
    live = host("a2-healthy", set={"files": {path: LINE.format(7)}})
    covered = {}
    for file in found([], live):
        records = Records(file, SCANNER)
        list(records)
        covered[file.path] = records.coverage
    assert covered[path].lines == 1
    assert any("dmesg" in name or name == "kernel log" for name in covered)


def test_a_kernel_log_that_is_refused_is_said() -> None:
    refused = [{"argv": ["dmesg"], "rc": 1, "stderr": "dmesg: read kernel buffer failed: Operation not permitted\n"}]
    first = Records(next(iter(found([], host("a2-healthy", set={"commands": refused})))), SCANNER)
    assert list(first) == []
    assert "dmesg" in first.coverage.skipped


def test_a_large_file_read_in_parts_gives_the_same_records(tmp_path: Path) -> None:
    quiet = "[INFO] HCCL(7,p):2025-03-01-00:00:00.{0:03}.001 [a.cc:1][1]nothing {0}\n"
    text = "".join(quiet.format(n % 1000) + (LINE.format(n) if n % 97 == 0 else "") for n in range(20_000))
    (tmp_path / "x.log").write_text(text)
    file = of_path(str(tmp_path / "x.log"))
    whole, parted = Records(file, SCANNER), PartedRecords(file, SCANNER, Flood(), part=200_000)
    by_line = {record.place.line: record for record in whole}
    records = list(parted)
    assert [record.place.line for record in records] == sorted(record.place.line for record in records)
    assert sum(record.repeated for record in records) == sum(record.repeated for record in by_line.values())
    assert all(record.place == by_line[record.place.line].place for record in records if record.place.line in by_line)
    assert parted.coverage.lines == whole.coverage.lines
    assert parted.coverage.bytes == whole.coverage.bytes


def test_a_block_is_not_cut_where_two_parts_meet(tmp_path: Path) -> None:
    block = (
        "Traceback (most recent call last):\n"
        + "  File x\n" * 50
        + "ValueError: 507015\nINFO 09-02 13:45:09 [a.py:1] y\n"
    )
    (tmp_path / "x.log").write_text(block * 40)
    records = list(PartedRecords(of_path(str(tmp_path / "x.log")), SCANNER, Flood(), part=3000))
    assert {len(record.block) for record in records} == {51}


def test_a_large_core_dump_is_no_log_in_any_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART", 100_000)
    monkeypatch.setattr(parts, "workers", lambda: 2)
    (tmp_path / "core.77").write_bytes(b"\x7fELF" + bytes(range(256)) * 1000 + LINE.format(7).encode() * 1000)
    reading = records_of(of_path(str(tmp_path / "core.77")), SCANNER)
    assert list(reading) == []
    assert reading.coverage.skipped.startswith("binary")


def test_an_interrupt_while_parts_are_read_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("".join(LINE.format(n) for n in range(5000)))
    reading = PartedRecords(of_path(str(tmp_path / "x.log")), SCANNER, Flood(), part=20_000)

    def interrupted() -> Iterator[int]:
        for count, _ in enumerate(reading, 1):
            yield count
            signal.raise_signal(signal.SIGINT)

    before = {child.pid for child in psutil.Process().children()}
    seen = []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(interrupted())
    gc.collect()
    assert reading.coverage.path.endswith("x.log")
    assert {child.pid for child in psutil.Process().children()} <= before
