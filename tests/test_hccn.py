from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.hccn import addresses, npu_ports, tls
from ascend_doctor.facts.hccn import (
    collect,
    health_word,
    ip_address,
    link_state,
    netmask,
    optical,
    settings,
    tls_switch,
)
from ascend_doctor.host import Extent, Missing, Reason

CAPTURES = Path(__file__).parent / "captures" / "hccn"


def captured(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")


def test_the_files_of_public_hosts_are_read() -> None:
    eight = settings(captured("hccn.conf-8npu-excerpt").encode()).value
    assert sorted(eight) == [0, 7]
    seven = eight[7]
    assert (seven.address, seven.netmask, seven.gateway) == ("10.1.170.143", "255.255.0.0", "10.1.0.1")
    four = settings(captured("hccn.conf-minimal-excerpt").encode()).value
    assert [four[npu].address for npu in four] == [f"192.168.{n}0.21" for n in (1, 2, 3, 4)]
    assert isinstance(four[0].gateway, Missing)


def test_the_answers_of_910_and_950_are_read() -> None:
    assert link_state(captured("hccn_tool-link-910")) == "UP"
    assert link_state(captured("hccn_tool-link-950-doc")) == "DOWN"
    assert link_state(captured("hccn_tool-dev_info-950-doc")) == "UP"
    assert health_word(captured("hccn_tool-net_health-910")) == "Init"
    assert netmask(captured("hccn_tool-ip-910")) == "255.255.255.0"
    assert tls_switch("dev_id:0, tls switch[0](0:disable, 1:enable), tls preconfigured[1]") is False


def test_a_port_without_a_module_has_no_temperature() -> None:
    now, high = optical(captured("hccn_tool-optical-910"))
    assert isinstance(now, Missing)
    assert isinstance(high, Missing)
    assert now.reason is Reason.ABSENT
    assert optical("optical info:\npresent : present\ntemperature : 57 C\nTemp High Thres : 70 C\n") == (57.0, 70.0)


def test_a_device_without_an_address_has_none_and_a_refusal_is_no_answer() -> None:
    none = ip_address("Get ipconf failed, because no ip was preset there!")
    refused = ip_address("Command execute failed!")
    assert isinstance(none, Missing)
    assert isinstance(refused, Missing)
    assert (none.reason, refused.reason) == (Reason.ABSENT, Reason.FAILED)


@given(st.text(max_size=300))
def test_any_text_gives_a_value_or_missing(text: str) -> None:
    for parse in (link_state, ip_address, netmask, health_word, tls_switch):
        assert isinstance(parse(text), (str, bool, Missing))
    assert all(isinstance(value, (float, Missing)) for value in optical(text))


@given(st.binary(max_size=300))
def test_any_bytes_give_settings(data: bytes) -> None:
    assert isinstance(settings(data).value, dict)


def test_hccn_tool_is_not_started_unless_asked_in_depth() -> None:
    class Shallow:
        extent = Extent()

        def __init__(self) -> None:
            self.started: list[object] = []

        def __getattr__(self, name: str):
            return getattr(host("a2-hccn-healthy"), name)

        def run(self, argv: object, timeout: float = 1) -> None:
            self.started.append(argv)

    machine = Shallow()
    facts = collect(machine).facts
    assert (machine.started, facts.asked, npu_ports(facts), tls(facts)) == ([], False, (), ())
    assert isinstance(facts.ports, Missing)


def test_a_snapshot_that_holds_no_answer_was_not_asked() -> None:
    facts = collect(host("a2-healthy")).facts
    assert facts.asked is False
    assert facts.ports.reason is Reason.NOT_COLLECTED


def test_a_snapshot_taken_in_depth_is_judged() -> None:
    facts = collect(host("a2-hccn-link-down")).facts
    down, foreign = npu_ports(facts)
    assert (down.npu, down.link, down.configured, down.agrees, down.celsius) == (4, "DOWN", True, True, 72.0)
    assert (foreign.npu, foreign.address, foreign.wanted, foreign.agrees) == (5, "10.1.14.205", "10.1.142.205", False)
    assert (tls(facts)[0].on, tls(facts)[0].off) == ("5", "4")


def test_an_address_that_two_have_is_told_of_both() -> None:
    rows = {row.npu: row for row in addresses(collect(host("a2-hccn-addresses-wrong")).facts)}
    assert (rows[0].others, rows[1].others, rows[2].is_address, rows[3].odd_mask) == ("1", "0", False, True)


@pytest.mark.parametrize("missing", ["absent", "denied"])
def test_a_file_that_is_not_there_wants_nothing_and_one_unseen_is_unknown(missing: str) -> None:
    rows = addresses(collect(host("a2-healthy", set={"missing": {"/etc/hccn.conf": missing}})).facts)
    assert rows == () if missing == "absent" else isinstance(rows, Missing)
