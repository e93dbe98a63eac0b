"""Keeps memory flat where a log says the same thing a million times: the first ones are given, then ever fewer.

What is the same thing is told by a key: the line of source code that printed it and its anchors, or, where no source is
named, its text without digits and its anchors. What is left out is counted, and the last one is given at the end.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

FIRST = 64
FIRST_UNNAMED = 16
"""Of records that no signature knows."""
MOST_KINDS = 4096
"""Kinds of records of one file; beyond that all further kinds are one."""
BUDGET = 20_000
"""Records of a run; after that of each kind only the first two and then ever fewer are given."""


class Flood:
    """Shared by all files of a run."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.left = budget


class _Kind(Generic[T]):
    __slots__ = ("count", "dropped", "last")

    def __init__(self) -> None:
        self.count = self.dropped = 0
        self.last: T | None = None


class FileFlood(Generic[T]):
    """Counts the records of one file by kind."""

    def __init__(self, run: Flood) -> None:
        self._run = run
        self._kinds: dict[Hashable, _Kind[T]] = {}

    def times(self, key: Hashable, named: bool, item: T) -> int:
        """For how many records this one is to stand; 0: there were enough of its kind, and it is kept as the last."""
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds.setdefault(key if len(self._kinds) < MOST_KINDS else named, _Kind())
        kind.count += 1
        first = 2 if self._run.left <= 0 else FIRST if named else FIRST_UNNAMED
        if kind.count > first and kind.count & (kind.count - 1):
            kind.dropped += 1
            kind.last = item
            return 0
        self._run.left -= 1
        times, kind.dropped, kind.last = 1 + kind.dropped, 0, None
        return times

    def rest(self) -> list[tuple[T, int]]:
        """The last one of each kind of which some were left out, and for how many it stands."""
        found = [(kind.last, kind.dropped) for kind in self._kinds.values() if kind.last is not None]
        self._kinds.clear()
        return found
