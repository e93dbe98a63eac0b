"""Thresholds: rules/limits.yaml, each with its unit in the name, its source and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Union

from ascend_doctor.knowledge.reading import CONFIDENCES, RuleError, Source, nearest
from ascend_doctor.knowledge.yaml_nodes import composed
from ascend_doctor.records import dataclass

Number = Union[int, float]

KEYS = ("value", "title", "url", "confidence")


@dataclass(frozen=True)
class Limit:
    value: Number
    source: Source


@dataclass(frozen=True)
class Replaced:
    """A shipped limit that a user's file or profile set anew."""

    name: str
    value: Number
    shipped: Number
    place: str


@dataclass(frozen=True)
class Limits:
    """``limits["numa.shared_mib"]`` is the number; ``limits.entry(...)`` has its source too."""

    entries: Mapping[str, Limit]
    replaced: tuple[Replaced, ...] = ()

    def __getitem__(self, name: str) -> Number:
        return self.entries[name].value

    def entry(self, name: str) -> Limit:
        return self.entries[name]

    def changed(self, values: Mapping[str, Number], place: str) -> Limits:
        """With other numbers for known limits, said in ``replaced``. Raises RuleError for a name that is unknown."""
        entries, replaced = dict(self.entries), list(self.replaced)
        for name, value in values.items():
            if name not in entries:
                raise RuleError(f"{place}: there is no limit {name}{nearest(name, entries)}")
            replaced.append(Replaced(name, value, entries[name].value, place))
            entries[name] = Limit(value, Source("", place, "unverified"))
        return Limits(entries, tuple(replaced))


def load(folders: Sequence[Path]) -> Limits:
    """Later folders win, and it is said. Raises RuleError, naming file and entry, for what is no number."""
    limits = Limits({})
    for folder in folders:
        path = folder / "limits.yaml"
        if not path.is_file():
            continue
        found = _read(path)
        known = {name: limit.value for name, limit in found.items() if name in limits.entries}
        limits = Limits({**found, **limits.entries}, limits.replaced).changed(known, str(path))
    return limits


def _read(path: Path) -> dict[str, Limit]:
    entries: dict[str, Limit] = {}
    root = composed(path)
    for area, group in root.mapping(()).items() if root else ():
        for name, place in group.mapping(()).items():
            keys = place.mapping(KEYS, ("value", "confidence"))
            title, url = (keys[key].text() if key in keys else "" for key in ("title", "url"))
            source = Source(title, url, keys["confidence"].choice(CONFIDENCES))
            entries[f"{area}.{name}"] = Limit(keys["value"].number(), source)
    return entries
