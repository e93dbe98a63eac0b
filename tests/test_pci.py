from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.pci import links
from ascend_doctor.facts import npu, pci
from ascend_doctor.facts.pci import bridge_above, collect, gigatransfers, hex_id, is_npu, lanes, last_name, node_number
from ascend_doctor.host import Host, Missing, Reason
from ascend_doctor.knowledge import hardware
from ascend_doctor.knowledge.reading import RuleError

HARDWARE = hardware.load([Path(__file__).parent.parent / "rules"])
C1 = "/sys/bus/pci/devices/0000:c1:00.0"


def links_of(machine: Host):
    return links(pci.collect(machine).facts, npu.collect(machine).facts, HARDWARE)


@pytest.mark.parametrize(
    ("text", "speed"),
    [(b"16.0 GT/s PCIe\n", 16.0), (b"2.5 GT/s\n", 2.5), (b"8 GT/s\n", 8.0), (b"32.0 GT/s PCIe\n", 32.0)],
)
def test_speeds_of_every_kernel_are_read(text: bytes, speed: float) -> None:
    assert gigatransfers(text) == speed


@pytest.mark.parametrize("text", [b"Unknown\n", b"Unknown speed\n"])
def test_an_unknown_speed_is_not_there_to_be_judged(text: bytes) -> None:
    found = gigatransfers(text)
    assert isinstance(found, Missing)
    assert found.reason is Reason.UNSUPPORTED


@pytest.mark.parametrize("text", [b"0\n", b"63\n", b"255\n"])
def test_a_width_that_no_link_has_is_not_there_to_be_judged(text: bytes) -> None:
    found = lanes(text)
    assert isinstance(found, Missing)
    assert found.reason is Reason.UNSUPPORTED


def test_minus_one_is_no_node() -> None:
    assert node_number(b"6\n") == 6
    found = node_number(b"-1\n")
    assert isinstance(found, Missing)
    assert found.reason is Reason.ABSENT


def test_the_bridge_is_the_function_above() -> None:
    assert bridge_above("../../../devices/pci0000:c0/0000:c0:00.0/0000:c1:00.0") == "0000:c0:00.0"
    found = bridge_above("../../../devices/pci0000:00/0000:00:05.0")
    assert isinstance(found, Missing)
    assert found.reason is Reason.ABSENT


@pytest.mark.parametrize(
    ("vendor", "kind", "device", "wanted"),
    [
        ("19e5", "120000", "d802", True),
        ("20c6", "120000", "d500", True),  # a partner's card
        ("19e5", "120000", "a250", False),  # Kunpeng's ZIP engine
        ("19e5", "020000", "1822", False),  # a network card
        ("19e5", "030000", "1711", False),  # the display of the BMC
        ("10de", "120000", "d802", False),
    ],
)
def test_npus_are_told_from_other_functions(vendor: str, kind: str, device: str, wanted: bool) -> None:
    assert is_npu(vendor, kind, device) is wanted


@given(st.binary(max_size=100))
def test_any_bytes_give_a_value_or_missing(text: bytes) -> None:
    for parse in (hex_id, gigatransfers, lanes, node_number):
        assert isinstance(parse(text), (str, int, float, Missing))


@given(st.text(max_size=100))
def test_any_link_gives_a_name_or_missing(target: str) -> None:
    assert isinstance(bridge_above(target), (str, Missing))
    assert isinstance(last_name(target), (str, Missing))


def test_the_npus_of_a_host_are_found_with_their_links() -> None:
    collected = collect(host("a2-healthy"))
    npus = collected.facts.npus
    assert sorted(npus) == [f"0000:{bus}:00.0" for bus in ("01", "02", "41", "42", "81", "82", "c1", "c2")]
    card = npus["0000:c1:00.0"]
    assert (card.device_id, card.numa_node, card.driver) == ("d802", 6, "devdrv_device_driver")
    assert (card.current_speed_gts, card.current_width, card.max_speed_gts, card.max_width) == (16.0, 16, 16.0, 16)
    assert (card.bridge.address, card.bridge.max_width) == ("0000:c0:00.0", 16)
    source, text = collected.provenance['pci.npus["0000:c1:00.0"].bridge.max_width']
    assert source == "file:/sys/bus/pci/devices/0000:c0:00.0/max_link_width"
    assert text == "16"


def test_a_bus_without_npus_is_empty_and_no_bus_is_absent() -> None:
    assert collect(host("bare-linux")).facts.npus == {}
    missing = collect(host("a2-healthy", set={"missing": {"/sys/bus/pci/devices": "absent"}})).facts.npus
    assert isinstance(missing, Missing)
    assert missing.reason is Reason.ABSENT


@pytest.mark.parametrize("file", ["vendor", "class", "device"])
def test_one_function_that_cannot_be_told_leaves_the_whole_bus_unknown(file: str) -> None:
    npus = collect(host("a2-healthy", set={"missing": {f"{C1}/{file}": "denied"}})).facts.npus
    assert isinstance(npus, Missing)
    assert npus.reason is Reason.DENIED
    assert npus.path == "pci.npus"


def test_a_name_that_is_no_address_is_passed_over() -> None:
    names = ["0000:c1:00.0", "x'; reboot; '"]
    machine = host("a2-healthy", set={"entries": [{"path": "/sys/bus/pci/devices", "type": "dir", "names": names}]})
    assert list(collect(machine).facts.npus) == ["0000:c1:00.0"]


def test_a_link_is_judged_by_the_lesser_of_card_and_port() -> None:
    rows = links_of(host("a2-pcie-slot-x8"))
    row = next(r for r in rows if r.address == "0000:c1:00.0")
    assert (row.current_width, row.max_width, row.port_max_width, row.possible_width) == (8, 16, 8, 8)
    assert row.label == "NPU 0 (0000:c1:00.0, 910B)"


def test_two_chips_on_one_function_share_a_link() -> None:
    rows = links_of(host("310p-healthy"))
    assert len({r.address for r in rows}) == len(rows)
    assert all(r.label.startswith("NPU ") for r in rows)


def test_a_guest_without_a_port_has_no_link_to_judge() -> None:
    entry = {"path": C1, "type": "link", "target": "../../../devices/pci0000:00/0000:c1:00.0"}
    home = "/sys/devices/pci0000:00/0000:c1:00.0"
    files = {f"{home}/{n}": t for n, t in (("vendor", "0x19e5\n"), ("class", "0x120000\n"), ("device", "0xd802\n"))}
    rows = links_of(host("a2-healthy", set={"entries": [entry], "files": files}))
    row = next(r for r in rows if r.address == "0000:c1:00.0")
    assert isinstance(row.possible_width, Missing)
    assert row.possible_width.reason is Reason.UNSUPPORTED


def test_a_card_without_npu_smi_is_named_by_its_address() -> None:
    rows = links_of(host("a2-healthy", set={"missing": {"npu-smi info": "timeout"}}))
    assert rows[0].label == f"{rows[0].address}, 910B"


def test_every_id_of_the_rules_has_its_chip() -> None:
    assert HARDWARE.chips["d803"] == "910_93"
    assert HARDWARE.chips["d804"] is None


@pytest.mark.parametrize(
    "text", ["devices: {}\n", "source: {confidence: vendor-doc}\ndevices: {d1: {chip: 3}}\n", "[]\n"]
)
def test_a_wrong_rule_names_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "pci-ids.yaml").write_text(text)
    with pytest.raises(RuleError, match=r"pci-ids\.yaml"):
        hardware.load([tmp_path])
