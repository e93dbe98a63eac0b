"""What belongs to a CANN: Python, numpy and operator packages (rules/compat/cann_needs.yaml), and what is made for one
CANN, as MindIE is (rules/compat/cann_users.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.rule_file import RuleFile, text, texts
from ascend_doctor.records import dataclass

USERS = ("mindie", "mindspore", "triton_ascend")


@dataclass(frozen=True)
class Need:
    """From a release of CANN on, up to the next entry; ``numpy_below`` is empty where any numpy will do."""

    cann_from: str
    python: str
    numpy: str
    numpy_below: str
    numpy_2_from_python: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Operators:
    """Releases of operator packages that serve releases of the toolkit, all with all."""

    operators: tuple[str, ...]
    toolkit: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class User:
    """A version of something that is made for certain CANN."""

    version: str
    cann: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class CannNeeds:
    """``users``: mindie, mindspore, triton_ascend -> their versions."""

    needs: tuple[Need, ...]
    operators: tuple[Operators, ...]
    inferred: Source
    users: Mapping[str, tuple[User, ...]]


def load(folders: Sequence[Path]) -> CannNeeds:
    """All folders together, later ones last. Raises RuleError, naming file and entry."""
    needs: list[Need] = []
    operators: list[Operators] = []
    users: dict[str, tuple[User, ...]] = dict.fromkeys(USERS, ())
    inferred = Source("", "", "unverified")
    for folder in folders:
        path = folder / "compat" / "cann_needs.yaml"
        if path.is_file():
            rules = RuleFile(path)
            inferred = rules.sources.get("inferred", inferred)
            for entry, where in rules.entries("needs"):
                first, python, numpy = (text(entry, key, where) for key in ("cann_from", "python", "numpy"))
                below, from_python = (text(entry, key, where, "") for key in ("numpy_below", "numpy_2_from_python"))
                needs.append(Need(first, python, numpy, below, from_python, rules.named(entry, where)))
            for entry, where in rules.entries("operators"):
                served = (texts(entry, "operators", where), texts(entry, "toolkit", where))
                operators.append(Operators(*served, rules.named(entry, where)))
        path = folder / "compat" / "cann_users.yaml"
        if path.is_file():
            rules = RuleFile(path)
            for name in USERS:
                for entry, where in rules.entries(name):
                    user = User(text(entry, "version", where), texts(entry, "cann", where), rules.named(entry, where))
                    users[name] = (*users[name], user)
    return CannNeeds(tuple(needs), tuple(operators), inferred, users)
