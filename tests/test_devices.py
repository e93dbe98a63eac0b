from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.devices import access, drawn_together, required
from ascend_doctor.facts import devices, driver, npu, pci
from ascend_doctor.facts.devices import collect, groups, is_openable
from ascend_doctor.host import Host, Identity, Missing, Reason, Stat
from ascend_doctor.knowledge import hardware

HARDWARE = hardware.load([Path(__file__).parent.parent / "rules"])
SHARED = ["/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"]


def who(uid: int, *gids: int) -> Identity:
    return Identity("node-a", "aarch64", "5.10.0", uid, gids)


def required_of(machine: Host):
    return required(*(area.collect(machine).facts for area in (devices, npu, pci, driver)), HARDWARE)


@pytest.mark.parametrize(
    ("mode", "identity", "wanted"),
    [
        (0o660, who(0, 0), True),
        (0o000, who(0, 0), True),
        (0o660, who(1000, 1000), True),
        (0o660, who(1001, 1001, 1000), True),
        (0o660, who(1001, 1001), False),
        (0o666, who(1001, 1001), True),
        (0o640, who(1001, 1001, 1000), False),  # reading alone opens no NPU
        (0o066, who(1000, 1000), False),  # the owner's bits count for the owner
    ],
)
def test_mode_and_ids_say_who_may_open(mode: int, identity: Identity, wanted: bool) -> None:
    assert is_openable(Stat("char", mode, 1000, 1000), identity) is wanted


def test_an_unknown_user_leaves_it_open() -> None:
    nobody = Missing(Reason.NOT_COLLECTED)
    assert is_openable(Stat("char", 0o660, 1000, 1000), Identity("a", "b", "c", nobody, nobody)) is nobody
    assert is_openable(Stat("char", 0o660, 1000, 1000), Identity("a", "b", "c", 1001, nobody)) is nobody


def test_groups_are_named_by_the_first_entry_of_a_number() -> None:
    assert groups(b"root:x:0:\nHwHiAiUser:x:1000:\nother:x:1000:a\nbad line\n:x:y:\n") == {
        0: "root",
        1000: "HwHiAiUser",
    }


@given(st.binary(max_size=300))
def test_any_bytes_give_groups(text: bytes) -> None:
    assert isinstance(groups(text), dict)


def test_the_nodes_of_a_host_are_found_with_owner_and_mode() -> None:
    collected = collect(host("a2-nonroot-healthy"))
    nodes = collected.facts.nodes
    assert list(nodes) == [*(f"/dev/davinci{n}" for n in range(8)), *SHARED]
    node = nodes["/dev/davinci0"]
    assert (node.number, node.type, node.mode, node.group, node.openable) == (0, "char", "0660", "HwHiAiUser", True)
    assert collected.provenance['devices.nodes["/dev/davinci0"]'][1] == "/dev/davinci0: char 0660 uid 1000 gid 1000"


def test_cards_are_in_the_order_of_their_numbers() -> None:
    nodes = collect(host("a3-healthy")).facts.nodes
    assert list(nodes)[:16] == [f"/dev/davinci{n}" for n in range(16)]


def test_a_host_without_npus_needs_no_node() -> None:
    assert required_of(host("bare-linux")) == ()


def test_each_card_needs_the_shared_nodes() -> None:
    rows = required_of(host("a2-healthy"))
    assert [r.path for r in rows] == [*(f"/dev/davinci{n}" for n in range(8)), *SHARED]
    assert all(r.type == "char" for r in rows)


def test_a_shared_node_that_is_not_there_is_absent() -> None:
    row = next(r for r in required_of(host("a2-devmm-missing")) if r.path == "/dev/devmm_svm")
    assert isinstance(row.type, Missing)
    assert row.type.reason is Reason.ABSENT


def test_no_node_at_all_beside_a_bound_driver_is_one_row() -> None:
    rows = required_of(host("a2-healthy", set={"entries": [{"path": "/dev", "type": "dir", "names": ["null"]}]}))
    assert [r.path for r in rows] == ["/dev/davinciN"]


def test_a_chip_that_is_its_own_host_needs_no_second_memory_device() -> None:
    names = ["davinci0", "davinci_manager", "svm0"]
    char = [{"path": f"/dev/{n}", "type": "char", "mode": "0660", "uid": 1000, "gid": 1000} for n in names]
    changes = {
        "missing": {"/sys/bus/pci/devices": "absent"},
        "entries": [{"path": "/dev", "type": "dir", "names": names}, *char],
    }
    assert [r.path for r in required_of(host("310p-healthy", set=changes))] == ["/dev/davinci0", "/dev/davinci_manager"]


def test_the_nodes_that_a_user_may_not_open_are_named_together() -> None:
    (row,) = access(collect(host("a2-user-without-group")).facts)
    assert row.closed == "/dev/davinci0-7, /dev/davinci_manager, /dev/devmm_svm, /dev/hisi_hdc"
    assert row.openable is False
    assert (row.group, row.named, row.mode) == ("HwHiAiUser", True, "0660")


def test_a_group_without_a_name_is_a_number() -> None:
    (row,) = access(collect(host("a2-group-without-name")).facts)
    assert (row.group, row.named) == ("1000", False)


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        ([], ""),
        (["/dev/davinci3"], "/dev/davinci3"),
        (["/dev/davinci0", "/dev/davinci1", "/dev/davinci3"], "/dev/davinci0-1, /dev/davinci3"),
        (["/dev/davinci9", "/dev/davinci10", "/dev/hisi_hdc"], "/dev/davinci9-10, /dev/hisi_hdc"),
    ],
)
def test_runs_of_numbers_are_drawn_together(paths: list[str], text: str) -> None:
    assert drawn_together(paths) == text


def test_a_node_that_could_not_be_asked_for_leaves_access_unknown() -> None:
    (row,) = access(collect(host("a2-dev-denied")).facts)
    assert isinstance(row.openable, Missing)
    assert row.openable.reason is Reason.NOT_COLLECTED


def test_a_dev_that_could_not_be_listed_is_not_empty() -> None:
    nodes = collect(host("a2-healthy", set={"missing": {"/dev": "denied"}})).facts.nodes
    assert isinstance(nodes, Missing)
    assert nodes.reason is Reason.DENIED
