from __future__ import annotations

import pytest
from hosts import host

from ascend_doctor.facts.env import NAMES, collect
from ascend_doctor.host import Missing, Reason


def test_a_variable_that_is_not_set_is_absent() -> None:
    facts = collect(host("bare-linux")).facts
    assert facts["ASCEND_HOME_PATH"] == Missing(Reason.ABSENT, "not set", "env.ASCEND_HOME_PATH")


def test_a_variable_that_is_set_to_nothing_is_a_text() -> None:
    assert collect(host("a2-healthy", set={"env": {"ASCEND_MEM_SIZE": ""}})).facts["ASCEND_MEM_SIZE"] == ""


def test_what_is_set_besides_the_fixed_names_is_there_too() -> None:
    assert collect(host("a2-healthy", set={"env": {"HCCL_BUFFSIZE": "512"}})).facts["HCCL_BUFFSIZE"] == "512"


def test_a_value_comes_with_its_source() -> None:
    collected = collect(host("a2-healthy", set={"env": {"ASCEND_MEM_SIZE": "28000"}}))
    assert collected.provenance["env.ASCEND_MEM_SIZE"] == ("env:ASCEND_MEM_SIZE", "28000")


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_that_was_not_collected_says_nothing_about_any_name(name: str) -> None:
    unseen = {"env": {known: {"missing": "not_collected"} for known in NAMES}}
    value = collect(host("a2-healthy", set=unseen)).facts[name]
    assert isinstance(value, Missing)
    assert value.reason is Reason.NOT_COLLECTED
