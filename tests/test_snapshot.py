from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_doctor.host import READ_LIMIT, Missing, Output, Reason, Stat, StatVfs
from ascend_doctor.host import members as limits
from ascend_doctor.host.snapshot import SnapshotError, SnapshotHost, open_snapshot

SCHEMA = "ascend-doctor/snapshot/1"
HEADER = {"schema": SCHEMA, "taken_at": "2026-11-30T09:00:00Z"}

Make = Callable[..., Path]


def document(**parts: Any) -> bytes:
    return json.dumps({**HEADER, **parts}).encode()


def folder(tmp_path: Path, members: dict[str, bytes]) -> Path:
    for name, data in members.items():
        path = tmp_path / "snap" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "snap"


def archive(tmp_path: Path, members: dict[str, bytes], top: str = "", suffix: str = ".tar.gz") -> Path:
    path = tmp_path / f"snap{suffix}"
    with tarfile.open(path, "w:gz" if suffix.endswith("gz") else "w") as packed:
        for name, data in members.items():
            add(packed, top + name, data)
    return path


def add(packed: tarfile.TarFile, name: str, data: bytes = b"", **about: Any) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    for key, value in about.items():
        setattr(entry, key, value)
    packed.addfile(entry, io.BytesIO(data))


def in_folder(tmp_path: Path, members: dict[str, bytes]) -> Path:
    return folder(tmp_path, members)


def in_archive(tmp_path: Path, members: dict[str, bytes]) -> Path:
    return archive(tmp_path, members)


def in_archive_with_top(tmp_path: Path, members: dict[str, bytes]) -> Path:
    return archive(tmp_path, members, "./node-a/", ".tgz")


def in_plain_archive(tmp_path: Path, members: dict[str, bytes]) -> Path:
    return archive(tmp_path, members, "snapshot/", ".tar")


@pytest.fixture(params=[in_folder, in_archive, in_archive_with_top, in_plain_archive])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., SnapshotHost]:
    def open_members(members: dict[str, bytes] | None = None, **parts: Any) -> SnapshotHost:
        return open_snapshot(request.param(tmp_path, {"snapshot.json": document(**parts), **(members or {})}))

    return open_members


def reason(value: object) -> Reason:
    assert isinstance(value, Missing), value
    return value.reason


# What a snapshot answers


def test_a_recorded_answer_comes_back(opened: Callable[..., SnapshotHost]) -> None:
    host = opened(
        {
            "files/proc/meminfo": b"MemTotal: 1 kB\n",
            "commands/000.out": b"table",
            "observations/smoke.json": b'{"a": [1]}',
        },
        identity={"hostname": "node-a", "arch": "aarch64", "kernel": "5.10.0", "uid": 0, "gids": [0, 7]},
        env={"PATH": "/bin", "HOME": None},
        env_names=["PATH"],
        python={"executable": "/opt/bin/python"},
        commands=[
            {"argv": ["npu-smi", "info"], "rc": 172, "stdout": "commands/000.out"},
            {"argv": ["hccn_tool"], "missing": "timeout", "detail": "10 s"},
        ],
        entries=[
            {"path": "/dev/davinci0", "type": "char", "mode": "0660", "uid": 0, "gid": 1000},
            {"path": "/sys/bus/pci/devices", "type": "dir", "names": ["b", "a"]},
            {"path": "/dev/shm", "statvfs": {"size": 2, "free": 1, "inodes_free": 100}},
            {"path": "/proc/kmsg", "missing": "denied", "of": "read"},
            {"path": "/usr/local/Ascend/latest", "type": "link", "target": "./9.1.0"},
        ],
    )
    assert host.read("/proc/meminfo").value == b"MemTotal: 1 kB\n"
    stream = host.open("/proc/meminfo").value
    assert not isinstance(stream, Missing)
    with stream:
        assert stream.read(3) == b"Mem"
    assert host.stat("/dev/davinci0").value == Stat("char", 0o660, 0, 1000)
    assert host.list("/sys/bus/pci/devices").value == ("a", "b")
    assert host.statvfs("/dev/shm").value == StatVfs(2, 1, 100)
    assert host.link("/usr/local/Ascend/latest").value == "./9.1.0"
    assert reason(host.read("/proc/kmsg").value) is Reason.DENIED
    assert reason(host.stat("/proc/kmsg").value) is Reason.NOT_COLLECTED
    assert host.run(["npu-smi", "info"]).value == Output(172, b"table", b"")
    assert host.run(["hccn_tool"]).value == Missing(Reason.TIMEOUT, "10 s")
    assert reason(host.run(["npu-smi", "info", "-l"]).value) is Reason.NOT_COLLECTED
    assert host.env("PATH").value == "/bin"
    assert reason(host.env("HOME").value) is Reason.ABSENT
    assert reason(host.env("USER").value) is Reason.NOT_COLLECTED
    assert host.env_names().value == ("PATH",)
    assert host.observed("smoke", lambda: 1 / 0).value == {"a": [1]}
    assert reason(host.observed("import", lambda: 1).value) is Reason.NOT_COLLECTED
    assert host.identity.gids == (0, 7)
    python = host.python.value
    assert not isinstance(python, Missing)
    assert python.executable == "/opt/bin/python"
    assert reason(python.version) is Reason.NOT_COLLECTED
    assert host.now().isoformat() == "2026-11-30T09:00:00+00:00"


def test_what_is_not_in_a_snapshot_was_not_collected(opened: Callable[..., SnapshotHost]) -> None:
    host = opened({"files/a/f": b""}, entries=[{"path": "/l", "type": "link", "target": "/a"}])
    for answer in (
        host.read("/x"), host.list("/a"), host.stat("/a/f"), host.statvfs("/"), host.link("/a"), host.env("A"),
        host.env_names(), host.run(["ls"]), host.observed("x", dict), host.python, host.read("/l/x"),
    ):  # fmt: skip
        assert reason(answer.value) is Reason.NOT_COLLECTED
    assert reason(host.identity.uid) is Reason.NOT_COLLECTED
    assert reason(host.read("a/f").value) is Reason.FAILED


def test_in_complete_parts_names_and_modes_follow(opened: Callable[..., SnapshotHost]) -> None:
    host = opened(
        {"files/sys/a/b/f": b"1", "files/etc/x": b""},
        complete=["/sys", "env"],
        env={"B": "2", "A": "1", "C": None},
        entries=[
            {"path": "/sys/a/dev", "type": "char"},
            {"path": "/sys/a/gone", "missing": "absent"},
            {"path": "/sys/a/closed", "missing": "denied"},
            {"path": "/sys/l", "type": "link", "target": "a/b"},
            {"path": "/sys/named", "type": "dir", "names": ["n"]},
        ],
    )
    assert host.list("/sys").value == ("a", "l", "named")
    assert host.list("/sys/a").value == ("b", "closed", "dev")
    assert host.list("/sys/l").value == ("f",)
    assert host.read("/sys/l/f").value == b"1"
    assert host.read("/sys/l/../dev/../b/f").value == b"1"
    assert host.stat("/sys/a/b/f").value == Stat("file", 0o644, 0, 0)
    assert host.stat("/sys/l").value == Stat("dir", 0o755, 0, 0)
    assert host.stat("/sys/a/dev").value == Stat("char", 0o644, 0, 0)
    assert reason(host.read("/sys/a/dev").value) is Reason.FAILED
    assert reason(host.read("/sys/a").value) is Reason.FAILED
    assert reason(host.link("/sys/a").value) is Reason.UNSUPPORTED
    for answer in (
        host.read("/sys/x"), host.list("/sys/a/b/f"), host.stat("/sys/x"), host.statvfs("/sys/x"), host.link("/sys/x"),
        host.read("/sys/a/b/f/x"), host.stat("/sys/a/gone"), host.read("/sys/named/m"), host.env("D"), host.env("C"),
    ):  # fmt: skip
        assert reason(answer.value) is Reason.ABSENT
    for answer in (
        host.read("/etc/y"), host.statvfs("/sys/a"), host.stat("/sys/named/n"), host.read("/sys/named/n"),
        host.list("/etc"), host.read("/system"), host.run(["ls"]),
    ):  # fmt: skip
        assert reason(answer.value) is Reason.NOT_COLLECTED
    assert reason(host.stat("/sys/a/closed/x").value) is Reason.DENIED
    assert host.env_names().value == ("A", "B")


def test_complete_true_is_everything_but_commands(opened: Callable[..., SnapshotHost]) -> None:
    host = opened({"files/etc/x": b""}, complete=True, python=None)
    assert host.list("/").value == ("etc",)
    assert host.stat("/").value == Stat("dir", 0o755, 0, 0)
    assert reason(host.read("/x").value) is Reason.ABSENT
    assert reason(host.env("X").value) is Reason.ABSENT
    assert reason(host.python.value) is Reason.ABSENT
    assert reason(host.run(["npu-smi", "info"]).value) is Reason.NOT_COLLECTED
    assert host.env_names().value == ()


def test_an_entry_under_the_path_asked_wins_over_links(opened: Callable[..., SnapshotHost]) -> None:
    host = opened(
        {"files/b/f": b"behind the link", "files/a/f": b"under the path"},
        entries=[
            {"path": "/a", "type": "link", "target": "b"},
            {"path": "/a", "type": "dir", "mode": "0750", "uid": 1, "gid": 2},
            {"path": "/b", "type": "dir", "mode": "0755"},
            {"path": "/c", "type": "link", "target": "a"},
        ],
    )
    assert host.read("/a/f").value == b"under the path"
    assert host.read("/c/f").value == b"behind the link"
    assert host.stat("/a").value == Stat("dir", 0o750, 1, 2)
    assert host.link("/a").value == "b"


def test_dangling_and_looping_links(opened: Callable[..., SnapshotHost]) -> None:
    links = {"/x": "y", "/y": "/x", "/gone": "nowhere", "/out": "../../../etc/passwd", "/self": "self/a"}
    host = opened(
        {"files/etc/passwd": b"inside"},
        complete=True,
        entries=[{"path": path, "type": "link", "target": target} for path, target in links.items()],
    )
    for path in ("/x", "/x/f", "/self"):
        assert host.read(path).value == Missing(Reason.FAILED, "too many links")
    assert reason(host.stat("/gone").value) is Reason.ABSENT
    assert host.link("/gone").value == "nowhere"
    assert host.read("/out").value == b"inside"
    assert host.read("/../../etc/passwd").value == b"inside"


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    path = archive(tmp_path, {"snapshot.json": document(), "files/log": os.urandom(1 << 20) * 17, "files/last": b"x"})
    host = open_snapshot(path)
    assert host.read("/log").value == Missing(Reason.FAILED, f"larger than {READ_LIMIT >> 20} MiB")
    stream = host.open("/log").value
    assert not isinstance(stream, Missing)
    with stream:
        assert len(stream.read()) == 17 << 20
    assert host.read("/last").value == b"x"


def test_keys_that_we_do_not_know_are_tolerated(tmp_path: Path) -> None:
    path = folder(tmp_path, {"snapshot.json": document(future={"x": 1}, entries=[{"path": "/a", "colour": "red"}])})
    assert isinstance(open_snapshot(path / "snapshot.json"), SnapshotHost)


# What is no snapshot


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"entries": [{"path": "/a", "type": "file", "mode": "66x"}]}, 'entries[0].mode: "66x" is no octal mode'),
        ({"entries": [{"path": "/a"}, {"path": "a"}]}, 'entries[1].path: "a" is no absolute path'),
        ({"entries": [{"path": "/a", "type": "pipe"}]}, 'entries[0].type: "pipe" is no type'),
        ({"entries": [{"path": "/a", "type": "link"}]}, "entries[0].target: null is no text"),
        ({"entries": [{"path": "/a", "mode": "0644"}]}, "entries[0].type: null is no type"),
        ({"entries": [{"path": "/a", "missing": "gone"}]}, 'entries[0].missing: "gone" is no reason'),
        ({"entries": [{"path": "/a", "missing": "denied", "of": "x"}]}, 'entries[0].of: "x" is no question'),
        ({"entries": [{"path": "/a", "missing": "denied", "of": ["x"]}]}, 'entries[0].of: ["x"] is no question'),
        ({"entries": [{"path": "/a", "names": "b"}]}, 'entries[0].names: "b" is no list'),
        ({"entries": [{"path": "/a", "type": ["dir"]}]}, 'entries[0].type: ["dir"] is no type'),
        ({"entries": [{"path": "/a", "statvfs": {"size": True}}]}, "entries[0].statvfs.size: true is no whole number"),
        ({"entries": {}}, "entries: {} is no list"),
        ({"entries": ["/a"]}, 'entries[0]: "/a" is no object'),
        ({"commands": [{"argv": "ls"}]}, 'commands[0].argv: "ls" is no list'),
        ({"commands": [{"argv": ["ls"], "stdout": "../x"}]}, 'commands[0].stdout: "../x" is not in the snapshot'),
        ({"commands": [{"argv": ["ls"], "rc": "0"}]}, 'commands[0].rc: "0" is no whole number'),
        ({"env": {"A": 1}}, "env.A: 1 is no text"),
        ({"complete": "yes"}, 'complete: "yes" is no list'),
        ({"complete": ["sys"]}, 'complete[0]: "sys" is no absolute path'),
        ({"identity": {"uid": "root"}}, 'identity.uid: "root" is no whole number'),
        ({"python": {}}, "python.executable: null is no text"),
        ({"taken_at": "yesterday"}, 'taken_at: "yesterday" is no time such as'),
        ({"taken_at": "2026-13-30T09:00:00Z"}, "taken_at:"),
        ({"schema": "ascend-doctor/snapshot/9"}, 'schema is "ascend-doctor/snapshot/9"; this version reads'),
    ],
)
def test_a_wrong_document_is_told_by_its_place(tmp_path: Path, parts: dict[str, Any], message: str) -> None:
    path = folder(tmp_path, {"snapshot.json": document(**parts)})
    with pytest.raises(SnapshotError) as caught:
        open_snapshot(path)
    assert str(caught.value).startswith(f"{path}/snapshot.json: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b"{}", b'"x"', b"1" * 5000])
def test_what_is_no_document_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(SnapshotError, match=r"snapshot\.json: "):
        open_snapshot(folder(tmp_path, {"snapshot.json": data}))


def test_a_place_without_a_snapshot_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "empty.tar.gz").write_bytes(b"")
    os.mkfifo(tmp_path / "fifo")
    for path in (
        tmp_path,
        tmp_path / "none",
        tmp_path / "text",
        tmp_path / "empty.tar.gz",
        tmp_path / "fifo",
        Path("a\0b"),
    ):
        with pytest.raises(SnapshotError, match=str(path)):
            open_snapshot(path)
    with pytest.raises(SnapshotError, match=r"no snapshot\.json"):
        open_snapshot(archive(tmp_path, {"a/x": b"", "b/snapshot.json": b"{}", "c/snapshot.json": b"{}"}))


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("../x", {}),
        ("files/../../x", {}),
        ("/etc/passwd", {}),
        ("files/hard", {"type": tarfile.LNKTYPE, "linkname": "snapshot.json"}),
        ("files/dev", {"type": tarfile.CHRTYPE}),
        ("files/fifo", {"type": tarfile.FIFOTYPE}),
        ("commands/link", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
        ("observations/a.json", {"type": tarfile.SYMTYPE, "linkname": "../snapshot.json"}),
        ("files/a/link", {"type": tarfile.SYMTYPE, "linkname": "../../../x"}),
        ("files/huge", {"size": limits.MEMBER_BYTES + 1}),
        ("files/negative", {"size": -512}),
    ],
)
def test_members_that_leave_the_snapshot_are_refused(tmp_path: Path, name: str, about: dict[str, Any]) -> None:
    path = tmp_path / "snap.tar"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as packed:
        add(packed, "snapshot.json", document())
        entry = tarfile.TarInfo(name)
        for key, value in about.items():
            setattr(entry, key, value)
        packed.fileobj.write(entry.tobuf(tarfile.GNU_FORMAT))  # type: ignore[union-attr]
    with pytest.raises(SnapshotError, match=str(path)):
        open_snapshot(path)


def test_links_of_files_are_links_of_the_host(tmp_path: Path) -> None:
    path = folder(tmp_path, {"snapshot.json": document(complete=True), "files/opt/9/v": b"9"})
    os.symlink("9", path / "files/opt/latest")
    os.symlink("/etc/passwd", path / "files/opt/absolute")
    os.symlink("/opt/9/v", path / "files/v")
    host = open_snapshot(path)
    assert host.read("/opt/latest/v").value == b"9"
    assert host.link("/opt/latest").value == "9"
    assert host.read("/v").value == b"9"
    assert reason(host.read("/opt/absolute").value) is Reason.ABSENT


@pytest.mark.parametrize(("name", "target"), [("files/a", "../../x"), ("files", "/etc"), ("commands/x", "y")])
def test_links_of_a_folder_that_leave_it_are_refused(tmp_path: Path, name: str, target: str) -> None:
    path = folder(tmp_path, {"snapshot.json": document(), "commands/y": b""})
    if name != "files":
        (path / "files").mkdir()
    os.symlink(target, path / name)
    with pytest.raises(SnapshotError, match="link"):
        open_snapshot(path)


def test_a_document_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "snap").mkdir()
    (tmp_path / "other.json").write_bytes(document())
    os.symlink("../other.json", tmp_path / "snap/snapshot.json")
    with pytest.raises(SnapshotError, match="not a regular file"):
        open_snapshot(tmp_path / "snap")


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MEMBER_COUNT", 50)
    members = {"snapshot.json": document(), **{f"files/{n}": b"" for n in range(50)}}
    for path in (folder(tmp_path, members), archive(tmp_path, members)):
        with pytest.raises(SnapshotError, match="more than 50 members"):
            open_snapshot(path)


def test_too_many_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOTAL_BYTES", 1000)
    members = {"snapshot.json": document(), **{f"files/{n}": os.urandom(200) for n in range(5)}}
    for path in (folder(tmp_path, members), archive(tmp_path, members)):
        with pytest.raises(SnapshotError, match="MiB together"):
            open_snapshot(path)


def bomb(path: Path, member: tarfile.TarInfo, mib: int) -> None:
    with gzip.open(path, "wb") as packed:
        packed.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(mib):
            packed.write(b"\0" * (1 << 20))


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_decompression_bomb_is_stopped_while_it_expands(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "bomb.tar.gz"
    member = tarfile.TarInfo("files/zeros")
    member.type, member.size = kind, 60 << 20
    bomb(path, member, 60)
    tracemalloc.start()
    begin = time.perf_counter()
    with pytest.raises(SnapshotError, match=r"expands more than 200-fold|header that is longer"):
        open_snapshot(path)
    assert time.perf_counter() - begin < 2
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    members = {"snapshot.json": document(), "files/x": os.urandom(10_000), "files/y": b"y"}
    for suffix in (".tar.gz", ".tar"):
        path = archive(tmp_path, members, suffix=suffix)
        data = path.read_bytes()
        for size in (1, 10, 512, 1024, 1100, 9000, len(data) // 2, len(data) - 9200, len(data) - 9):
            path.write_bytes(data[: max(size, 0)])
            if suffix == ".tar" and size > 13_000:
                continue  # only what follows the mark of the end is lost
            with pytest.raises(SnapshotError, match="no whole tar archive"):
                open_snapshot(path)


def test_a_snapshot_of_a_machine_opens_in_a_few_milliseconds(tmp_path: Path) -> None:
    entries = [{"path": f"/sys/{n}", "type": "dir", "mode": "0755", "names": ["a"]} for n in range(300)]
    members = {"snapshot.json": document(entries=entries), **{f"files/sys/{n}/a": b"1" for n in range(300)}}
    path = folder(tmp_path, members)
    begin = time.perf_counter()
    host = open_snapshot(path)
    assert host.read("/sys/7/a").value == b"1"
    assert time.perf_counter() - begin < 0.2


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["/a", "link", "0644"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["path", "type", "mode", "names", "target", "missing", "of", "argv", "rc", "statvfs", "x"]),
            inner,
        )
    ),
    max_leaves=8,
)
KEYS = [
    "schema",
    "taken_at",
    "complete",
    "redacted",
    "deep",
    "imports",
    "libraries",
    "observations",
    "identity",
    "env",
    "env_names",
    "python",
    "commands",
    "entries",
]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), values) | values, st.booleans())
def test_any_json_is_a_host_or_refused(tmp_path: Path, value: object, with_header: bool) -> None:
    if with_header and isinstance(value, dict):
        value = {**value, **HEADER}
    path = folder(tmp_path, {"snapshot.json": json.dumps(value).encode()})
    try:
        host = open_snapshot(path)
    except SnapshotError:
        return
    for path_asked in ("/", "/a", "/a/b", ""):
        for ask in (host.read, host.list, host.stat, host.statvfs, host.link, host.open):
            ask(path_asked)  # type: ignore[operator]
    assert host.now().tzinfo
