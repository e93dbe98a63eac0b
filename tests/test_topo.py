from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.topo import collect, table
from ascend_doctor.host import Missing, Output, Reason, Shown

CAPTURES = Path(__file__).parent / "captures" / "topo"
A3 = b"""\
           Phy-ID0    Phy-ID1    CPU Affinity
Phy-ID0    X          SIO        NA
Phy-ID1    SIO        X          NA
"""


def rows_of(text: bytes, rc: int = 0):
    found = table(Output(rc, text, b""))
    assert isinstance(found, Shown)
    return found.value


@pytest.mark.parametrize(
    ("name", "links_of_first", "cpus"),
    [
        ("910b1-kunpeng920-8npu", ("X", *["HCCS"] * 7), ["144-167", "0-23"] * 2 + ["96-119", "48-71"] * 2),
        ("950-pairs-ub", ("X", "UB", *["SYS"] * 6), ["0-63,128-191"] * 4 + ["64-127,192-255"] * 4),
        ("950-quads-ub", ("X", "UB", "UB", "UB", *["SYS"] * 4), ["0-63,128-191"] * 4 + ["64-127,192-255"] * 4),
        ("950-single-pcie", ("X", *["SYS"] * 7), ["0-63,128-191"] * 4 + ["64-127,192-255"] * 4),
    ],
)
def test_captures_give_links_and_cpus(name: str, links_of_first: tuple[str, ...], cpus: list[str]) -> None:
    rows = rows_of((CAPTURES / f"{name}.txt").read_bytes())
    assert [row.number for row in rows] == list(range(8))
    assert {row.numbered for row in rows} == {"NPU"}
    assert rows[0].links == links_of_first
    assert [row.cpus for row in rows] == cpus


def test_a3_rows_are_numbered_by_physical_id_and_name_no_cpus() -> None:
    rows = rows_of(A3)
    assert [(row.numbered, row.number, row.links) for row in rows] == [
        ("Phy-ID", 0, ("X", "SIO")),
        ("Phy-ID", 1, ("SIO", "X")),
    ]
    assert all(isinstance(row.cpus, Missing) and row.cpus.reason is Reason.ABSENT for row in rows)


def test_the_text_decides_not_the_exit_status() -> None:
    assert len(rows_of((CAPTURES / "950-pairs-ub.txt").read_bytes().replace(b"\n", b"\r\n"), rc=172)) == 8


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"This device does not support querying topo.\n", Reason.UNSUPPORTED),
        (b"dcmi model initialized failed, because the device is used. ret is -8020\n", Reason.FAILED),
        (b"", Reason.FAILED),
    ],
)
def test_a_refusal_is_no_empty_table(text: bytes, reason: Reason) -> None:
    found = table(Output(1, text, b""))
    assert isinstance(found, Missing)
    assert found.reason is reason


@given(st.binary(max_size=300))
def test_any_bytes_give_rows_or_missing(text: bytes) -> None:
    found = table(Output(0, b"NPU0  X  " + text, text))
    assert isinstance(found, (Missing, Shown))


def test_npu_smi_is_not_asked_where_sysfs_names_each_node() -> None:
    rows = collect(host("a2-healthy", set={"missing": {"npu-smi info -t topo": "timeout"}})).facts.rows
    assert isinstance(rows, Missing)
    assert rows.reason is Reason.UNSUPPORTED


def test_npu_smi_is_asked_where_the_bus_has_no_npu() -> None:
    assert not isinstance(collect(host("950-ub-healthy")).facts.rows, Missing)


def test_what_sysfs_did_not_show_is_not_asked_of_npu_smi() -> None:
    machine = host("a2-healthy", set={"missing": {"/sys/bus/pci/devices/0000:c1:00.0/numa_node": "denied"}})
    rows = collect(machine).facts.rows
    assert isinstance(rows, Missing)
    assert rows.reason is Reason.DENIED
