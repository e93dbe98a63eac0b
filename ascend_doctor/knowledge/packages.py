"""What to make of Python packages: rules/compat/packages.yaml. Demands that are judged elsewhere, wrong names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, Source, load_yaml, source_of
from ascend_doctor.records import dataclass

Texts = Mapping[str, str]


@dataclass(frozen=True)
class Demand:
    """What the metadata of ``package`` wants of ``needs`` is not judged by itself; ``why`` tells where it is."""

    package: str
    needs: str
    why: Texts
    source: Source


@dataclass(frozen=True)
class Stub:
    """A package of that name that only says that it is the wrong one."""

    name: str
    instead: Texts
    source: Source


@dataclass(frozen=True)
class Packages:
    elsewhere: tuple[Demand, ...] = ()
    stubs: tuple[Stub, ...] = field(default_factory=tuple)

    def is_judged_elsewhere(self, package: str, needs: str) -> bool:
        """ "*" stands for any package that is needed."""
        return any(d.package in (package, "*") and d.needs in (needs, "*") for d in self.elsewhere)


def load(folders: Sequence[Path]) -> Packages:
    """All folders together, later ones last. Raises RuleError, naming file and entry."""
    elsewhere: list[Demand] = []
    stubs: list[Stub] = []
    for folder in folders:
        path = folder / "compat" / "packages.yaml"
        if not path.is_file():
            continue
        document = load_yaml(path) or {}
        for entry, where in _entries(document, "elsewhere", path):
            names = (_name(entry, "package", where), _name(entry, "needs", where))
            elsewhere.append(Demand(*names, _texts(entry, "why", where), source_of(entry, where)))
        for entry, where in _entries(document, "stubs", path):
            stubs.append(Stub(_name(entry, "name", where), _texts(entry, "instead", where), source_of(entry, where)))
    return Packages(tuple(elsewhere), tuple(stubs))


def _entries(document: Any, part: str, path: Path) -> list[tuple[Mapping[str, Any], str]]:
    if not isinstance(document, Mapping):
        raise RuleError(f"{path}: give elsewhere and stubs")
    found = []
    for number, entry in enumerate(document.get(part) or (), 1):
        where = f"{path}: {part}, entry {number}"
        if not isinstance(entry, Mapping):
            raise RuleError(f"{where}: give a mapping")
        found.append((entry, where))
    return found


def _name(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise RuleError(f"{where}: {key} is the name of a package, in lower case with underscores")
    return value


def _texts(entry: Mapping[str, Any], key: str, where: str) -> Texts:
    value = entry.get(key)
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise RuleError(f"{where}: {key} is a text in en and zh")
    return dict(value)
