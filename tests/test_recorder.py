from __future__ import annotations

import json
import os
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, BinaryIO, Callable

import pytest
from hosts import FOLDER
from hosts import host as named_host
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_doctor.host import Answer, Extent, Host, Identity, Missing, Output, Python, Reason, Stat, StatVfs
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.host.recorder import Recorder, RecordError
from ascend_doctor.host.redact import Hiding
from ascend_doctor.host.snapshot import SnapshotHost, open_snapshot

PATHS = ("read", "list", "stat", "statvfs", "link")


class ToldHost:
    """Answers as it was told: what any machine could be like."""

    extent = Extent()

    def __init__(self, answers: Mapping[str, Mapping[Any, Any]], identity: Identity, now: datetime) -> None:
        self._answers, self._identity, self._now = answers, identity, now

    def _told(self, kind: str, subject: Any) -> Answer[Any]:
        return Answer("told", self._answers.get(kind, {}).get(subject, Missing(Reason.FAILED, "not told")))

    def read(self, path: str) -> Answer[bytes]:
        return self._told("read", path)

    def open(self, path: str) -> Answer[BinaryIO]:
        return Answer("told", Missing(Reason.FAILED))

    def list(self, path: str) -> Answer[tuple[str, ...]]:
        return self._told("list", path)

    def stat(self, path: str) -> Answer[Stat]:
        return self._told("stat", path)

    def statvfs(self, path: str) -> Answer[StatVfs]:
        return self._told("statvfs", path)

    def link(self, path: str) -> Answer[str]:
        return self._told("link", path)

    def run(self, argv: Sequence[str], timeout: float = 10) -> Answer[Output]:
        return self._told("run", tuple(argv))

    def env(self, name: str) -> Answer[str]:
        return self._told("env", name)

    def env_names(self) -> Answer[tuple[str, ...]]:
        return self._told("env_names", "")

    def observed(self, area: str, measure: Callable[[], object]) -> Answer[object]:
        return self._told("observed", area)

    @property
    def origin(self) -> str:
        return "live"

    @property
    def identity(self) -> Identity:
        return self._identity

    @property
    def python(self) -> Answer[Python]:
        return self._told("python", "")

    def now(self) -> datetime:
        return self._now


def everything(host: Host, questions: Mapping[str, Sequence[Any]]) -> dict[Any, Any]:
    """The values of all answers to the questions, without their sources and times."""
    found: dict[Any, Any] = {}
    for kind in PATHS:
        for path in questions.get(kind, ()):
            found[kind, path] = getattr(host, kind)(path).value
    for argv in questions.get("run", ()):
        found["run", argv] = host.run(argv).value
    for name in questions.get("env", ()):
        found["env", name] = host.env(name).value
    for area in questions.get("observed", ()):
        found["observed", area] = host.observed(area, lambda: None).value
    if "env_names" in questions:
        found["env_names"] = host.env_names().value
    found["python"] = host.python.value
    found["identity"] = host.identity
    found["now"] = host.now()
    return found


def replayed(inner: Host, questions: Mapping[str, Sequence[Any]], path: Path, **how: Any) -> SnapshotHost:
    """The snapshot of a run, which must answer as the run was answered."""
    recorder = Recorder(inner)
    answers = everything(recorder, questions)
    recorder.save(path, **how)
    snapshot = open_snapshot(path)
    assert everything(snapshot, questions) == answers
    return snapshot


missing = st.builds(Missing, st.sampled_from(Reason), st.text(max_size=5))
paths = st.sampled_from(
    ["/", "/a", "/a/b", "/a/b/c", "/l/b", "/../a", "/a/./b/", "/" + "n" * 300, "/x y\n", "/\udcff", "/配置"]
)
lone = st.text(max_size=4) | st.just("\udcff")
small = st.integers(0, 1 << 62)
values = {
    "read": st.binary(max_size=20),
    "list": st.lists(lone, max_size=3).map(lambda names: tuple(sorted(names))),
    "stat": st.builds(Stat, st.sampled_from(["dir", "file", "char", "fifo"]), st.integers(0, 0o7777), small, small),
    "statvfs": st.builds(StatVfs, small, small, small),
    "link": st.sampled_from(["b", "/a", "../..", ".", "/l"]),
}
told = st.fixed_dictionaries(
    {
        **{kind: st.dictionaries(paths, value | missing, max_size=4) for kind, value in values.items()},
        "run": st.dictionaries(
            st.lists(lone, min_size=1, max_size=3).map(tuple),
            st.builds(Output, st.integers(-15, 255), st.binary(max_size=9), st.binary(max_size=9)) | missing,
            max_size=3,
        ),
        "env": st.dictionaries(st.sampled_from(["A", "PATH", "HF_TOKEN"]), lone | missing),
        "env_names": st.fixed_dictionaries({"": st.lists(lone, max_size=2).map(tuple) | missing}),
        "observed": st.dictionaries(
            st.sampled_from(["smoke", "processes"]),
            missing
            | st.recursive(
                st.none() | st.integers() | lone, lambda v: st.lists(v) | st.dictionaries(lone, v), max_leaves=4
            ),
        ),
        "python": st.fixed_dictionaries(
            {"": st.builds(Python, lone, lone | missing, st.lists(lone, max_size=2).map(tuple) | missing) | missing}
        ),
    }
)
identities = st.builds(
    Identity, lone | missing, lone, lone, small | missing, st.lists(small, max_size=2).map(tuple) | missing
)
times = st.datetimes(
    datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.sampled_from([timezone.utc, timezone(timedelta(hours=8))])
)


class Nothing(Hiding):
    """Takes nothing out, so that any answer replays as it was given."""

    state = "none"

    def data(self, data: bytes) -> bytes:
        return data

    def text(self, text: str) -> str:
        return text


def one_spelling(answers: Mapping[str, Any]) -> Mapping[str, Any]:
    """``/a/./b/`` and ``/a/b`` are one question; no machine tells them apart."""
    return {
        kind: {path: value for path, value in by.items() if not (path == "/a/./b/" and "/a/b" in by)}
        if kind in PATHS
        else by
        for kind, by in answers.items()
    }


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(told.map(one_spelling), identities, times, st.sampled_from(["snap", "snap.tar.gz"]))
def test_any_answers_replay_equal(answers: Mapping[str, Any], identity: Identity, now: datetime, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        replayed(ToldHost(answers, identity, now), answers, Path(folder) / name, hide=Nothing())


@pytest.mark.parametrize("name", ["snap", "snap.tar.gz"])
def test_a_live_run_replays_equal(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "host/folder").mkdir(parents=True)
    (tmp_path / "host/file").write_bytes(b"\xff\x00 text\n")
    (tmp_path / "host/latest").symlink_to("folder")
    (tmp_path / "host/gone").symlink_to("nowhere")
    (tmp_path / "host/loop").symlink_to("loop")
    (tmp_path / "host/folder/in").write_text("in")
    os.mkfifo(tmp_path / "host/fifo")
    (tmp_path / "host/large").write_bytes(b"\0" * ((16 << 20) + 1))
    names = [
        "",
        "file",
        "folder",
        "latest",
        "latest/in",
        "folder/../latest/in",
        "gone",
        "loop",
        "fifo",
        "large",
        "none/x",
    ]
    asked = [f"{tmp_path}/host/{name}" for name in names] + ["/proc/self/mem", "/dev/null", "/"]
    monkeypatch.setenv("KNOWN", "密 value")
    questions: dict[str, Sequence[Any]] = {
        **dict.fromkeys(PATHS, asked),
        "run": [("sh", "-c", "echo out; echo err >&2; exit 172"), ("no-such-tool", "x"), ("sh", "-c", "")],
        "env": ["KNOWN", "GONE", "UNKNOWN"],
        "env_names": [""],
        "observed": ["nothing"],
    }
    replayed(LiveHost(KnownEnv(frozenset(["KNOWN", "GONE"]))), questions, tmp_path / name)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in FOLDER.glob("*/snapshot.json")))
def test_every_whole_test_host_replays_equal(name: str, tmp_path: Path) -> None:
    host = named_host(name)
    names = [*host.document.places, *(member[5:] for member in host.members.index if member.startswith("files/"))]
    questions: dict[str, Sequence[Any]] = {
        **dict.fromkeys(PATHS, (*names, "/not/there")),
        "run": list(host.document.commands),
        "env": [*host.document.env, "NOT_SET"],
        "env_names": [""],
    }
    replayed(host, questions, tmp_path / "snap.tar.gz")


def test_one_question_has_one_answer() -> None:
    class Changing(ToldHost):
        def read(self, path: str) -> Answer[bytes]:
            return Answer("told", os.urandom(8))

    recorder = Recorder(Changing({}, Identity("a", "b", "c", 0, ()), datetime.now(timezone.utc)))
    assert recorder.read("/a") == recorder.read("/a")


def test_what_was_opened_as_a_stream_is_in_the_snapshot(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * ((16 << 20) + 1))
    recorder = Recorder(LiveHost(KnownEnv()))
    for path in (f"{tmp_path}/log", f"{tmp_path}/gone"):
        stream = recorder.open(path).value
        if not isinstance(stream, Missing):
            stream.close()
    whole = recorder.read(f"{tmp_path}/log").value
    recorder.save(tmp_path / "snap.tgz")
    host = open_snapshot(tmp_path / "snap.tgz")
    assert host.read(f"{tmp_path}/log").value == whole
    stream = host.open(f"{tmp_path}/log").value
    assert not isinstance(stream, Missing)
    with stream:
        assert len(stream.read()) == (16 << 20) + 1
    assert host.open(f"{tmp_path}/gone").value == Missing(Reason.ABSENT, "no such file")


def save_twice(tmp_path: Path, name: str) -> tuple[Path, Path]:
    told_answers = {"read": {"/b": b"2", "/a": b"1"}, "run": {("x",): Output(0, b"o", b"e")}}
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        recorder = Recorder(
            ToldHost(told_answers, Identity("a", "b", "c", 0, (1,)), datetime(2026, 1, 1, tzinfo=timezone.utc))
        )
        for path in ("/a", "/b") if folder == "first" else ("/b", "/a"):
            recorder.read(path)
        recorder.run(["x"])
        recorder.save(tmp_path / folder / name)
    return tmp_path / "first" / name, tmp_path / "second" / name


def test_the_same_answers_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = save_twice(tmp_path, "snap.tar.gz")
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as packed:
        assert [entry.name for entry in packed] == [
            f"snapshot/{name}"
            for name in ("snapshot.json", "commands/000.err", "commands/000.out", "files/a", "files/b")
        ]
    assert first.stat().st_mode & 0o777 == 0o600


def test_collect_never_calls_its_snapshot_complete(tmp_path: Path) -> None:
    first, second = save_twice(tmp_path, "snap")
    assert (first / "snapshot.json").read_bytes() == (second / "snapshot.json").read_bytes()
    document = json.loads((first / "snapshot.json").read_text())
    assert document["complete"] is False
    assert document["redacted"] == "secrets"
    assert document["schema"] == "ascend-doctor/snapshot/1"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    recorder = Recorder(LiveHost(KnownEnv()))
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "file.tar.gz").write_text("mine")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "dangling.tgz").symlink_to("nowhere")
    for name in (
        "full",
        "file",
        "file.tar.gz",
        "dangling",
        "dangling.tgz",
        "a.zip",
        "a.tar",
        "no/such/folder",
        "no/x.tgz",
    ):
        with pytest.raises(RecordError, match=str(tmp_path / name)):
            recorder.save(tmp_path / name)
    assert (tmp_path / "file.tar.gz").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "dangling",
        "dangling.tgz",
        "file",
        "file.tar.gz",
        "full",
    ]
    (tmp_path / "empty").mkdir()
    recorder.save(tmp_path / "empty")


def test_secrets_are_left_behind(tmp_path: Path) -> None:
    command = ("vllm", "serve", "--api-key", "S3CRET", "--port", "80")
    answers: dict[str, Mapping[Any, Any]] = {
        "read": {"/proc/7/cmdline": b"\0".join(word.encode() for word in command)},
        "run": {command: Output(0, b"HF_TOKEN=S3CRET\nfine\n", b"--token S3CRET")},
        "env": {"HF_TOKEN": "S3CRET and more", "PROXY": "http://u:S3CRET@h", "LD_LIBRARY_PATH": "/a:/b"},
        "observed": {"processes": [{"argv": list(command), "token": "S3CRET", "text": 'say \\"--token S3CRET\\"'}]},
    }
    recorder = Recorder(ToldHost(answers, Identity("a", "b", "c", 0, ()), datetime.now(timezone.utc)))
    everything(recorder, answers)
    recorder.save(tmp_path / "snap")
    for path in (tmp_path / "snap").rglob("*"):
        assert not path.is_file() or b"S3CRET" not in path.read_bytes(), path
    host = open_snapshot(tmp_path / "snap")
    assert host.env("LD_LIBRARY_PATH").value == "/a:/b"
    assert host.env("PROXY").value == "http://u:***@h"
    assert host.read("/proc/7/cmdline").value == b"vllm\0serve\0--api-key\0***\0--port\x0080"
    assert host.run(["vllm", "serve", "--api-key", "***", "--port", "80"]).value == Output(
        0, b"HF_TOKEN=***\nfine\n", b"--token ***"
    )
    processes: Any = host.observed("processes", lambda: None).value
    assert processes[0]["argv"] == ["vllm", "serve", "--api-key", "***", "--port", "80"]


def test_a_snapshot_of_a_snapshot_is_equal(tmp_path: Path) -> None:
    questions: dict[str, Sequence[Any]] = {"read": ["/proc/meminfo", "/none"], "list": ["/proc"], "stat": ["/proc"]}
    first = replayed(LiveHost(KnownEnv()), questions, tmp_path / "first")
    replayed(first, questions, tmp_path / "second.tar.gz")


def test_an_unreadable_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(RecordError, match="choose another place"):
        Recorder(LiveHost(KnownEnv())).save(tmp_path / "f" / "snap")
