"""What to make of Python packages: rules/compat/packages.yaml. Demands that are judged elsewhere, those that clash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, Source, load_yaml, source_of
from ascend_doctor.records import dataclass

SEVERITIES = ("none", "info", "warning", "error")
Texts = Mapping[str, str]


@dataclass(frozen=True)
class Demand:
    """How grave it is that ``needs`` is not of a version that ``package`` wants; none: judged elsewhere, or meant."""

    package: str
    needs: str
    severity: str
    why: Texts
    source: Source


@dataclass(frozen=True)
class Clash:
    """Packages that write into one folder: only the first should be there."""

    keep: str
    other: str
    severity: str
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
    demands: tuple[Demand, ...] = ()
    clashes: tuple[Clash, ...] = ()
    stubs: tuple[Stub, ...] = field(default_factory=tuple)

    def demand(self, package: str, needs: str) -> Demand | None:
        """The last entry for the two; "*" stands for any package that is needed."""
        fits = [d for d in self.demands if d.package in (package, "*") and d.needs in (needs, "*")]
        return fits[-1] if fits else None


def load(folders: Sequence[Path]) -> Packages:
    """All folders together, later ones last. Raises RuleError, naming file and entry."""
    demands: list[Demand] = []
    clashes: list[Clash] = []
    stubs: list[Stub] = []
    for folder in folders:
        path = folder / "compat" / "packages.yaml"
        if not path.is_file():
            continue
        document = load_yaml(path) or {}
        for entry, where in _entries(document, "demands", path):
            fields = (_name(entry, "package", where), _name(entry, "needs", where), _severity(entry, where))
            demands.append(Demand(*fields, _texts(entry, "why", where), source_of(entry, where)))
        for entry, where in _entries(document, "clashes", path):
            fields = (_name(entry, "keep", where), _name(entry, "other", where), _severity(entry, where))
            clashes.append(Clash(*fields, _texts(entry, "why", where), source_of(entry, where)))
        for entry, where in _entries(document, "stubs", path):
            stubs.append(Stub(_name(entry, "name", where), _texts(entry, "instead", where), source_of(entry, where)))
    return Packages(tuple(demands), tuple(clashes), tuple(stubs))


def _entries(document: Any, part: str, path: Path) -> list[tuple[Mapping[str, Any], str]]:
    if not isinstance(document, Mapping):
        raise RuleError(f"{path}: give demands, clashes and stubs")
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


def _severity(entry: Mapping[str, Any], where: str) -> str:
    if entry.get("severity") not in SEVERITIES:
        raise RuleError(f"{where}: severity is one of {', '.join(SEVERITIES)}")
    return str(entry["severity"])


def _texts(entry: Mapping[str, Any], key: str, where: str) -> Texts:
    value = entry.get(key)
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise RuleError(f"{where}: {key} is a text in en and zh")
    return dict(value)
