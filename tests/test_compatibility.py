"""What fits together: real hosts judged as they ran, each known combination, the nearest set, and the facts behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from combinations import SITE, deployment
from hosts import host
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_doctor.derive.nearest import Tables, nearest
from ascend_doctor.derive.parts import is_source_build, meets, release
from ascend_doctor.derive.wants import known, wants
from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts import glibc, mindie, nnal, operators, torch_build
from ascend_doctor.host import Host, Missing, Output, Reason
from ascend_doctor.knowledge import cann_needs, compatibility, pairs, torch_npu_table, vllm_ascend_table
from ascend_doctor.knowledge.reading import NEVER_AN_ERROR, RuleError
from ascend_doctor.paths import data_folder

RULES = [data_folder("rules")]
CHECKS = [c for c in load_checks([data_folder("checks")]) if c.id.startswith(("compat.", "cann.release"))]
AREAS = sorted({area for check in CHECKS for area in check.areas})
TABLES = Tables(torch_npu_table.load(RULES), vllm_ascend_table.load(RULES), compatibility.load(RULES))
NEEDS = cann_needs.load(RULES)
PAIRS = pairs.load(RULES)
COMBINATIONS = yaml.safe_load(
    (Path(__file__).parent / "captures/versions/combinations.yaml").read_text(encoding="utf-8")
)
READ: dict[str, object] = {}
"""Parts of the rules: read once for all hosts."""

NOT_PARTS = {"id", "ran", "expect", "source"}


def findings(asked: Host) -> list[Finding]:
    situation = Situation(asked, RULES, workers=1)
    situation._parts = READ
    situation.collect(AREAS)
    found = judged(CHECKS, situation)
    assert not situation.broken
    return found


def failed(**parts: str) -> dict[str, Finding]:
    """Subject -> finding, of what fails on a host of these parts."""
    return {f.subject: f for f in findings(deployment(**parts)) if f.verdict == "fail"}


@pytest.mark.parametrize("row", COMBINATIONS, ids=lambda row: row["id"])
def test_a_real_combination_is_judged_as_it_ran(row: dict[str, Any]) -> None:
    found = findings(deployment(**{key: value for key, value in row.items() if key not in NOT_PARTS}))
    wanted = set()
    for entry in row["expect"]:
        level = _level(found, entry["pair"], entry.get("check", ""))
        allowed = {entry["level"], entry.get("also", entry["level"])} | (
            {"info"} if entry["level"] == "none" else set()
        )
        assert level in allowed, entry
        wanted.add((frozenset(entry["pair"]), entry["level"]))
    if row["ran"] == "works":
        grave = [f for f in found if f.severity in ("error", "warning")]
        assert all((frozenset(f.components), f.severity) in wanted for f in grave), grave


def _level(found: Sequence[Finding], pair: Sequence[str], check: str) -> str:
    of_pair = [f for f in found if set(f.components) == set(pair) and f.verdict == "fail" and check in ("", f.check)]
    severities = {f.severity for f in of_pair}
    return next((level for level in ("error", "warning", "info") if level in severities), "none")


REPORTED: dict[str, dict[str, str]] = {
    "atb-grouptopk-symbol": {"torch_npu": "2.5.1", "torch": "2.5.1", "cann": "8.1.RC1", "nnal": "8.0.0"},
    "torch-other-release": {"torch": "2.6.0", "torch_npu": "2.5.1"},
    "libatb-missing": {"vllm_ascend": "0.13.0", "nnal": "missing"},
    "numpy2-old-cann": {"cann": "8.2.RC1", "numpy": "2.0.2"},
    "graph-stream-exhaustion": {"vllm_ascend": "0.23.0", "driver": "25.3.rc1", "chip": "910B3"},
    "operator-package-missing": {"cann": "8.5.0", "chip": "910B3", "kernels": "missing"},
    "operator-package-of-other-chip": {"cann": "8.3.RC1", "chip": "310P3", "kernels": "ascend910b"},
    "chip-without-vllm-ascend": {"chip": "910A", "vllm_ascend": "0.18.0"},
    "triton-and-triton-ascend": {"triton": "3.6.0", "triton_ascend": "3.2.0"},
    "triton-on-310p": {"chip": "310P3", "triton_ascend": "3.2.0", "vllm_ascend": "0.18.0"},
    "triton-ascend-index": {"vllm_ascend": "0.20.2rc1"},
    "x86-torch-plus-cpu": {"arch": "x86_64", "torch": "2.9.0", "torch_npu": "2.9.0"},
    "vllm-wheel-brings-cuda-torch": {"torch": "2.9.0+cu128", "torch_npu": "2.9.0"},
    "nightly-torch-npu-not-on-pypi": {"vllm_ascend": "0.10.2rc1"},
    "vllm-vllm-ascend-skew": {"vllm": "0.9.1", "vllm_ascend": "0.10.2rc1"},
    "cann-80rc3-torch-npu-251-nightly": {"cann": "8.0.RC3", "torch_npu": "2.5.1.dev20250215"},
    "torch-npu-lacks-operator": {"torch_npu": "2.5.1rc1", "vllm_ascend": "0.7.3"},
    "cann-lacks-aclnn": {"cann": "8.2.RC1", "torch_npu": "2.9.0"},
    "glibc-too-old": {"vllm_ascend": "0.23.0", "glibc": "2.28", "arch": "aarch64"},
    "python-range": {"vllm_ascend": "0.13.0", "python": "3.9.18"},
    "old-vllm-ascend-on-950": {"chip": "Ascend950PR", "vllm_ascend": "0.14.0rc1"},
    "graph-sizes-limited-on-950": {"chip": "Ascend950PR", "vllm_ascend": "0.23.0"},
    "cann-851-on-x86": {"arch": "x86_64", "cann": "8.5.1"},
    "documents-vs-wheel-pins": {"vllm_ascend": "0.18.0", "torch_npu": "2.9.0"},
    "console-log-level-on-310p": {"chip": "310P3", "vllm_ascend": "0.23"},
    "image-cann-vs-stack": {"cann": "8.2.RC1", "vllm_ascend": "0.18.0"},
    "profiling-with-glibc-243": {"cann": "9.1.0", "glibc": "2.43"},
    "transformers-upgrade": {"vllm_ascend": "0.13.0", "transformers": "5.5.4"},
    "kv-pool-on-cann-9": {"cann": "9.0.0", "mooncake_transfer_engine": "0.3.11"},
    "profiler-of-2100-post4": {"torch_npu": "2.10.0.post4"},
    "torch-companions": {"torch": "2.9.0", "torchaudio": "2.6.0"},
    "mixed-cann-components": {"cann": "9.1.0", "operators": "8.5.0"},
    "transformers-before-torch-251": {"torch": "2.1.0", "torch_npu": "2.1.0.post12", "transformers": "4.51.0"},
    "driver-24-with-newer-cann": {"cann": "8.3.RC2", "driver": "24.1.0"},
    "driver-24-moe-dispatch": {"cann": "9.0.1", "driver": "24.1.0.3", "firmware": "7.5.0.5.220"},
    "driver-23-false-out-of-memory": {"cann": "8.5.1", "driver": "23.0.7", "firmware": "7.0.1.3.220"},
    "driver-2306-flaky": {"cann": "8.1.RC1", "driver": "23.0.6"},
    "hdk-floor": {"cann": "9.2.0", "driver": "25.2.0"},
    "preview-cann-on-950": {"chip": "Ascend950PR", "cann": "9.0.T102"},
    "preview-cann-820": {"cann": "8.2.RC1.alpha003"},
}
"""A host for each known combination that versions show."""


@pytest.mark.parametrize("name", REPORTED)
def test_a_known_combination_is_found_with_its_symptom(name: str) -> None:
    report = PAIRS.reports[name]
    found = [f for f in failed(**REPORTED[name]).values() if f.check == (report.judged_by or "compat.known-bad")]
    assert report.severity in {f.severity for f in found}
    if report.symptom:
        assert any(report.symptom["en"] in (f.why or {}).get("en", "") for f in found)
        assert any(report.symptom["zh"] in (f.why or {}).get("zh", "") for f in found)


def test_every_known_combination_is_reached_or_says_what_reaches_it() -> None:
    elsewhere = {"driver-firmware-mismatch", "libhccl-missing", "no-driver-while-building"}  # other test modules
    open_ = [r.id for r in PAIRS.reports.values() if not r.reached_by and r.id not in REPORTED]
    assert set(open_) == elsewhere
    known_checks = {check.id for check in load_checks([data_folder("checks")])}
    assert {r.judged_by for r in PAIRS.reports.values()} - {""} <= known_checks


@pytest.mark.parametrize("stack", TABLES.vllm_ascend.releases, ids=lambda stack: stack.version)
def test_the_set_that_a_release_wants_is_no_finding_above_info(stack: Any) -> None:
    parts = {"cann": stack.cann, "vllm": stack.vllm[0], "vllm_ascend": stack.version, "nnal": stack.cann}
    stated = {"torch": stack.torch, "torch_npu": stack.torch_npu, "triton_ascend": stack.triton_ascend}
    found = failed(chip="910B3", arch="aarch64", python="3.10.14", **parts, **{k: v for k, v in stated.items() if v})
    assert not {s: f.found for s, f in found.items() if f.severity != "info"}


@pytest.mark.parametrize(
    ("parts", "subject", "severity"),
    [
        ({"cann": "9.1.0", "torch_npu": "2.9.0"}, "cann-torch_npu", "info"),  # marked Y by the vendor
        ({"cann": "9.2.0", "torch_npu": "2.9.0"}, "cann-torch_npu", "warning"),  # newer than any list
        ({"cann": "9.0.0", "torch_npu": "2.7.1"}, "cann-torch_npu", "warning"),
        ({"cann": "8.5.0", "torch_npu": "2.14.0"}, "cann-torch_npu", "warning"),  # its row is not verified
        ({"cann": "8.5.0", "torch_npu": "2.9.1"}, "cann-torch_npu", "info"),  # found on PyPI only
        ({"cann": "8.5.0", "torch_npu": "2.20.0"}, "cann-torch_npu", "info"),  # newer than the tables
        ({"vllm": "0.23.1", "vllm_ascend": "0.23.0"}, "vllm-vllm_ascend", "warning"),
        ({"cann": "9.2.0", "vllm_ascend": "0.23.0"}, "cann-vllm_ascend", "warning"),
        ({"cann": "9.2.0", "vllm_ascend": "0.40.0"}, "cann-vllm_ascend", "info"),
        ({"python": "3.13.1", "vllm_ascend": "0.23.0"}, "python-vllm_ascend", "warning"),
        ({"python": "3.14.0", "cann": "8.5.0"}, "cann-python", "info"),
        ({"cann": "8.5.0", "nnal": "8.5.1"}, "cann-nnal", "info"),
        ({"cann": "8.5.0", "nnal": "8.1.RC1"}, "cann-nnal", "warning"),
        ({"cann": "8.5.0", "mindspore": "2.6.0"}, "cann-mindspore", "warning"),
        ({"torch": "2.9.0", "torch_npu": "2.9.0", "cann": "8.5.0", "nnal": "8.5.0", "abi": "0"}, "nnal-torch", "error"),
    ],
)
def test_the_rules_of_the_tables_hold(parts: dict[str, str], subject: str, severity: str) -> None:
    found = failed(**parts)
    assert subject in found
    assert found[subject].severity == severity


@pytest.mark.parametrize(
    ("parts", "subject"),
    [
        ({"cann": "8.5.0", "numpy": "2.1.3", "python": "3.13.1"}, "cann-numpy"),  # allowed from Python 3.13 on
        ({"cann": "9.0.0", "numpy": "2.1.3"}, "cann-numpy"),
        ({"cann": "8.1.RC1.alpha001", "torch_npu": "2.5.1"}, "cann-torch_npu"),  # by the release that it precedes
        ({"chip": "310P3", "cann": "9.1.0-beta.1", "vllm_ascend": "0.21.0rc1"}, "cann-vllm_ascend"),
        ({"torch": "2.7.1+cpu", "torch_npu": "2.7.1.post2"}, "torch-torch_npu"),
        ({"vllm": "0.11.0+empty", "vllm_ascend": "0.11.0rc1"}, "vllm-vllm_ascend"),
        ({"chip": "910B", "cann": "8.5.0"}, "chip-kernels"),  # a name of two generations: the PCI id tells
    ],
)
def test_what_is_right_passes(parts: dict[str, str], subject: str) -> None:
    found = findings(deployment(**parts))
    assert [f.verdict for f in found if f.subject == subject] == ["pass"]


def test_a_finding_names_both_versions_where_they_were_read_and_what_to_type() -> None:
    found = failed(cann="8.2.RC1", torch="2.9.0", torch_npu="2.9.0", arch="aarch64")["cann-torch_npu"]
    assert found.found is not None
    assert found.found["en"] == f"cann 8.2.RC1 (/usr/local/Ascend/cann-8.5.0), torch_npu 2.9.0 ({SITE})"
    assert found.expected is not None
    assert found.expected["en"] == "torch_npu 2.9.0: CANN 8.5.0, 8.5.1"
    assert found.components == ("cann", "torch_npu")
    assert {e.source for e in found.evidence} == {
        "file:/usr/local/Ascend/cann-8.5.0/aarch64-linux/ascend_toolkit_install.info",
        f"file:{SITE}",
    }
    commands = [step.command for step in found.remedy]
    assert any("pip install torch" in str(command) or "cann-toolkit" in str(command) for command in commands)


def test_both_tritons_are_removed_before_the_right_one_is_installed() -> None:
    step = failed(triton="3.6.0", triton_ascend="3.2.1", vllm_ascend="0.23.0")["triton-triton_ascend"].remedy[0]
    assert step.command is not None
    assert step.command.startswith("/opt/serving/bin/python -m pip uninstall -y triton triton-ascend &&")
    assert "triton-ascend==3.2.2 --extra-index-url https://mirrors.huaweicloud.com/" in step.command


@pytest.mark.parametrize(
    ("installed", "change"),
    [
        ({"torch": "2.8.0", "torch_npu": "2.9.0", "cann": "8.5.0"}, {"torch": "2.9.0"}),
        ({"torch": "2.8.0", "torch_npu": "2.8.0.post4", "cann": "8.5.0"}, {"torch_npu": "2.8.0.post2"}),
        ({"torch": "2.9.0", "torch_npu": "2.9.0", "cann": "8.5.0"}, {}),
        (
            {"vllm_ascend": "0.23.0", "vllm": "0.22.1", "torch": "2.10.0", "torch_npu": "2.10.0.post4", "cann": "9.1.0"}
            | {"triton_ascend": "3.2.2", "python": "3.11.9"},
            {"vllm": "0.23.0"},
        ),
        (
            {"vllm_ascend": "0.23.0", "vllm": "0.23.0", "torch": "2.10.0", "torch_npu": "2.10.0", "cann": "9.1.0"}
            | {"triton_ascend": "3.2.2"},
            {"torch_npu": "2.10.0.post4"},
        ),
        ({"torch": "2.7.1", "torch_npu": "2.7.1", "cann": "9.0.0", "driver": "25.5.1"}, {"torch_npu": "2.7.1.post4"}),
    ],
)
def test_the_nearest_set_keeps_what_it_can(installed: dict[str, str], change: dict[str, str]) -> None:
    found = nearest(installed, TABLES)
    assert found is not None
    assert dict(found.wanted) == change


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(TABLES.vllm_ascend.releases),
    st.sampled_from(["8.2.RC1", "8.5.0", "9.1.0"]),
    st.sampled_from(["2.5.1", "2.9.0", "2.10.0.post4"]),
)
def test_the_nearest_set_fits_once_it_is_installed(stack: Any, cann: str, torch_npu: str) -> None:
    installed = {"vllm_ascend": stack.version, "vllm": "0.1", "torch": "2.0", "torch_npu": torch_npu, "cann": cann}
    found = nearest(installed, TABLES)
    assert found is not None
    again = nearest({**installed, **found.wanted}, TABLES)
    assert again is not None
    assert not again.wanted


@pytest.mark.parametrize("row", TABLES.torch_npu.builds, ids=lambda row: f"{row.release} {row.torch_npu[0]}")
def test_no_unsure_row_of_builds_makes_an_error(row: Any) -> None:
    if not all(source.confidence in NEVER_AN_ERROR for source in row.sources):
        return
    for build in row.torch_npu[:2]:
        found = failed(cann="6.3.RC1", torch_npu=build)
        assert "cann-torch_npu" not in found or found["cann-torch_npu"].severity != "error"


def test_a_release_says_what_it_wants() -> None:
    asked = {want.part: want.versions for want in wants("vllm_ascend", "0.23.0", TABLES, NEEDS)}
    assert asked["vllm"] == ("0.23.0",)
    assert asked["torch_npu"] == ("2.10.0.post4",)
    assert asked["cann"] == ("9.1.0",)
    assert asked["driver"][0] == "26.0.RC1"
    assert wants("cann", "7.0.RC2", TABLES, NEEDS) == ()
    for part in ("vllm_ascend", "torch_npu", "cann", "mindie", "mindspore", "triton_ascend"):
        assert known(part, TABLES, NEEDS)


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_texts_meet_a_condition_or_not_or_cannot_be_compared(condition: str, version: str) -> None:
    assert meets("torch", condition, version) in (True, False, None)
    assert isinstance(release(version), tuple)
    assert isinstance(is_source_build(version), bool)


# Facts


@given(st.binary(max_size=300))
def test_any_bytes_give_a_fact_or_missing(data: bytes) -> None:
    for parse in (nnal.release, mindie.release, glibc.newest_symbol):
        assert isinstance(parse(data).value, (str, Missing))
    assert isinstance(torch_build.cxx_abi(data).value, (int, Missing))
    assert isinstance(operators.load_priority(data), tuple)
    assert isinstance(glibc.said_version(Output(0, data, b"")), (str, Missing))


def test_files_name_a_release_without_its_build() -> None:
    text = b"    Ascend-cann-atb : 8.1.RC1\n    Ascend-cann-atb Version : 8.1.RC1.B150\n    Platform : aarch64\n"
    assert nnal.release(text).value == "8.1.RC1"
    assert nnal.release(b"Ascend-cann-atb : 8.0.0.B100\n").value == "8.0.0"
    assert mindie.release(b"Ascend-mindie : MindIE 2.1.RC1.B152\n").value == "2.1.RC1"


def test_glibc_is_read_from_its_library_only_where_there_is_no_getconf() -> None:
    library = "/lib64/libc.so.6"
    text = "\x7fELF GLIBC_2.17 GLIBC_2.34 GLIBC_2.4 GLIBC_PRIVATE"
    absent = host("a2-healthy", set={"missing": {"getconf GNU_LIBC_VERSION": "absent"}, "files": {library: text}})
    assert glibc.collect(absent).facts.version == "2.34"
    unseen = host("a2-healthy", set={"missing": {"getconf GNU_LIBC_VERSION": "timeout"}, "files": {library: text}})
    version = glibc.collect(unseen).facts.version
    assert isinstance(version, Missing)
    assert version.reason is Reason.TIMEOUT


def test_the_nnal_in_use_is_the_one_that_the_environment_names() -> None:
    found = nnal.collect(host("a2-container-healthy")).facts
    assert not isinstance(found.installations, Missing)
    assert [(i.version, i.abis, i.selected) for i in found.installations] == [("8.5.0", (0, 1), True)]
    assert found.selected_abi == 1
    nothing = nnal.collect(host("a2-healthy")).facts.installations
    denied = nnal.collect(host("a2-healthy", set={"missing": {nnal.BASE: "denied"}})).facts.installations
    assert isinstance(nothing, Missing)
    assert isinstance(denied, Missing)
    assert (nothing.reason, denied.reason) == (Reason.ABSENT, Reason.DENIED)


def test_a_folder_of_operators_that_nobody_may_see_is_no_missing_package() -> None:
    kernel = "/usr/local/Ascend/cann-8.5.0/opp/built-in/op_impl/ai_core/tbe/kernel"
    found = operators.collect(host("a2-healthy", set={"missing": {kernel: "denied"}})).facts.socs
    assert isinstance(found, Missing)
    assert found.reason is Reason.DENIED
    assert operators.collect(host("a2-healthy")).facts.socs == ("ascend910b",)


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("torch_npu.yaml", "builds: [{torch_npu: [2.9], source: x}]\n", "list of texts"),
        ("torch_npu.yaml", "builds: [{torch_npu: ['2.9.0'], source: x}]\n", "sources"),
        ("vllm_ascend.yaml", "releases: [{version: 1}]\n", "version has to be a text"),
        ("known_bad.yaml", "entries: [{id: x, severity: error}]\n", "give one of when"),
        ("known_bad.yaml", "entries: [{id: x, severity: bad, reached_by: logs}]\n", "severity is bad"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(file: str, text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "compat").mkdir()
    (tmp_path / "compat" / file).write_text(text, encoding="utf-8")
    part = {"torch_npu.yaml": torch_npu_table, "vllm_ascend.yaml": vllm_ascend_table}.get(file, pairs)
    with pytest.raises(RuleError, match=complaint) as error:
        part.load([tmp_path])
    assert file in str(error.value)
