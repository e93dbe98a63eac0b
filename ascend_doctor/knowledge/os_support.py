"""Distributions that the vendor's public documents name: rules/compat/os.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError, Source, load_yaml, source_of
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Distribution:
    """``versions`` are beginnings of VERSION_ID; none: any version is meant."""

    id: str
    versions: tuple[str, ...]
    source: Source


@dataclass(frozen=True)
class OsSupport:
    distributions: tuple[Distribution, ...]

    def listed(self, name: str, version: str) -> Distribution | None:
        """The first entry that means this system: ``22.03`` means 22.03 and 22.03.4, not 22.031."""
        for entry in self.distributions:
            if entry.id == name.lower() and (not entry.versions or any(_means(v, version) for v in entry.versions)):
                return entry
        return None


def _means(listed: str, version: str) -> bool:
    return version.lower() == listed.lower() or version.lower().startswith(f"{listed.lower()}.")


def load(folders: Sequence[Path]) -> OsSupport:
    """All folders together. Raises RuleError, naming file and entry, for what is not readable."""
    found: list[Distribution] = []
    for folder in folders:
        path = folder / "compat" / "os.yaml"
        if not path.is_file():
            continue
        content = load_yaml(path)
        if not isinstance(content, Mapping):
            raise RuleError(f"{path}: give sources and distributions")
        sources = {name: source_of(entry, f"{path}: sources.{name}") for name, entry in content["sources"].items()}
        for number, entry in enumerate(content.get("distributions") or (), 1):
            where = f"{path}: distributions, entry {number}"
            if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
                raise RuleError(f"{where}: give {{id: ID of os-release, versions: [...], source: NAME}}")
            versions = entry.get("versions", [])
            if not isinstance(versions, list) or not all(isinstance(version, str) for version in versions):
                raise RuleError(f"{where}: versions is a list of texts in quotes")
            if entry.get("source") not in sources:
                raise RuleError(f"{where}: source {entry.get('source')} is none of {', '.join(sources)}")
            found.append(Distribution(entry["id"].lower(), tuple(versions), sources[entry["source"]]))
    return OsSupport(tuple(found))
