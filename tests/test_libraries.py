"""What is predicted before an import: each scenario of captures/import-errors that files can show, and healthy hosts.

With ASCEND_DOCTOR_TORCH_PYTHON=/path/to/python, an interpreter that has torch 2.13.0 and torch-npu 2.13.0, the real
packages are asked as well, and the real import has to fail with the predicted line.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hosts import host
from hypothesis import given, settings
from hypothesis import strategies as st
from stub_cann import NEEDS, Stub, compiled, needs_gcc, python_packages

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.libraries import Libraries, analysis, collect
from ascend_doctor.host import Missing
from ascend_doctor.host.elf.analysis import Question, analyse
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.paths import data_folder

CAPTURES = Path(__file__).parent / "captures" / "import-errors"
CASES = {case["id"]: case for case in yaml.safe_load((CAPTURES / "index.yaml").read_text(encoding="utf-8"))["cases"]}
CHECKS = tuple(c for c in load_checks([data_folder("checks")]) if c.id.startswith("loading."))
REAL_PYTHON = os.environ.get("ASCEND_DOCTOR_TORCH_PYTHON", "")
TAG = f"cpython-{sys.version_info[0]}{sys.version_info[1]}-{os.uname().machine}-linux-gnu"
HEALTHY = "healthy"
needs_torch = pytest.mark.skipif(
    not REAL_PYTHON, reason="ASCEND_DOCTOR_TORCH_PYTHON names no interpreter with torch and torch-npu 2.13.0"
)

Change = Callable[[Path], None]
"""Spoils a folder with the libraries of CANN."""


# Scenarios: how to make them, and the check that names them


def without(*names: str) -> Change:
    def remove(cann: Path) -> None:
        for name in names:
            (cann / name).unlink()

    return remove


def lacking(function: str) -> Change:
    def rebuild(cann: Path) -> None:
        Stub({function}).build(cann, [name for name in NEEDS if Stub().defines(name, function)])

    return rebuild


def replaced(name: str, make: Callable[[Path], object]) -> Change:
    def replace(cann: Path) -> None:
        (cann / name).unlink()
        make(cann / name)

    return replace


def patched(name: str, patch: Callable[[bytes], bytes]) -> Change:
    return lambda cann: (cann / name).write_bytes(patch((cann / name).read_bytes())) and None


def needing(library: str, version: str) -> Change:
    """libhccl.so, linked against a later form of a library of the system."""

    def rebuild(cann: Path) -> None:
        folder = cann / "later"
        folder.mkdir()
        script = folder / "versions"
        script.write_text(f"{version} {{ global: from_later; local: *; }};\n", encoding="utf-8")
        options = [f"-Wl,--version-script={script}", f"-Wl,-soname,{library}"]
        later = compiled(folder / "liblater.so", "int from_later(void) { return 1; }", (), options)
        compiled(cann / "libhccl.so", "int from_later(void); int HcclSend(void) { return from_later(); }", [later])
        shutil.rmtree(folder)

    return rebuild


def empty(*names: str) -> Change:
    def rebuild(cann: Path) -> None:
        for name in names:
            compiled(cann / name, "static int nothing;", [cann / needed for needed in NEEDS[name]])

    return rebuild


def header(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:offset] + value + data[offset + len(value) :]


FOREIGN = (183 if os.uname().machine == "x86_64" else 62).to_bytes(2, "little")
OF_CANN = tuple(name for name in NEEDS if name != "libascend_hal.so")
FOUND, FILES, SYMBOLS = "loading.libraries-found", "loading.files-usable", "loading.symbols-defined"
SYSTEM, LOOKUPS = "loading.system-libraries", "loading.functions-at-run-time"

SCENARIOS: dict[str, tuple[Change, str, str]] = {
    "driver-missing-libascend_hal": (without("libascend_hal.so"), FOUND, "libascend_hal.so"),
    "no-cann-import-torch-autoload": (without(*NEEDS), FOUND, "libhccl.so"),
    "no-cann-import-torch_npu": (without(*NEEDS), FOUND, "libhccl.so"),
    "no-cann-torch_npu-2.10": (without(*NEEDS), FOUND, "libhccl.so"),
    "no-cann-transformers": (without(*NEEDS), FOUND, "libhccl.so"),
    **{
        f"lib-missing-{name[:-3]}": (without(name), FOUND, name)
        for name in OF_CANN
    },
    "broken-symlink": (replaced("libhccl.so", lambda path: path.symlink_to("/nowhere/lib.so")), FILES, "libhccl.so"),
    "wrong-arch": (patched("libhccl.so", header(18, FOREIGN)), FILES, "libhccl.so"),
    "elf32": (patched("libhccl.so", header(4, b"\x01")), FILES, "libhccl.so"),
    "file-too-short": (patched("libhccl.so", lambda data: b""), FILES, "libhccl.so"),
    "invalid-elf-header": (
        patched("libhccl.so", lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64),
        FILES,
        "libhccl.so",
    ),
    "is-a-directory": (replaced("libhccl.so", Path.mkdir), FILES, "libhccl.so"),
    "truncated-sigbus": (patched("libascendcl.so", lambda data: data[:4096]), FILES, "libascendcl.so"),
    "glibc-too-old": (needing("libc.so.6", "GLIBC_2.99"), SYSTEM, "GLIBC_2.99"),
    "libstdcxx-too-old": (needing("libstdc++.so.6", "GLIBCXX_3.4.99"), SYSTEM, "GLIBCXX_3.4.99"),
    **{
        f"undefined-symbol-{name}": (lacking(name), SYMBOLS, name)
        for name in (
            "MsprofSysCycleTime", "aclAppLog", "aclGetRecentErrMsg", "aclopSetAttrDataType", "aclrtDeviceGetBareTgid",
            "aclrtGetDeviceCount", "aclrtMallocPhysical", "rtGetC2cCtrlAddr",
        )
    },
    "undefined-symbol-all": (empty(*NEEDS), SYMBOLS, "aclAppLog"),
    "lazy-function-missing": (lacking("aclrtSetDeviceSatMode"), LOOKUPS, "aclrtSetDeviceSatMode"),
}  # fmt: skip

OTHERWISE = {
    "other tests here": {
        "permission-denied", "python-abi-mismatch", "torch-mismatch-npu-2.7", "torch-mismatch-npu-2.10",
        "torch-mismatch-npu-2.12", "torch-mismatch-npu-2.14", "home-path-missing", "opp-path-missing",
        "opp-path-unset", "runtime-dir-missing", "compiler-dir-missing",
    },
    "the packages of Python": {
        "no-torch_npu", "no-torch_npu-import-torch-dot-npu", "no-torch_npu-device-npu", "no-numpy",
        "cuda-torch-conflict", "old-api-names-missing",
    },
    "the import itself": {"constructor-abort", "constructor-hang", "constructor-segv"},
    "a device call": {
        "aclinit-500000", "aclinit-soc-507008", "device-count-driver-error", "device-count-zero",
        "invalid-device-id-python", "setdevice-107001", "setdevice-207004", "setdevice-507033",
        "setdevice-507033-with-runtime-text", "setdevice-507054-ecc", "setdevice-507899", "unknown-soc",
    },
}  # fmt: skip
"""What shows the other cases."""


def test_every_case_is_predicted_or_shown_by_something_else() -> None:
    shown = [set(SCENARIOS), *OTHERWISE.values()]
    assert set().union(*shown) == set(CASES)
    assert sum(map(len, shown)) == len(CASES)


# The hosts of the scenarios


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A whole stub CANN, and a folder of packages with a torch and a torch_npu in small."""
    folder = tmp_path_factory.mktemp("stubs")
    cann = Stub().build(folder / "cann")
    return cann, python_packages(folder / "site", cann, TAG)


def copy_of(cann: Path, to: Path, change: Change | None) -> Path:
    shutil.copytree(cann, to)
    if change is not None:
        change(to)
    return to


def asked(site: Path, library_path: Path | str, python: str = "", version: str = "") -> dict[str, Any]:
    python, version = python or sys.executable, version or f"{sys.version_info[0]}.{sys.version_info[1]}"
    arch = os.uname().machine
    question = Question(arch, str(library_path), python=python, python_version=version, site=(str(site),))
    found: dict[str, Any] = json.loads(json.dumps(analyse(question)))
    return found


def findings(observation: object, **changes: Any) -> list[Finding]:
    """What the checks make of an analysis, on a host that is healthy otherwise."""
    situation = Situation(
        host("a2-healthy", set={"observations": {"libraries": observation}, **changes}), [data_folder("rules")]
    )
    situation.collect(sorted({area for check in CHECKS for area in check.areas}))
    found = judged(CHECKS, situation)
    assert not situation.broken
    return [finding for finding in found if finding.verdict == "fail"]


def target(observation: Mapping[str, Any], name: str = "torch_npu") -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(one for one in observation["targets"] if one["name"] == name)
    return found


def line_of(case: str) -> str:
    """The loader's words in a captured text, folders left out; a signal has none."""
    line = re.sub(r"^\w+Error: |\. Please check that the cann.*$", "", CASES[case]["key_line"])
    return "" if CASES[case]["signal"] else without_folders(line)


def without_folders(line: str) -> str:
    return re.sub(r"/[^ )]*/", "", line)


@needs_gcc
@pytest.mark.parametrize("case", SCENARIOS)
def test_a_scenario_is_predicted_with_its_culprit(case: str, stubs: tuple[Path, Path], tmp_path: Path) -> None:
    change, check, culprit = SCENARIOS[case]
    observation = asked(stubs[1], copy_of(stubs[0], tmp_path / "cann", change))
    found = [finding for finding in findings(observation) if finding.severity != "info"]
    assert [finding.check for finding in found] == [check]
    assert culprit in str(found[0].found)
    if check != LOOKUPS:
        assert without_folders(target(observation)["first_error"]) == line_of(case)
        assert target(observation)["dies"] == (CASES[case]["signal"] == "SIGBUS")


@needs_gcc
def test_a_whole_cann_gives_nothing(stubs: tuple[Path, Path]) -> None:
    observation = asked(stubs[1], stubs[0])
    assert findings(observation) == []
    assert [target["first_error"] for target in observation["targets"]] == ["", ""]


@needs_gcc
def test_libraries_for_other_machines_that_come_first_do_no_harm(stubs: tuple[Path, Path], tmp_path: Path) -> None:
    foreign = copy_of(stubs[0], tmp_path / "foreign", patched("libhccl.so", header(18, FOREIGN)))
    wrong_class = copy_of(stubs[0], tmp_path / "elf32", patched("libgraph.so", header(4, b"\x01")))
    for folder in (foreign, wrong_class):
        kept = "libhccl.so" if folder is foreign else "libgraph.so"
        without(*(name for name in NEEDS if name != kept))(folder)
    assert findings(asked(stubs[1], f"{foreign}:{wrong_class}:{tmp_path}/gone:{stubs[0]}")) == []


@needs_gcc
def test_a_link_to_a_removed_release_is_named_and_not_only_its_libraries(
    stubs: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "latest").symlink_to("8.3.RC1")
    found = findings(asked(stubs[1], tmp_path / "latest" / "lib64"))
    assert [finding.check for finding in found] == [FILES]
    assert f"{tmp_path}/latest is a link that leads nowhere (8.3.RC1)" in str(found[0].found)


@needs_gcc
def test_a_missing_cann_does_not_hide_that_torch_is_of_another_release(
    stubs: tuple[Path, Path], tmp_path: Path
) -> None:
    """The loader would tell of the second only after the first was mended: torch-mismatch-npu-*."""
    site = python_packages(tmp_path / "site", stubs[0], TAG, "_ZNK4c10d7Backend15incref_pyobjectEv")
    found = {finding.check: finding for finding in findings(asked(site, ""))}
    assert set(found) == {FOUND, SYMBOLS}
    assert found[SYMBOLS].subject == "torch"
    assert "_ZNK4c10d7Backend15incref_pyobjectEv" in str(found[SYMBOLS].found)


@needs_gcc
def test_a_library_that_may_not_be_read_is_named(stubs: tuple[Path, Path], tmp_path: Path) -> None:
    """permission-denied: in a search the loader only says that there is no such file."""
    observation = asked(stubs[1], copy_of(stubs[0], tmp_path / "cann", None))
    faults = target(observation)["faults"]
    path = str(tmp_path / "cann" / "libhccl.so")
    refused = {"library": "libhccl.so", "needed_by": "", "detail": ""}
    faults.append({**refused, "kind": "denied", "path": path, "fatal": False})
    faults.append({**refused, "kind": "not_found", "path": "", "fatal": True})
    found = findings(observation)
    assert [(finding.check, finding.subject) for finding in found] == [(FILES, "libhccl.so:denied")]


@needs_gcc
def test_another_user_is_refused_what_its_owner_may_read(stubs: tuple[Path, Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        site = Path(shutil.copytree(stubs[1], Path(folder) / "site"))
        cann = copy_of(stubs[0], Path(folder) / "cann", lambda copy: (copy / "libhccl.so").chmod(0o000))
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            observation = asked(site, cann)
        finally:
            if root:
                os.seteuid(0)
    assert "denied" in {fault["kind"] for fault in target(observation)["faults"]}


def test_modules_for_another_python_are_named(tmp_path: Path) -> None:
    """python-abi-mismatch: packages that were copied from another Python."""
    for package in ("torch", "torch_npu"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "_C.cpython-26-x86_64-linux-gnu.so").touch()
    found = findings(asked(tmp_path, ""))
    assert {finding.check for finding in found} == {"loading.extension-modules"}
    assert {finding.subject for finding in found} == {"torch._C", "torch_npu._C"}


@pytest.mark.parametrize(
    ("case", "changes", "culprit"),
    [
        ("home-path-missing", {"env": {"ASCEND_HOME_PATH": "/usr/local/Ascend/cann-missing"}}, "ASCEND_HOME_PATH"),
        ("opp-path-missing", {"missing": {"/usr/local/Ascend/cann-8.5.0/opp": "absent"}}, "ASCEND_OPP_PATH"),
        ("opp-path-unset", {"env": {"ASCEND_OPP_PATH": None}}, "ASCEND_OPP_PATH"),
        ("runtime-dir-missing", {"missing": {"/usr/local/Ascend/cann-8.5.0/runtime": "absent"}}, "runtime"),
        ("compiler-dir-missing", {"missing": {"/usr/local/Ascend/cann-8.5.0/compiler": "absent"}}, "compiler"),
    ],
)
def test_a_folder_that_the_import_asks_for_is_named(case: str, changes: dict[str, Any], culprit: str) -> None:
    assert culprit in CASES[case]["culprit"]
    whole = json.loads(
        (data_folder("checks").parent / "tests/hosts/a2-healthy/observations/libraries.json").read_text()
    )
    found = findings(whole, **changes)
    assert [finding.check for finding in found] == ["loading.folders-of-cann"]
    assert culprit in str(found[0].found)


# The live host and the facts


@needs_gcc
def test_a_live_host_is_asked_once_and_a_replay_is_the_same(
    stubs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ascend_doctor.host.recorder import Recorder
    from ascend_doctor.host.snapshot import open_snapshot

    monkeypatch.setenv("LD_LIBRARY_PATH", str(stubs[0]))
    names = frozenset(
        {"LD_LIBRARY_PATH", "LD_PRELOAD", "ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH"}
    )
    recorder = Recorder(LiveHost(KnownEnv(names)))
    live = collect(recorder)
    assert isinstance(live.facts, Libraries)
    assert not isinstance(live.facts.targets, Missing)
    recorder.save(tmp_path / "snapshot")
    assert collect(open_snapshot(tmp_path / "snapshot")) == live


@needs_gcc
def test_names_of_cpp_are_made_readable_where_a_tool_is_there() -> None:
    symbol = "_ZN5torch8autograd10deleteNodeEPNS0_4NodeE"
    readable = "torch::autograd::deleteNode(torch::autograd::Node*)"
    observation = {"targets": [{**_bare(), "undefined": [{"path": "/x.so", "count": 1, "symbols": [symbol]}]}]}
    command = {"argv": ["c++filt", symbol], "rc": 0, "stdout": f"{readable}\n"}
    assert readable in str(findings(observation, commands=[command])[0].found)
    assert symbol in str(findings(observation)[0].found)


def _bare() -> dict[str, Any]:
    lists: dict[str, Any] = {"loaded": [], "faults": [], "undefined": [], "lookups_missing": None}
    return {"name": "torch_npu", "path": "/x.so", "first_error": "", "dies": False, **lists}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(_bare())), inner, max_size=9),
    max_leaves=12,
)


@settings(max_examples=150)
@given(JSON, st.sampled_from(sorted(_bare())))
def test_any_analysis_is_targets_or_missing(value: object, key: str) -> None:
    for observation in (value, {"targets": value}, {"targets": [value]}, {"targets": [{**_bare(), key: value}]}):
        assert isinstance(analysis(observation), (tuple, Missing))


# The real packages


def site_of(python: str) -> tuple[Path, str]:
    code = "import sysconfig; print(sysconfig.get_path('platlib')); print(sysconfig.get_python_version())"
    site, version = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return Path(site), version


@needs_gcc
@needs_torch
@pytest.mark.parametrize("case", [HEALTHY, *SCENARIOS])
def test_the_real_torch_npu_is_predicted(case: str, stubs: tuple[Path, Path], tmp_path: Path) -> None:
    change, check, culprit = SCENARIOS.get(case, (None, "", ""))
    site, version = site_of(REAL_PYTHON)
    observation = asked(site, copy_of(stubs[0], tmp_path / "cann", change), REAL_PYTHON, version)
    found = [finding for finding in findings(observation) if finding.severity != "info"]
    assert [finding.check for finding in found] == ([check] if check else [])
    assert not check or culprit in str(found[0].found)
    if check and check != LOOKUPS:
        assert without_folders(target(observation)["first_error"]) == line_of(case)


@needs_gcc
@needs_torch
@pytest.mark.parametrize("case", [HEALTHY, "wrong-arch", "undefined-symbol-all", "glibc-too-old", "truncated-sigbus"])
def test_the_real_import_ends_as_predicted(case: str, stubs: tuple[Path, Path], tmp_path: Path) -> None:
    change = SCENARIOS[case][0] if case != HEALTHY else None
    site, version = site_of(REAL_PYTHON)
    cann = copy_of(stubs[0], tmp_path / "cann", change)
    predicted = target(asked(site, cann, REAL_PYTHON, version))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LD_LIBRARY_PATH": str(cann)}
    command = [REAL_PYTHON, "-c", "import torch_npu; print('imported')"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    if predicted["dies"]:
        assert done.returncode == -7
    elif predicted["first_error"]:
        assert f"ImportError: {predicted['first_error']}" in done.stderr
    else:
        assert "imported" in done.stdout, done.stderr
