"""One file of rules: its entries, and the sources that they name. Whatever is wrong is a RuleError with its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, Source, load_yaml, source_of

SEVERITIES = ("error", "warning", "info")


class RuleFile:
    """``sources: {NAME: {title, url, confidence}}`` beside lists of entries that name them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content = load_yaml(path) or {}
        if not isinstance(self.content, Mapping):
            raise RuleError(f"{path}: give a mapping, not {type(self.content).__name__}")
        sources = self.content.get("sources", {})
        self.sources = {name: source_of(entry, f"{path}: sources.{name}") for name, entry in sources.items()}

    def entries(self, name: str) -> list[tuple[Mapping[str, Any], str]]:
        """The entries of a list, each with its place."""
        found = []
        for number, entry in enumerate(self.content.get(name, ()), 1):
            where = f"{self.path}: {name}, entry {number}"
            if not isinstance(entry, Mapping):
                raise RuleError(f"{where}: give a mapping")
            found.append((entry, where))
        return found

    def named(self, entry: Mapping[str, Any], where: str) -> tuple[Source, ...]:
        """The sources of an entry: ``sources: [NAME, ...]`` or ``source: NAME``."""
        names = (entry["source"],) if "source" in entry else texts(entry, "sources", where)
        unknown = [str(name) for name in names if name not in self.sources]
        if unknown or not names:
            raise RuleError(f"{where}: sources has to name entries of sources:, not {', '.join(unknown) or 'nothing'}")
        return tuple(self.sources[name] for name in names)


def text(entry: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str):
        raise RuleError(f"{where}: {key} has to be a text in quotes, not {value!r}")
    return value


def texts(entry: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    values = entry.get(key, ())
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise RuleError(f"{where}: {key} has to be a list of texts in quotes, not {values!r}")
    return tuple(values)


def languages(value: Any, where: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not value:
        raise RuleError(f"{where}: give {{en: ..., zh: ...}}")
    return {str(language): str(words) for language, words in value.items()}


def severity(entry: Mapping[str, Any], where: str) -> str:
    value = text(entry, "severity", where)
    if value not in SEVERITIES:
        raise RuleError(f"{where}: severity is {value}; give one of {', '.join(SEVERITIES)}")
    return value
