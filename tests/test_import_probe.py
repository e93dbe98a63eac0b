"""Imports that are tried in another interpreter: what becomes of them, and that the finding names the cause.

With ASCEND_DOCTOR_TORCH_PYTHON=/path/to/python, an interpreter that has torch 2.13.0 and torch-npu 2.13.0, the real
packages are imported over a stub CANN.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hosts import host
from hypothesis import given, settings
from hypothesis import strategies as st
from stub_cann import Stub, compiled, needs_gcc

from ascend_doctor.derive.import_probe import Import, classified, torch_npu
from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.import_probe import Attempt, ImportProbe, Raised, attempts, collect, measured
from ascend_doctor.facts.libraries import Fault, Libraries, Target
from ascend_doctor.facts.python import collect as python_facts
from ascend_doctor.host import Extent, Missing, Reason
from ascend_doctor.host.children import child, environment
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.host.recorder import Recorder
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.knowledge.import_errors import load
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.paths import data_folder

CAPTURES = Path(__file__).parent / "captures" / "import-errors"
CASES = {case["id"]: case for case in yaml.safe_load((CAPTURES / "index.yaml").read_text(encoding="utf-8"))["cases"]}
RULES = [data_folder("rules")]
ERRORS = load(RULES)
CHECKS = load_checks([data_folder("checks")], lambda name: name.startswith(("import.", "loading.")))
REAL_PYTHON = os.environ.get("ASCEND_DOCTOR_TORCH_PYTHON", "")
needs_torch = pytest.mark.skipif(
    not REAL_PYTHON, reason="ASCEND_DOCTOR_TORCH_PYTHON names no interpreter with torch and torch-npu 2.13.0"
)

LIKE_MISSING = {"broken-symlink": "dangling", "wrong-arch": "foreign_machine"}
"""Cases that the loader words as a missing library: the analysis of the libraries tells them apart."""


# What the captured texts mean


def captured(case: str) -> Attempt:
    """A captured text as an attempt: the exceptions in it, the last one printed is the outermost."""
    text = (CAPTURES / CASES[case]["file"]).read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"^(\w+(?:Error|Exception)|Exception): ((?:.|\n(?=    ))*)", text, re.MULTILINE)
    errors = () if CASES[case]["signal"] else tuple(Raised(kind, words, "") for kind, words in reversed(found))
    name = CASES[case]["signal"] or ""
    outcome = "deadline" if name == "timeout" else "signal" if name else "raised"
    return Attempt("torch_npu", outcome, "", 25.0, 0, name, errors, "", text, f"/cann/{CASES[case]['culprit']}", "")


IN_OTHER_WORDS = {"cuda-torch-conflict", "device-count-zero", "python-abi-mismatch", "old-api-names-missing"}
"""Their culprit in the index is no word of the text."""


@pytest.mark.parametrize("case", CASES)
def test_a_captured_text_gives_its_cause_and_its_culprit(case: str) -> None:
    python = python_facts(host("a2-container-healthy")).facts
    kind = LIKE_MISSING.get(case, "")
    (row,) = torch_npu(ImportProbe((captured(case),)), analysed(kind), python, ERRORS)
    assert isinstance(row, Import)
    assert str(row.cause).replace(".sigbus", "") == CASES[case]["expected_finding"]
    assert all(CASES[case]["culprit"] in text for text in row.found.values()) or case in IN_OTHER_WORDS
    assert not any(re.search(r"\{[a-z]+\}", text) for text in (*row.found.values(), *row.why.values()))
    assert row.remedy
    if kind:
        (alone,) = torch_npu(ImportProbe((captured(case),)), analysed(""), python, ERRORS)
        assert isinstance(alone, Import)
        assert alone.cause == "cann.lib_missing"


def analysed(kind: str) -> Libraries:
    """The libraries of a host where one is spoilt in this way."""
    fault = Fault(kind, "libhccl.so", "/cann/libhccl.so", "libtorch_npu.so", "", False)
    lists: dict[str, Any] = {"loaded": (), "faults": (fault,) if kind else (), "undefined": (), "lookups_missing": ()}
    return Libraries((Target("torch_npu", "/x.so", "", False, **lists),), ())


def test_an_exception_that_no_cause_knows_is_told_as_it_is() -> None:
    error = Raised("ValueError", "nobody has seen this {before}", "/x.py:1")
    attempt = Attempt("torch", "raised", "", 1.0, 0, "", (error,), "", "", "", "")
    told = classified("raised", attempt, {}, ERRORS)
    assert told
    assert (told[0].id, told[1]) == ("probe.failed", "ValueError: nobody has seen this {before}")


def test_the_exception_that_is_known_counts_wherever_it_stands_in_the_chain() -> None:
    chain = (
        Raised("RuntimeError", "Failed to load the backend extension: torch_npu.", ""),
        Raised("ImportError", "libhccl.so: cannot open shared object file: No such file or directory", ""),
    )
    told = classified("raised", Attempt("torch", "raised", "", 1.0, 0, "", chain, "", "", "", ""), {}, ERRORS)
    assert told
    assert told[0].id == "cann.lib_missing"


def test_all_causes_load_and_have_both_languages() -> None:
    assert len({cause.id for cause in ERRORS.causes}) == len(ERRORS.causes)
    for cause in ERRORS.causes:
        for texts in (cause.found, cause.why, *(step.text for step in cause.remedy)):
            assert set(texts) == {"en", "zh"}


@pytest.mark.parametrize(
    "entry",
    [
        "pattern: '('",
        "pattern: '(?P<other>x)'",
        "signals: [SIGBUS]\n    pattern: x",
        "remedy: [nowhere]\n    pattern: x",
    ],
)
def test_a_cause_that_cannot_be_used_is_refused_with_its_place(tmp_path: Path, entry: str) -> None:
    (tmp_path / "libraries").mkdir()
    head = "sources:\n  s: {title: t, url: u, confidence: vendor-doc}\ncauses:\n  - id: x.y\n    severity: error\n"
    text = f"{head}    found: {{en: a}}\n    why: {{en: a}}\n    sources: [s]\n    {entry}\n"
    (tmp_path / "libraries" / "import-errors.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RuleError, match="causes, entry 1"):
        _ = load([tmp_path]).causes


# What becomes of a child


def package(site: Path, name: str, source: str) -> Path:
    (site / name).mkdir(parents=True)
    (site / name / "__init__.py").write_text(source, encoding="utf-8")
    return site


def tried(monkeypatch: pytest.MonkeyPatch, site: Path, source: str, seconds: float = 20) -> Attempt:
    """The import of a package of this source, by the interpreter of the tests."""
    monkeypatch.setenv("PYTHONPATH", str(package(site, "torch_npu", source)))
    probe = measured(LiveHost(KnownEnv(), python=sys.executable), ["torch_npu"], seconds)
    found = attempts(json.loads(json.dumps(probe)))
    assert not isinstance(found, Missing)
    return found[0]


@pytest.mark.parametrize(
    ("source", "outcome", "signal", "cause"),
    [
        ("import ctypes; ctypes.string_at(0)", "signal", "SIGSEGV", "probe.crashed"),
        ("import os; os.abort()", "signal", "SIGABRT", "probe.crashed"),
        (
            "import mmap, tempfile\nf = tempfile.TemporaryFile()\nf.truncate(9000)\nm = mmap.mmap(f.fileno(), 9000)\n"
            "f.truncate(0)\nm[5000]",
            "signal",
            "SIGBUS",
            "cann.file_corrupt.sigbus",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal", "SIGKILL", "probe.killed"),
        ("raise SystemExit('no licence')", "raised", "", "probe.failed"),
        ("import os; os._exit(3)", "exit", "", "probe.exited"),
        ("raise ImportError('/c/libhccl.so: file too short')", "raised", "", "cann.file_corrupt"),
        ("import numpy_that_is_nowhere", "raised", "", "python.dependency_missing"),
    ],
)
def test_each_end_of_an_import_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, outcome: str, signal: str, cause: str
) -> None:
    attempt = tried(monkeypatch, tmp_path, source)
    assert (attempt.outcome, attempt.signal) == (outcome, signal)
    told = classified(outcome, attempt, {}, ERRORS)
    assert told
    assert told[0].id == cause


def test_a_crash_leaves_the_words_of_the_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    attempt = tried(monkeypatch, tmp_path, "import ctypes; ctypes.string_at(0)")
    assert "Segmentation fault" in attempt.stderr
    assert "torch_npu/__init__.py" in attempt.stderr
    assert "/" in attempt.library


def test_a_hang_ends_at_the_deadline_and_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun = time.monotonic()
    attempt = tried(monkeypatch, tmp_path, "import time\ntime.sleep(600)", seconds=1)
    assert time.monotonic() - begun < 10
    assert attempt.outcome == "deadline"
    assert "torch_npu/__init__.py" in attempt.stderr


def test_after_a_hang_nothing_else_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package(tmp_path, "torch", "import time\ntime.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(package(tmp_path, "torch_npu", "raise AssertionError")))
    found = attempts(measured(LiveHost(KnownEnv(), python=sys.executable), seconds=1))
    assert not isinstance(found, Missing)
    assert found[0].outcome == "deadline"
    assert all(isinstance(attempt.outcome, Missing) for attempt in found[1:])


def test_what_is_printed_is_kept_apart_from_the_answer_and_capped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = (
        "import sys\nprint('Warning: ASCEND_HOME_PATH' * 100000)\n"
        "print('{\"found\": 1}', file=sys.stderr)\n__version__ = '2.13.0'"
    )
    attempt = tried(monkeypatch, tmp_path, source)
    assert (attempt.outcome, attempt.version) == ("imported", "2.13.0")
    assert len(attempt.stdout) == 4000
    assert attempt.stderr == '{"found": 1}\n'


def test_what_an_import_starts_does_not_outlive_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither one that holds the pipes, nor one that the module waits for."""
    source = (
        "import os, subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
    )
    begun = time.monotonic()
    attempt = tried(monkeypatch, tmp_path, source)
    assert attempt.outcome == "imported"
    assert time.monotonic() - begun < 10
    state = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    for _ in range(100):
        if not state.exists() or " Z " in state.read_text():
            break
        time.sleep(0.02)
    else:
        pytest.fail("the process is still there")


def test_a_package_that_is_not_there_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = attempts(measured(LiveHost(KnownEnv(), python=sys.executable), ["a_module_that_is_nowhere"], 20))
    assert not isinstance(found, Missing)
    assert found[0].outcome == "absent"


def test_a_child_writes_into_a_folder_that_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    names = "('HOME', 'TMPDIR', 'XDG_CACHE_HOME', 'ASCEND_PROCESS_LOG_PATH')"
    source = (
        f"import os, sys\nprint(os.getcwd(), *(os.environ[name] for name in {names}))\n"
        "print(os.environ['PYTHONUSERBASE'], 'import_probe' in os.listdir(sys.path[0] or '.'))\n"
        "open('left', 'w').write('x')"
    )
    attempt = tried(monkeypatch, tmp_path / "site", source)
    first, second = attempt.stdout.splitlines()
    assert len(set(first.split())) == 1
    assert not Path(first.split()[0]).exists()
    assert second == f"{tmp_path}/home/.local False"


def test_the_environment_of_the_deployment_is_kept() -> None:
    given_ = {"LD_LIBRARY_PATH": "/cann", "PYTHONPATH": "/p", "HOME": "/root", "PYTHONUSERBASE": "/u"}
    made = environment("/tmp/x", given_)
    assert {name: made[name] for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONUSERBASE")} == {
        name: given_[name] for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONUSERBASE")
    }
    assert made["HOME"] == "/tmp/x"


def test_an_interpreter_that_cannot_be_started_is_said(tmp_path: Path) -> None:
    ended = child(str(tmp_path / "python"), "import_probe.py", ["1", "torch"], 1)
    assert isinstance(ended, Missing)
    (tmp_path / "python").write_text("#!/nowhere/sh\n")
    (tmp_path / "python").chmod(0o755)
    ended = child(str(tmp_path / "python"), "import_probe.py", ["1", "torch"], 1)
    assert isinstance(ended, Missing)
    assert ended.reason is Reason.FAILED


def test_a_program_that_is_no_python_gives_no_answer(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\necho '{}' >&3\nexit 7\n")
    (tmp_path / "python").chmod(0o755)
    found = attempts(measured(LiveHost(KnownEnv(), python=str(tmp_path / "python")), ["torch"], 20))
    assert not isinstance(found, Missing)
    assert (found[0].outcome, found[0].code) == ("exit", 7)


# The area


def test_nothing_is_started_unless_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ascend_doctor.host.children.child", lambda *_: pytest.fail("a child was started"))
    facts = collect(LiveHost(KnownEnv(), python=sys.executable)).facts
    assert isinstance(facts.attempts, Missing)
    assert facts.attempts.reason is Reason.UNSUPPORTED
    situation = Situation(host("a2-healthy"), RULES)
    chosen = [check for check in CHECKS if check.id.startswith("import.")]
    assert {finding.verdict for finding in judged(chosen, situation)} == {"skip"}


def test_a_snapshot_carries_the_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(package(tmp_path / "site", "torch_npu", "raise ImportError('password=abc')")))
    recorder = Recorder(LiveHost(KnownEnv(), python=sys.executable, extent=Extent(imports=True)))
    live = collect(recorder)
    assert not isinstance(live.facts.attempts, Missing)
    recorder.save(tmp_path / "snapshot")
    again = open_snapshot(tmp_path / "snapshot")
    assert again.extent.imports
    replayed = collect(again).facts
    assert not isinstance(replayed.attempts, Missing)
    assert [a.outcome for a in replayed.attempts] == [a.outcome for a in live.facts.attempts]
    assert "abc" not in (tmp_path / "snapshot" / "observations" / "import_probe.json").read_text()


def test_a_failed_import_is_explained_by_what_the_files_predict() -> None:
    """One headline, and the import below it."""
    observation = {
        "attempts": [
            {"module": "torch", "outcome": "imported", "version": "2.7.1", "seconds": 2.0},
            {
                "module": "torch_npu",
                "outcome": "raised",
                "errors": [
                    {
                        "type": "ImportError",
                        "text": "libhccl.so: cannot open shared object file: No such file or directory",
                        "where": "/x.py:8",
                    }
                ],
            },
        ]
    }
    found = findings("a2-hccl-missing", observation)
    assert {f.check: f.because for f in found if f.check.startswith("import.")} == {
        "import.torch-npu": "loading.libraries-found"
    }
    found = findings("a2-hccl-foreign", observation)
    assert "for another machine" in str(next(f for f in found if f.check == "import.torch-npu").found)


def findings(name: str, observation: object) -> list[Finding]:
    situation = Situation(host(name, set={"observations": {"import_probe": observation}}), RULES)
    found = judged(CHECKS, situation)
    assert not situation.broken
    return [finding for finding in found if finding.verdict == "fail"]


KEYS = ["module", "outcome", "version", "seconds", "code", "signal", "errors", "stdout", "stderr", "library", "state"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=12,
)


@settings(max_examples=150)
@given(JSON, st.sampled_from(KEYS))
def test_any_observation_is_attempts_or_missing(value: object, key: str) -> None:
    entry = {"module": "torch", "outcome": "raised", key: value}
    for observation in (value, {"attempts": value}, {"attempts": [value]}, {"attempts": [entry]}):
        assert isinstance(attempts(observation), (tuple, Missing))


# The real packages


@pytest.fixture(scope="module")
def cann(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Stub().build(tmp_path_factory.mktemp("stub") / "cann")


@needs_gcc
@needs_torch
@pytest.mark.parametrize(
    "case", ["healthy", "no-cann", "truncated", "undefined", "constructor-segv", "constructor-hang"]
)
def test_the_real_import_ends_with_its_cause(
    case: str, cann: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(cann, tmp_path / "cann"))
    constructor = "__attribute__((constructor)) static void start(void) {{ {} }} int HcclSend(void) {{ return 0; }}"
    if case == "no-cann":
        shutil.rmtree(folder)
    elif case == "truncated":
        (folder / "libascendcl.so").write_bytes((folder / "libascendcl.so").read_bytes()[:4096])
    elif case == "undefined":
        Stub({"aclAppLog"}).build(folder, ["libascendcl.so"])
    elif case == "constructor-segv":
        compiled(folder / "libhccl.so", constructor.format("*(volatile int *)8 = 1;"))
    elif case == "constructor-hang":
        compiled(folder / "libhccl.so", f"#include <unistd.h>\n{constructor.format('sleep(600);')}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    found = attempts(measured(LiveHost(KnownEnv(), python=REAL_PYTHON), ["torch_npu"], 10 if "hang" in case else 60))
    assert not isinstance(found, Missing)
    attempt = found[0]
    assert isinstance(attempt.outcome, str)
    if case == "healthy":
        assert (attempt.outcome, attempt.version.partition("+")[0]) == ("imported", "2.13.0")
        return
    told = classified(attempt.outcome, attempt, {}, ERRORS)
    assert told
    assert (told[0].id, told[2].get("library") or Path(attempt.library).name) == {
        "no-cann": ("cann.lib_missing", "libhccl.so"),
        "truncated": ("cann.file_corrupt.sigbus", "libascendcl.so"),
        "undefined": ("cann.abi_mismatch", f"{_npu_folder()}/lib/libnpu_profiler.so"),
        "constructor-segv": ("probe.crashed", "libhccl.so"),
        "constructor-hang": ("probe.timeout", "libhccl.so"),
    }[case]


def _npu_folder() -> str:
    code = "import sysconfig; print(sysconfig.get_path('platlib'))"
    site = subprocess.run([REAL_PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    return f"{site}/torch_npu"
