"""What a smoke run's numbers are judged by, and what its ends mean: rules/smoke/*.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Union

from ascend_doctor.knowledge.reading import RuleError, Source, nearest
from ascend_doctor.knowledge.remedies import RemedyStep, Texts, step_of
from ascend_doctor.knowledge.rule_file import RuleFile, languages, severity, text, texts
from ascend_doctor.records import dataclass

FOLDER = "smoke"
BOUNDS = ("most", "least", "equals")
Bound = Union[bool, int, float, str]


@dataclass(frozen=True)
class Stage:
    """``needs``: stages without which it is not run; ``independent``: one of its steps may fail without the others.

    ``seconds``: for a step; more for a model that is larger (``seconds_per_gib`` of its weights in fp32).
    """

    id: str
    number: int
    name: Texts
    needs: tuple[str, ...]
    seconds: float
    seconds_per_gib: float
    independent: bool


@dataclass(frozen=True)
class Told:
    """What a gate or an end says where it is hit: texts with names in braces."""

    id: str
    severity: str
    found: Texts
    expected: Texts
    why: Texts
    remedy: tuple[RemedyStep, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Gate:
    """``step`` is a glob. ``bound`` is of ``how``: most, least or equals; or an ``outcome`` alone makes it hit."""

    told: Told
    stage: str
    step: str
    measure: str
    how: str
    bound: Bound
    outcome: str
    kinds: tuple[str, ...]
    dtypes: tuple[str, ...]


@dataclass(frozen=True)
class End:
    """How a step that did not come to its end is told: the first that fits. ``pattern``: of an exception."""

    told: Told
    outcomes: tuple[str, ...]
    signals: tuple[str, ...]
    stages: tuple[str, ...]
    pattern: str


@dataclass(frozen=True)
class SmokeGates:
    """Nothing is read before something is judged: most runs are no smoke."""

    folders: tuple[Path, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In their order. Raises RuleError, naming file and entry."""
        return _stages(self.folders)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """A user's come first, then in the order of their files."""
        return _gates(self.folders)

    @property
    def ends(self) -> tuple[End, ...]:
        return _ends(self.folders)


def load(folders: Sequence[Path]) -> SmokeGates:
    """Reads nothing yet."""
    return SmokeGates(tuple(folders))


@cache
def _stages(folders: tuple[Path, ...]) -> tuple[Stage, ...]:
    found: dict[str, Stage] = {}
    for rules in _files(folders):
        for entry, where in rules.entries("stages"):
            stage = Stage(
                id=text(entry, "id", where),
                number=int(_number(entry, "number", where)),
                name=languages(entry.get("name"), f"{where}: name"),
                needs=texts(entry, "needs", where),
                seconds=_number(entry, "seconds", where),
                seconds_per_gib=_number(entry, "seconds_per_gib", where, 0.0),
                independent=entry.get("independent") is True,
            )
            found[stage.id] = stage
    return tuple(sorted(found.values(), key=lambda stage: stage.number))


@cache
def _gates(folders: tuple[Path, ...]) -> tuple[Gate, ...]:
    found: list[Gate] = []
    for folder in folders:
        found = [*(gate for rules in _files((folder,)) for gate in _gates_of(rules)), *found]
    return tuple(found)


@cache
def _ends(folders: tuple[Path, ...]) -> tuple[End, ...]:
    found: list[End] = []
    for folder in folders:
        found = [*(end for rules in _files((folder,)) for end in _ends_of(rules)), *found]
    return tuple(found)


def _files(folders: Sequence[Path]) -> Iterator[RuleFile]:
    for folder in folders:
        for path in sorted((folder / FOLDER).glob("*.yaml")):
            yield RuleFile(path)


def _gates_of(rules: RuleFile) -> Iterator[Gate]:
    for entry, where in rules.entries("gates"):
        bounds = [how for how in BOUNDS if how in entry]
        outcome = text(entry, "outcome", where, "")
        if len(bounds) + bool(outcome) != 1:
            raise RuleError(f"{where}: give one of {', '.join(BOUNDS)} with a measure, or an outcome")
        bound = entry[bounds[0]] if bounds else ""
        if not isinstance(bound, (bool, int, float, str)):
            raise RuleError(f"{where}: {bounds[0]} is a number, a word or true or false, not {bound!r}")
        yield Gate(
            told=_told(rules, entry, where),
            stage=text(entry, "stage", where),
            step=text(entry, "step", where, "*"),
            measure=text(entry, "measure", where, "") if outcome else text(entry, "measure", where),
            how=bounds[0] if bounds else "",
            bound=bound,
            outcome=outcome,
            kinds=texts(entry, "kinds", where),
            dtypes=texts(entry, "dtypes", where),
        )


def _ends_of(rules: RuleFile) -> Iterator[End]:
    for entry, where in rules.entries("ends"):
        pattern = text(entry, "pattern", where, "")
        try:
            re.compile(pattern)
        except re.error as error:
            raise RuleError(f"{where}: pattern: {error}") from None
        yield End(
            told=_told(rules, entry, where),
            outcomes=texts(entry, "outcomes", where),
            signals=texts(entry, "signals", where),
            stages=texts(entry, "stages", where),
            pattern=pattern,
        )


def _told(rules: RuleFile, entry: Mapping[str, Any], where: str) -> Told:
    remedy, steps = texts(entry, "remedy", where), rules.content.get("steps", {})
    unknown = next((name for name in remedy if name not in steps), None)
    if unknown is not None:
        raise RuleError(f"{where}: there is no step {unknown}{nearest(unknown, steps)}")
    return Told(
        id=text(entry, "id", where),
        severity=severity(entry, where),
        found=languages(entry.get("found"), f"{where}: found"),
        expected=languages(entry.get("expected"), f"{where}: expected"),
        why=languages(entry.get("why"), f"{where}: why"),
        remedy=tuple(step_of(steps[name], where) for name in remedy),
        sources=rules.named(entry, where),
    )


def _number(entry: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise RuleError(f"{where}: {key} has to be a number from 0 on, not {value!r}")
    return float(value)
