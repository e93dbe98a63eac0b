"""The timed tokens of a smoke run as dots from the fastest to the slowest, with P50 and P99 marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ascend_doctor.records import dataclass

LEFT, RIGHT, TOP, STEP, LANES = 8, 712, 30, 8, 5
"""Of the strip, in units of its drawing; dots are spread over lanes so that they can be told apart."""

MOST_DOTS = 500


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    milliseconds: str


@dataclass(frozen=True)
class Mark:
    """``anchor`` and ``shift``: how its text stands, so that it leaves neither the picture nor the one before it."""

    name: str
    x: float
    milliseconds: str
    anchor: str
    shift: int


@dataclass(frozen=True)
class Strip:
    """``least`` and ``most``: milliseconds at the ends of the scale; ``count``: of all tokens."""

    dots: tuple[Dot, ...]
    marks: tuple[Mark, ...]
    least: str
    most: str
    count: int


def strip(samples_ms: Sequence[float], figures: Mapping[str, float]) -> Strip | None:
    """None where no token was timed."""
    if not samples_ms or not {"p50_ms", "p99_ms"} <= figures.keys():
        return None
    least, most = min(samples_ms), max(*samples_ms, figures["p99_ms"])
    span = (most - least) or 1.0

    def x(milliseconds: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (milliseconds - least) / span, 1)

    drawn = samples_ms[:: -(-len(samples_ms) // MOST_DOTS)]
    dots = tuple(Dot(x(ms), TOP + STEP * (n % LANES), _said(ms)) for n, ms in enumerate(drawn))
    marks: list[Mark] = []
    for name, key in (("P50", "p50_ms"), ("P99", "p99_ms")):
        at = x(figures[key])
        near = bool(marks) and at - marks[-1].x < 90
        anchor = "start" if at < 120 else "end" if at > 600 else "middle"
        marks.append(Mark(name, at, _said(figures[key]), anchor, 100 if near and anchor != "end" else 0))
    return Strip(dots, tuple(marks), _said(least), _said(most), len(samples_ms))


def _said(milliseconds: float) -> str:
    return f"{milliseconds:.3g}"
