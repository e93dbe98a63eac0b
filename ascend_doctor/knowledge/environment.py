"""Environment variables: which names may be read at all, and what is known of each of them.

rules/environment/known.yaml is small, since every run reads it. The catalogue beside it is large, so its files are
looked through as text, and only the entries that are asked for are built.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, Source, load_yaml, source_of

Texts = Mapping[str, str]
"""Language -> text."""

FOLDER = "environment"
ALLOW_LIST, SOURCES, FORMS, CONFLICTS = "known.yaml", "sources.yaml", "forms.yaml", "conflicts.yaml"
NO_CATALOGUE = (ALLOW_LIST, SOURCES, FORMS, CONFLICTS)
JUDGED = ("choice", "integer", "number", "pattern", "ports", "address")
"""Forms that a value can be judged by; the others (folder, list, text ...) tell a reader what belongs there.

A value that a check of its own judges names it: ``judged_by: network.own-address``.
"""

LIKENESS = 0.75
"""Of the ends of two names, as difflib measures it: below, they are no slips of each other."""

_ENTRY = "\n- name: "
_CONFLICTS = re.compile(r"^- when: (.*)\n(?:[ #].*\n|\n)*", re.MULTILINE)
_NAMES = re.compile(r"[A-Za-z_]\w+(?=:)")


@dataclass(frozen=True)
class Variable:
    """``read_by``: the components whose documents or sources read it; none: nothing known reads it.

    ``values``: the form of a value, empty where it is not known; ``only_on``: kinds of chips, empty for all;
    ``since`` and ``until``: versions of its readers, "" where not established; ``obsolete``: its readers' current
    releases do not have it; ``refused``: the error code with which its reader stops at a value that does not fit;
    ``source``: as its entry names it, told by ``Environment.source``.
    """

    name: str
    family: str
    read_by: tuple[str, ...]
    meaning: Texts
    values: Mapping[str, Any]
    default: str
    since: str
    until: str
    only_on: tuple[str, ...]
    obsolete: bool
    replaced_by: str
    refused: str
    advice: tuple[Mapping[str, Any], ...]
    source: Source | str


@dataclass(frozen=True)
class Conflict:
    """Settings that do not go together. ``when``: variable -> what its value is like, None for one that is not set."""

    when: Mapping[str, str | None]
    chips: tuple[str, ...]
    severity: str
    found: Texts
    expected: Texts
    source: Source | str


@dataclass(frozen=True)
class Environment:
    """The catalogue of all folders; a later folder's entry of a name wins."""

    folders: tuple[Path, ...]

    def names(self) -> frozenset[str]:
        """All variables that the catalogue has an entry of."""
        return _names(self.folders)

    def of(self, name: str) -> Variable | None:
        """What is known of a variable. Raises RuleError for an entry that cannot be used."""
        return _variable_of(self.folders, name)

    def says(self, name: str, words: re.Pattern[str]) -> bool:
        """Whether the entry of a variable may say one of these words, without building it."""
        entry = next((found for found, _ in _found(self.folders, name)), "")
        return not isinstance(entry, str) or words.search(entry) is not None

    def near(self, name: str) -> str:
        """The known variable that ``name`` looks like, or nothing: beginnings in common say little, so ends count."""
        from difflib import SequenceMatcher

        first = name.partition("_")[0]
        best, like = "", LIKENESS
        for known in sorted(self.names()):
            if known.startswith(first) and abs(len(known) - len(name)) < 5:
                end, known_end = ends(name, known)
                ratio = SequenceMatcher(None, end, known_end).ratio() if len(known_end) > 3 else 0.0
                if ratio > like:
                    best, like = known, ratio
        return best

    def conflicts(self, names: Collection[str]) -> Iterator[Conflict]:
        """Those that name one of these variables."""
        for folder in self.folders:
            path = folder / FOLDER / CONFLICTS
            for found in _CONFLICTS.finditer(_text(path)):
                if not set(names).isdisjoint(_NAMES.findall(found[1])):
                    yield _conflict(_built(found[0], str(path)), str(path))

    def chip(self, text: str, key: str = "name") -> str:
        """The kind (a2, a3, 950 ...) of a chip that npu-smi names so; with ``soc``, of a SOC_VERSION; or nothing."""
        patterns = _forms(self.folders).get("chips", {}).items()
        return next((str(kind) for kind, forms in patterns if re.fullmatch(forms[key], text, re.IGNORECASE)), "")

    def described(self, values: Mapping[str, Any]) -> dict[str, str]:
        """A form in words, such as ``a whole number from 120 to 7200, in s``."""
        words = _forms(self.folders)
        bounds = [b for b in ("multiple_of", "unit") if b in values]
        ends = [b for b in ("min", "max") if b in values]
        bounds[:0] = ["both"] if len(ends) == 2 else ends
        parts = [words["forms"].get(values.get("form", "text"), {}), *(words["bounds"][bound] for bound in bounds)]
        given = {**values, "of": ", ".join(values.get("of", ()))}
        return {
            language: "".join(part.get(language, "") for part in parts).format(**given) for language in ("en", "zh")
        }

    def source(self, key: Source | str, name: str) -> Source:
        """The source of a variable's entry: a key of sources.yaml, or itself. Raises RuleError."""
        if isinstance(key, Source):
            return key
        for folder in reversed(self.folders):
            found = re.search(rf"^{re.escape(key)}:\n((?: .*\n)+)", _text(folder / FOLDER / SOURCES), re.MULTILINE)
            if found:
                fields = _built(found[1], f"{folder / FOLDER / SOURCES}: {key}")
                return source_of({k: str(v).replace("{name}", name) for k, v in fields.items()}, f"{SOURCES}: {key}")
        raise RuleError(f"{name}: {SOURCES} has no source {key}")


def ends(name: str, other: str) -> tuple[str, str]:
    """Two names without the words that both begin with."""
    words, other_words = name.split("_"), other.split("_")
    while len(words) > 1 and len(other_words) > 1 and words[0] == other_words[0]:
        del words[0], other_words[0]
    return "_".join(words), "_".join(other_words)


def known_env(folders: Sequence[Path]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Exact names, and beginnings of names, that all of the folders together allow to be read. Raises RuleError."""
    names: set[str] = set()
    prefixes: set[str] = set()
    for folder in folders:
        path = folder / FOLDER / ALLOW_LIST
        if path.is_file():
            document = load_yaml(path) or {}
            names.update(_words(document, "names", path))
            prefixes.update(_words(document, "prefixes", path))
    return frozenset(names), tuple(sorted(prefixes))


def load(folders: Sequence[Path]) -> Environment:
    """Reads nothing yet."""
    return Environment(tuple(folders))


def _words(document: Any, key: str, path: Path) -> list[str]:
    words = document.get(key, []) if isinstance(document, Mapping) else None
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        raise RuleError(f"{path}: {key} is no list of words; give `{key}: [NAME, NAME]`")
    return words


def _variable(entry: Mapping[str, Any], path: Path) -> Variable:
    name = str(entry.get("name"))
    where = f"{path}: {name}"
    meaning, read_by, values = entry.get("meaning"), entry.get("read_by"), entry.get("values", {})
    if not isinstance(meaning, Mapping) or not isinstance(read_by, list) or "source" not in entry:
        raise RuleError(f"{where}: give read_by: [...], meaning: {{en: ..., zh: ...}} and source: ...")
    if not isinstance(values, Mapping) or (values and "form" not in values):
        raise RuleError(f"{where}: give values: {{form: ..., ...}} as in {FORMS}")
    return Variable(
        name=name,
        family=path.stem,
        read_by=tuple(map(str, read_by)),
        meaning={str(language): str(text) for language, text in meaning.items()},
        values=values,
        default=str(entry.get("default", "")),
        since=str(entry.get("since", "")),
        until=str(entry.get("until", "")),
        only_on=tuple(map(str, entry.get("only_on", ()))),
        obsolete=bool(entry.get("obsolete", False)),
        replaced_by=str(entry.get("replaced_by", "")),
        refused=str(entry.get("refused", "")),
        advice=tuple(entry.get("advice", ())),
        source=_source(entry["source"], where),
    )


def _conflict(entry: Mapping[str, Any], where: str) -> Conflict:
    when = entry["when"]
    for key in ("severity", "found", "expected", "source"):
        if key not in entry:
            raise RuleError(f"{where}: {', '.join(when)}: give {key}")
    return Conflict(
        when={str(name): None if value is None else str(value) for name, value in when.items()},
        chips=tuple(map(str, entry.get("chips", ()))),
        severity=str(entry["severity"]),
        found=entry["found"],
        expected=entry["expected"],
        source=_source(entry["source"], where),
    )


def _source(entry: Any, where: str) -> Source | str:
    return source_of(entry, where) if isinstance(entry, Mapping) else str(entry)


@cache
def _names(folders: tuple[Path, ...]) -> frozenset[str]:
    return frozenset(name for folder in folders for path in _catalogue(folder / FOLDER) for name in _entries(path))


@cache
def _variable_of(folders: tuple[Path, ...], name: str) -> Variable | None:
    return next((_variable(_built(entry, f"{path}: {name}"), path) for entry, path in _found(folders, name)), None)


def _found(folders: tuple[Path, ...], name: str) -> Iterator[tuple[Any, Path]]:
    """The entries of a name and their files, the last folder's first."""
    for folder in reversed(folders):
        for path in reversed(_catalogue(folder / FOLDER)):
            entry = _entries(path).get(name)
            if entry is not None:
                yield entry, path


@cache
def _catalogue(folder: Path) -> tuple[Path, ...]:
    return tuple(path for path in sorted(folder.glob("*.yaml")) if path.name not in NO_CATALOGUE)


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@cache
def _forms(folders: tuple[Path, ...]) -> Mapping[str, Any]:
    """forms.yaml of all folders, part by part; a later folder's words go before."""
    merged: dict[str, Any] = {}
    for path in (folder / FOLDER / FORMS for folder in folders):
        for part, words in ((load_yaml(path) or {}) if path.is_file() else {}).items():
            merged[part] = {**merged.get(part, {}), **words}
    return merged


@cache
def _entries(path: Path) -> Mapping[str, Any]:
    """Name -> its entry, as text; a file of another layout is built as a whole. Raises RuleError."""
    text = f"\n{_text(path)}"
    parts = text.split(_ENTRY)[1:]
    found: dict[str, Any] = {part.partition("\n")[0].strip(): f"{_ENTRY}{part}" for part in parts}
    if len(found) != text.count("\n-") or not all(map(str.isidentifier, found)):
        return dict(_built_entries(load_yaml(path) or (), path))
    return found


def _built_entries(entries: Iterable[Any], path: Path) -> Iterator[tuple[str, Any]]:
    for number, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or not name:
            raise RuleError(f"{path}: entry {number + 1}: give the name of the variable")
        yield name, entry


def _built(entry: Any, where: str) -> Mapping[str, Any]:
    """An entry that was found as text: the one element of its list, or a mapping. Raises RuleError."""
    value = _parsed(entry, where) if isinstance(entry, str) else entry
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, Mapping):
        raise RuleError(f"{where}: a mapping is wanted here")
    return value


@cache
def _parsed(text: str, where: str) -> Any:
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise RuleError(f"{where}: no valid YAML: {getattr(error, 'problem', None) or error}") from None
