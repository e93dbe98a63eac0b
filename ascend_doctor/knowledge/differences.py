"""How two looks at hosts are compared: rules/differences.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.knowledge.yaml_nodes import Place, composed
from ascend_doctor.records import dataclass

FILE = "differences.yaml"


class Paths:
    """Globs of paths of facts: * is anything, all else is itself."""

    def __init__(self, globs: Sequence[str]) -> None:
        self.globs = tuple(globs)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(glob).replace(r"\*", ".*") for glob in self.globs) or "(?!)")

    def match(self, path: str) -> bool:
        return self._pattern.fullmatch(path) is not None


@dataclass(frozen=True)
class Differences:
    """``between_hosts``: what is left out where two hosts are compared; ``near``: (paths, percent)."""

    ignored: Paths
    between_hosts: Paths
    near: tuple[tuple[Paths, float], ...]
    known_by: Mapping[str, tuple[str, ...]]
    passing_subjects: Paths

    def says_nothing(self, path: str, same_host: bool) -> bool:
        return self.ignored.match(path) or (not same_host and self.between_hosts.match(path))

    def is_near(self, path: str, one: object, other: object) -> bool:
        """Whether two numbers differ by no more than what is usual there."""
        if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
            return False
        greater, less = max(abs(one), abs(other)), abs(one - other)
        return any(paths.match(path) and less * 100 <= percent * greater for paths, percent in self.near)


def load(folders: Sequence[Path]) -> Differences:
    """Of the first folder. Raises RuleError, naming file and line."""
    root = composed(folders[0] / FILE)
    if root is None:
        raise RuleError(f"{folders[0] / FILE}: empty")
    keys = root.mapping(("ignored", "near", "known_by", "passing_subjects"), ("ignored",))
    always: list[str] = []
    between: list[str] = []
    for place in keys["ignored"].items():
        entry = place.mapping(("why", "between_hosts", "paths"), ("why", "paths"))
        apart = "between_hosts" in entry and entry["between_hosts"].flag()
        (between if apart else always).extend(_globs(entry["paths"]))
    near = []
    for place in keys["near"].items() if "near" in keys else ():
        entry = place.mapping(("why", "percent", "paths"), ("why", "percent", "paths"))
        near.append((Paths(_globs(entry["paths"])), float(entry["percent"].number())))
    known = keys["known_by"].mapping(()).items() if "known_by" in keys else ()
    passing = _globs(keys["passing_subjects"]) if "passing_subjects" in keys else []
    names = {path: tuple(_globs(place)) for path, place in known}
    return Differences(Paths(always), Paths(between), tuple(near), names, Paths(passing))


def _globs(place: Place) -> list[str]:
    return [item.text() for item in place.items()]
