from __future__ import annotations

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.visible_devices import Chosen, Mounted, chosen, mounted, numbers_of, read
from ascend_doctor.facts import container, devices, env, npu
from ascend_doctor.host import Missing


def chosen_on(base: str, value: str | dict[str, str]) -> Chosen:
    on = host(base, set={"env": {"ASCEND_RT_VISIBLE_DEVICES": value}})
    found = chosen(env.collect(on).facts, npu.collect(on).facts, devices.collect(on).facts, container.collect(on).facts)
    assert not isinstance(found, Missing)
    return found[0]


def mounted_on(base: str, **values: str) -> tuple[Mounted, ...] | Missing:
    on = host(base, set={"env": values})
    return mounted(env.collect(on).facts, devices.collect(on).facts, container.collect(on).facts)


@pytest.mark.parametrize(
    ("value", "numbers", "rest"),
    [
        ("0,1,2", (0, 1, 2), ""),
        ("1, 2,3", (1,), " 2,3"),  # the vendor's own example
        ("1,2,-1,3", (1, 2), "-1,3"),
        ("0-3", (0,), "-3"),
        ("0 ,1", (0,), " ,1"),
        ("'0,1", (), "'0,1"),
        ("", (), ""),
        ("0,1,", (0, 1), ""),
    ],
)
def test_the_list_is_read_up_to_what_does_not_fit(value: str, numbers: tuple[int, ...], rest: str) -> None:
    assert read(value).numbers == numbers
    assert read(value).rest == rest


@pytest.mark.parametrize(
    ("value", "problem", "used"),
    [
        ("0,1,2,3", "", "0,1,2,3"),
        ("7", "", "7"),
        ("1, 2", "cut", "1"),
        ("4,5,8", "beyond", "4,5"),
        ("8", "beyond", ""),
        ("8, 9", "beyond", ""),
        ("3,2,1", "order", "3,2,1"),
        ("0,0", "duplicate", "0,0"),
        ("all", "cut", ""),
        (" ", "empty", ""),
    ],
)
def test_the_list_is_held_against_the_devices_of_a_host(value: str, problem: str, used: str) -> None:
    found = chosen_on("a2-healthy", value)
    assert (found.problem, found.used) == (problem, used)


def test_a_superpod_node_has_sixteen_devices() -> None:
    assert chosen_on("a3-healthy", "15").problem == ""
    assert chosen_on("a3-healthy", "16").problem == "beyond"


def test_a_container_may_count_from_0_or_as_the_host_does() -> None:
    assert chosen_on("a2-container-healthy", "0,1").problem == ""
    assert chosen_on("a2-container-healthy", "4,5").problem == ""
    assert chosen_on("a2-container-healthy", "6").problem == "beyond"


def test_without_npu_smi_the_form_is_judged_and_the_range_is_not() -> None:
    assert isinstance(chosen_on("bare-linux", "0,1").problem, Missing)
    assert chosen_on("bare-linux", "1, 2").problem == "cut"


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("0-2,4", (0, 1, 2, 4)),
        ("Ascend910-1,Ascend910-3", (1, 3)),
        ("void", ()),
        ("all", ()),
        ("5-1", ()),
        ("0-99999", ()),
    ],
)
def test_cards_are_named_by_number_range_or_kind(value: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of(value) == numbers


@pytest.mark.parametrize(
    ("base", "values", "problem"),
    [
        ("a2-healthy", {"ASCEND_VISIBLE_DEVICES": "0"}, "outside"),
        ("a2-healthy", {"ASCEND_VISIBLE_DEVICES": "0", "ASCEND_RT_VISIBLE_DEVICES": "0"}, ""),
        ("a2-container-healthy", {"ASCEND_VISIBLE_DEVICES": "4,5"}, "shifted"),
        ("a2-container-healthy", {"ASCEND_VISIBLE_DEVICES": "5,4"}, "shifted"),
        ("a2-container-healthy", {"ASCEND_VISIBLE_DEVICES": "0-1"}, "ignored"),
        ("a2-container-healthy", {"ASCEND_VISIBLE_DEVICES": "4"}, "ignored"),
    ],
)
def test_the_cards_of_a_container_are_held_against_its_nodes(base: str, values: dict[str, str], problem: str) -> None:
    found = mounted_on(base, **values)
    assert not isinstance(found, Missing)
    assert found[0].problem == problem


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"ASCEND_VISIBLE_DEVICES": "void"},
        {"ASCEND_VISIBLE_DEVICES": "100", "ASCEND_RUNTIME_OPTIONS": "VIRTUAL"},
        {"ASCEND_VISIBLE_DEVICES": "0", "ASCEND_VNPU_SPECS": "vir04"},
    ],
)
def test_no_cards_and_virtual_ones_are_not_judged(values: dict[str, str]) -> None:
    assert mounted_on("a2-container-healthy", **values) == ()


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert all(number >= 0 for number in read(text).numbers)
    assert all(number >= 0 for number in numbers_of(text))
