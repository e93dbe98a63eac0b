"""What our own rules must keep beyond what the loader demands: both languages, sources, hosts, honest severities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ascend_doctor.engine.checks import Check, FailEntry, From, Step
from ascend_doctor.engine.rulebook import Rulebook
from ascend_doctor.engine.texts import LANGUAGES
from ascend_doctor.knowledge.reading import CONFIDENCES, NEVER_AN_ERROR
from ascend_doctor.knowledge.yaml_nodes import Place, composed

NEEDED_TESTS = ("pass", "fail", "unknown")
VERSIONS = ("version", "since", "until", "date", "firmware", "driver", "cann")
"""Keys whose values are versions or dates, which YAML must not take for numbers."""


def lint(checks: Sequence[Check], book: Rulebook, bilingual: bool = True) -> Iterator[str]:
    """Complaints, each ``FILE:LINE:COLUMN: what, and what to do``. Raises RuleError for files that cannot be read.

    ``bilingual``: each text in all languages; a user's rules need one only.
    """
    for check in checks:
        yield from (str(check.place.error(f"{check.id}: {wrong}")) for wrong in _check(check))
        if bilingual:
            yield from _languages(check.place)
    for folder in book.rules:
        for file in sorted(folder.rglob("*.yaml")):
            root = None if "checks" in file.parts[len(folder.parts) :] else composed(file)
            if root is not None:
                yield from _rows(root, bilingual)


def _check(check: Check) -> Iterator[str]:
    if check.sources is None and not all(entry.sources for entry in check.fail):
        yield "no sources; name where the knowledge is from"
    if check.why is None and not all(entry.why for entry in check.fail):
        yield "no why; say what happens otherwise and what the change does not cure"
    for verdict in NEEDED_TESTS:
        if not check.tests.get(verdict):
            yield f"tests name no host that gives {verdict}"
    for number, entry in enumerate(check.fail, 1):
        yield from (f"fail entry {number}: {wrong}" for wrong in _entry(check, entry))


def _entry(check: Check, entry: FailEntry) -> Iterator[str]:
    remedy = entry.remedy if entry.remedy is not None else check.remedy
    if entry.severity in ("error", "warning") and not remedy:
        yield "no remedy; say what to type"
    if isinstance(remedy, tuple):
        yield from (wrong for step in remedy for wrong in _step(step))
    sources = entry.sources if entry.sources is not None else check.sources
    weak = isinstance(sources, tuple) and all(source.confidence in NEVER_AN_ERROR for source in sources)
    if entry.severity == "error" and weak:
        yield "severity error, but no source is better than unverified"
    if entry.expected is None and not isinstance(entry.found, From):
        yield "no expected; a reader compares found with it"


def _step(step: Step) -> Iterator[str]:
    if step.effect == "data-loss" and step.undo is None and step.command is None:
        yield "a step that loses data names no command"


def _languages(place: Place) -> Iterator[str]:
    """Every map with one of our languages needs all of them."""
    for inner in place.below():
        given = set(inner.keys())
        if given & set(LANGUAGES) and not set(LANGUAGES) <= given:
            yield str(inner.error(f"the text is missing in {', '.join(sorted(set(LANGUAGES) - given))}"))


def _rows(root: Place, bilingual: bool) -> Iterator[str]:
    """Rows of rules/: versions in quotes, known confidences, no error that rests on nothing."""
    if bilingual:
        yield from _languages(root)
    for place in root.below():
        row = place.scalars()
        confidence, severity = row.get("confidence"), row.get("severity")
        if confidence is not None and confidence.text() not in CONFIDENCES:
            yield str(confidence.error(f"{confidence.text()} is none of {', '.join(CONFIDENCES)}"))
        unsure = confidence is not None and confidence.text() in NEVER_AN_ERROR
        if severity is not None and severity.text() == "error" and unsure and confidence is not None:
            yield str(severity.error(f"severity error on a row that is {confidence.text()}"))
        yield from _unquoted(row)


def _unquoted(row: Mapping[str, Place]) -> Iterator[str]:
    for name in VERSIONS:
        place = row.get(name)
        if place is not None and place.is_number:
            yield str(place.error(f"{name}: put {place.text()} in quotes; YAML takes it for a number"))
