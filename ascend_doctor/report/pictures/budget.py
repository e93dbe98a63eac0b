"""The memory of one device as a bar to scale: what a model takes, what others hold, and what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ascend_doctor.records import dataclass
from ascend_doctor.report.pictures.rows import Machine

WIDTH = 840
KINDS = ("weights", "kv_cache", "activations", "runtime", "graphs", "communication")
"""Parts of a sum, as the verb ``memory`` names them."""

LARGEST = 1 << 60


@dataclass(frozen=True)
class Segment:
    """``kind``: one of KINDS, ``held`` by others, or ``free``; ``over``: the part of it that does not fit."""

    kind: str
    x: float
    width: float
    gib: str


@dataclass(frozen=True)
class Bar:
    """``end``: where the device ends; ``limit``: where the framework's share of it ends, None where nobody knows.

    ``over_gib``: what hangs over the end; empty where all fits.
    """

    segments: tuple[Segment, ...]
    width: float
    end: float
    limit: float | None
    total_gib: str
    limit_gib: str
    over_gib: str


def budget(memory: Any) -> Bar | None:
    """Of ``memory`` in a run's document; None where no sum could be made or the device is not known."""
    if not isinstance(memory, Mapping):
        return None
    total, rows = _size(memory.get("card_bytes")), memory.get("rows")
    if not total or not isinstance(rows, Sequence):
        return None
    free, share = _size(memory.get("free_bytes")), memory.get("usable_fraction")
    # HBM that is in use before the model comes, whoever has it, is not the model's
    parts = [("held", total - free)] if free is not None and free < total else []
    parts += [
        (str(row["name"]), size)
        for row in rows
        if isinstance(row, Mapping) and row.get("name") in KINDS and (size := _size(row.get("bytes")))
    ]
    need = sum(size for _, size in parts)
    scale = WIDTH / max(total, need)
    if need < total:
        parts.append(("free", total - need))
    short = _size(memory.get("short_bytes")) or 0
    limit = share * total if isinstance(share, (int, float)) and 0 < share <= 1 else None
    return Bar(
        segments=tuple(_segments(parts, scale)),
        width=WIDTH,
        end=round(total * scale, 1),
        limit=round(limit * scale, 1) if limit else None,
        total_gib=gib(total),
        limit_gib=gib(limit) if limit else "",
        over_gib=gib(short) if short else "",
    )


def _segments(parts: Sequence[tuple[str, int]], scale: float) -> Iterator[Segment]:
    done = 0.0
    for kind, size in parts:
        yield Segment(kind, round(done, 1), round(size * scale, 1), gib(size))
        done += size * scale


def gib(size: float) -> str:
    return f"{size / (1 << 30):.2f}"


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST else None


@dataclass(frozen=True)
class Held:
    """Memory of one chip and the processes on it: (pid, program, GiB, width of its part of the bar)."""

    place: str
    parts: tuple[tuple[int, str, str, float, float], ...]
    rest: tuple[float, float]
    used_gib: str
    total_gib: str


def held(machine: Machine, width: float = 560) -> tuple[Held, ...]:
    """One for each chip on which a process is seen; what no process accounts for is the rest."""
    found = []
    for npu in machine.npus:
        if not npu.holders or not npu.total_mib or npu.used_mib is None:
            continue
        x, parts = 0.0, []
        for one in npu.holders:
            part = width * min(one.mib or 0, npu.total_mib) / npu.total_mib
            size = "?" if one.mib is None else f"{one.mib / 1024:.1f}"
            parts.append((one.pid, one.program or "?", size, round(x, 1), round(part, 1)))
            x += part
        rest = max(0.0, width * min(npu.used_mib, npu.total_mib) / npu.total_mib - x)
        used, total = f"{npu.used_mib / 1024:.1f}", f"{npu.total_mib / 1024:.0f}"
        number = str(npu.npu) if machine.single else npu.place
        found.append(Held(number, tuple(parts), (round(x, 1), round(rest, 1)), used, total))
    return tuple(found)
