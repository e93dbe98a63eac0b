from __future__ import annotations

from dataclasses import replace

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.memory import ChipMemory, MemSize, chips, mem_size, mib_of, visible
from ascend_doctor.facts.npu import Npu, npu_smi_info
from ascend_doctor.host import Missing, Output, Reason
from ascend_doctor.knowledge.limits import load
from ascend_doctor.paths import data_folder

LIMITS = load([data_folder("rules")])


def npu_of(name: str) -> Npu:
    output = host(name).run(("npu-smi", "info")).value
    assert isinstance(output, Output)
    npu = npu_smi_info(output.stdout).value
    assert isinstance(npu, Npu)
    return npu


def asked(name: str, text: str, devices: str | None = None, npu: Npu | None = None) -> MemSize:
    unset = Missing(Reason.ABSENT, "not set")
    env = {"ASCEND_MEM_SIZE": text, "ASCEND_RT_VISIBLE_DEVICES": unset if devices is None else devices}
    found = mem_size(npu or npu_of(name), env, LIMITS)
    assert isinstance(found, tuple)
    return found[0]


def test_the_public_guide_is_128_mib_above_its_own_limit() -> None:
    row = asked("a2-32g-mem-size-28000", "28000")
    assert (row.total_mib, row.limit_mib, row.over_mib) == (32768, 27872, 128)


def test_what_the_sum_leaves_may_be_used_whole() -> None:
    assert asked("a2-32g-mem-size-28000", "27872").over_mib == 0


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("28000", 28000),
        (" 28000 ", 28000),
        ("28000MB", 28000),
        ("28000 MiB", 28000),
        ("28G", 28672),
        ("27.5gb", 28160),
    ],
)
def test_a_value_with_a_unit_is_a_number_of_mib(text: str, mib: int) -> None:
    assert mib_of(text) == mib


@pytest.mark.parametrize("text", ["", "max", "-1", "28000,28000", "0x10", "28 000", "1e4", "٣"])
def test_what_is_no_number_is_said_to_be_none(text: str) -> None:
    assert isinstance(mib_of(text), Missing)
    assert not asked("a2-healthy", text).is_number


@given(st.text(max_size=30))
def test_any_text_gives_a_number_or_missing(text: str) -> None:
    assert isinstance(mib_of(text), (int, Missing))


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        (None, (0, 1, 2, 3)),
        ("1", (1,)),
        ("0,3", (0, 3)),
        ("0, 1", (0, 1, 2, 3)),  # its form is unclear
        ("0-3", (0, 1, 2, 3)),
        ("7", (0, 1, 2, 3)),
        ("", (0, 1, 2, 3)),
    ],
)
def test_the_visible_devices_are_those_that_are_named_clearly(text: str | None, devices: tuple[int, ...]) -> None:
    assert visible(text, 4) == devices


def test_a_chip_without_hbm_has_its_ddr() -> None:
    assert asked("310p-healthy", "20000").total_mib == 43693  # the smaller chip of the card
    assert asked("310p-healthy", "20000", devices="0").total_mib == 44278


def test_a_visible_chip_of_unknown_memory_leaves_the_sum_open() -> None:
    npu = npu_of("a2-healthy")
    assert isinstance(npu.chips, tuple)
    timeout = Missing(Reason.TIMEOUT, "10 s", "npu.chips[1].hbm_total_mb")
    broken = replace(npu, chips=(npu.chips[0], replace(npu.chips[1], hbm_total_mb=timeout), *npu.chips[2:]))
    assert asked("a2-healthy", "28000", npu=broken).over_mib == timeout
    assert asked("a2-healthy", "28000", devices="0", npu=broken).limit_mib == 60640


def rows_of(name: str) -> tuple[ChipMemory, ...]:
    found = chips(npu_of(name), LIMITS)
    assert isinstance(found, tuple)
    return found


@pytest.mark.parametrize("name", ["a2-healthy", "a3-healthy", "310p-healthy", "950-healthy", "950-ub-healthy"])
def test_what_the_firmware_uses_by_itself_is_not_busy(name: str) -> None:
    assert not any(row.busy or row.listed for row in rows_of(name))


def test_a_process_is_named_with_what_it_holds() -> None:
    first, second = rows_of("a2-hbm-held")[:2]
    assert (first.free_mib, first.listed, first.holders) == (5224, 1, "78617 python3 57010 MiB")
    assert (second.listed, second.busy) == (0, False)


def test_memory_that_no_process_holds_is_seen() -> None:
    first = rows_of("a2-hbm-held-unseen")[0]
    assert (first.listed, first.busy) == (0, True)


def test_without_a_process_table_nobody_is_said_to_hold_nothing() -> None:
    assert isinstance(rows_of("a2-no-process-table")[0].listed, Missing)
