"""Combinations that were reported to fail and that no other pair of parts judges: known_bad.yaml, ``when``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ascend_doctor.derive import rows
from ascend_doctor.derive.pair import FITS, Judged, Pair, pair, told
from ascend_doctor.derive.parts import Part, cann_in_use, chip_families, chip_part, meets, package
from ascend_doctor.facts.cann import Cann
from ascend_doctor.facts.driver import Driver
from ascend_doctor.facts.glibc import Glibc
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.chips import Chips, Family
from ascend_doctor.knowledge.pairs import Pairs, Report

NAMES = {"mooncake": "mooncake_transfer_engine"}
PRESENT = "present"


@rows("compat.known_bad")
def known_bad(
    cann: Cann,
    python: TargetPython,
    driver: Driver,
    glibc: Glibc,
    npu: Npu,
    pci: Pci,
    chips: Chips,
    pairs: Pairs,
) -> tuple[Pair, ...] | Missing:
    """One row for each report that is met, or may be; where there is none, one row that says so."""
    if isinstance(python.packages, Missing):
        return python.packages
    root, families = cann_in_use(cann), chip_families(npu, pci, chips)
    others = {
        "arch": Part("arch", python.machine, "", "python.machine"),
        "cann": root if isinstance(root, Part) else Part("cann", root, "", "cann.roots"),
        "chip": chip_part(npu, pci, chips),
        "driver": Part("driver", driver.version, driver.version_file, "driver.version"),
        "glibc": Part("glibc", glibc.version, "", "glibc.version"),
    }
    found = []
    for report in pairs.reports.values():
        parts = {name: others.get(name) or package(python, NAMES.get(name, name)) for name in report.when}
        if not report.when or None in parts.values() or _is_elsewhere(others, report):
            continue
        row = _row(report, {name: part for name, part in parts.items() if part}, families, pairs)
        found += [row] if row else []
    return tuple(found) or (replace(pair([], Judged(FITS, ""), pairs), name="versions"),)


def _is_elsewhere(others: Mapping[str, Part], report: Report) -> bool:
    """Whether a part that the report is about is known not to be here."""
    versions = [others[name].version for name in report.when if name in others]
    return any(isinstance(v, Missing) and v.reason in (Reason.ABSENT, Reason.UNSUPPORTED) for v in versions)


def _row(
    report: Report, parts: Mapping[str, Part], families: tuple[Family, ...] | Missing, pairs: Pairs
) -> Pair | None:
    """None where it is not met; unknown where a part that nobody could see might still meet it."""
    unseen: Missing | None = None
    for name, condition in report.when.items():
        part = parts[name]
        if isinstance(part.version, Missing):
            unseen = part.version
        elif not _met(name, condition, part.version, families):
            return None
    if unseen is not None:
        return replace(pair(list(parts.values()), unseen, pairs, components=report.pair), name=report.id)
    return told(report, list(parts.values()), pairs)


def _met(name: str, condition: str, version: str, families: tuple[Family, ...] | Missing) -> bool:
    if name == "chip":
        return isinstance(families, tuple) and any(family.family in condition.split("|") for family in families)
    if condition == PRESENT or name == "arch":
        return condition in (PRESENT, version)
    return meets(name, condition, version) is True
