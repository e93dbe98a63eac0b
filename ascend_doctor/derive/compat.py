"""What fits together on this host: driver and CANN, driver and firmware; other pairs are in the modules compat_*."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ascend_doctor.derive import compat_cann as compat_cann
from ascend_doctor.derive import compat_python as compat_python
from ascend_doctor.derive import compat_reports as compat_reports
from ascend_doctor.derive import compat_serving as compat_serving
from ascend_doctor.derive import compat_torch as compat_torch
from ascend_doctor.derive import rows
from ascend_doctor.derive.hdk_fit import ANY_VERSION, NOTHING_LISTED, Fit, fit
from ascend_doctor.facts.cann import Cann, Root
from ascend_doctor.facts.driver import Driver
from ascend_doctor.facts.npu import Npu
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.compatibility import Compatibility, Package
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.records import dataclass
from ascend_doctor.versions import compare, covers, parse, within

BY_NPU_SMI = "npu-smi info"
ANOTHER_SOURCE = (Reason.ABSENT, Reason.UNSUPPORTED)
"""Only then may npu-smi's header stand in for version.info."""


@dataclass(frozen=True)
class DriverCann:
    """One CANN version of this host and the driver. ``name`` is the version, or the path of a root without one.

    ``relation``, ``severity`` and what follows are as in hdk_fit.Fit; ``selected``: some root of this version is.
    """

    name: str
    cann: str | Missing
    root: str
    selected: bool | Missing
    driver: str | Missing
    driver_source: str
    relation: str | Missing
    severity: str | Missing
    stated_for: str | Missing
    wanted_driver: str | Missing
    install: str
    fitting_cann: str | Missing
    why: Mapping[str, str]
    sources: tuple[Source, ...]
    reads: tuple[str, ...]
    components: tuple[str, ...] = ("cann", "driver")


@dataclass(frozen=True)
class FirmwareDriver:
    """``relation``: shipped-together, same-release, in-range, or out-of-range by one of the two printed ranges."""

    driver: str | Missing
    firmware: str
    relation: str | Missing
    firmware_range: str | Missing
    driver_range: str | Missing
    shipped_firmware: str | Missing
    sources: tuple[Source, ...]
    reads: tuple[str, ...]
    components: tuple[str, ...] = ("driver", "firmware")


@rows("compat.driver_cann")
def driver_cann(cann: Cann, driver: Driver, npu: Npu, compatibility: Compatibility) -> tuple[DriverCann, ...] | Missing:
    """One row for each CANN version, the selected one first; one that the environment does not select is info."""
    if isinstance(cann.roots, Missing):
        return cann.roots
    version, source, path = _driver_version(driver, npu)
    chosen = any(root.selected is True for root in cann.roots)
    found: dict[str, DriverCann] = {}
    for number, root in sorted(enumerate(cann.roots), key=lambda pair: pair[1].selected is not True):
        name = root.path if isinstance(root.version, Missing) else root.version
        if name in found:
            continue
        reads = [f"cann.roots[{number}].version", path]
        judged = _fit(root, version, driver, npu, compatibility)
        if isinstance(judged, Missing) and not judged.path:
            judged = replace(judged, path=reads[0] if _is_unread("cann", root.version) else path)
        severity = judged if isinstance(judged, Missing) else judged.severity
        if severity in ("error", "warning") and root.selected is not True and len(cann.roots) > 1:
            reads.append(f"cann.roots[{number}].selected")
            severity = root.selected if isinstance(root.selected, Missing) else "info" if chosen else severity
        if _branch(version):
            reads.append("npu.chips")
        found[name] = _row(name, root, version, source, judged, severity, tuple(reads))
    return tuple(found.values())


@rows("compat.firmware_driver")
def firmware_driver(driver: Driver, npu: Npu, compatibility: Compatibility) -> tuple[FirmwareDriver, ...] | Missing:
    """One row; none where the firmware's version.info is not there, as in a container."""
    if isinstance(driver.firmware_version, Missing):
        return driver.firmware_version
    version, _, path = _driver_version(driver, npu)
    fields = ("firmware_version", "firmware_release", "firmware_range", "firmware_driver_range")
    reads = (path, *(f"driver.{name}" for name in fields))
    row = FirmwareDriver(
        driver=version,
        firmware=driver.firmware_version,
        relation=version if isinstance(version, Missing) else "same-release",
        firmware_range=driver.firmware_range,
        driver_range=driver.firmware_driver_range,
        shipped_firmware=NOTHING_LISTED,
        sources=(),
        reads=reads,
    )
    if isinstance(version, Missing):
        return (row,)
    own = _package(compatibility, version)
    if own:
        row = replace(row, shipped_firmware=", ".join(own.firmware), sources=(own.source,) if own.source.title else ())
    if own and any(compare("firmware", number, driver.firmware_version) == 0 for number in own.firmware):
        return (replace(row, relation="shipped-together"),)
    release = driver.firmware_release
    if isinstance(release, str) and compare("driver", release, version) == 0:
        return (row,)
    relation = _by_ranges(driver, version, driver.firmware_version)
    if relation == "out-of-range" and isinstance(release, Missing) and release.reason is not Reason.ABSENT:
        relation = release  # it might be of the same release
    return (replace(row, relation=relation),)


def _driver_version(driver: Driver, npu: Npu) -> tuple[str | Missing, str, str]:
    """The driver's release, where it was read, and the path of that fact."""
    if isinstance(driver.version, Missing) and driver.version.reason in ANOTHER_SOURCE:
        return npu.driver_version, BY_NPU_SMI, "npu.driver_version"
    return driver.version, driver.version_file, "driver.version"


def _branch(version: str | Missing) -> str:
    """The branch on which a driver's number stands if that is one of the 950's; else empty."""
    number = None if isinstance(version, Missing) else parse("driver", version)
    return number.line if number else ""


def _is_unread(family: str, version: str | Missing) -> bool:
    return isinstance(version, Missing) or parse(family, version) is None


def _is_950(npu: Npu, version: str) -> bool | Missing:
    """Whether the chips are Ascend 950; where that is not known, a number of the main line says that they are not."""
    unknown: Missing | None = None
    if isinstance(npu.chips, Missing):
        unknown = npu.chips
    else:
        for chip in npu.chips:
            if isinstance(chip.name, Missing):
                unknown = chip.name
            elif "950" in chip.name:
                return True
    return unknown if unknown is not None and _branch(version) else False


def _fit(root: Root, version: str | Missing, driver: Driver, npu: Npu, rules: Compatibility) -> Fit | Missing:
    if isinstance(root.version, Missing):
        return root.version
    if isinstance(version, Missing):
        return version
    is_950 = _is_950(npu, version)
    if isinstance(is_950, Missing):
        return is_950
    return fit(rules, root.version, version, is_950, driver.firmware_version)


def _row(
    name: str,
    root: Root,
    version: str | Missing,
    source: str,
    judged: Fit | Missing,
    severity: str | Missing,
    reads: tuple[str, ...],
) -> DriverCann:
    known = judged if isinstance(judged, Fit) else None
    nothing = judged if isinstance(judged, Missing) else NOTHING_LISTED
    return DriverCann(
        name=name,
        cann=root.version,
        root=root.path,
        selected=root.selected,
        driver=version,
        driver_source=source,
        relation=known.relation if known else nothing,
        severity=severity,
        stated_for=known.stated_for if known else nothing,
        wanted_driver=known.wanted_driver if known else nothing,
        install=known.install if known else ANY_VERSION,
        fitting_cann=known.fitting_cann if known else nothing,
        why=known.why if known else {},
        sources=known.sources if known else (),
        reads=reads,
    )


def _package(rules: Compatibility, version: str) -> Package | None:
    """What ships with this driver: the row of its exact version, else of the release that it patches."""
    exact = next((p for p in rules.packages if compare("driver", p.driver, version) == 0), None)
    return exact or next((p for p in rules.packages if covers("driver", p.driver, version)), None)


def _by_ranges(driver: Driver, version: str, firmware: str) -> str | Missing:
    """out-of-range where a printed range excludes the other; in-range where one includes it and none excludes it."""
    answers: list[bool | Missing | None] = []
    for printed, family, other in (
        (driver.firmware_range, "firmware", firmware),
        (driver.firmware_driver_range, "driver", version),
    ):
        answers.append(printed if isinstance(printed, Missing) else within(family, printed, other))
    if False in answers:
        return "out-of-range"
    unseen = next((a for a in answers if isinstance(a, Missing) and a.reason is not Reason.ABSENT), None)
    if unseen:
        return unseen
    if True in answers:
        return "in-range"
    if None in answers:
        return Missing(Reason.FAILED, f"firmware {firmware} and driver {version} cannot be compared with their ranges")
    return Missing(Reason.UNSUPPORTED, "neither version.info prints a range")
