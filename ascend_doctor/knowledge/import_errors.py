"""What it means when an import fails: rules/libraries/import-errors.yaml."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError, Source, nearest
from ascend_doctor.knowledge.remedies import RemedyStep, Texts, step_of
from ascend_doctor.knowledge.rule_file import RuleFile, languages, severity, text, texts
from ascend_doctor.records import dataclass

FILE = Path("libraries") / "import-errors.yaml"
GROUPS = {"library", "symbol", "version", "path", "name", "code"}
ANY = "*"

Faults = Mapping[str, Collection[str]]
"""File name of a library -> kinds of faults that the analysis of the libraries found of it."""


@dataclass(frozen=True)
class Cause:
    """``pattern``: of an exception; ``signals`` and ``outcomes``: of an end without one. One of the three is given."""

    id: str
    pattern: str
    fault: str
    signals: tuple[str, ...]
    outcomes: tuple[str, ...]
    severity: str
    found: Texts
    why: Texts
    remedy: tuple[RemedyStep, ...]
    sources: tuple[Source, ...]

    def values(self, exception: str, faults: Faults) -> dict[str, str] | None:
        """The groups of the pattern where it fits an exception, "Type: text"; None where it does not."""
        found = re.search(self.pattern, exception) if self.pattern else None
        if found is None:
            return None
        values = {name: value or "" for name, value in found.groupdict().items()}
        met = not self.fault or self.fault in faults.get(values.get("library", ""), ())
        return values if met else None


@dataclass(frozen=True)
class ImportErrors:
    """Nothing is read before a cause is looked for, as most runs import nothing, and most imports pass."""

    folders: tuple[Path, ...]

    @property
    def causes(self) -> tuple[Cause, ...]:
        """In order: the first that fits. Raises RuleError, naming file and entry."""
        return _read(self.folders)

    def of_exceptions(self, exceptions: Sequence[str], faults: Faults) -> tuple[Cause, str, dict[str, str]] | None:
        """The cause that knows one of them, the outermost first; which one, and what its pattern found in it."""
        for exception in exceptions:
            for cause in self.causes:
                values = cause.values(exception, faults)
                if values is not None:
                    return cause, exception, values
        return None

    def of_end(self, outcome: str, signal: str) -> Cause | None:
        """The cause of an end without an exception, or with one that no pattern knows."""
        for cause in self.causes:
            if outcome in cause.outcomes or (outcome == "signal" and {signal, ANY} & set(cause.signals)):
                return cause
        return None


def load(folders: Sequence[Path]) -> ImportErrors:
    """Reads nothing yet."""
    return ImportErrors(tuple(folders))


@cache
def _read(folders: tuple[Path, ...]) -> tuple[Cause, ...]:
    """Later folders come first, so that a user's cause is the one that fits."""
    causes: list[Cause] = []
    for folder in folders:
        if (folder / FILE).is_file():
            causes = [*_causes(RuleFile(folder / FILE)), *causes]
    return tuple(causes)


def _causes(rules: RuleFile) -> Iterator[Cause]:
    steps = rules.content.get("steps", {})
    for entry, where in rules.entries("causes"):
        ends = [bool(entry.get(key)) for key in ("pattern", "signals", "outcomes")]
        if sum(ends) != 1:
            raise RuleError(f"{where}: give one of pattern, signals and outcomes")
        pattern = text(entry, "pattern", where, "")
        try:
            unknown = set(re.compile(pattern).groupindex) - GROUPS
        except re.error as error:
            raise RuleError(f"{where}: pattern: {error}") from None
        if unknown:
            raise RuleError(f"{where}: pattern: groups are named {', '.join(sorted(GROUPS))}, not {min(unknown)}")
        remedy = entry.get("remedy", ())
        if not isinstance(remedy, Sequence) or isinstance(remedy, str):
            raise RuleError(f"{where}: remedy is a list of steps")
        yield Cause(
            id=text(entry, "id", where),
            pattern=pattern,
            fault=text(entry, "fault", where, ""),
            signals=texts(entry, "signals", where),
            outcomes=texts(entry, "outcomes", where),
            severity=severity(entry, where),
            found=languages(entry.get("found"), f"{where}: found"),
            why=languages(entry.get("why"), f"{where}: why"),
            remedy=tuple(step_of(_named(step, steps, where), where) for step in remedy),
            sources=rules.named(entry, where),
        )


def _named(step: object, steps: Mapping[str, object], where: str) -> object:
    """What a name stands for; a step that is written out as it is."""
    if not isinstance(step, str):
        return step
    if step not in steps:
        raise RuleError(f"{where}: there is no step {step}{nearest(step, steps)}")
    return steps[step]
