from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.modules import CARRIERS, driver_modules
from ascend_doctor.facts import container, driver, modules, pci
from ascend_doctor.facts.modules import NAMES, collect, is_on, listed_modules, loaded_modules
from ascend_doctor.host import Host, Missing, Reason

CAPTURES = Path(__file__).parent / "captures" / "modules"
KERNEL = "5.10.0-216.0.0.115.oe2203sp4.aarch64"


def row_of(machine: Host):
    rows = driver_modules(*(area.collect(machine).facts for area in (modules, pci, driver, container)))
    return rows[0] if isinstance(rows, tuple) and rows else rows


def test_every_module_that_lspci_names_for_a_card_is_the_drivers() -> None:
    text = (CAPTURES / "lspci-v-910b-kernel-modules-excerpt.txt").read_text(encoding="utf-8")
    names = text.split("Kernel modules: ")[1].strip().split(", ")
    assert len(names) == 24
    assert [name for name in names if not NAMES.fullmatch(name)] == []
    assert set(CARRIERS) & set(names) == {"drv_pcie_host"}


def test_other_modules_are_not_taken_for_the_drivers() -> None:
    text = b"nvme 65536 4 - Live 0x0\ndrv_pcie_host 1 0 - Live 0x0 (O)\nhns_roce_hw_v2 1 0 - Live 0x0\nasdrv_svm 1 0\n"
    assert loaded_modules(text).value == ("asdrv_svm", "drv_pcie_host")


@pytest.mark.parametrize(
    "line",
    [
        b"updates/drv_pcie_host.ko: updates/drv_seclib_host.ko\n",
        b"updates/dkms/drv_pcie_host.ko.xz:\n",
        b"extra/drv_pcie_host.ko.zst: extra/drv_seclib_host.ko.zst\n",
        b"/lib/modules/4.19/updates/drv_pcie_host.ko.gz:\n",
    ],
)
def test_a_module_is_found_wherever_it_was_put_and_however_it_was_packed(line: bytes) -> None:
    assert listed_modules(b"kernel/fs/xfs/xfs.ko: kernel/lib/libcrc32c.ko\n" + line).value == ("drv_pcie_host",)


def test_a_module_that_others_need_is_not_there_for_that() -> None:
    assert listed_modules(b"updates/npu_peermem.ko: updates/drv_pcie_host.ko\n").value == ("npu_peermem",)


def test_secure_boot_is_the_last_of_five_bytes() -> None:
    assert is_on(b"\x06\x00\x00\x00\x01") is True
    assert is_on(b"\x06\x00\x00\x00\x00") is False


@given(st.binary(max_size=300))
def test_any_bytes_give_a_value_or_missing(data: bytes) -> None:
    assert isinstance(loaded_modules(data).value, tuple)
    assert isinstance(listed_modules(data).value, tuple)
    assert isinstance(is_on(data), (bool, Missing))


def test_the_driver_of_a_healthy_host_is_loaded_and_made_for_its_kernel() -> None:
    facts = collect(host("a2-healthy")).facts
    assert "drv_pcie_host" in facts.loaded
    assert facts.made_for == (KERNEL,)
    assert isinstance(facts.secure_boot, Missing)
    row = row_of(host("a2-healthy"))
    assert (row.loaded, row.built) == (True, True)


def test_a_kernel_without_the_modules_is_told_with_those_that_have_them() -> None:
    row = row_of(host("a2-kernel-updated"))
    assert (row.loaded, row.built, row.others) == (False, False, "5.10.0-182.0.0.95.oe2203sp3.aarch64")


def test_a_container_and_a_host_without_driver_need_no_modules() -> None:
    assert row_of(host("a2-container-healthy")) == ()
    assert row_of(host("bare-linux")) == ()
    assert row_of(host("950-ub-healthy")) == ()


def test_cards_that_all_belong_to_guests_need_no_modules() -> None:
    facts = pci.collect(host("a2-healthy")).facts
    links = {f"/sys/bus/pci/devices/{address}/driver": "" for address in facts.npus}
    entries = [{"path": path, "type": "link", "target": "../../bus/pci/drivers/vfio-pci"} for path in links]
    assert row_of(host("a2-healthy", set={"entries": entries})) == ()


def test_a_card_that_a_driver_holds_needs_no_list_of_modules() -> None:
    assert row_of(host("a2-healthy", set={"missing": {"/proc/modules": "absent"}})).loaded is True


def test_a_list_that_may_not_be_read_leaves_it_open() -> None:
    row = row_of(host("a2-modules-unseen"))
    assert isinstance(row.loaded, Missing)
    assert row.loaded.reason is Reason.DENIED
