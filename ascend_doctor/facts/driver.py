"""The driver and firmware packages as their own files name them.

Sources: version.info of the driver and firmware packages (both key styles), /etc/ascend_install.info of the driver
installer; https://github.com/hicann/driver (install scripts). A container often lacks these files.
"""

from __future__ import annotations

import re

from ascend_doctor.facts.info_files import InfoFile, bracketed, info_file
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason
from ascend_doctor.records import dataclass
from ascend_doctor.versions import FirmwareVersion, HdkVersion

INSTALL_INFO = "/etc/ascend_install.info"
USUAL_PATH = "/usr/local/Ascend"


@dataclass(frozen=True)
class Driver:
    """``version`` is the release (``25.5.0``), never a component number; ranges are kept as printed."""

    version: HdkVersion | Missing
    innerversion: str | Missing
    firmware_range: str | Missing
    compatible_innerversions: tuple[str, ...] | Missing
    install_path: str | Missing
    install_status: str | Missing
    version_file: str
    firmware_version: FirmwareVersion | Missing
    firmware_release: HdkVersion | Missing
    firmware_driver_range: str | Missing


def release(file: InfoFile) -> Parsed[str | Missing]:
    """``package_version`` where it is given; ``Version`` else, unless that is the number of a component."""
    found = file.parsed("package_version", "version")
    if isinstance(found.value, str) and is_component_number(found.value):
        why = Missing(Reason.UNSUPPORTED, f"{found.value} is the number of a component, the release is not stated")
        return Parsed(why, found.source, found.texts)
    return found


def is_component_number(text: str) -> bool:
    """Whether a driver file's number (``7.35.23``) is of a component: releases are 1.0, 5.1, 6.0 or 21 and newer."""
    found = re.match(r"(\d{1,4})\.\d", text)
    return bool(found) and 7 <= int(found[1]) <= 20  # type: ignore[index]


def innerversions(file: InfoFile) -> Parsed[tuple[str, ...] | Missing]:
    """The list ``compatible_version``."""
    found = file.parsed("compatible_version")
    value = bracketed(found.value) if isinstance(found.value, str) else found.value
    return Parsed(value, found.source, found.texts)


def collect(host: Host) -> Collected[Driver]:
    """Reads three files, starts nothing."""
    area = Area("driver")
    install = info_file(host.read(INSTALL_INFO))
    driver, path = _version_info(host, install, "driver")
    firmware, _ = _version_info(host, install, "firmware")
    return area.of(
        Driver(
            version=area.take("version", release(driver)),
            innerversion=area.take("innerversion", driver.parsed("innerversion")),
            firmware_range=area.take("firmware_range", driver.parsed("compatible_version_fw")),
            compatible_innerversions=area.take("compatible_innerversions", innerversions(driver)),
            install_path=area.take("install_path", install.parsed("driver_install_path_param")),
            install_status=area.take("install_status", install.parsed("driver_install_status")),
            version_file=path,
            firmware_version=area.take("firmware_version", firmware.parsed("version")),
            firmware_release=area.take("firmware_release", firmware.parsed("package_version")),
            firmware_driver_range=area.take("firmware_driver_range", firmware.parsed("compatible_version_drv")),
        )
    )


def _version_info(host: Host, install: InfoFile, package: str) -> tuple[InfoFile, str]:
    """The package's version.info, where the installer put it, else in the usual place; and its path."""
    usual = f"{USUAL_PATH}/{package}/version.info"
    place = install.parsed(f"{package}_install_path_param").value
    if isinstance(place, str) and place.startswith("/"):
        path = f"{place.rstrip('/')}/{package}/version.info"
        file = info_file(host.read(path))
        if path == usual or not file.absent:
            return file, path
    file = info_file(host.read(usual))
    if file.absent and isinstance(install.lines, Missing) and not install.absent:
        # It may stand where a file that nobody could read would say.
        why = Missing(install.lines.reason, f"{INSTALL_INFO}: {install.lines.detail}".rstrip(": "))
        return InfoFile(install.source, why), usual
    return file, usual
