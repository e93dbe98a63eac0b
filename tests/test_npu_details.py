from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host, profile_of
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.inventory import items, kinds
from ascend_doctor.derive.npu_details import heat, memory_errors, running
from ascend_doctor.derive.npu_holders import held
from ascend_doctor.facts import container as container_facts
from ascend_doctor.facts import npu as npu_facts
from ascend_doctor.facts import npu_holders as holder_facts
from ascend_doctor.facts import numa as numa_facts
from ascend_doctor.facts.driver import collect as collect_driver
from ascend_doctor.facts.npu import npu_smi_info
from ascend_doctor.facts.npu_blocks import blocks, card, chip, controller, number, whole_number, word
from ascend_doctor.facts.npu_details import board, card_count, collect, ecc, mapping, processes
from ascend_doctor.facts.npu_holders import container_of, owner, program
from ascend_doctor.host import Answer, Extent, Missing, Output, Reason
from ascend_doctor.host.recorder import Recorder
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.knowledge.limits import load as load_limits
from ascend_doctor.paths import data_folder

CAPTURES = Path(__file__).parent / "captures" / "npu-smi-details"
LIMITS = load_limits([data_folder("rules")])
UNTOLD = Missing(Reason.UNSUPPORTED, "no such column")
CID = "3f2a9c1e7b42d0846a1b9be1c0f2a7d35e684b0c9f1d2e3a4b5c6d7e8f901234"


def captured(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")


# What npu-smi prints


def test_the_chip_is_told_from_the_controller_of_its_card() -> None:
    text = captured("common-910b1")
    here = chip(text, 0)
    assert (whole_number(here, "aicore freq"), whole_number(here, "aicore curfreq")) == (1800, 800)
    assert (number(here, "temperature"), number(here, "npu real-time power")) == (46.0, 93.4)
    assert number(controller(text), "temperature") == 38.0


def test_a_squeezed_answer_is_read_like_the_one_with_blanks() -> None:
    squeezed = "\n".join(line for line in captured("common-910b1").split("\n") if line.strip())
    assert number(chip(squeezed, 0), "temperature") == 46.0
    assert number(controller(squeezed), "temperature") == 38.0


def test_a_950_has_one_block_without_a_chip() -> None:
    here = chip(captured("common-950-doc"), UNTOLD)
    assert (whole_number(here, "aicore freq"), whole_number(here, "aicore curfreq")) == (1650, 100)
    assert whole_number(chip(captured("usages-950-doc"), UNTOLD), "hbm capacity") == 131072


@pytest.mark.parametrize(("name", "mib"), [("usages-910", 32768), ("usages-910b1", 65536)])
def test_a_chip_whose_id_comes_last_is_found(name: str, mib: int) -> None:
    assert whole_number(chip(captured(name), 0), "hbm capacity") == mib
    assert isinstance(chip(captured(name), 1), Missing)


def test_two_chips_of_one_card_have_a_block_each() -> None:
    one = "\n".join(captured("ecc-910").split("\n")[3:])
    two = captured("ecc-910") + one.replace("Chip ID                                  : 0", "Chip ID : 1").replace(
        "HBM Double Bit Error Count               : 0", "HBM Double Bit Error Count : 7"
    )
    first, second = (ecc(chip(two, number_)) for number_ in (0, 1))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["HBM"].double, second["HBM"].double) == (0, 7)


def test_errors_are_counted_by_memory() -> None:
    older, newer = ecc(chip(captured("ecc-910"), 0)), ecc(chip(captured("ecc-950-doc"), UNTOLD))
    assert isinstance(older, dict)
    assert isinstance(newer, dict)
    assert (list(older), list(newer)) == (["HBM", "DDR"], ["HBM"])
    assert isinstance(older["HBM"].double_pages_waiting, Missing)
    assert newer["HBM"].double_pages_waiting == 0


def test_the_board_tells_driver_and_firmware() -> None:
    older = board(0, card(captured("board-910")), is_root=True)
    assert (older.driver, older.firmware, older.compatible, older.chip_count) == ("23.0.5", "7.1.0.7.220", "OK", 1)
    assert isinstance(older.soc_version, Missing)
    newer = board(0, card(captured("board-950pr")), is_root=True)
    assert (newer.soc_version, newer.firmware) == ("Ascend950PR_9579", "9.0.0.105.229")


def test_what_is_told_to_root_only_is_denied_to_others() -> None:
    text = captured("board-910").replace("7.1.0.7.220", "NA").replace(": OK", ": NOT SUPPORT")
    for is_root, reason in ((False, Reason.DENIED), (True, Reason.UNSUPPORTED)):
        found = board(0, card(text), is_root)
        assert isinstance(found.firmware, Missing)
        assert isinstance(found.compatible, Missing)
        assert (found.firmware.reason, found.compatible.reason) == (reason, reason)


def test_devices_are_mapped_and_counted() -> None:
    older, newer = mapping(captured("m-910b3-excerpt")), mapping(captured("m-950pr-compact"))
    assert isinstance(older, tuple)
    assert isinstance(newer, tuple)
    assert [(m.npu_id, m.chip_id, m.logic_id, m.name) for m in older] == [
        (0, 0, 0, "Ascend 910B3"),
        (1, 0, 1, "Ascend 910B3"),
    ]
    assert [(m.npu_id, m.logic_id, m.name) for m in newer] == [(0, 0, "Ascend950PR"), (1, 1, "Ascend950PR")]
    assert [card_count(captured(name)) for name in ("l-310-200dk", "l-950-doc", "l-950pr")] == [1, 1, 2]


def test_processes_are_read_with_and_without_a_name() -> None:
    named, cut = processes(captured("proc-mem-950-doc"), 0), processes(captured("proc-mem-910b1-excerpt"), 1)
    assert isinstance(named, tuple)
    assert isinstance(cut, tuple)
    assert [(p.pid, p.name, p.memory_mib) for p in (*named, *cut)] == [
        (395864, "power_test", 5118),
        (3764676, "", 44320),
    ]
    assert processes("NPU ID : 0\n", 0) == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (captured("unsupported-950-doc"), Reason.UNSUPPORTED),
        ("This command must input card id.\n", Reason.FAILED),
        ("", Reason.FAILED),
    ],
)
def test_a_refusal_says_whether_the_chip_or_the_question_is_meant(text: str, reason: Reason) -> None:
    for found in (chip(text, 0), card(text), mapping(text), processes(text, 0), ecc(chip(text, 0))):
        assert isinstance(found, Missing)
        assert found.reason is reason


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(["NPU ID : 0", "Chip ID : 0", "", "a : b", ":", "Chip Name : mcu"]))
)
def test_any_text_gives_a_value_or_missing(text: str | list[str]) -> None:
    given_ = text if isinstance(text, str) else "\n".join(text)
    assert all(isinstance(block, dict) for block in blocks(given_))
    for found in (card(given_), chip(given_, 0), controller(given_)):
        assert isinstance(found, (dict, Missing))
        for read in (word, number, whole_number):
            assert isinstance(read(found, "npu id"), (str, float, int, Missing))
        assert isinstance(ecc(found), (dict, Missing))
        assert board(0, found, True).npu_id == 0
    assert isinstance(mapping(given_), (tuple, Missing))
    assert isinstance(processes(given_, 0), (tuple, Missing))
    assert isinstance(card_count(given_), (int, Missing))


# What is asked


class Counting:
    """A host that counts what is started."""

    def __init__(self, name: str, deep: bool) -> None:
        self._inner, self.extent = host(name), Extent(deep=deep)
        self.started: list[tuple[str, ...]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def run(self, argv: tuple[str, ...], timeout: float = 10) -> Answer[Output]:
        if tuple(argv) not in self.started:
            self.started.append(tuple(argv))
        return self._inner.run(argv, timeout)


def test_a_healthy_host_of_sixteen_chips_costs_one_start() -> None:
    for module in (holder_facts, npu_facts):
        asked = Counting("a3-healthy", deep=False)
        module.collect(asked)  # type: ignore[arg-type]
        collect(asked)  # type: ignore[arg-type]
        assert asked.started == [("npu-smi", "info")]


def test_in_depth_each_card_is_asked_and_a_950_without_a_chip() -> None:
    asked = Counting("950-healthy", deep=True)
    collect(asked)  # type: ignore[arg-type]
    assert len(asked.started) == 3 + 8 * 5
    assert not any("-c" in argv for argv in asked.started)
    older = Counting("310p-healthy", deep=True)
    collect(older)  # type: ignore[arg-type]
    assert ("npu-smi", "info", "-t", "proc-mem", "-i", "32800", "-c", "1") in older.started


def test_not_in_depth_nothing_is_known() -> None:
    facts = collect(host("a2-healthy")).facts
    assert facts.asked is False
    assert isinstance(facts.chips, Missing)
    assert facts.chips.reason is Reason.NOT_COLLECTED
    assert memory_errors(facts, LIMITS) == ()


def test_a_snapshot_says_whether_it_was_taken_in_depth(tmp_path: Path) -> None:
    for name, deep in (("a2-healthy", False), ("a2-deep-healthy", True), ("a2-hccn-healthy", True)):
        assert host(name).extent.deep is deep
        recorder = Recorder(host(name))
        live = collect(recorder)
        recorder.save(tmp_path / name)
        again = open_snapshot(tmp_path / name)
        assert again.extent.deep is deep
        assert collect(again).facts == live.facts


def test_details_of_a_deep_snapshot_are_read() -> None:
    facts = collect(host("a2-deep-healthy")).facts
    assert facts.card_count == 8
    assert isinstance(facts.chips, tuple)
    first = facts.chips[0]
    assert (first.celsius, first.board_celsius, first.power_watts, first.rated_mhz) == (46.0, 38.0, 91.2, 1800)
    assert isinstance(facts.mapping, tuple)
    assert [m.logic_id for m in facts.mapping] == list(range(8))


# What it means


def test_firmware_is_compared_between_cards_and_with_its_package() -> None:
    for name, mixed, other in (
        ("a2-deep-healthy", False, False),
        ("a2-deep-versions-mixed", True, True),
        ("a2-deep-firmware-not-active", False, True),
    ):
        rows = running(collect(host(name)).facts, collect_driver(host(name)).facts)
        assert isinstance(rows, tuple)
        assert (rows[0].mixed_firmware, rows[0].other) == (mixed, other)


def test_public_tables_hold_no_chip_that_is_much_hotter_than_the_others_but_one_that_is_at_fault() -> None:
    hot = []
    for file in sorted((CAPTURES.parent / "npu-smi").glob("*.txt")):
        rows = heat(npu_smi_info(file.read_bytes()).value, LIMITS)  # type: ignore[arg-type]
        hot += [file.stem for row in rows if row.hotter is True] if isinstance(rows, tuple) else []
    assert hot == []


def test_a_server_with_two_sizes_of_memory_is_told() -> None:
    table = npu_smi_info((CAPTURES.parent / "npu-smi" / "a5-950pr-25.7.rc1-alarm.txt").read_bytes()).value
    rows = kinds(table)  # type: ignore[arg-type]
    assert isinstance(rows, tuple)
    assert (rows[0].mixed_names, rows[0].mixed_sizes) == (False, True)
    assert rows[0].sizes.startswith("114688 (NPU ")


def test_what_is_not_expected_is_not_compared() -> None:
    machine = host("a2-healthy")
    npu, numa = npu_facts.collect(machine).facts, numa_facts.collect(machine).facts
    assert items(npu, numa, profile_of("a2-healthy")) == ()
    other = {row.what: (row.found, row.fewer) for row in items(npu, numa, profile_of("a2-inventory-other"))}
    assert (other["npus"], other["hbm_mib"], other["driver"]) == (("8", True), ("65536", False), ("25.5.0", False))


@pytest.mark.parametrize("name", ["eight-npus", "sixteen-chips", "host-for-containers"])
def test_the_shipped_profiles_can_be_used(name: str) -> None:
    from ascend_doctor.knowledge.profile import profile

    assert profile(name, [data_folder("rules")]).says


def test_an_a3_is_what_its_profile_expects() -> None:
    from ascend_doctor.knowledge.profile import profile

    machine = host("a3-healthy")
    npu, numa = npu_facts.collect(machine).facts, numa_facts.collect(machine).facts
    rows = items(npu, numa, profile("sixteen-chips", [data_folder("rules")]))
    assert [(row.what, row.differs) for row in rows] == [("npus", False), ("chips", False), ("chip_name", False)]


# Who holds it


@pytest.mark.parametrize(
    ("text", "container"),
    [
        (f"0::/system.slice/docker-{CID}.scope\n", CID[:12]),
        (f"12:devices:/docker/{CID}\n11:cpu:/docker/{CID}\n", CID[:12]),
        (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{CID}.scope\n", CID[:12]),
        (f"0::/machine.slice/libpod-{CID}.scope/container\n", CID[:12]),
        ("0::/lxc.payload.train-3/system.slice\n", "train-3"),
        ("0::/user.slice/user-1000.slice/session-4.scope\n", None),
    ],
)
def test_the_container_stands_in_the_name_of_the_control_group(text: str, container: str | None) -> None:
    found = container_of(text.encode())
    assert found == container if container else isinstance(found, Missing) and found.reason is Reason.ABSENT


def test_the_owner_is_the_effective_user() -> None:
    assert owner(b"Name:\tpython3\nUid:\t1000\t0\t0\t0\n").value == 0
    assert program(b"Name:\tVLLM::Worker_TP0\n") == "VLLM::Worker_TP0"


@given(st.binary(max_size=200))
def test_any_bytes_give_a_holder_or_missing(data: bytes) -> None:
    assert isinstance(program(data), (str, Missing))
    assert isinstance(owner(data).value, (int, Missing))
    assert isinstance(container_of(data), (str, Missing))


def test_inside_a_container_no_process_is_taken_for_another() -> None:
    machine = host("a2-held-by-container")
    npu, holders = npu_facts.collect(machine).facts, holder_facts.collect(machine).facts
    outside = container_facts.collect(machine).facts
    inside = container_facts.collect(host("a2-container-healthy")).facts
    said = [rows[0].who["en"] for rows in (held(npu, holders, outside), held(npu, holders, inside)) if rows]  # type: ignore[index]
    assert said == [
        "78617 python3: NPU 0 57010 MiB, user root, container 3f2a9c1e7b42",
        "78617 python3: NPU 0 57010 MiB",
    ]
