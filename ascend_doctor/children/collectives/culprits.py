"""Which rank it was, by what all of them showed: one died, raised, never came, or all wait for each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class State:
    """A rank within a step. ``entered``: it has come to where it waits for the others; ``left``: it went on.

    ``end``: how its process ended, such as SIGSEGV or "exit 1"; ``raised``: its exception in words.
    """

    rank: int
    entered: bool = False
    left: bool = False
    raised: str = ""
    end: str = ""
    measures: dict[str, Any] = field(default_factory=dict)

    @property
    def settled(self) -> bool:
        return self.left or bool(self.raised or self.end)

    @property
    def fell(self) -> bool:
        return bool(self.raised or self.end)


def culprits(states: Sequence[State], over: bool, places: Mapping[int, str]) -> tuple[str, list[int]]:
    """How it went wrong, and the ranks at fault: ended, raised, silent or stuck. ``over``: the time was.

    A rank that waits for one that is dead raises too, or waits for ever: what happened before others waited counts.
    ``places``: where each rank that had not gone on stood in the end; among ranks that all wait, one that stands
    elsewhere than most of them is the silent one. Raises ValueError where nothing is wrong.
    """
    ended = [state.rank for state in states if state.end]
    first = [state.rank for state in states if state.raised and not state.entered]
    missing = [state.rank for state in states if not state.entered and not state.settled]
    raised = [state.rank for state in states if state.raised]
    stuck = [state.rank for state in states if not state.settled]
    if ended:
        return "ended", ended
    if first:
        return "raised", first
    if over and missing:
        return "silent", missing
    if raised:
        return "raised", raised
    if over and stuck:
        elsewhere = _elsewhere(stuck, places)
        return ("silent", elsewhere) if elsewhere else ("stuck", stuck)
    raise ValueError("all ranks went on")


def _elsewhere(ranks: Sequence[int], places: Mapping[int, str]) -> list[int]:
    """Those that do not stand where more than half of them do; none where there is no such place."""
    place, count = Counter(places.get(rank, "") for rank in ranks).most_common(1)[0]
    return [rank for rank in ranks if places.get(rank, "") != place] if place and 2 * count > len(ranks) else []
