"""The small areas: kernel, os_release, machine, services, user; and the rows and rules that judge them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts import kernel, machine, os_release, services, user
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.os_support import load
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.paths import data_folder

RULES = [data_folder("rules")]


@pytest.mark.parametrize(
    ("release", "numbers"),
    [
        ("5.10.0-216.0.0.115.oe2203sp4.aarch64", (5, 10)),
        ("4.19.90-52.22.v2207.ky10.aarch64", (4, 19)),
        ("6.6.0-72.0.0.76.oe2403sp1.aarch64", (6, 6)),
        ("5.16.20-051620-generic", (5, 16)),
    ],
)
def test_a_release_begins_with_its_numbers(release: str, numbers: tuple[int, int]) -> None:
    assert kernel.release_numbers(release) == numbers


def test_an_iommu_tells_the_type_of_its_first_group_by_number() -> None:
    groups = "/sys/kernel/iommu_groups"
    files = {f"{groups}/10/type": "identity\n", f"{groups}/2/type": "DMA\n"}
    assert kernel.collect(host("a2-healthy", set={"files": files})).facts.iommu == "DMA"


def test_a_kernel_that_does_not_tell_the_type_leaves_it_unsupported() -> None:
    found = kernel.collect(host("a2-healthy", set={"files": {"/sys/kernel/iommu_groups/0/devices/x": ""}})).facts.iommu
    assert isinstance(found, Missing)
    assert found.reason is Reason.UNSUPPORTED


def test_the_distribution_is_named_in_lower_case() -> None:
    facts = os_release.collect(host("a2-healthy")).facts
    assert (facts.id, facts.version_id) == ("openeuler", "22.03")


def test_the_second_place_is_asked_only_where_the_first_is_absent() -> None:
    other = {"files": {"/usr/lib/os-release": "ID=other\n"}}
    absent = os_release.collect(host("a2-healthy", set={**other, "missing": {"/etc/os-release": "absent"}})).facts
    denied = os_release.collect(host("a2-healthy", set={**other, "missing": {"/etc/os-release": "denied"}})).facts
    assert absent.id == "other"
    assert isinstance(denied.id, Missing)


def test_a_board_without_smbios_has_no_maker() -> None:
    found = machine.collect(host("310p-healthy")).facts.vendor
    assert isinstance(found, Missing)
    assert found.reason is Reason.ABSENT


def test_services_are_the_folders_of_their_slice() -> None:
    a2, x86 = (services.collect(host(name)).facts for name in ("a2-healthy", "x86-healthy"))
    assert (a2.clock, a2.irqbalance) == (("chronyd",), False)
    assert (x86.clock, x86.clock_set) == (("systemd-timesyncd",), True)


def test_a_container_does_not_see_the_services_of_its_host() -> None:
    found = services.collect(host("a2-container-healthy")).facts.irqbalance
    assert isinstance(found, Missing)
    assert found.reason is Reason.FAILED


def test_a_user_without_an_entry_has_no_name_and_no_home() -> None:
    facts = user.collect(host("a2-container-user-without-name")).facts
    assert (facts.uid, facts.directory) == (1000, False)
    for value in (facts.name, facts.home):
        assert isinstance(value, Missing)
        assert value.reason is Reason.ABSENT


@pytest.mark.parametrize(
    ("line", "directory"),
    [
        (b"passwd:         files systemd\n", False),
        (b"passwd: sss files systemd\n", True),
        (b"# passwd: ldap\npasswd: files [NOTFOUND=return] ldap\n", True),
        (b"group: files\n", False),
    ],
)
def test_a_directory_server_may_know_users_that_the_file_does_not(line: bytes, directory: bool) -> None:
    assert user.asks_a_directory(line).value is directory


def test_the_first_entry_of_a_number_counts() -> None:
    found = user.accounts(b"a:x:7:7::/home/a:/bin/sh\nb:x:7:7::/home/b:/bin/sh\nbroken:x:8\n")
    assert {uid: name for uid, (name, _, _) in found.items()} == {7: "a"}


@pytest.mark.parametrize(
    ("name", "version", "listed"),
    [
        ("ubuntu", "22.04", True),
        ("ubuntu", "22.10", False),
        ("openEuler", "24.03", True),
        ("kylin", "V10", True),
        ("centos", "7.6", True),
        ("centos", "7", True),
        ("centos", "76", False),
        ("uos", "25", True),
        ("debian", "12", False),
    ],
)
def test_a_distribution_is_listed_by_the_beginning_of_its_version(name: str, version: str, listed: bool) -> None:
    assert (load(RULES).listed(name, version) is not None) is listed


@pytest.mark.parametrize("entry", ["{versions: ['1']}", "{id: a, versions: 1, source: s}", "{id: a, source: other}"])
def test_a_broken_rule_of_distributions_names_its_entry(tmp_path: Path, entry: str) -> None:
    (tmp_path / "compat").mkdir()
    source = "sources: {s: {title: t, url: '', confidence: field-report}}\n"
    (tmp_path / "compat" / "os.yaml").write_text(f"{source}distributions: [{entry}]\n")
    with pytest.raises(RuleError, match="entry 1"):
        load([tmp_path])


def test_the_need_follows_the_visible_chips() -> None:
    situation = Situation(host("a2-container-user-without-name-one-card"), RULES)
    (row,) = situation.rows("host.load")  # type: ignore[misc]
    assert (row.chips, row.need_mib, row.hbm_mib) == (1, 4096, 65536)


@given(st.binary(max_size=300))
def test_any_bytes_give_values_or_missing(text: bytes) -> None:
    assert isinstance(kernel.one_line(text), (str, Missing))
    assert isinstance(user.accounts(text), dict)
    assert isinstance(user.asks_a_directory(text).value, bool)


@given(st.text(max_size=60))
def test_any_text_gives_numbers_of_a_release_or_missing(text: str) -> None:
    assert isinstance(kernel.release_numbers(text), (tuple, Missing))
