"""Redaction changes no verdict: each test host through a redacted snapshot, each log sample through redacted files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hosts import all_hosts, host, profile_of
from log_runs import CAPTURES, run_of

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.hidden_run import hidden_run
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, judged, preflight
from ascend_doctor.engine.situation import Situation
from ascend_doctor.host import Host
from ascend_doctor.host.identities import of_host
from ascend_doctor.host.pseudonyms import Pseudonyms
from ascend_doctor.host.recorder import Recorder
from ascend_doctor.host.redact import Hiding
from ascend_doctor.host.redact_identity import Redactor
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.knowledge.redaction import PublicNames
from ascend_doctor.paths import data_folder

CHECKS = load_checks([data_folder("checks")])
RULES = [data_folder("rules")]
AREAS = sorted({area for check in CHECKS for area in check.areas})
PUBLIC = PublicNames(RULES)
KEY = b"a key of 32 bytes for the tests."


def redactor(asked: Host | None = None) -> Redactor:
    made = Redactor(Pseudonyms(KEY), PUBLIC)
    if asked is not None:
        made.add(of_host(asked))
    return made


def found(name: str, asked: Host) -> Sequence[Finding]:
    situation = Situation(asked, RULES, workers=1, profile=profile_of(name))
    situation.collect(AREAS)
    assert not situation.broken
    return judged(CHECKS, situation)


def judgement(findings: Sequence[Finding]) -> list[tuple[object, ...]]:
    """In any order: what a subject is called may change where it stands."""
    return sorted((f.check, f.verdict, str(f.severity), str(f.because), f.required, len(f.missing)) for f in findings)


@pytest.mark.parametrize("name", all_hosts())
def test_a_redacted_snapshot_is_judged_as_the_host(name: str, tmp_path: Path) -> None:
    asked = host(name)
    recorder = Recorder(asked)
    before = found(name, recorder)
    hide = redactor(asked)
    recorder.save(tmp_path / "snapshot", hide)
    after = found(name, open_snapshot(tmp_path / "snapshot"))
    assert judgement(after) == judgement(before)
    assert len({(f.check, f.subject) for f in after}) == len({(f.check, f.subject) for f in before})


LOGS = sorted(
    path for path in (CAPTURES / "logs").iterdir() if path.is_dir() or path.suffix in (".log", ".txt", ".jsonl")
)


def told(run: Run) -> list[tuple[object, ...]]:
    assert run.logs is not None
    answer = run.logs.analysis.answer
    rows = [
        (i.signature, i.role, i.severity, i.codes, i.count, i.caused_by, i.why, i.first.record.place.line)
        for i in answer.incidents
    ]
    whole = (answer.verdict, answer.root, answer.confidence, answer.suspects, answer.absent, tuple(run.counts.items()))
    return [whole, *rows]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_redacted_logs_tell_the_same(path: Path, tmp_path: Path) -> None:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    hide = redactor()
    hide.learn(file.read_bytes().decode("utf-8", "surrogateescape") for file in files)
    copy = tmp_path / path.name
    for file in files:
        place = copy / file.relative_to(path) if path.is_dir() else copy
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(hide.data(file.read_bytes()))
    run = run_of([path])
    assert told(run_of([copy])) == told(run)
    assert told(hidden_run(run, redactor())) == told(run)
    assert hidden_run(run, Hiding()).findings == run.findings  # none of them has a secret


@pytest.mark.parametrize(
    "name", ["a2-nonroot-healthy", "a2-hccl-address-foreign", "a2-container-card-held", "bare-linux"]
)
def test_a_redacted_run_says_the_same_of_the_same_checks(name: str) -> None:
    asked = host(name)
    run = preflight(asked, Asked(CHECKS, rulebook(), workers=1, with_facts=True))
    hidden = hidden_run(run, redactor(asked))
    assert [(f.check, f.verdict, f.severity, f.because) for f in hidden.findings] == [
        (f.check, f.verdict, f.severity, f.because) for f in run.findings
    ]
    assert (hidden.counts, hidden.verdict, hidden.exit_code) == (run.counts, run.verdict, run.exit_code)
    assert replace(hidden_run(run, Hiding()), redacted="none") == run
    assert hidden_run(hidden, redactor(asked)) == hidden


AWKWARD = (
    "npu",
    "OK",
    "Alarm",
    "910B3",
    "davinci0",
    "latest",
    "python3",
    "lib64",
    "Ascend",
    "node4",
    "cpu0",
    "rank1",
    "ascend-910b",
    "cann-8",
)
"""Names that are also parts of what machines print."""


@pytest.mark.parametrize("word", AWKWARD)
def test_a_host_and_a_user_may_have_any_name(word: str, tmp_path: Path) -> None:
    passwd = f"root:x:0:0:root:/root:/bin/bash\n{word}:x:1001:1001::/home/{word}:/bin/bash\n"
    asked = host(
        "a2-deep-healthy",
        set={
            "identity": {"hostname": word, "uid": 1001, "gids": [1001]},
            "files": {"/etc/passwd": passwd, "/etc/hosts": f"10.1.1.1 {word}\n", "/etc/hostname": f"{word}\n"},
            "env": {"HCCL_IF_IP": "10.1.1.1", "LD_LIBRARY_PATH": f"/home/{word}/lib:/usr/local/Ascend/driver/lib64"},
        },
    )
    recorder = Recorder(asked)
    before = found("a2-deep-healthy", recorder)
    recorder.save(tmp_path / "snapshot", redactor(asked))
    after = open_snapshot(tmp_path / "snapshot")
    assert judgement(found("a2-deep-healthy", after)) == judgement(before)
    assert after.identity.hostname != word
