"""What fits together: rules/compat. CANN and HDK drivers, drivers and firmware, pairs that were reported to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, Source, source_of
from ascend_doctor.knowledge.rule_file import RuleFile, languages, severity, text, texts
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class CannRelease:
    """What the vendor says of the drivers for one CANN; ``exhaustive``: what no list has is not supported."""

    cann: str
    recommended: tuple[str, ...]
    compatible: tuple[str, ...]
    incompatible: tuple[str, ...]
    exhaustive: bool
    confidence: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class ProductDriver:
    """The first driver of a 950 product's branch for the CANN releases from ``cann_from`` to below ``cann_below``."""

    product: str
    driver: str
    cann_from: str
    cann_below: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class KnownBad:
    """A pair that was reported to fail; ``firmware`` is empty where the report does not depend on it."""

    cann_from: str
    cann_below: str
    driver: str
    firmware: str
    severity: str
    symptom: Mapping[str, str]
    source: Source


@dataclass(frozen=True)
class Package:
    """Firmware numbers that belong to a driver."""

    driver: str
    firmware: tuple[str, ...]
    source: Source


@dataclass(frozen=True)
class Compatibility:
    """``relations``: what each relation of a driver to a CANN means; ``hdk_sequence``: the HDK releases, oldest first;
    ``hdk_window``: how many of them stay compatible.
    """

    releases: tuple[CannRelease, ...]
    ascend950: tuple[ProductDriver, ...]
    known_bad: tuple[KnownBad, ...]
    relations: Mapping[str, Mapping[str, str]]
    hdk_sequence: tuple[str, ...]
    hdk_window: int
    hdk_window_source: Source
    packages: tuple[Package, ...]


def load(folders: Sequence[Path]) -> Compatibility:
    """All folders together. Raises RuleError for what is not readable, and for a release that is there twice."""
    releases: dict[str, CannRelease] = {}
    ascend950: list[ProductDriver] = []
    known_bad: list[KnownBad] = []
    packages: list[Package] = []
    relations: dict[str, Mapping[str, str]] = {}
    sequence: tuple[str, ...] = ()
    window, window_source = 0, Source("", "", "unverified")
    for folder in folders:
        path = folder / "compat" / "cann_driver.yaml"
        if path.is_file():
            rules = RuleFile(path)
            for entry, where in rules.entries("releases"):
                release = _release(entry, where, rules)
                if release.cann in releases:
                    raise RuleError(
                        f"{where}: CANN {release.cann} is there already; give it another CANN or leave it out"
                    )
                releases[release.cann] = release
            ascend950 += [_product(entry, where, rules) for entry, where in rules.entries("ascend950")]
            relations.update(_relations(rules))
            known_bad += [_known_bad(entry, where) for entry, where in rules.entries("known_bad")]
        path = folder / "compat" / "hdk.yaml"
        if path.is_file():
            rules = RuleFile(path)
            sequence += texts(rules.content, "sequence", str(path))
            packages += [_package(entry, where) for entry, where in rules.entries("packages")]
            if "window" in rules.content:
                window, window_source = _window(rules.content["window"], f"{path}: window")
    return Compatibility(
        tuple(releases.values()),
        tuple(ascend950),
        tuple(known_bad),
        relations,
        sequence,
        window,
        window_source,
        tuple(packages),
    )


def _release(entry: Mapping[str, Any], where: str, rules: RuleFile) -> CannRelease:
    return CannRelease(
        cann=text(entry, "cann", where),
        recommended=texts(entry, "recommended", where),
        compatible=texts(entry, "compatible", where),
        incompatible=texts(entry, "incompatible", where),
        exhaustive=entry.get("exhaustive", False) is True,
        confidence=source_of(entry, where).confidence,
        sources=rules.named(entry, where),
    )


def _product(entry: Mapping[str, Any], where: str, rules: RuleFile) -> ProductDriver:
    return ProductDriver(
        product=text(entry, "product", where),
        driver=text(entry, "driver", where),
        cann_from=text(entry, "cann_from", where),
        cann_below=text(entry, "cann_below", where, ""),
        sources=rules.named(entry, where),
    )


def _known_bad(entry: Mapping[str, Any], where: str) -> KnownBad:
    return KnownBad(
        cann_from=text(entry, "cann_from", where),
        cann_below=text(entry, "cann_below", where, ""),
        driver=text(entry, "driver", where),
        firmware=text(entry, "firmware", where, ""),
        severity=severity(entry, where),
        symptom=languages(entry.get("symptom"), f"{where}: symptom"),
        source=source_of(entry, where),
    )


def _relations(rules: RuleFile) -> dict[str, Mapping[str, str]]:
    found = rules.content.get("relations", {})
    return {str(name): languages(words, f"{rules.path}: relations.{name}") for name, words in found.items()}


def _package(entry: Mapping[str, Any], where: str) -> Package:
    return Package(text(entry, "driver", where), texts(entry, "firmware", where), source_of(entry, where))


def _window(entry: Any, where: str) -> tuple[int, Source]:
    releases = entry.get("releases") if isinstance(entry, Mapping) else None
    if not isinstance(releases, int):
        raise RuleError(f"{where}: give {{releases: NUMBER, title: ..., url: ..., confidence: ...}}")
    return releases, source_of(entry, where)
