"""What makes a signature fit to ship: words that we know, anchors that hold, a quick regex, samples that prove it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ascend_doctor.engine.signature_patterns import SECONDS, endless, implied, slowest
from ascend_doctor.engine.texts import LANGUAGES
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.knowledge.signatures import Signature, Signatures, Told, load
from ascend_doctor.logs import KINDS, LAYERS, ROLES

SEVERITIES = ("error", "warning", "info")
SHORTEST = 4
"""Characters of an anchor: a shorter one is in too many lines."""
LEAST_SAMPLES = 2
LONGEST_REGEX = 900


def lint(folders: Sequence[Path], own: Sequence[Path], bilingual: bool = True) -> Iterator[str]:
    """A sentence for each fault in the folders that are our own to judge, naming file and signature.

    ``folders``: all, since signatures name each other. ``bilingual``: each text in both languages.
    """
    book = load(folders)
    for one in book.every:
        if any(one.where.startswith(f"{folder}/") for folder in own):
            yield from (f"{one.where}: {fault}" for fault in faults(one, book, bilingual))


def faults(signature: Signature, book: Signatures, bilingual: bool = True, tried: bool = True) -> Iterator[str]:
    """What is wrong with one signature. ``tried``: its regex is also run on hostile lines."""
    yield from _words(signature, book)
    try:
        told = book.told(signature)
        yield from _texts(told, LANGUAGES if bilingual else ())
        yield from _pattern(signature, told, tried)
    except (RuleError, re.error, ValueError) as error:
        yield str(error)


def _words(signature: Signature, book: Signatures) -> Iterator[str]:
    if not re.fullmatch(r"[a-z0-9]+\.[a-z0-9][a-z0-9.-]*", signature.id):
        yield f"the id {signature.id} is not of the form topic.name"
    for word, known, what in (
        (signature.layer, LAYERS, "layer"),
        (signature.role, ROLES[:-1], "role"),
        (signature.severity, SEVERITIES, "severity"),
    ):
        if word not in known:
            yield f"{what} is one of {', '.join(known)}, not {word}"
    for kind in signature.kinds:
        if kind not in KINDS:
            yield f"kind is one of {', '.join(KINDS)}, not {kind}"
    causes = {one.cause for one in book.every}
    for other in (*signature.explains, *signature.explained_by):
        if not other.startswith("code:") and other not in causes and book.of(other) is None:
            yield f"explains or is explained by {other}, which is no id, no cause and no code:..."


def _texts(told: Told, languages: Sequence[str]) -> Iterator[str]:
    for name, texts in (("title", told.title), ("meaning", told.meaning), ("why", told.why)):
        if texts and languages and set(texts) != set(languages):
            yield f"{name} is wanted in {' and '.join(languages)}"
    if not told.remedy:
        yield "says nothing about what to do"
    if not told.sources:
        yield "names no source"


def _pattern(signature: Signature, told: Told, tried: bool) -> Iterator[str]:
    if len(signature.regex) > LONGEST_REGEX:
        yield f"its regex is longer than {LONGEST_REGEX} characters"
    for anchor in signature.anchors:
        if len(anchor) < SHORTEST:
            yield f"its anchor {anchor!r} is shorter than {SHORTEST} characters"
    if not implied(signature.regex, signature.anchors):
        yield "its regex finds lines without any of its anchors, which would never be looked at"
    repetition = endless(signature.regex)
    if repetition:
        yield f"its regex has {repetition}; bound it, such as {{0,300}}"
    for samples, wanted, what in ((told.match, True, "must match"), (told.no_match, False, "must not match")):
        if len(samples) < LEAST_SAMPLES:
            yield f"has {len(samples)} samples that {what}; give {LEAST_SAMPLES}"
        for line in samples:
            if (signature.pattern.search(line) is not None) is not wanted:
                yield f"this sample {what}: {line[:120]}"
            elif wanted and not any(anchor in line for anchor in signature.anchors):
                yield f"this sample holds no anchor: {line[:120]}"
    if tried and not repetition and slowest(signature.regex, told.match) > SECONDS:
        yield f"its regex needs more than {SECONDS} s for a hostile line"
