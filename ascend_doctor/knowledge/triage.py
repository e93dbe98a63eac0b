"""How the most probable cause is chosen: rules/triage.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.knowledge.yaml_nodes import Place, composed
from ascend_doctor.records import dataclass

FILE = "triage.yaml"
WAYS = ("same", "nothing-runs", "host-explains", "log-root", "host-error", "log-symptom", "host-warning")
CONFIDENCES = ("high", "medium", "low", "log")
"""``log``: that of the logs' own answer."""


@dataclass(frozen=True)
class Pair:
    """Globs of checks and of signatures that tell of one thing."""

    checks: tuple[str, ...]
    signatures: tuple[str, ...]

    def joins(self, check: str, signature: str) -> bool:
        return _matches(check, self.checks) and _matches(signature, self.signatures)


@dataclass(frozen=True)
class Way:
    """A way to a cause; ``why``: what makes it the cause, for the reader."""

    id: str
    confidence: str
    why: Mapping[str, str]


@dataclass(frozen=True)
class Triage:
    """``nothing_runs``: checks whose error ends the search; ``explains``: layer of a finding -> layers of incidents;
    ``order``: the ways, the first that leads somewhere.
    """

    same: tuple[Pair, ...]
    nothing_runs: tuple[str, ...]
    explains: Mapping[str, tuple[str, ...]]
    order: tuple[Way, ...]
    recent_hours: float

    def are_same(self, check: str, signature: str) -> bool:
        return any(pair.joins(check, signature) for pair in self.same)


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def load(folders: Sequence[Path]) -> Triage:
    """Of the first folder. Raises RuleError, naming file and line."""
    root = composed(folders[0] / FILE)
    if root is None:
        raise RuleError(f"{folders[0] / FILE}: empty")
    names = ("same", "nothing_runs", "explains", "order", "recent_hours")
    keys = root.mapping(names, names)
    return Triage(
        same=tuple(_pair(place) for place in keys["same"].items()),
        nothing_runs=_texts(keys["nothing_runs"]),
        explains={layer: _texts(place) for layer, place in keys["explains"].mapping(()).items()},
        order=tuple(_way(place) for place in keys["order"].items()),
        recent_hours=float(keys["recent_hours"].number()),
    )


def _pair(place: Place) -> Pair:
    keys = place.mapping(("checks", "signatures"), ("checks", "signatures"))
    return Pair(_texts(keys["checks"]), _texts(keys["signatures"]))


def _way(place: Place) -> Way:
    names = ("id", "sure", "why")
    keys = place.mapping(names, names)
    why = {language: text.text() for language, text in keys["why"].mapping(("en", "zh"), ("en", "zh")).items()}
    return Way(keys["id"].choice(WAYS), keys["sure"].choice(CONFIDENCES), why)


def _texts(place: Place) -> tuple[str, ...]:
    return tuple(item.text() for item in place.items())
