"""Which driver fits which CANN and which firmware: the vendor's tables, real hosts, and what nobody may conclude."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.cann import releases
from ascend_doctor.derive.compat import DriverCann, FirmwareDriver, driver_cann, firmware_driver
from ascend_doctor.derive.hdk_fit import Fit, fit
from ascend_doctor.facts import cann, driver, npu
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.compatibility import load
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.paths import data_folder

RULES = load([data_folder("rules")])
NONE = Missing(Reason.ABSENT)
PAIRS = yaml.safe_load((Path(__file__).parent / "captures/versions/pairs.yaml").read_text(encoding="utf-8"))
LEVELS = {"": "none", "info": "info", "warning": "warn", "error": "error"}
DRIVER = "/usr/local/Ascend/driver/version.info"
FIRMWARE = "/usr/local/Ascend/firmware/version.info"


def judged(cann_version: str, driver_version: str, is_950: bool = False, firmware: str | Missing = NONE) -> Fit:
    found = fit(RULES, cann_version, driver_version, is_950, firmware)
    assert not isinstance(found, Missing), found
    return found


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["id"])
def test_a_real_host_is_judged_as_it_ran(pair: dict[str, str]) -> None:
    number = pair["driver"].partition(" ")[0]
    found = judged(pair["cann"], number, firmware=pair.get("firmware", NONE))
    assert LEVELS[found.severity] in {pair["level"], pair.get("allow", pair["level"])}


@pytest.mark.parametrize(
    ("cann_version", "driver_version", "relation", "severity"),
    [
        ("8.5.0", "25.5.1", "recommended", ""),
        ("8.1.RC1", "25.0.rc1.1", "recommended", ""),  # a patch of the listed one
        ("8.2.RC1", "24.1.x", "compatible", "info"),
        ("8.5.0", "25.2.0", "compatible", "info"),
        ("9.2.0", "25.2.2", "incompatible", "error"),
        ("9.1.0", "25.0.rc1", "incompatible", "error"),
        ("8.5.0", "24.1.0.3", "older-than-listed", "error"),
        ("8.5.0", "26.2.rc1", "newer", "info"),
        ("9.0.0", "26.0.rc2", "in-between", "info"),
        ("8.1.RC1", "24.1.rc1", "window", "info"),  # four HDK releases older
        ("8.1.RC1", "23.0.7", "older", "warning"),  # stands at 23.0.0: five
        ("8.0.0", "25.5.0", "newer", "info"),
        ("7.0.1", "23.0.6", "compatible", "info"),
        ("7.0.1", "23.0.0", "recommended", ""),  # by 7.0.0, the nearest with a recommended driver
        ("8.3.RC2", "25.0.rc1.1", "window", "info"),  # by 8.3.RC1
        ("8.2.RC2", "24.1.x", "compatible", "info"),  # by 8.2.RC1
        ("7.0.RC1", "21.0.4", "window", "info"),  # before the sequence: how many releases lie between is not known
        ("9.1.2", "25.0.rc1", "incompatible", "warning"),  # by 9.1.1: never an error
        ("9.3.0", "26.2.rc1", "unlisted", "info"),
        ("7.0.RC2", "23.0.rc3", "recommended", ""),  # there is no 7.0.RC2; by 7.0.RC1
        ("9.1.0", "25.6.rc1", "unlisted", "info"),  # a number of the 950 on another chip
        ("9.1.0", "25.7.rc1.6", "compatible", "info"),
    ],
)
def test_the_rules_of_thumb_hold(cann_version: str, driver_version: str, relation: str, severity: str) -> None:
    found = judged(cann_version, driver_version)
    assert (found.relation, found.severity) == (relation, severity)


@pytest.mark.parametrize(
    ("cann_version", "driver_version", "relation"),
    [
        ("9.0.0", "1.0.RC1", "recommended"),
        ("9.1.0", "25.7.rc1.6", "recommended"),
        ("9.1.0-beta.1", "25.7.rc1", "recommended"),
        ("9.1.0", "25.1.rc1.b086", "recommended"),
        ("9.2.0", "25.6.rc1", "recommended"),
        ("9.0.0", "25.7.rc1", "compatible"),
        ("9.1.0", "1.0.RC1", "unlisted"),
        ("9.1.0", "26.1.0", "unlisted"),
        ("9.1.0", "25.0.rc1", "unlisted"),
        ("8.5.0", "25.7.rc1", "unlisted"),
    ],
)
def test_a_950_is_looked_up_by_product_and_never_by_number(
    cann_version: str, driver_version: str, relation: str
) -> None:
    found = judged(cann_version, driver_version, is_950=True)
    assert found.relation == relation
    assert found.severity in ("", "info")


@pytest.mark.parametrize(
    "preview", ["8.1.RC1.alpha001", "9.1.0.beta.1", "9.1.0-beta.3", "9.0.T511", "8.5.0_20260101000000"]
)
def test_a_preview_is_looked_up_as_the_release_that_it_precedes(preview: str) -> None:
    release = {"8.1": "8.1.RC1", "9.1": "9.1.0", "9.0": "9.0.0", "8.5": "8.5.0"}[preview[:3]]
    for number in ("23.0.7", "24.1.0", "25.0.rc1", "26.0.rc1"):
        assert judged(preview, number) == judged(release, number)


def test_a_report_raises_the_level_and_names_its_symptom() -> None:
    found = judged("8.3.RC2", "24.1.0")
    assert found.severity == "warning"
    assert "507014" in found.why["en"]
    assert "507014" in found.why["zh"]
    assert [source.title for source in found.sources][-1] == "vllm-ascend issue 5468"
    assert "507000" in judged("8.1.RC1", "23.0.6").why["en"]
    assert "507000" not in judged("8.1.RC1", "23.0.5").why["en"]
    assert "507014" in judged("9.0.1", "24.1.0.3", firmware="7.5.0.5.220").why["en"]
    assert "Memory resources" in judged("8.5.1", "23.0.7", firmware="7.0.1.3.220").why["en"]


def test_an_error_names_what_to_install_on_either_side() -> None:
    found = judged("9.1.0", "25.0.rc1.1")
    assert found.install == "26.0.rc1"
    assert str(found.wanted_driver).startswith("26.0.RC1, 25.2.X")
    assert found.fitting_cann == "8.1.RC1"
    assert judged("8.5.1", "23.0.7").install == "25.5.0"


@pytest.mark.parametrize(
    ("cann_version", "driver_version"), [("8.5.0", "6.3.9.3"), ("master", "25.5.0"), ("9.1.X", "25.5.0")]
)
def test_what_nobody_knows_is_unknown(cann_version: str, driver_version: str) -> None:
    found = fit(RULES, cann_version, driver_version, False, NONE)
    assert isinstance(found, Missing)
    assert found.reason is Reason.FAILED
    assert "known are" in found.detail


def test_an_unverified_row_makes_no_error() -> None:
    unsure = replace(RULES.releases[-1], cann="10.0.0", confidence="unverified")
    rules = replace(RULES, releases=(*RULES.releases, unsure))
    found = fit(rules, "10.0.0", "25.0.rc1", False, NONE)
    assert isinstance(found, Fit)
    assert (found.relation, found.severity) == ("incompatible", "warning")


@given(st.text(max_size=20) | st.sampled_from([r.cann for r in RULES.releases]), st.text(max_size=20), st.booleans())
def test_any_two_texts_give_a_fit_or_missing(cann_version: str, driver_version: str, is_950: bool) -> None:
    found = fit(RULES, cann_version, driver_version, is_950, NONE)
    assert isinstance(found, (Fit, Missing))


def rows_of(base: str, **changes: Any) -> tuple[DriverCann, ...] | Missing:
    asked = host(base, set=changes)
    return driver_cann(cann.collect(asked).facts, driver.collect(asked).facts, npu.collect(asked).facts, RULES)


def row_of(base: str, **changes: Any) -> DriverCann:
    found = rows_of(base, **changes)
    assert not isinstance(found, Missing)
    assert len(found) == 1
    return found[0]


def test_a_row_says_where_both_versions_were_read() -> None:
    row = row_of("a2-healthy")
    assert (row.cann, row.driver, row.relation, row.severity) == ("8.5.0", "25.5.0", "recommended", "")
    assert row.driver_source == DRIVER
    assert row.reads == ("cann.roots[0].version", "driver.version")
    assert row.components == ("cann", "driver")


def test_npu_smi_stands_in_only_where_the_file_is_not_there() -> None:
    row = row_of("a2-healthy", missing={DRIVER: "absent"})
    assert (row.driver, row.driver_source, row.relation) == ("25.5.0", "npu-smi info", "recommended")
    unseen = row_of("a2-healthy", missing={DRIVER: "not_collected"})
    assert isinstance(unseen.driver, Missing)
    assert isinstance(unseen.severity, Missing)
    assert unseen.severity.path == "driver.version"


def test_chips_that_nobody_saw_leave_a_950_branch_open_and_the_main_line_judged() -> None:
    unseen = {"npu-smi info": "timeout"}
    assert row_of("a2-healthy", missing=unseen).relation == "recommended"
    branch = row_of("950-healthy", missing=unseen)
    assert isinstance(branch.relation, Missing)
    assert branch.relation.path == "npu.chips"


def test_a_cann_that_the_environment_does_not_select_is_only_told() -> None:
    other = {"/usr/local/Ascend/cann-9.2.0/aarch64-linux/ascend_toolkit_install.info": "version=9.2.0\n"}
    found = rows_of("a2-healthy", files={**other, DRIVER: "Version=25.2.0\n"})
    assert not isinstance(found, Missing)
    assert [(row.cann, row.relation, row.severity) for row in found] == [
        ("8.5.0", "compatible", "info"),
        ("9.2.0", "incompatible", "info"),
    ]
    hidden = {"ASCEND_HOME_PATH": {"missing": "not_collected"}}
    unseen = rows_of("a2-healthy", files={**other, DRIVER: "Version=25.2.0\n"}, env=hidden)
    assert not isinstance(unseen, Missing)
    assert isinstance(unseen[1].severity, Missing)


def test_no_cann_is_no_row_and_an_unseen_one_is_unknown() -> None:
    absent, denied = rows_of("bare-linux"), rows_of("a2-healthy", missing={"/usr/local/Ascend": "denied"})
    assert isinstance(absent, Missing)
    assert isinstance(denied, Missing)
    assert (absent.reason, denied.reason) == (Reason.ABSENT, Reason.DENIED)


def firmware_row(driver_file: str, firmware_file: str) -> FirmwareDriver:
    asked = host("a2-healthy", set={"files": {DRIVER: driver_file, FIRMWARE: firmware_file}})
    found = firmware_driver(driver.collect(asked).facts, npu.collect(asked).facts, RULES)
    assert not isinstance(found, Missing)
    return found[0]


@pytest.mark.parametrize(
    ("driver_file", "firmware_file", "relation"),
    [
        ("Version=24.1.rc2\ncompatible_version_fw=[7.0.0,7.2.99]\n", "Version=7.3.0.1.231\n", "shipped-together"),
        ("Version=25.5.1\n", "Version=9.9.9.9.9\npackage_version=25.5.1\n", "same-release"),
        ("Version=24.1.rc3\ncompatible_version_fw=[7.0.0,7.5.99]\n", "Version=7.1.0.3.220\n", "in-range"),
        ("Version=24.1.rc1\ncompatible_version_fw=[7.0.0,7.2.99]\n", "Version=7.7.0.1.231\n", "out-of-range"),
        ("Version=26.0.rc1\n", "Version=7.1.0.11.220\ncompatible_version_drv=[23.0.0,23.0.0.]\n", "out-of-range"),
    ],
)
def test_driver_and_firmware_are_matched(driver_file: str, firmware_file: str, relation: str) -> None:
    assert firmware_row(driver_file, firmware_file).relation == relation


def test_firmware_without_any_statement_is_not_judged() -> None:
    found = firmware_row("Version=26.0.rc1\n", "Version=7.1.0.11.220\n").relation
    assert isinstance(found, Missing)
    assert found.reason is Reason.UNSUPPORTED


@pytest.mark.parametrize(
    ("version", "preview", "precedes"),
    [("9.0.T102", True, None), ("7.0.T10", True, None), ("9.1.0.beta.1", True, "9.1.0"), ("8.1.RC1", False, "8.1.RC1")],
)
def test_a_preview_is_named_with_the_release_that_follows(version: str, preview: bool, precedes: str | None) -> None:
    file = "/usr/local/Ascend/cann-8.5.0/aarch64-linux/ascend_toolkit_install.info"
    asked = host("a2-healthy", set={"files": {file: f"version={version}\n"}})
    found = releases(cann.collect(asked).facts)
    assert not isinstance(found, Missing)
    assert (found[0].preview, found[0].severity) == (preview, "warning")
    assert found[0].precedes == precedes or isinstance(found[0].precedes, Missing)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("releases:\n  - {cann: 8.5, confidence: vendor-doc}\n", "cann has to be a text"),
        ('releases:\n  - {cann: "8.9.0", recommended: 25, confidence: vendor-doc}\n', "recommended has to be a list"),
        ('releases:\n  - {cann: "8.9.0", confidence: sure}\n', "confidence is sure"),
        ('releases:\n  - {cann: "8.9.0", confidence: vendor-doc, sources: [nowhere]}\n', "not nowhere"),
        ("[1, 2]\n", "give a mapping"),
        ("releases: [", "no valid YAML"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_place(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "compat").mkdir()
    (tmp_path / "compat/cann_driver.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RuleError, match=complaint) as error:
        load([tmp_path])
    assert "cann_driver.yaml" in str(error.value)


def test_a_users_rule_adds_a_release_and_replaces_none(tmp_path: Path) -> None:
    (tmp_path / "compat").mkdir()
    rule = (
        'sources: {{ours: {{title: "A site", confidence: field-report}}}}\n'
        'releases: [{{cann: "{}", recommended: ["26.2.rc1"], confidence: field-report, sources: [ours]}}]\n'
    )
    file = tmp_path / "compat/cann_driver.yaml"
    file.write_text(rule.format("9.3.0"), encoding="utf-8")
    both = load([data_folder("rules"), tmp_path])
    assert len(both.releases) == len(RULES.releases) + 1
    file.write_text(rule.format("9.2.0"), encoding="utf-8")
    with pytest.raises(RuleError, match="there already"):
        load([data_folder("rules"), tmp_path])
