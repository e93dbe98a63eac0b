from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.numa import affinity, needs
from ascend_doctor.facts import npu, numa, pci, topo
from ascend_doctor.facts.numa import Memory, cpu_list, cpu_set, memory, node_numbers
from ascend_doctor.host import Host, Missing, Reason
from ascend_doctor.knowledge import limits

RULES = Path(__file__).parent.parent / "rules"
LIMITS = limits.load([RULES])
MEMINFO = (Path(__file__).parent / "captures" / "sysfs" / "node0-meminfo.txt").read_bytes()


def rows_of(machine: Host):
    areas = [area.collect(machine).facts for area in (npu, pci, topo, numa)]
    return affinity(*areas), needs(*areas, LIMITS)


def test_a_node_s_memory_is_read_from_its_meminfo() -> None:
    assert memory(MEMINFO).value == Memory(
        total_mib=20146388 // 1024, free_mib=15097616 // 1024, file_cache_mib=(2923248 + 1123892) // 1024
    )


def test_each_number_shows_its_own_line() -> None:
    assert memory(MEMINFO).texts["free_mib"] == "Node 0 MemFree:        15097616 kB"


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3\n", {0, 1, 2, 3}),
        ("0-1,8-9", {0, 1, 8, 9}),
        ("5", {5}),
        ("", set()),  # a node that has memory only
        ("\n", set()),
    ],
)
def test_a_list_of_cpus_is_read_as_the_kernel_writes_it(text: str, cpus: set[int]) -> None:
    assert cpu_set(text) == cpus


@pytest.mark.parametrize("text", ["NA", "3-1", "0-", "0,,1", "0-99999999", "0x3"])
def test_what_is_no_list_of_cpus_is_missing(text: str) -> None:
    assert isinstance(cpu_set(text), Missing)


def test_only_nodes_are_counted() -> None:
    assert node_numbers(("has_cpu", "node0", "node10", "node2", "online", "nodeX")) == (0, 2, 10)


@given(st.binary(max_size=300))
def test_any_bytes_give_memory_and_cpus_or_missing(text: bytes) -> None:
    assert isinstance(memory(text).value, Memory)
    assert isinstance(cpu_list(text), (str, Missing))


def test_two_cards_of_a_node_need_the_shared_part_once() -> None:
    cards, rows = rows_of(host("a2-healthy"))
    assert [(c.npu, c.nodes) for c in cards][:3] == [(0, "6"), (1, "0"), (2, "6")]
    assert [(r.node, r.npus, r.need_mib) for r in rows] == [
        (0, "1, 3", 7168),
        (2, "5, 7", 7168),
        (4, "4, 6", 7168),
        (6, "0, 2", 7168),
    ]


def test_two_chips_on_one_function_are_one_card() -> None:
    cards, rows = rows_of(host("310p-healthy"))
    assert len(cards) == len({c.npu for c in cards})
    assert sum(r.cards for r in rows) == len(cards)


def test_npu_smi_is_heard_where_the_kernel_knows_no_node() -> None:
    assert rows_of(host("a2-affinity-by-topo"))[1] != ()
    by_topo = [(r.node, r.npus) for r in rows_of(host("a2-affinity-by-topo"))[1]]
    assert by_topo == [(0, "1, 3"), (2, "5, 7"), (4, "4, 6"), (6, "0, 2")]


def test_a_card_near_several_nodes_counts_on_each() -> None:
    cards, rows = rows_of(host("950-ub-healthy"))
    assert all(isinstance(c.nodes, str) for c in cards)
    assert sum(r.cards for r in rows) >= len(cards)


def test_one_card_of_unknown_node_makes_every_need_unknown() -> None:
    machine = host("a2-healthy", set={"missing": {"/sys/bus/pci/devices/0000:c1:00.0/numa_node": "not_collected"}})
    rows = rows_of(machine)[1]
    assert len(rows) == 4
    assert all(isinstance(r.need_mib, Missing) and r.need_mib.reason is Reason.NOT_COLLECTED for r in rows)


def test_cards_whose_node_nobody_knows_are_unknown_not_nothing() -> None:
    cards, rows = rows_of(host("a2-no-numa-map"))
    assert all(isinstance(c.nodes, Missing) and c.nodes.reason is Reason.ABSENT for c in cards)
    assert isinstance(rows, Missing)
    assert rows.reason is Reason.FAILED


def test_a_masked_bus_address_is_unknown() -> None:
    machine = host("a2-healthy")
    seen = npu.collect(machine).facts
    masked = replace(seen, chips=tuple(replace(c, bus_id="0000:xx:00.0") for c in seen.chips))
    others = [area.collect(machine).facts for area in (pci, topo, numa)]
    assert isinstance(needs(masked, *others, LIMITS), Missing)


def test_a_single_node_is_listed_too() -> None:
    facts = numa.collect(host("bare-linux")).facts
    assert facts.count == 1
    assert set(facts.nodes) == {0}


def test_a_folder_that_could_not_be_seen_counts_nothing() -> None:
    facts = numa.collect(host("a2-numa-unseen")).facts
    assert isinstance(facts.count, Missing)
    assert facts.count.reason is Reason.NOT_COLLECTED
