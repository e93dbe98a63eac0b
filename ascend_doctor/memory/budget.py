"""The sum of what one rank holds in the memory of its device, line by line, and the largest demand that fits.

What a framework takes within its share (``--gpu-memory-utilization``) is ``inside``: weights, activations, graphs,
runtime, KV cache. The buffers of communicators come on top: ``outside``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Callable

from ascend_doctor.memory.kv_cache import Cache, cache_of
from ascend_doctor.memory.shapes import Shape
from ascend_doctor.memory.weights import Piece, Split, rank_bytes
from ascend_doctor.records import dataclass

MIB = 1 << 20
INSIDE, OUTSIDE, BESIDE = "inside", "outside", "beside"
TOKENS_LIMIT, SEQUENCES_LIMIT = 1 << 24, 1 << 16
TENSOR_SIZES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Line:
    """``side``: inside the framework's share, outside of it, or beside the sum, for comparison only."""

    name: str
    formula: str
    bytes: int
    side: str


@dataclass(frozen=True)
class Subject:
    """A model: ``pieces`` of its weights and where they were counted; ``shape`` is None where nobody published it.

    ``published_token``: bytes of KV cache for a token, ``hidden``: width, where there is no shape to compute with; 0
    where nobody says.
    """

    shape: Shape | None
    pieces: tuple[Piece, ...]
    counted: str
    published_token: int = 0
    hidden: int = 0

    @property
    def cache_known(self) -> bool:
        """Without it a sum is a lower bound: it may show that a model does not fit, and never that it does."""
        return self.shape is not None or self.published_token > 0

    @property
    def weights(self) -> int:
        return sum(piece.bytes for piece in self.pieces)


@dataclass(frozen=True)
class Plan:
    """What is to run: ``width`` is the bytes of a number in the KV cache."""

    split: Split
    sequences: int
    tokens: int
    width: int
    batched: int
    eager: bool


@dataclass(frozen=True)
class Costs:
    """What is not computed from the model; from rules/limits.yaml and the environment."""

    runtime_mib: int
    graphs_mib: int
    copies: int
    buffer_mib: int
    firmware_mib: int


@dataclass(frozen=True)
class Room:
    """One device: all its bytes, those that are free now, and the framework's share of all.

    ``held``: another program holds memory; a framework then finds less than its share and refuses to start.
    """

    total: int
    free: int
    fraction: float
    held: bool

    @property
    def usable(self) -> int:
        return int(self.total * Fraction(str(self.fraction)))


def lines(subject: Subject, plan: Plan, costs: Costs) -> tuple[Line, ...]:
    """Of the fullest rank."""
    split, cache = plan.split, cache_for(subject, plan)
    found = [
        Line("weights", _weights_formula(subject, split), rank_bytes(subject.pieces, subject.shape, split), INSIDE),
        Line(
            "kv_cache",
            f"{plan.sequences} x {plan.tokens} tokens x {_number(cache.token)} B ({cache.formula})",
            cache.bytes_of(plan.sequences, plan.tokens),
            INSIDE,
        ),
        _activations(subject, plan, costs),
        Line("runtime", f"{costs.runtime_mib} MiB", costs.runtime_mib * MIB, INSIDE),
    ]
    if not plan.eager:
        found.append(Line("graphs", f"{costs.graphs_mib} MiB", costs.graphs_mib * MIB, INSIDE))
    count = communicators(split)
    formula = f"{count} communicators x 2 x {costs.buffer_mib} MiB"
    return (*found, Line("communication", formula, count * 2 * costs.buffer_mib * MIB, OUTSIDE))


def cache_for(subject: Subject, plan: Plan) -> Cache:
    if subject.shape is None:
        return Cache(Fraction(subject.published_token), 0, "published" if subject.published_token else "not known")
    return cache_of(subject.shape, plan.split, plan.width)


def communicators(split: Split) -> int:
    """One for each way of splitting that has more than one rank, and the world's."""
    ways = sum(size > 1 for size in (split.tp, split.pp, split.dp, split.ep))
    return ways + 1 if split.cards > 1 else 0


def _weights_formula(subject: Subject, split: Split) -> str:
    ways = [f"{name.upper()} {size}" for name, size in vars(split).items() if size > 1 and name != "dp"]
    return f"{subject.counted}{', ' if ways else ''}{', '.join(ways)}"


def _activations(subject: Subject, plan: Plan, costs: Costs) -> Line:
    shape, split = subject.shape, plan.split
    if shape is None:
        formula = f"about {plan.batched} tokens x {costs.copies} x {subject.hidden} x 2 B"
        return Line("activations", formula, plan.batched * costs.copies * subject.hidden * 2, INSIDE)
    inner = max(shape.dense_inter if shape.dense_layers else 0, shape.active * shape.expert_inter)
    wide = costs.copies * shape.hidden * max(1, shape.streams)
    amount = plan.batched * (wide + ceil(3 * inner / split.tp)) * 2
    amount += plan.sequences * ceil(shape.vocab / split.tp) * 4
    formula = (
        f"about {plan.batched} tokens x ({wide} + 3 x {inner} / {split.tp}) x 2 B"
        f" + {plan.sequences} x {shape.vocab} / {split.tp} x 4 B"
    )
    return Line("activations", formula, amount, INSIDE)


def guide_line(total: int, costs: Costs) -> Line:
    """The sum that a public guide made for ASCEND_MEM_SIZE; nothing is known to read that variable."""
    mib = total // MIB
    formula = f"{mib} - {costs.firmware_mib} - {costs.runtime_mib} MiB"
    return Line("ascend_mem_size", formula, (mib - costs.firmware_mib - costs.runtime_mib) * MIB, BESIDE)


def side(found: Sequence[Line], name: str) -> int:
    return sum(line.bytes for line in found if line.side == name)


def short_bytes(found: Sequence[Line], room: Room) -> int:
    """How much is lacking, 0 where it fits."""
    inside, outside = side(found, INSIDE), side(found, OUTSIDE)
    refused = room.usable - room.free if room.held else 0
    return max(0, inside - room.usable, inside + outside - room.free, refused)


def cards_for_weights(subject: Subject, room: Room) -> int:
    """Devices whose usable memory holds the weights and nothing else: fewer than this are never enough."""
    return ceil(Fraction(subject.weights) / (room.total * Fraction(str(room.fraction))))


@dataclass(frozen=True)
class Largest:
    """The most that fits with all else as it is; 0 and None: nothing does. ``layout``: the fewest cards that do."""

    tokens: int
    sequences: int
    layout: Split | None


def largest(subject: Subject, plan: Plan, costs: Costs, room: Room, most_cards: int) -> Largest:
    """Computed, not guessed: by halving, as each sum grows with what is varied."""

    def fits(other: Plan) -> bool:
        return short_bytes(lines(subject, other, costs), room) == 0

    context = subject.shape.context if subject.shape else 0
    tokens = most(lambda n: fits(replace(plan, tokens=n)), min(context or TOKENS_LIMIT, TOKENS_LIMIT))
    sequences = most(lambda n: fits(replace(plan, sequences=n)), SEQUENCES_LIMIT)
    layout = next((s for s in layouts(subject.shape, plan.split, most_cards) if fits(replace(plan, split=s))), None)
    return Largest(tokens, sequences, layout)


def most(holds: Callable[[int], bool], limit: int) -> int:
    """The largest number up to ``limit`` for which it holds, 0 where it does for none."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def layouts(shape: Shape | None, split: Split, most_cards: int) -> Iterator[Split]:
    """TP that divides the heads, PP for the rest, by the number of cards, large TP first; experts over all of TP."""
    for cards in range(1, most_cards + 1):
        for tp in reversed(TENSOR_SIZES):
            if cards % tp or (shape is not None and (shape.heads % tp or cards // tp > shape.layers)):
                continue
            expert = tp if split.ep > 1 or (shape is not None and shape.routed) else 1
            yield Split(tp, cards // tp, expert, 1)


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.1f}"
