from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.network import hccl_choice, hccl_ports, named_interfaces, own_address, reservation
from ascend_doctor.facts import devices, env, interfaces, ports
from ascend_doctor.facts.interfaces import ipv6_addresses, local_addresses, packet_bytes, state_word
from ascend_doctor.facts.ports import listening, port_ranges, port_span
from ascend_doctor.host import Host, Missing, Reason
from ascend_doctor.knowledge import limits

LIMITS = limits.load([Path(__file__).parent.parent / "rules"])
LISTENS = (
    "   1: 00000000:EA60 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 9 1 0 100 0 0 10 0\n"
)


def facts(machine: Host, *areas: object):
    return [area.collect(machine).facts for area in areas]


def ports_of(machine: Host):
    return hccl_ports(*facts(machine, env, ports, devices), LIMITS)


@pytest.mark.parametrize(
    ("value", "matching", "gone"),
    [
        ("eth", ["eth0", "eth1"], []),
        ("eth,enp", ["eth0", "eth1"], ["enp"]),
        ("=eth0", ["eth0"], []),
        ("=eth", [], ["eth"]),
        ("^eth", ["lo", "bond0"], []),
        ("^=eth0", ["lo", "eth1", "bond0"], []),
        ("enp", [], ["enp"]),
    ],
)
def test_hccl_chooses_interfaces_by_beginning_by_name_or_by_exclusion(
    value: str, matching: list[str], gone: list[str]
) -> None:
    assert hccl_choice(value, ("lo", "eth0", "eth1", "bond0")) == (matching, gone)


@pytest.mark.parametrize(
    ("environment", "usable"),
    [
        ({"HCCL_SOCKET_IFNAME": "eth"}, [True]),
        ({"HCCL_SOCKET_IFNAME": "enp,eth"}, [True]),  # one that fits is enough
        ({"GLOO_SOCKET_IFNAME": "eth"}, [False]),  # a whole name is wanted
        ({"GLOO_SOCKET_IFNAME": "eth0,enp1"}, [False]),  # each is used
        ({"TP_SOCKET_IFNAME": "eth0"}, [True]),
        ({"HCCL_SOCKET_IFNAME": "nonsense", "HCCL_IF_IP": "192.0.2.17"}, []),  # not looked at
        ({"HCCL_SOCKET_IFNAME": ""}, []),
        ({}, []),
    ],
)
def test_each_variable_names_interfaces_in_its_own_way(environment: dict[str, str], usable: list[bool]) -> None:
    rows = named_interfaces(*facts(host("a2-healthy", set={"env": environment}), env, interfaces))
    assert [row.usable for row in rows] == usable


def test_an_environment_that_was_not_collected_names_nothing_that_can_be_judged() -> None:
    rows = named_interfaces(*facts(host("a2-healthy", set={"complete": ["/"]}), env, interfaces))
    assert isinstance(rows, Missing)
    assert rows.reason is Reason.NOT_COLLECTED


def test_the_hosts_own_addresses_are_the_local_ones_of_the_trie() -> None:
    facts_of_network = interfaces.collect(host("a2-healthy")).facts
    assert facts_of_network.addresses == ("127.0.0.1", "192.0.2.17", "0000:0000:0000:0000:0000:0000:0000:0001")


@pytest.mark.parametrize(
    ("value", "is_address", "is_own"),
    [
        ("192.0.2.17", True, True),
        ("192.0.2.255", True, False),
        ("::1", True, True),
        ("fe80::1%eth0", True, False),
        ("eth0", False, False),
    ],
)
def test_hccl_if_ip_is_compared_as_an_address(value: str, is_address: bool, is_own: bool) -> None:
    rows = own_address(*facts(host("a2-healthy", set={"env": {"HCCL_IF_IP": value}}), env, interfaces))
    assert (rows[0].is_address, rows[0].is_own) == (is_address, is_own)


def test_the_address_of_vllm_is_a_row_of_its_own() -> None:
    named = {"HCCL_IF_IP": "192.0.2.17", "VLLM_HOST_IP": "192.0.2.18"}
    rows = own_address(*facts(host("a2-healthy", set={"env": named}), env, interfaces))
    assert [(row.variable, row.is_own) for row in rows] == [("HCCL_IF_IP", True), ("VLLM_HOST_IP", False)]


def test_listening_sockets_are_told_from_connections() -> None:
    connected = LISTENS.replace(" 0A ", " 01 ").replace("EA60", "EA61")
    assert listening((connected + LISTENS).encode()) == (60000,)


def test_a_kernel_without_ipv6_has_one_table() -> None:
    seen = ports.collect(host("a2-healthy", set={"missing": {"/proc/net/tcp6": "absent"}})).facts.listening
    unseen = ports.collect(host("a2-healthy", set={"missing": {"/proc/net/tcp6": "denied"}})).facts.listening
    assert seen == (22,)
    assert isinstance(unseen, Missing)


def test_the_port_of_a_chosen_card_is_told_from_that_of_another() -> None:
    table = {"/proc/net/tcp": LISTENS}
    mine = ports_of(host("a2-healthy", set={"files": table, "env": {"ASCEND_RT_VISIBLE_DEVICES": "0"}}))[0]
    other = ports_of(host("a2-healthy", set={"files": table, "env": {"ASCEND_RT_VISIBLE_DEVICES": "1,2"}}))[0]
    assert (mine.busy, mine.wanted, other.busy, other.wanted) == ("60000", "60000", "60000", "")


def test_a_container_takes_the_ports_of_the_cards_that_it_was_given() -> None:
    table = {"/proc/net/tcp": LISTENS.replace("EA60", "EA64")}
    environment = {"ASCEND_RT_VISIBLE_DEVICES": "0"}
    row = ports_of(host("a2-container-healthy", set={"files": table, "env": environment}))[0]
    assert row.wanted == "60004"  # /dev/davinci4 is its first


def test_ranges_and_nonsense_are_not_judged_here() -> None:
    assert ports_of(host("a2-healthy", set={"env": {"HCCL_HOST_SOCKET_PORT_RANGE": "60000-60050"}})) == ()
    assert ports_of(host("a2-healthy", set={"env": {"HCCL_IF_BASE_PORT": "many"}})) == ()
    assert ports_of(host("bare-linux")) == ()


@pytest.mark.parametrize(
    ("reserved", "span", "at_risk"),
    [
        ("60000-60031", "32768\t60999", False),
        ("", "32768\t60999", True),
        ("60000-60015", "32768\t60999", True),  # what older documents name
        ("1-70,60000,60001-60040", "32768\t60999", False),
        ("", "10000\t59999", False),
    ],
)
def test_a_port_is_at_risk_where_the_kernel_may_give_it_away(reserved: str, span: str, at_risk: bool) -> None:
    sysctl = "/proc/sys/net/ipv4"
    files = {f"{sysctl}/ip_local_reserved_ports": f"{reserved}\n", f"{sysctl}/ip_local_port_range": f"{span}\n"}
    rows = reservation(*facts(host("a2-healthy", set={"files": files}), env, ports, devices), LIMITS)
    assert rows[0].at_risk is at_risk


def test_ranges_are_read_as_sysctl_writes_them() -> None:
    assert port_ranges("80,60000-60015, 61000") == ((80, 80), (60000, 60015), (61000, 61000))
    assert port_ranges("auto") == ()


@given(st.binary(max_size=300))
def test_any_bytes_give_a_value_or_missing(data: bytes) -> None:
    for parse in (listening, port_span, local_addresses, ipv6_addresses, state_word, packet_bytes):
        assert isinstance(parse(data), (tuple, str, int, Missing))
