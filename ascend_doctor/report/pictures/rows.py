"""The rows of ``Run.machine`` with their types: what does not fit is left out, as a run may come from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ascend_doctor.records import dataclass

MOST = 512
"""Rows of a kind that are drawn."""


@dataclass(frozen=True)
class Link:
    """Lanes and GT/s, now and at most."""

    width: int | None
    possible_width: int | None
    speed_gts: float | None
    possible_speed_gts: float | None


@dataclass(frozen=True)
class Holder:
    pid: int
    program: str | None
    mib: int | None


@dataclass(frozen=True)
class Npu:
    """``chip`` is None where the card has one chip only; ``holders`` is None where nobody could see them."""

    npu: int
    chip: int | None
    name: str | None
    health: str | None
    celsius: float | None
    memory: str
    used_mib: int | None
    total_mib: int | None
    bus: str | None
    link: Link | None
    nodes: tuple[int, ...] | None
    holders: tuple[Holder, ...] | None

    @property
    def place(self) -> str:
        """As subjects of findings name it: ``5/0``, or ``5``."""
        return str(self.npu) if self.chip is None else f"{self.npu}/{self.chip}"


@dataclass(frozen=True)
class Node:
    node: int
    socket: int | None
    free_mib: int | None
    total_mib: int | None


@dataclass(frozen=True)
class Fabric:
    word: str
    npus: tuple[int, ...]


@dataclass(frozen=True)
class Version:
    """``reason``: why the version is not known."""

    part: str
    version: str | None
    reason: str | None
    where: str


@dataclass(frozen=True)
class Machine:
    npus: tuple[Npu, ...] = ()
    nodes: tuple[Node, ...] = ()
    fabric: tuple[Fabric, ...] = ()
    versions: tuple[Version, ...] = ()

    @property
    def single(self) -> bool:
        """Whether each card has one chip, so that the card's number names it."""
        return len({npu.npu for npu in self.npus}) == len(self.npus)


def machine(rows: Mapping[str, Any] | None) -> Machine:
    rows = rows if isinstance(rows, Mapping) else {}
    return Machine(
        npus=tuple(filter(None, map(_npu, _each(rows, "npus")))),
        nodes=tuple(
            Node(node, _whole(row, "socket"), _whole(row, "free_mib"), _whole(row, "total_mib"))
            for row in _each(rows, "nodes")
            if (node := _whole(row, "node")) is not None
        ),
        fabric=tuple(
            Fabric(_text(row, "word") or "?", _wholes(row.get("npus")) or ()) for row in _each(rows, "fabric")
        ),
        versions=tuple(
            Version(part, _text(row, "version"), _text(row, "reason"), _text(row, "where") or "")
            for row in _each(rows, "versions")
            if (part := _text(row, "part"))
        ),
    )


def _npu(row: Mapping[str, Any]) -> Npu | None:
    number, link, holders = _whole(row, "npu"), row.get("link"), row.get("holders")
    if number is None:
        return None
    return Npu(
        npu=number,
        chip=_whole(row, "chip"),
        name=_text(row, "name"),
        health=_text(row, "health"),
        celsius=_number(row, "celsius"),
        memory=_text(row, "memory") or "HBM",
        used_mib=_whole(row, "used_mib"),
        total_mib=_whole(row, "total_mib"),
        bus=_text(row, "bus"),
        link=_link(link) if isinstance(link, Mapping) else None,
        nodes=_wholes(row.get("nodes")),
        holders=tuple(
            Holder(pid, _text(one, "program"), _whole(one, "mib"))
            for one in _each(row, "holders")
            if (pid := _whole(one, "pid")) is not None
        )
        if isinstance(holders, Sequence)
        else None,
    )


def _link(row: Mapping[str, Any]) -> Link:
    return Link(
        _whole(row, "width"),
        _whole(row, "possible_width"),
        _number(row, "speed_gts"),
        _number(row, "possible_speed_gts"),
    )


def _each(rows: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    found = rows.get(name)
    if isinstance(found, Sequence) and not isinstance(found, str):
        yield from (row for row in found[:MOST] if isinstance(row, Mapping))


def _whole(row: Mapping[str, Any], name: str) -> int | None:
    value = row.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _number(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and -1e6 < value < 1e6
    return value if fits else None


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    return value[:200] if isinstance(value, str) else None


def _wholes(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    return tuple(one for one in value[:MOST] if isinstance(one, int) and not isinstance(one, bool))
