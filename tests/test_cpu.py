from __future__ import annotations

from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.cpu import near, shares
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.cpu import allowed_list, collect, tickless_list, word
from ascend_doctor.host import Missing, Reason
from ascend_doctor.paths import data_folder

POLICY = "/sys/devices/system/cpu/cpufreq/policy"


def rows_of(name: str, set_name: str) -> object:
    return Situation(host(name), [data_folder("rules")]).rows(set_name)


def test_the_allowed_cpus_are_those_of_the_status_file() -> None:
    assert allowed_list(b"Name:\tpython3\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7,16\n").value == "0-7,16"


def test_a_kernel_without_nohz_full_has_no_such_cpu() -> None:
    assert tickless_list(b"  (null)\n") == ""
    assert tickless_list(b"\n") == ""
    assert tickless_list(b"2-5\n") == "2-5"


def test_counts_follow_the_lists() -> None:
    facts = collect(host("a2-healthy")).facts
    assert (facts.online_count, facts.allowed, facts.allowed_count, facts.isolated) == (192, "0-191", 192, "")


def test_the_different_governors_are_told_once() -> None:
    files = {f"{POLICY}{n}/scaling_governor": f"{g}\n" for n, g in enumerate(("performance", "ondemand", "ondemand"))}
    collected = collect(host("a2-healthy", set={"files": files}))
    assert collected.facts.governors == ("ondemand", "performance")
    assert collected.provenance["cpu.governors"][1] == "ondemand: 2 policies, performance: 1 policies"


def test_one_policy_that_may_not_be_read_makes_the_governors_unknown() -> None:
    files = {f"{POLICY}0/scaling_governor": "performance\n", f"{POLICY}1/scaling_governor": "performance\n"}
    changes = {"files": files, "entries": [{"path": f"{POLICY}1/scaling_governor", "missing": "denied", "of": "read"}]}
    found = collect(host("a2-healthy", set=changes)).facts.governors
    assert isinstance(found, Missing)
    assert found.reason is Reason.DENIED


def test_a_machine_whose_clock_the_kernel_does_not_set_has_no_governor() -> None:
    found = collect(host("a2-healthy")).facts.governors
    assert isinstance(found, Missing)
    assert found.reason is Reason.ABSENT


def test_allowed_cpus_are_shared_among_the_visible_chips() -> None:
    (row,) = rows_of("a2-container-confined", "cpu.shares")  # type: ignore[misc]
    assert (row.chips, row.each, row.quota_each, row.least) == (2, 4, 4.0, 5)


def test_a_card_whose_node_has_no_allowed_cpu_is_told_from_one_that_has() -> None:
    found = rows_of("a2-container-confined", "cpu.near")
    assert [(row.npu, row.nodes, row.allowed) for row in found] == [(4, "4", 0), (5, "2", 8)]  # type: ignore[attr-defined]


def test_isolated_cpus_of_a_node_are_not_open() -> None:
    found = {row.npu: (row.allowed, row.open) for row in rows_of("a2-untuned", "cpu.near")}  # type: ignore[attr-defined]
    assert found[1] == (24, 0)
    assert found[0] == (24, 24)


def test_both_row_sets_hand_on_that_no_chip_could_be_seen() -> None:
    for rows in (shares, near):
        found = rows_of("bare-linux", f"cpu.{rows.__name__}")
        assert isinstance(found, Missing)
        assert found.path == "npu.chips"


@given(st.binary(max_size=300))
def test_any_bytes_give_texts_or_missing(text: bytes) -> None:
    assert isinstance(allowed_list(text).value, (str, Missing))
    assert isinstance(tickless_list(text), (str, Missing))
    assert isinstance(word(text), (str, Missing))
