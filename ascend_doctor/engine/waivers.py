"""Waivers: findings that somebody answers for until a day. Demoted, never hidden."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from ascend_doctor.engine.findings import Finding, Note, WaiverUsed
from ascend_doctor.knowledge.notes import note_text
from ascend_doctor.knowledge.yaml_nodes import Place, composed
from ascend_doctor.records import dataclass

KEYS = ("check", "subject", "reason", "owner", "expires")


@dataclass(frozen=True)
class Waiver:
    """``check`` and ``subject`` are globs; ``expires``: the last day on which it holds."""

    check: str
    subject: str
    reason: str
    owner: str
    expires: date
    place: str

    def covers(self, finding: Finding) -> bool:
        return fnmatch.fnmatchcase(finding.check, self.check) and fnmatch.fnmatchcase(finding.subject, self.subject)


def load_waivers(files: Iterable[Path]) -> tuple[Waiver, ...]:
    """All waivers of the files. Raises RuleError for the first thing that is wrong."""
    found = []
    for file in files:
        root = composed(file)
        found += [_waiver(place) for place in (root.items() if root else ())]
    return tuple(found)


def _waiver(place: Place) -> Waiver:
    keys = place.mapping(KEYS, ("check", "reason", "owner", "expires"))
    try:
        expires = date.fromisoformat(keys["expires"].text())
    except ValueError:
        raise keys["expires"].error("give the last day as 2027-03-31") from None
    for name in ("reason", "owner"):
        if not keys[name].text().strip():
            raise keys[name].error(f"{name} is empty")
    return Waiver(
        check=keys["check"].text(),
        subject=keys["subject"].text() if "subject" in keys else "*",
        reason=keys["reason"].text(),
        owner=keys["owner"].text(),
        expires=expires,
        place=f"{place.file}:{place.line}",
    )


def waived(
    findings: Sequence[Finding], waivers: Sequence[Waiver], today: date, asked: Collection[str], rules: Sequence[Path]
) -> tuple[list[Finding], list[Note]]:
    """Demotes the fails that a valid waiver covers; notes for waivers that expired, or that cover nothing.

    ``asked``: the checks of this run: a waiver for another one is not called unused.
    """
    valid = [w for w in waivers if w.expires >= today]
    notes = [_note("waiver-expired", waiver, rules) for waiver in waivers if waiver.expires < today]
    used: set[str] = set()
    found = []
    for finding in findings:
        waiver = next((w for w in valid if finding.verdict == "fail" and w.covers(finding)), None)
        if waiver:
            used.add(waiver.place)
            days = (waiver.expires - today).days
            mark = WaiverUsed(waiver.reason, waiver.owner, waiver.expires.isoformat(), days)
            finding = replace(finding, verdict="waived", waiver=mark)
        found.append(finding)
    for waiver in valid:
        about = any(fnmatch.fnmatchcase(check, waiver.check) for check in asked)
        if waiver.place not in used and about:
            notes.append(_note("waiver-unused", waiver, rules))
    return found, notes


def _note(kind: str, waiver: Waiver, rules: Sequence[Path]) -> Note:
    values = {"place": waiver.place, "check": waiver.check, "subject": waiver.subject, "expires": waiver.expires}
    return Note(kind, note_text(rules, kind, values))
