"""The meaning of fault codes, and what becomes of a chip that is not OK."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hosts import host

from ascend_doctor.derive.npu import ChipHealth, Count, chip_health, counts
from ascend_doctor.facts import container, devices, npu, pci
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge import faults
from ascend_doctor.knowledge.faults import Faults, RuleError
from ascend_doctor.paths import data_folder

SHIPPED = faults.load([data_folder("rules")])


def test_a_code_is_found_in_each_spelling() -> None:
    for code in ("80E01801", "0x80E01801", "0x80e01801", " 80e01801 "):
        fault = SHIPPED.of(code)
        assert fault
        assert (fault.module, fault.level, fault.advice.grade) == ("HBM", "RestartBusiness", "L3")


def test_a_code_that_is_not_listed_is_none() -> None:
    assert SHIPPED.of("81FFFFFF") is None
    assert SHIPPED.of("entries") is None
    assert SHIPPED.of(".*") is None


def test_every_listed_code_can_be_read_and_says_what_to_do() -> None:
    codes = list(SHIPPED.listed())
    assert len(codes) == len(set(codes)) == 866
    for code in codes:
        fault = SHIPPED.of(code)
        assert fault
        assert set(fault.advice.advice) == {"en", "zh"}
        assert fault.advice.remedy
        assert set(fault.name) in ({"en", "zh"}, set())
        assert fault.source.confidence == "vendor-file"


def test_a_look_up_reads_one_line_and_not_the_rest(tmp_path: Path) -> None:
    (tmp_path / "codes").mkdir()
    head = (data_folder("rules") / "codes" / "npu-faults.yaml").read_text(encoding="utf-8").split("entries:\n")[0]
    lines = '  "80E01801": {kind: health, level: RestartNPU, en: x, zh: y}\n  "80E01802": {this is: [no YAML\n'
    (tmp_path / "codes" / "npu-faults.yaml").write_text(f"{head}entries:\n{lines}", encoding="utf-8")
    mine = faults.load([tmp_path])
    fault = mine.of("80E01801")
    assert fault
    assert fault.name["en"] == "x"
    with pytest.raises(RuleError, match=r"npu-faults\.yaml: 80E01802: no valid YAML"):
        mine.of("80E01802")


def test_a_users_folder_adds_codes(tmp_path: Path) -> None:
    (tmp_path / "codes").mkdir()
    text = """\
entries:
  0x81ffffff:
    module: XYZ
    level: SeparateNPU
    en: a code of our own
    zh: 自定义故障码
    title: our runbook
    confidence: field-report
"""
    (tmp_path / "codes" / "npu-faults.yaml").write_text("source: {}\n" + text, encoding="utf-8")
    both = faults.load([data_folder("rules"), tmp_path])
    fault = both.of("81FFFFFF")
    assert fault
    assert (fault.module, fault.advice.grade, fault.source.title) == ("XYZ", "L6", "our runbook")
    assert both.of("80E01801")


def test_nothing_is_read_before_something_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "codes").mkdir()
    (tmp_path / "codes" / "npu-faults.yaml").write_text("[broken", encoding="utf-8")
    rows = chip_health(npu.collect(host("a2-healthy")).facts, faults.load([tmp_path]))
    assert isinstance(rows, tuple)
    assert {row.severity for row in rows} == {"none"}


def test_an_alarm_is_harmless_only_where_every_code_is() -> None:
    assert SHIPPED.harmless("310B4", "Alarm", ["0x80e3a203"])
    assert SHIPPED.harmless("Ascend310B4", "Alarm", ["80E3A203"])
    assert SHIPPED.harmless("310B4", "Alarm", ["80E3A203", "80E01801"]) is None
    assert SHIPPED.harmless("310B4", "Alarm", []) is None
    assert SHIPPED.harmless("310B4", "Critical", ["80E3A203"]) is None
    assert SHIPPED.harmless("910B3", "Alarm", ["80E3A203"]) is None


def test_each_word_of_health_has_its_severity() -> None:
    words = {
        word: SHIPPED.health(word).severity for word in ("OK", "Warning", "ALARM", "Critical", "UNKNOWN", "Offline")
    }
    assert words == {
        "OK": "none",
        "Warning": "warning",
        "ALARM": "error",
        "Critical": "error",
        "UNKNOWN": "error",
        "Offline": "warning",
    }


def unwell(name: str, changes: dict[str, Any] | None = None, rules: Faults = SHIPPED) -> ChipHealth:
    rows = chip_health(npu.collect(host(name, set=changes)).facts, rules)
    assert isinstance(rows, tuple)
    [row] = [row for row in rows if row.severity != "none"]
    return row


def test_a_code_brings_its_meaning_and_its_remedy() -> None:
    row = unwell("a2-chip-alarm")
    assert (row.place, row.severity, row.code_count) == ("6/0", "error", 2)
    assert isinstance(row.codes, dict)
    assert row.codes["zh"] == "80E01801 (HBM: HBM 多比特 ECC 且地址在线隔离失败), 81FFFFFF"
    assert "restarts the job" in row.why["en"]
    assert [step.command for step in row.remedy] == [None, "npu-smi info -t health -i 6 -c 0"]
    assert row.reads == ("npu.chips[6].health", "npu.health_reports[0].codes")


def test_a_chip_of_the_950_is_named_by_its_npu_alone() -> None:
    row = unwell("950-chip-alarm")
    assert row.place == "2"
    assert row.remedy[0].command
    assert row.remedy[0].command.startswith("npu-smi info -t health -i 2;")


def test_codes_that_were_not_seen_leave_the_alarm_of_a_server_an_error() -> None:
    row = unwell("a2-chip-alarm", {"missing": {"npu-smi info -t health -i 6 -c 0": "not_collected"}})
    assert row.severity == "error"
    assert isinstance(row.codes, Missing)


def test_codes_that_were_not_seen_leave_the_alarm_of_a_board_undecided() -> None:
    assert unwell("310b4-alarm").severity == "info"
    row = unwell("310b4-alarm-codes-unseen")
    assert isinstance(row.severity, Missing)
    assert row.severity.path == "npu.health_reports[0].codes"


def count(name: str, changes: dict[str, Any] | None = None) -> Count:
    answers = host(name, set=changes)
    parts = [area.collect(answers).facts for area in (npu, devices, pci, container)]
    rows = counts(*parts)  # type: ignore[arg-type]
    assert isinstance(rows, tuple)
    return rows[0]


@pytest.mark.parametrize(
    ("name", "chips", "nodes"),
    [("a2-healthy", 8, 8), ("a3-healthy", 16, 16), ("310p-healthy", 8, 8), ("950-ub-healthy", 8, 8)],
)
def test_a_healthy_host_has_lost_nothing(name: str, chips: int, nodes: int) -> None:
    row = count(name)
    assert (row.chips, row.nodes, row.inside, row.lost) == (chips, nodes, False, 0)


def test_the_bus_of_the_host_says_nothing_inside_a_container() -> None:
    row = count("a2-container-healthy")
    assert (row.chips, row.nodes, row.inside, row.lost) == (2, 2, True, 0)


def test_a_lost_card_is_named_by_its_address() -> None:
    row = count("a2-card-not-started")
    assert (row.chips, row.nodes, row.lost, row.addresses) == (7, 7, 1, "0000:41:00.0")


def test_cards_that_virtual_machines_have_are_not_lost() -> None:
    answers = host("a2-card-not-started")
    bus = pci.collect(answers).facts
    assert isinstance(bus.npus, dict)
    given = {**bus.npus, "0000:41:00.0": replace(bus.npus["0000:41:00.0"], driver="vfio-pci")}
    parts = [area.collect(answers).facts for area in (npu, devices, container)]
    rows = counts(parts[0], parts[1], replace(bus, npus=given), parts[2])  # type: ignore[arg-type]
    assert isinstance(rows, tuple)
    assert rows[0].lost == 0


def test_a_bus_that_was_not_seen_leaves_the_count_open() -> None:
    row = count("a2-healthy", {"missing": {"/sys/bus/pci/devices": "not_collected"}})
    assert isinstance(row.lost, Missing)
    assert row.lost.reason is Reason.NOT_COLLECTED
