"""What the vendor's tables say of one CANN and one driver: the relation, how bad it is, and what would fit instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.compatibility import CannRelease, Compatibility, KnownBad
from ascend_doctor.knowledge.reading import NEVER_AN_ERROR, Source
from ascend_doctor.records import dataclass
from ascend_doctor.versions import Version, compare, covers, order, parse, release_of

RANK = {"info": 0, "warning": 1, "error": 2}

NOTHING_LISTED = Missing(Reason.ABSENT, "no vendor table names one")

ANY_VERSION = "VERSION"
"""In a command to type, where no single version is known."""


@dataclass(frozen=True)
class Fit:
    """How a driver stands to a CANN.

    ``relation``: recommended, compatible, incompatible, older-than-listed, older, window, newer, in-between, unlisted.
    ``severity`` is empty where there is nothing to say. ``stated_for`` is the release whose row was used: the CANN
    itself, or the nearest one with a statement. ``why``: what the relation means, and what was reported of this pair.
    """

    relation: str
    severity: str
    stated_for: str | Missing
    wanted_driver: str | Missing
    install: str
    fitting_cann: str | Missing
    why: Mapping[str, str]
    sources: tuple[Source, ...]


def fit(rules: Compatibility, cann: str, driver: str, is_950: bool, firmware: str | Missing) -> Fit | Missing:
    """Missing(failed) where one of the two is no version that the vendor's documents know; later reports count more."""
    found, number = parse("cann", cann), parse("driver", driver)
    if found is None or found.wildcard:
        return Missing(Reason.FAILED, f"{cann} is no CANN version; known are {_ends(r.cann for r in rules.releases)}")
    if number is None:
        return Missing(Reason.FAILED, f"{driver} is no driver version; known are {_ends(rules.hdk_sequence)}")
    judged = _by_product(rules, found, number) if is_950 else _by_table(rules, found, number)
    reported = [bad for bad in rules.known_bad if _meets(bad, found, driver, firmware)]
    if reported:
        judged = _with_report(judged, reported[-1])
    return replace(judged, fitting_cann=_fitting_cann(rules, driver, is_950))


def release_name(found: Version) -> str:
    """The release that every look-up uses: of a preview the one that it precedes; empty for an internal build."""
    return release_of(found)


def _with_report(judged: Fit, bad: KnownBad) -> Fit:
    """A report raises the level, never lowers it; where the lists say worse, it adds nothing."""
    if RANK[judged.severity or "info"] > RANK[bad.severity]:
        return judged
    why = {language: f"{judged.why.get(language, '')} {text}".strip() for language, text in bad.symptom.items()}
    return replace(judged, severity=bad.severity, why=why, sources=(*judged.sources, bad.source))


def _by_table(rules: Compatibility, found: Version, driver: Version) -> Fit:
    name = release_name(found)
    own = next((r for r in rules.releases if name and compare("cann", r.cann, name) == 0), None)
    if own and (own.recommended or own.exhaustive or _listed(own.compatible, driver)):
        return _judged(rules, own, driver, "error")
    near = _neighbour(rules, found)
    if near is None:
        return _stated(rules, "unlisted", "info", None, NOTHING_LISTED, own.sources if own else ())
    judged = _judged(rules, near, driver, "warning")
    note = rules.relations.get("nearest", {})
    why = {language: f"{note.get(language, '')} {text}".strip() for language, text in judged.why.items()}
    return replace(judged, why=why)


def _judged(rules: Compatibility, release: CannRelease, driver: Version, at_most: str) -> Fit:
    """What this row says; an unverified row never makes an error."""
    relation, severity = _relation(rules, release, driver)
    if release.confidence in NEVER_AN_ERROR:
        at_most = "warning"
    if severity and RANK[severity] > RANK[at_most]:
        severity = at_most
    listed = tuple(dict.fromkeys((*release.recommended, *release.compatible)))
    sources = (*release.sources, rules.hdk_window_source) if relation in ("window", "older") else release.sources
    return _stated(rules, relation, severity, release, ", ".join(listed) or NOTHING_LISTED, sources)


def _stated(
    rules: Compatibility,
    relation: str,
    severity: str,
    release: CannRelease | None,
    wanted: str | Missing,
    sources: tuple[Source, ...],
) -> Fit:
    return Fit(
        relation=relation,
        severity=severity,
        stated_for=release.cann if release else NOTHING_LISTED,
        wanted_driver=wanted,
        install=_to_install(rules, release) if release else ANY_VERSION,
        fitting_cann=NOTHING_LISTED,
        why=rules.relations.get(relation, {}),
        sources=sources,
    )


def _relation(rules: Compatibility, release: CannRelease, driver: Version) -> tuple[str, str]:
    if _listed(release.recommended, driver):
        return "recommended", ""
    if _listed(release.compatible, driver):
        return "compatible", "info"
    if _listed(release.incompatible, driver):
        return "incompatible", "error"
    listed = (*release.recommended, *release.compatible) if release.exhaustive else release.recommended
    orders = {compare("driver", str(driver), entry) for entry in listed} - {None}
    if not orders:
        return "unlisted", "info"
    if release.exhaustive:
        relation = "older-than-listed" if orders == {-1} else "newer" if orders == {1} else "in-between"
        return relation, "error" if relation == "older-than-listed" else "info"
    if orders != {-1}:
        return "newer", "info"
    oldest = min(_place(rules.hdk_sequence, entry) for entry in listed)
    distance = oldest - _place(rules.hdk_sequence, str(driver))
    return ("window", "info") if distance <= rules.hdk_window else ("older", "warning")


def _place(sequence: Sequence[str], driver: str) -> int:
    """The place of the greatest HDK release that is not newer; -1 before the first one."""
    return max((i for i, release in enumerate(sequence) if compare("driver", release, driver) != 1), default=-1)


def _neighbour(rules: Compatibility, found: Version) -> CannRelease | None:
    """The nearest CANN of the same X.Y with a recommended driver: the last older one, else the first newer one."""
    same = [r for r in rules.releases if r.recommended and _same_minor(r.cann, found)]
    older = [r for r in same if compare("cann", r.cann, str(found)) == -1]
    newer = [r for r in same if compare("cann", r.cann, str(found)) == 1]
    if older:
        return older[-1]
    return newer[0] if newer else same[-1] if same else None


def _same_minor(cann: str, found: Version) -> bool:
    other = parse("cann", cann)
    return other is not None and other.key[:3] == found.key[:3]


def _by_product(rules: Compatibility, found: Version, driver: Version) -> Fit:
    """A 950: its product's branch decides, never the number; which product it is, no file says."""
    rows = [p for p in rules.ascend950 if _from_to(found, p.cann_from, p.cann_below)]
    wanted = ", ".join(f"{p.driver} ({p.product})" for p in rows) or NOTHING_LISTED
    fitting = [p for p in rows if compare("driver", str(driver), p.driver) in (0, 1)]
    own = next((r for r in rules.releases if compare("cann", r.cann, release_name(found)) == 0), None)
    listed = not fitting and own is not None and bool(driver.line) and _listed(own.compatible, driver)
    if listed and own:
        relation, severity, sources = "compatible", "info", own.sources
    else:
        relation, severity = ("recommended", "") if fitting else ("unlisted", "info")
        sources = tuple(dict.fromkeys(s for p in fitting or rows for s in p.sources))
    judged = _stated(rules, relation, severity, own, wanted, sources)
    return replace(judged, install=rows[0].driver.lower() if len(rows) == 1 else ANY_VERSION)


def _from_to(found: Version, first: str, below: str) -> bool:
    """Whether the release of a CANN is from ``first`` to below ``below``; an internal build goes by its X.Y."""
    name = release_name(found)
    release = parse("cann", name) if name else found
    start, end = parse("cann", first), parse("cann", below) if below else None
    if release is None or start is None:
        return False
    after = order(release, start) in (0, 1) or (not name and release.key[:3] == start.key[:3])
    return after and (end is None or order(release, end) == -1)


def _meets(bad: KnownBad, cann: Version, driver: str, firmware: str | Missing) -> bool:
    same_firmware = not bad.firmware or compare("firmware", bad.firmware, str(firmware)) == 0
    return same_firmware and covers("driver", bad.driver, driver) and _from_to(cann, bad.cann_from, bad.cann_below)


def _listed(entries: Iterable[str], driver: Version) -> bool:
    return any(covers("driver", entry, str(driver)) for entry in entries)


def _to_install(rules: Compatibility, release: CannRelease) -> str:
    """One exact driver version that fits, for the command to type."""
    near = None if release.recommended else _neighbour_of(rules, release)
    listed = (*release.recommended, *(near.recommended if near else ()), *reversed(release.compatible))
    return next((entry.lower() for entry in listed if not entry.lower().endswith("x")), ANY_VERSION)


def _neighbour_of(rules: Compatibility, release: CannRelease) -> CannRelease | None:
    found = parse("cann", release.cann)
    return _neighbour(rules, found) if found else None


def _fitting_cann(rules: Compatibility, driver: str, is_950: bool) -> str | Missing:
    """The newest CANN releases that this driver serves, newest first."""
    number = parse("driver", driver)
    if number is None:
        return NOTHING_LISTED
    if is_950:
        fits = [r.cann for r in rules.releases if _product_serves(rules, r.cann, driver)]
    else:
        fits = [r.cann for r in rules.releases if _listed(r.recommended, number)]
        fits = fits or [r.cann for r in rules.releases if _listed(r.compatible, number)]
    return ", ".join(reversed(fits[-3:])) or NOTHING_LISTED


def _product_serves(rules: Compatibility, cann: str, driver: str) -> bool:
    found = parse("cann", cann)
    return found is not None and any(
        compare("driver", driver, p.driver) in (0, 1) and _from_to(found, p.cann_from, p.cann_below)
        for p in rules.ascend950
    )


def _ends(names: Iterable[str]) -> str:
    listed = tuple(names)
    return f"{listed[0]} to {listed[-1]}" if listed else "none"
