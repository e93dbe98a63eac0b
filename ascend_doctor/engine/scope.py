"""What an expression is evaluated in: three answers, what names mean, and what was read on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Callable

from ascend_doctor.host import Missing
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Unknown:
    """No answer, and each Missing that is why."""

    why: tuple[Missing, ...]


@dataclass
class Scope:
    """What names mean while a check is judged, and which paths were read.

    ``facts`` and ``rows`` give an area or a row set, or a Missing; ``bound`` the loop variables with their paths.
    """

    facts: Callable[[str], object]
    rows: Callable[[str], object]
    bound: Mapping[str, tuple[object, str]] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)

    def binding(self, name: str, value: object, path: str) -> Scope:
        """The same scope with a loop variable; what is read is noted apart."""
        return Scope(self.facts, self.rows, {**self.bound, name: (value, path)})

    def apart(self) -> Scope:
        """The same scope, reading apart, so that only what decides is kept."""
        return Scope(self.facts, self.rows, self.bound)


Evaluate = Callable[[Scope], Any]
"""Gives a value, or Unknown."""
Locate = Callable[[Scope], "tuple[Any, str]"]
"""Gives a value, a Missing as it is, and the path of the fact or row; "" where a row stands for its facts."""


def merged(values: Iterable[Any]) -> Unknown:
    """All reasons of the unknown ones among the values, each once."""
    return Unknown(tuple(dict.fromkeys(why for v in values if isinstance(v, Unknown) for why in v.why)))


def used(locate: Locate, scope: Scope) -> Any:
    value, path = locate(scope)
    if path:
        scope.read[path] = None
    return Unknown((placed(value, path),)) if isinstance(value, Missing) else value


def placed(missing: Missing, path: str) -> Missing:
    return missing if missing.path else Missing(missing.reason, missing.detail, path)


def mapped(value: Any, apply: Callable[[Any], Any]) -> Any:
    return value if isinstance(value, Unknown) else apply(value)
