"""Fault codes of NPUs: rules/codes/npu-faults.yaml, and the boards on which some are harmless: npu-harmless.yaml.

Most hosts report no code, so nothing is read before one is looked up, and then only the line of that code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, Source, load_yaml, source_of
from ascend_doctor.knowledge.remedies import RemedyStep, Texts, step_of
from ascend_doctor.records import dataclass

CODES = "codes/npu-faults.yaml"
HARMLESS = "codes/npu-harmless.yaml"
_ENTRIES = re.compile(r"^entries:[ \t]*\n", re.MULTILINE)
_CODE_OF_LINE = re.compile(r"""^  ["']?(?:0x)?([0-9A-Fa-f]{8,9})["']?:""", re.MULTILINE)


@dataclass(frozen=True)
class Advice:
    """What a level of faults means and what to do about it."""

    grade: str
    advice: Texts
    remedy: tuple[RemedyStep, ...]


@dataclass(frozen=True)
class HealthWord:
    """What a word of npu-smi's Health column means; ``severity``: none, info, warning or error."""

    severity: str
    meaning: Texts
    source: Source


@dataclass(frozen=True)
class Fault:
    """One code. ``name`` is empty where no public text tells what it means; ``isolate_after``: times in 24 hours."""

    code: str
    kind: str
    module: str
    level: str
    name: Texts
    isolate_after: int | None
    advice: Advice
    source: Source


@dataclass(frozen=True)
class Harmless:
    """Chips that are known to work though npu-smi calls them faulty."""

    names: tuple[str, ...]
    health: tuple[str, ...]
    codes: tuple[str, ...]
    why: Texts
    source: Source


@dataclass(frozen=True)
class Faults:
    """Looks codes up; of several folders the last one that knows a code counts."""

    folders: tuple[Path, ...]

    def of(self, code: str) -> Fault | None:
        """The fault of a code such as 80E3A203 or 0x80e3a203. Raises RuleError for an entry that cannot be read."""
        wanted = normal(code)
        for folder in reversed(self.folders):
            book = _book(folder / CODES)
            if book and (entry := book.entry(wanted)) is not None:
                return self._fault(wanted, entry, book)
        return None

    def unlisted(self) -> Advice:
        """What to do about a chip that names no code, or one that is not listed."""
        for folder in reversed(self.folders):
            book = _book(folder / CODES)
            if book and "unlisted" in book.head:
                return _advice(book.head["unlisted"], f"{book.path}: unlisted")
        raise RuleError(f"{CODES}: no folder of rules has an entry `unlisted`")

    def health(self, word: str) -> HealthWord:
        """The meaning of a word of the Health column, that of ``other`` where it is not known."""
        for wanted in (word.lower(), "other"):
            for folder in reversed(self.folders):
                book = _book(folder / CODES)
                words = book.head.get("health", {}) if book else {}
                for name, entry in words.items():
                    if str(name).lower() == wanted:
                        where = f"{folder / CODES}: health.{name}"
                        return HealthWord(str(entry["severity"]), entry["meaning"], source_of(entry, where))
        raise RuleError(f"{CODES}: no folder of rules has an entry `health.other`")

    def listed(self, beginning: str = "") -> Iterator[str]:
        """All codes that the folders know, in order; or those in the files where codes with that beginning are."""
        seen: set[str] = set()
        for folder in self.folders:
            book = _book(folder / CODES)
            for code in book.codes(beginning) if book else ():
                if code not in seen:
                    seen.add(code)
                    yield code

    def exempt(self, name: str, health: str) -> tuple[Harmless, ...]:
        """Those that may apply to a chip of that name in that state: its codes decide."""
        return tuple(h for folder in self.folders for h in _harmless(folder / HARMLESS) if _is_of(h, name, health))

    def harmless(self, name: str, health: str, codes: Collection[str]) -> Harmless | None:
        """Why a chip works though it is not OK; None where that is not known of each of its codes."""
        given = {normal(code) for code in codes}
        return next((h for h in self.exempt(name, health) if given and given <= set(h.codes)), None)

    def _fault(self, code: str, entry: Mapping[str, Any], book: _Book) -> Fault:
        where = f"{book.path}: {code}"
        level = str(entry.get("level", ""))
        advice = self._level(level) if level else self.unlisted()
        if advice is None:
            raise RuleError(f"{where}: level {level} is not described below `levels`")
        return Fault(
            code=code,
            kind=str(entry.get("kind", "health")),
            module=str(entry.get("module", "")),
            level=level,
            name={language: str(entry[language]) for language in ("en", "zh") if language in entry},
            isolate_after=entry.get("isolate_after"),
            advice=advice,
            source=source_of(entry if "confidence" in entry else book.head.get("source", {}), where),
        )

    def _level(self, level: str) -> Advice | None:
        for folder in reversed(self.folders):
            book = _book(folder / CODES)
            if book and level in book.head.get("levels", {}):
                return _advice(book.head["levels"][level], f"{book.path}: levels.{level}")
        return None


@dataclass(frozen=True)
class _Book:
    """A file of codes: its head is read as a whole, its entries one by one."""

    path: Path
    head: Mapping[str, Any]
    entries: str

    def entry(self, code: str) -> Mapping[str, Any] | None:
        """The line of a code, and lines that are set in below it."""
        line = re.compile(rf"""^  ["']?(?:0x)?{code}["']?:[^\n]*(?:\n    [^\n]*)*""", re.M | re.I)
        for path, entries in self._files(code):
            found = line.search(entries)
            if found is not None:
                return _entry(found[0], f"{path}: {code}")
        return None

    def codes(self, beginning: str = "") -> Iterator[str]:
        """All of them, or those of the files where codes with that beginning are."""
        for _, entries in self._files(beginning):
            yield from (match[1].upper() for match in _CODE_OF_LINE.finditer(entries))

    def _files(self, code: str) -> Iterator[tuple[Path, str]]:
        """The own entries, and those of the files beside it that are called after how the code begins."""
        yield self.path, self.entries
        for path in sorted(self.path.parent.glob(f"{self.path.stem}.*.yaml")):
            if code.startswith(path.name.split(".")[1]) or not code:
                yield path, _entries(path)


def load(folders: Sequence[Path]) -> Faults:
    """Reads nothing yet."""
    return Faults(tuple(folders))


def normal(code: str) -> str:
    """``0x80e3a203`` as ``80E3A203``."""
    bare = code.strip().upper()
    bare = bare[2:] if bare.startswith("0X") else bare
    return bare if re.fullmatch(r"[0-9A-F]{8,9}", bare) else "-"


@cache
def _book(path: Path) -> _Book | None:
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    parts = _ENTRIES.split(text, maxsplit=1)
    return _Book(path, _yaml(parts[0], str(path)), parts[1] if len(parts) > 1 else "")


def _entry(text: str, where: str) -> Mapping[str, Any]:
    value = next(iter(_yaml(text, where).values()))
    if not isinstance(value, Mapping):
        raise RuleError(f"{where}: write {{kind: ..., module: ..., level: ..., en: ..., zh: ...}}")
    return value


@cache
def _entries(path: Path) -> str:
    return _ENTRIES.split(path.read_text(encoding="utf-8"), maxsplit=1)[-1]


def _yaml(text: str, where: str) -> Mapping[str, Any]:
    import yaml

    try:
        value = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise RuleError(f"{where}: no valid YAML: {getattr(error, 'problem', None) or error}") from None
    if not isinstance(value, Mapping):
        raise RuleError(f"{where}: a mapping is wanted here")
    return value


@cache
def _harmless(path: Path) -> tuple[Harmless, ...]:
    if not path.is_file():
        return ()
    found = []
    for n, entry in enumerate(load_yaml(path) or ()):
        where = f"{path}: entry {n + 1}"
        if not isinstance(entry, Mapping) or not all(entry.get(key) for key in ("names", "health", "codes", "why")):
            raise RuleError(f"{where}: names, health, codes and why are wanted")
        found.append(
            Harmless(
                names=tuple(str(name).lower() for name in entry["names"]),
                health=tuple(str(word).lower() for word in entry["health"]),
                codes=tuple(normal(str(code)) for code in entry["codes"]),
                why=dict(entry["why"]),
                source=source_of(entry, where),
            )
        )
    return tuple(found)


def _is_of(harmless: Harmless, name: str, health: str) -> bool:
    bare = name.lower()
    bare = bare[len("ascend") :] if bare.startswith("ascend") else bare
    return bare in harmless.names and health.lower() in harmless.health


def _advice(entry: Mapping[str, Any], where: str) -> Advice:
    if not isinstance(entry.get("advice"), Mapping) or not isinstance(entry.get("remedy"), Sequence):
        raise RuleError(f"{where}: advice and remedy are wanted")
    return Advice(str(entry.get("grade", "")), entry["advice"], tuple(step_of(step, where) for step in entry["remedy"]))
