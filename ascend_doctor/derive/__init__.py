"""Rows: facts joined with knowledge. A row set is a function whose parameters name the areas and rules that it needs.

``numa.needs`` is the function registered under that name in derive/numa.py: the part before the dot is the module.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Callable, TypeVar

from ascend_doctor.records import dataclass

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class RowSet:
    """``needs``: names of areas (facts/) and of parts of the rules (knowledge/), in the order of the parameters."""

    name: str
    function: Callable[..., Any]
    needs: tuple[str, ...]


_ROW_SETS: dict[str, RowSet] = {}


def rows(name: str) -> Callable[[F], F]:
    """Registers a row set. Each row is a frozen dataclass; its ``reads`` lists the fact paths that it was made from."""

    def register(function: F) -> F:
        code = function.__code__
        _ROW_SETS[name] = RowSet(name, function, code.co_varnames[: code.co_argcount])
        return function

    return register


def row_set(name: str) -> RowSet | None:
    """The row set of that name, its module imported; None where there is no such row set."""
    module = f"{__name__}.{name.partition('.')[0]}"
    if name not in _ROW_SETS and find_spec(module) is not None:
        import_module(module)
    return _ROW_SETS.get(name)
