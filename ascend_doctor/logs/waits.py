"""Who waits for whom: what lines of collective communication say about ranks.

Shapes: hicann/hccl fault diagnosis. The same rank number means another process in another communicator, so a rank is
named with its communicator where the line tells it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ascend_doctor.records import dataclass

_SELF = re.compile(
    r"(?:\brankId|\blocal ?rank|\blocalUserrank|(?<![A-Za-z])rank)\[(\d{1,5})\]|\bRankID:(\d{1,5})\b|\brank:(\d{1,5}),",
    re.ASCII,
)
_REMOTE = re.compile(
    r"\b(?:remote ?-?(?:user)?rank|peer ?rank|waiting peer rank|dst ?rank)(?:\s?id)?\W{0,3}[\[(]?(\d{1,5})\b",
    re.ASCII | re.IGNORECASE,
)
_LINK_ROW = re.compile(
    r"\|\s*[\w.:%-]{1,80}\((\d{1,5})\)\s*\|\s*\d{1,10}\s*\|\s*[\w.:%-]{1,80}\((\d{1,5})\)\s*\|", re.ASCII
)
_CRIMER = re.compile(r"crimer rank \[[^\]/]{0,80}/(\d{1,5})\]", re.ASCII)
_GROUP = re.compile(r"\b(?:group|identifier|communicator)\W{0,2}\[([^\]]{1,160})\]", re.ASCII)
_TAG = re.compile(r"\btag\[[A-Za-z]{1,40}_([^\]]{1,160})\]", re.ASCII)
_WORLD = re.compile(r"\b(?:rankSize|rankNum|ranks)\[(\d{1,6})\]|\brankSize:(\d{1,6})\b", re.ASCII)
_CONNECTED = re.compile(r"connected rankinfo\[LINE \d{1,6}\]: ?((?:\[\d{1,16}\][,;]?){1,4096})", re.ASCII)
_MISSING = re.compile(
    r"(?:Failed to connect agent|[Uu]nconnected ranks?:? ?\"?)\[((?:\d{1,6}, ?){0,4096}\d{0,6})\]", re.ASCII
)
_MARKS = ("ank", "group", "identifier", "crimer", "agent[")


@dataclass(frozen=True)
class Ranks:
    """What one line says; ``own``: the rank that speaks; ``remote``: those it waits for; ``world``: how many."""

    group: str = ""
    own: int | None = None
    remote: tuple[int, ...] = ()
    world: int | None = None
    connected: tuple[int, ...] = ()
    accused: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()


def ranks_in(text: str) -> Ranks | None:
    """None where a line says nothing of ranks."""
    if not any(mark in text for mark in _MARKS) and "|" not in text:
        return None
    row = _LINK_ROW.search(text)
    own, world, group = _SELF.search(text), _WORLD.search(text), _GROUP.search(text) or _TAG.search(text)
    remote = [row[1]] if row else _REMOTE.findall(text)
    connected = _CONNECTED.search(text)
    accused = _CRIMER.findall(text)
    missing = _MISSING.search(text)
    if not (row or own or world or group or remote or connected or accused or missing):
        return None
    number = int(row[2]) if row else _first(own)
    return Ranks(
        group=group[1] if group else "",
        own=number,
        remote=tuple(sorted({int(r) for r in remote} - ({number} if number is not None else set()))),
        world=_first(world),
        connected=tuple(sorted({int(n) for n in re.findall(r"\d+", connected[1])})) if connected else (),
        accused=tuple(sorted({int(r) for r in accused})),
        missing=tuple(sorted({int(n) for n in re.findall(r"\d+", missing[1])})) if missing else (),
    )


def _first(match: re.Match[str] | None) -> int | None:
    return next((int(part) for part in match.groups() if part), None) if match else None


@dataclass(frozen=True)
class Process:
    """A node of the graph: a process that has a log, or a rank (``pid`` None) of which no log is there."""

    host: str
    pid: int | None
    rank: int | None
    group: str = ""


class WaitGraph:
    """Edges from a process to the ranks that it waits for."""

    def __init__(self) -> None:
        self.world = 0
        self._of_rank: dict[tuple[str, int], Process] = {}
        self._names: dict[Process, int] = {}
        self._waits: dict[Process, set[tuple[str, int]]] = {}
        self.connected: dict[Process, set[int]] = {}
        self.accused: set[int] = set()
        self.missing: set[int] = set()

    def saw(self, process: Process, rank: int | None, group: str = "") -> None:
        """A process that speaks, under its rank."""
        self._waits.setdefault(process, set())
        if rank is not None:
            self._names.setdefault(process, rank)
            self._of_rank.setdefault((group, rank), process)
            self._of_rank.setdefault(("", rank), process)

    def told(self, process: Process, ranks: Ranks, is_wait: bool) -> None:
        """What one of its lines says; only lines that report a wait make edges."""
        self.saw(process, ranks.own, ranks.group)
        if ranks.world:
            self.world = max(self.world, ranks.world)
        if is_wait and len(self._waits[process]) < 64:
            self._waits[process] |= {(ranks.group, rank) for rank in ranks.remote}
        if ranks.connected:
            self.connected.setdefault(process, set()).update(ranks.connected)
        self.accused |= set(ranks.accused)
        if len(self.missing) < 4096:
            self.missing |= set(ranks.missing)

    def target(self, group: str, rank: int) -> Process:
        """The process of that rank, or one of which there is no log."""
        return self._of_rank.get((group, rank)) or self._of_rank.get(("", rank)) or Process("", None, rank, group)

    def waits_of(self, process: Process) -> list[Process]:
        """Whom a process waits for, itself left out."""
        found = {self.target(group, rank) for group, rank in self._waits.get(process, ())}
        return sorted(found - {process}, key=lambda p: (p.rank if p.rank is not None else -1, p.pid or 0))

    def rank_of(self, process: Process) -> int | None:
        return process.rank if process.pid is None and process.rank is not None else self._names.get(process)

    def waiting(self) -> list[Process]:
        return [process for process in self._waits if self.waits_of(process)]

    def waited_for(self) -> list[tuple[Process, int]]:
        """Processes at the end of a chain of waits, which wait for nobody, with how many lead there; most first."""
        ends: dict[Process, set[Process]] = {}
        for start in self.waiting():
            for end in self._ends(start):
                ends.setdefault(end, set()).add(start)
        return sorted(((end, len(starts)) for end, starts in ends.items()), key=lambda pair: (-pair[1], str(pair[0])))

    def _ends(self, start: Process) -> Iterator[Process]:
        seen, todo = {start}, [start]
        while todo:
            here = todo.pop()
            further = self.waits_of(here)
            if not further and here != start:
                yield here
            for process in further:
                if process not in seen:
                    seen.add(process)
                    todo.append(process)

    def cycle(self) -> list[Process]:
        """Processes that wait for each other in a ring, in order; empty where there is none."""
        for start in self.waiting():
            path, here = [start], start
            while True:
                further = self.waits_of(here)
                if not further or len(path) > 4096:
                    break
                here = further[0]
                if here in path:
                    return path[path.index(here) :]
                path.append(here)
        return []

    def absent(self) -> tuple[int, ...]:
        """Ranks that never came: those that a line names, or that are not in the list of the root server."""
        if self.missing:
            return tuple(sorted(self.missing))[:64]
        for connected in self.connected.values():
            world = self.world or (max(connected) + 1 if connected else 0)
            missing = tuple(sorted(set(range(world)) - connected))
            if missing and len(missing) < world:
                return missing[:64]
        return ()
