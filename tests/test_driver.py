"""The driver's and the firmware's own files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.driver import Driver, collect, is_component_number, release
from ascend_doctor.facts.info_files import bracketed, info_file, pairs
from ascend_doctor.host import Answer, Missing, Reason

CAPTURES = Path(__file__).parent / "captures" / "driver"
DRIVER = "/usr/local/Ascend/driver/version.info"
FIRMWARE = "/usr/local/Ascend/firmware/version.info"
INSTALL = "/etc/ascend_install.info"


def facts(**files: str) -> Driver:
    named = {"driver": DRIVER, "firmware": FIRMWARE, "install": INSTALL}
    return collect(host("a2-healthy", set={"files": {named[k]: text for k, text in files.items()}})).facts


def capture(name: str) -> str:
    return (CAPTURES / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "version", "inner", "firmware_range"),
    [
        ("driver-version.info-24.1.rc1.txt", "24.1.rc1", "V100R001C15SPC006B220", "[7.0.0,7.2.99]"),
        ("driver-version.info-24.1.rc2.2-excerpt.txt", "24.1.rc2.2", "V100R001C18SPC001B233", None),
        ("driver-version.info-25.0.rc1.1-excerpt.txt", "25.0.rc1.1", "V100R001C21SPC002B220", None),
        ("driver-version.info-26.0.rc1-keys.txt", "26.0.rc1", "V100R001C10SPC001B257", None),
    ],
)
def test_both_key_styles_name_the_release(name: str, version: str, inner: str, firmware_range: str | None) -> None:
    found = facts(driver=capture(name))
    assert (found.version, found.innerversion) == (version, inner)
    if firmware_range is None:
        assert isinstance(found.firmware_range, Missing)
        assert found.firmware_range.reason is Reason.ABSENT
    else:
        assert found.firmware_range == firmware_range


def test_the_driver_lists_the_versions_that_it_serves() -> None:
    found = facts(driver=capture("driver-version.info-24.1.rc1.txt"))
    assert found.compatible_innerversions == ("V100R001C30", "V100R001C13", "V100R001C15", "V100R001C17")


def test_the_firmware_has_a_number_and_the_release_of_its_package() -> None:
    found = facts(firmware=capture("firmware-version.info-23.0.7.txt"))
    assert (found.firmware_version, found.firmware_release) == ("7.1.0.11.220", "23.0.7")
    assert found.firmware_driver_range == "[23.0.rc3,23.0.rc3.],[23.0.0,23.0.0.]"


def test_the_number_of_a_component_is_not_taken_for_the_release() -> None:
    found = facts(driver="Version=7.35.23\nascendhal_version=7.35.23\n").version
    assert isinstance(found, Missing)
    assert found.reason is Reason.UNSUPPORTED
    assert facts(driver="Version=7.35.23\npackage_version=25.5.1\n").version == "25.5.1"


@pytest.mark.parametrize("text", ["5.1.rc2", "6.0.0", "1.0.RC1", "21.0.4", "26.2.rc1", "6.3.9.3", "", "x"])
def test_a_release_is_no_component_number(text: str) -> None:
    assert not is_component_number(text)


def test_the_installer_names_the_folder() -> None:
    moved = {
        "files": {
            INSTALL: "Driver_Install_Path_Param=/opt/hdk/\nFirmware_Install_Path_Param=/opt/hdk\n",
            "/opt/hdk/driver/version.info": "Version=24.1.0\n",
        }
    }
    found = collect(host("a2-healthy", set=moved)).facts
    assert (found.version, found.version_file) == ("24.1.0", "/opt/hdk/driver/version.info")
    assert found.firmware_release == "25.5.0"  # no firmware there: the usual place is looked at


@pytest.mark.parametrize("name", ["full", "old", "status-complete"])
def test_every_installers_file_names_the_path(name: str) -> None:
    found = facts(install=capture(f"ascend_install.info-{name}.txt"))
    assert found.install_path == "/usr/local/Ascend"
    complete = found.install_status == "complete"
    assert complete is (name == "status-complete")


def test_an_unread_installers_file_hides_where_the_driver_may_be() -> None:
    unseen = {"missing": {INSTALL: "denied", DRIVER: "absent"}}
    found = collect(host("a2-healthy", set=unseen)).facts
    assert isinstance(found.version, Missing)
    assert found.version.reason is Reason.DENIED
    without = collect(host("bare-linux")).facts
    assert isinstance(without.version, Missing)
    assert without.version.reason is Reason.ABSENT


def test_each_value_is_shown_by_its_line() -> None:
    provenance = collect(host("a2-healthy")).provenance
    assert provenance["driver.version"] == (f"file:{DRIVER}", "package_version=25.5.0")
    assert provenance["driver.firmware_version"] == (f"file:{FIRMWARE}", "Version=7.8.0.5.216")


@given(st.binary(max_size=300))
def test_any_bytes_give_a_release_or_missing(data: bytes) -> None:
    found = release(info_file(Answer("file:x", data))).value
    assert isinstance(found, (str, Missing))
    assert all(key == key.lower() for key in pairs(data))


@given(st.text(max_size=100))
def test_any_text_gives_a_list_without_brackets(text: str) -> None:
    assert all(part and not part.startswith(("[", " ")) for part in bracketed(text))
