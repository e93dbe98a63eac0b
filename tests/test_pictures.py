"""The pictures of a report as geometry: to scale, what is not known left open, the gravest finding on each part."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_runs import run_of_texts
from report_runs import crowded, example, logs, of_host

from ascend_doctor.derive.machine import fabric
from ascend_doctor.engine.log_report import LogReport
from ascend_doctor.engine.run import Run
from ascend_doctor.report.pictures import budget, chain, rows, tiles, time_line, topology, trouble
from ascend_doctor.report.pictures.rows import Link, Machine
from ascend_doctor.report.pictures.tiles import link_text

NO_TROUBLE: dict[str, trouble.Trouble] = {}


def told(run: Run) -> LogReport:
    assert run.logs
    return run.logs


def troubles_of(run: Run) -> Any:
    return trouble.troubles((finding, finding.check) for finding in run.findings)


def drawn(run: Run) -> topology.Topology:
    found = topology.topology(rows.machine(run.machine), troubles_of(run))
    assert found
    return found


@pytest.mark.parametrize(
    ("link", "text"),
    [
        (Link(16, 16, 16.0, 16.0), "x16 G4"),
        (Link(8, 16, 16.0, 16.0), "x8 of x16"),
        (Link(16, 16, 8.0, 16.0), "G3 of G4"),
        (Link(16, None, 32.0, None), "x16 G5"),
        (Link(None, None, None, None), "?"),
        (None, None),
    ],
)
def test_a_link_says_what_it_is_and_what_it_could_be(link: Link | None, text: str | None) -> None:
    assert link_text(link) == text


def test_a_tile_is_marked_by_its_gravest_finding() -> None:
    run = example()
    marks = {card.npu: card.tiles[0].mark for card in tiles.cards(rows.machine(run.machine), troubles_of(run))}
    assert marks == {0: "pass", 1: "pass", 2: "pass", 3: "warning", 4: "pass", 5: "error", 6: "pass", 7: "pass"}


def test_a_chip_that_is_not_well_is_never_shown_as_one_that_is() -> None:
    machine = rows.machine(example().machine)
    assert tiles.cards(machine, NO_TROUBLE)[5].tiles[0].mark == "warning"
    unseen = replace(machine, npus=(replace(machine.npus[0], health=None),))
    assert tiles.cards(unseen, NO_TROUBLE)[0].tiles[0].mark == "unknown"


def test_memory_that_is_not_known_has_no_bar() -> None:
    machine = rows.machine(example().machine)
    for changes in ({"used_mib": None}, {"total_mib": None}, {"total_mib": 0}):
        tile = tiles.cards(replace(machine, npus=(replace(machine.npus[0], **changes),)), NO_TROUBLE)[0].tiles[0]
        assert tile.used is None


def test_the_dies_of_a_card_stand_together() -> None:
    cards = tiles.cards(rows.machine(of_host("a3-healthy").machine), NO_TROUBLE)
    assert [len(card.tiles) for card in cards] == [2] * 8
    assert len(drawn(of_host("a3-healthy")).frames) == 8


@pytest.mark.parametrize("name", ["a2-healthy", "a3-healthy", "x86-healthy", "950-ub-healthy", "310p-healthy"])
def test_each_chip_hangs_on_its_node_and_nothing_overlaps(name: str) -> None:
    run = of_host(name)
    found = drawn(run)
    assert len(found.npus) == len(run.machine["npus"])  # type: ignore[index]
    assert len(found.nodes) == len(run.machine["nodes"])  # type: ignore[index]
    for boxes in (found.npus, found.nodes, found.sockets):
        ordered = sorted(boxes, key=lambda box: box.x)  # type: ignore[attr-defined, arg-type, return-value]
        assert all(a.x + a.width <= b.x for a, b in zip(ordered, ordered[1:]))  # type: ignore[attr-defined]
    assert max(box.x + box.width for box in found.nodes) <= found.width


def test_a_node_that_is_nearly_full_has_nearly_no_free_bar_and_the_finding_on_it() -> None:
    node = next(node for node in drawn(example()).nodes if node.number == 6)
    assert node.free is not None
    assert node.free < node.bar / 100
    assert (node.mark, node.target) == ("warning", "numa.free-memory")


def test_a_narrow_link_is_thin() -> None:
    found = {npu.number: npu for npu in drawn(example()).npus}
    assert found["3"].thick == found["1"].thick / 2  # type: ignore[operator]
    assert found["3"].lines == ("x8", "of x16")


def test_a_chip_of_unknown_node_is_drawn_apart() -> None:
    machine = rows.machine(example().machine)
    lost = replace(machine, npus=(replace(machine.npus[0], nodes=None), *machine.npus[1:]))
    found = topology.topology(lost, NO_TROUBLE)
    assert found
    assert found.nodes[-1].number is None
    assert len(found.npus) == 8


def test_chips_behind_the_unified_bus_are_joined_as_npu_smi_says() -> None:
    assert [(rail.word, len(rail.ticks)) for rail in drawn(of_host("950-ub-healthy")).rails] == [("UB", 4), ("UB", 4)]


def test_a_full_mesh_is_one_group_and_two_boards_are_two() -> None:
    mesh = [(n, tuple("X" if m == n else "HCCS" for m in range(4))) for n in range(4)]
    assert fabric(mesh) == [{"word": "HCCS", "npus": [0, 1, 2, 3]}]
    boards = [(n, tuple("X" if m == n else "HCCS" if m // 2 == n // 2 else "PHB" for m in range(4))) for n in range(4)]
    assert fabric(boards) == [{"word": "HCCS", "npus": [0, 1]}, {"word": "HCCS", "npus": [2, 3]}]


def test_the_chain_breaks_where_two_versions_do_not_fit() -> None:
    run = example()
    found = chain.chain(rows.machine(run.machine).versions, [(f, f.check) for f in run.findings])
    assert [part.version.part for part in found] == ["firmware", "driver", "cann", "python", "torch_npu", "torch"]
    broken = [(part.version.part, joint.other, joint.mark) for part in found for joint in part.broken]
    assert broken == [("cann", "driver", "error")]


def test_a_model_that_fits_leaves_the_rest_free() -> None:
    sizes = [{"name": "weights", "bytes": 32 << 30, "formula": ""}, {"name": "kv_cache", "bytes": 8 << 30}]
    bar = budget.budget({"rows": sizes, "card_bytes": 64 << 30, "free_bytes": 60 << 30, "usable_fraction": 0.9})
    assert bar
    assert [(part.kind, part.width) for part in bar.segments] == [
        ("held", 52.5), ("weights", 420.0), ("kv_cache", 105.0), ("free", 262.5),
    ]  # fmt: skip
    assert bar.end == bar.width
    assert bar.over_gib == ""


def test_what_does_not_fit_hangs_over_the_end() -> None:
    sizes = [{"name": "weights", "bytes": 96 << 30}]
    bar = budget.budget({"rows": sizes, "card_bytes": 64 << 30, "free_bytes": 64 << 30, "short_bytes": 38 << 30})
    assert bar
    assert bar.end == 560.0
    assert bar.segments[-1].x + bar.segments[-1].width == bar.width
    assert bar.over_gib == "38.00"


@pytest.mark.parametrize("memory", [None, {}, {"rows": []}, {"rows": [], "card_bytes": None}, {"card_bytes": 1}, []])
def test_no_sum_has_no_bar(memory: Any) -> None:
    assert budget.budget(memory) is None


def test_the_time_line_marks_the_root_and_leads_to_what_followed() -> None:
    found = time_line.time_line(told(logs()))
    assert found
    assert [mark.is_root for mark in found.marks].count(True) == 1
    assert found.marks[-1].is_root
    assert found.arcs
    assert found.lanes[0].number == "3"  # the rank of the root stands first
    assert found.clock == "log"


def test_times_are_to_scale() -> None:
    begin = datetime(2026, 1, 1)
    assert time_line._tick(begin, timedelta(days=2).total_seconds()) == "01-01 00:00"
    found = time_line.time_line(told(logs()))
    assert found
    assert [x for x, _ in found.ticks] == sorted(x for x, _ in found.ticks)
    assert all(found.left < mark.x <= found.width for mark in found.marks)


def test_logs_of_one_incident_have_no_time_line(tmp_path: Path) -> None:
    line = "[ERROR] HCCL(7,x):2026-01-01-00:00:01.000.001 [a.cc:1]7 call failed\n"
    assert time_line.time_line(told(run_of_texts(tmp_path, {"plog-7_20260101000000000.log": line}))) is None


PLAIN = st.sampled_from(
    [None, True, 0, 3, -7, 10**20, 0.5, float("nan"), float("inf"), "", "x", [], [1], [None, "a"], {}]
)
KEYS = ("npu", "chip", "node", "nodes", "npus", "link", "holders", "part", "word", "total_mib", "used_mib", "socket")
ROW = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, PLAIN))


@given(st.dictionaries(st.sampled_from(["npus", "nodes", "fabric", "versions"]), PLAIN | st.lists(ROW, max_size=3)))
def test_any_rows_give_a_machine_that_can_be_drawn(found: dict[str, Any]) -> None:
    machine = rows.machine(found)
    assert isinstance(machine, Machine)
    tiles.cards(machine, NO_TROUBLE)
    topology.topology(machine, NO_TROUBLE)
    budget.held(machine)


def test_what_is_crowded_keeps_to_its_limits() -> None:
    assert drawn(crowded()).width < 960
