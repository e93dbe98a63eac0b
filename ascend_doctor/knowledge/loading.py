"""Whose a library or a symbol is, and which functions torch_npu cannot do without: rules/libraries/loading.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError, Source
from ascend_doctor.knowledge.rule_file import RuleFile, text, texts
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Owner:
    """Who brings libraries and symbols. ``libraries``: (pattern of a file name, package)."""

    owner: str
    libraries: tuple[tuple[str, str], ...]
    symbols: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class FirstCall:
    """A function that torch_npu looks up at its first device call, and what it says where there is none."""

    function: str
    says: str
    source: Source


@dataclass(frozen=True)
class Loading:
    owners: tuple[Owner, ...]
    first_call: tuple[FirstCall, ...]

    def of_library(self, name: str) -> tuple[Owner, str]:
        """The owner of a library, and its package."""
        for owner in self.owners:
            for pattern, package in owner.libraries:
                if fnmatchcase(name, pattern):
                    return owner, package
        return UNKNOWN, ""

    def of_symbol(self, name: str) -> Owner:
        return next((owner for owner in self.owners if name.startswith(owner.symbols)), UNKNOWN)


UNKNOWN = Owner("system", (), (), ())


def load(folders: Sequence[Path]) -> Loading:
    """All folders together, later ones first. Raises RuleError."""
    owners: list[Owner] = []
    first_call: dict[str, FirstCall] = {}
    for folder in folders:
        path = folder / "libraries" / "loading.yaml"
        if not path.is_file():
            continue
        rules = RuleFile(path)
        owners = [
            Owner(
                text(entry, "owner", where),
                _libraries(entry.get("libraries"), where),
                texts(entry, "symbols", where),
                rules.named(entry, where),
            )
            for entry, where in rules.entries("owners")
        ] + owners
        for entry, where in rules.entries("first_call"):
            function = text(entry, "function", where)
            first_call[function] = FirstCall(function, text(entry, "says", where), rules.named(entry, where)[0])
    return Loading(tuple(owners), tuple(first_call.values()))


def _libraries(value: object, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise RuleError(f"{where}: libraries: give a list of {{pattern: ..., package: ...}}")
    return tuple((text(entry, "pattern", where), text(entry, "package", where)) for entry in value)
