"""The types of facts and rows, read from their annotations, so that a check with a misspelt fact is refused at load.

Annotations stay text (Python 3.9 cannot evaluate ``str | Missing``), so they are read with ``ast``.
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, Union

from ascend_doctor.derive import RowSet
from ascend_doctor.facts import AREAS
from ascend_doctor.records import dataclass

NUMBERS = ("int", "float")
SCALARS = (*NUMBERS, "str", "bool")
VERSION_FAMILIES = {
    "CannVersion": "cann",
    "HdkVersion": "driver",
    "FirmwareVersion": "firmware",
    "PythonVersion": "python",
}
"""Annotation -> family of versions.compare: such texts have an order, other texts have none."""


@dataclass(frozen=True)
class Listed:
    """A tuple of elements of one type."""

    element: Type


@dataclass(frozen=True)
class Mapped:
    """A map whose values are of one type; in an attribute chain its keys follow the dot or stand in brackets."""

    value: Type


@dataclass(frozen=True)
class Versioned:
    """A text that is a version of a family."""

    family: str


Type = Union[str, type, Listed, Mapped, Versioned, None]
"""A scalar's name, a dataclass, a container, or None where the annotation does not tell."""


@cache
def area_type(area: str) -> Type:
    """The type of an area of facts: what its ``collect`` says it collects."""
    module = import_module(f"ascend_doctor.facts.{area}")
    collected = _parsed(module.collect.__annotations__["return"])
    if not isinstance(collected, ast.Subscript):
        raise TypeError(f"facts/{area}.py: collect has to return Collected[...]")
    return _type_of(collected.slice, vars(module))


@cache
def rows_type(rows: RowSet) -> Type:
    """The type that a row set gives: ``tuple[Row, ...]``."""
    function = rows.function
    return _type_of(_parsed(function.__annotations__["return"]), function.__globals__)


@cache
def fields_of(owner: Type) -> tuple[str, ...]:
    """The names that may follow a dot; empty where the type has none or does not tell."""
    if isinstance(owner, type) and dataclasses.is_dataclass(owner):
        return tuple(f.name for f in dataclasses.fields(owner))
    return AREAS if owner is None else ()


@cache
def field_type(owner: type, name: str) -> Type:
    """The type of a dataclass's field. Raises KeyError where it has no such field."""
    for f in dataclasses.fields(owner):
        if f.name == name:
            return _type_of(_parsed(str(f.type)), vars(sys.modules[owner.__module__]))
    raise KeyError(name)


@cache
def _parsed(annotation: str) -> ast.expr:
    return ast.parse(annotation, mode="eval").body


def _type_of(node: ast.expr, names: Mapping[str, Any]) -> Type:
    if isinstance(node, ast.BinOp):
        sides = [side for side in (node.left, node.right) if not _is_missing(side)]
        types = {_type_of(side, names) for side in sides}
        if types <= set(NUMBERS):
            return "float" if "float" in types else "int"
        return types.pop() if len(types) == 1 else None
    if isinstance(node, ast.Name):
        if node.id in SCALARS:
            return node.id
        if node.id in VERSION_FAMILIES:
            return Versioned(VERSION_FAMILIES[node.id])
        found = names.get(node.id)
        return found if isinstance(found, type) and dataclasses.is_dataclass(found) else None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if node.value.id in ("tuple", "list", "Sequence", "frozenset"):
            return Listed(_type_of(inner[0], names))
        if node.value.id in ("dict", "Mapping"):
            return Mapped(_type_of(inner[-1], names))
    return None


def _is_missing(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "Missing") or (
        isinstance(node, ast.Constant) and node.value is None
    )
