"""What makes a file of codes fit to ship: small, whole, in both languages, found where a look-up expects it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ascend_doctor.engine.texts import LANGUAGES
from ascend_doctor.knowledge.codes import FAMILIES, FOLDER, file_of, load
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.logs import LAYERS, ROLES

LARGEST = 40 << 10
"""Bytes of a file: a look-up reads one as a whole."""


def lint(own: Sequence[Path], bilingual: bool = True) -> Iterator[str]:
    """A sentence for each fault, naming file and code."""
    for folder in own:
        for path in sorted((folder / FOLDER).glob("*.yaml")):
            family = path.name.split(".")[0]
            if family in FAMILIES:
                yield from (f"{path}: {fault}" for fault in _file(folder, path, family, bilingual))


def _file(folder: Path, path: Path, family: str, bilingual: bool) -> Iterator[str]:
    size = path.stat().st_size
    if size > LARGEST:
        yield f"{size} bytes, more than {LARGEST}; split it by what its codes begin with"
    book = load([folder])
    seen: set[str] = set()
    for code in book.every_of(path):
        if code in seen:
            yield f"{code} is given twice"
        seen.add(code)
        if file_of(folder / FOLDER, family, code) != path:
            yield f"{code} would be looked for in {file_of(folder / FOLDER, family, code)}"
        try:
            known = book.listed(family, code)
        except RuleError as error:
            yield str(error)
            continue
        if known is None:
            yield f"{code} cannot be read"
            continue
        if known.role not in ROLES or known.layer not in LAYERS:
            yield f"{code}: role {known.role} or layer {known.layer} is not known"
        if bilingual and set(known.meaning) != set(LANGUAGES):
            yield f"{code}: its meaning is wanted in {' and '.join(LANGUAGES)}"
