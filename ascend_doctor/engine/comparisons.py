"""Comparisons of expressions: equality, order, membership, and the order that only versions have."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ascend_doctor import versions
from ascend_doctor.engine.scope import Unknown, merged
from ascend_doctor.engine.types import NUMBERS, Listed, Mapped, Type, Versioned
from ascend_doctor.host import Missing, Reason

_ORDER: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class ExpressionError(Exception):
    """What is wrong with an expression, and the nearest right word."""


def want(kind: Type, wanted: Sequence[str], node: ast.expr, word: str) -> None:
    if kind is not None and kind not in wanted:
        raise ExpressionError(f"{ast.unparse(node)} is {name_of(kind)}, not {word}")


def name_of(kind: Type) -> str:
    if isinstance(kind, Listed):
        return "a list"
    if isinstance(kind, Mapped):
        return "a map"
    if isinstance(kind, Versioned):
        return f"a {kind.family} version"
    if isinstance(kind, type):
        return f"a {kind.__name__}"
    return {"int": "a number", "float": "a number", "str": "a text", "bool": "a condition"}.get(str(kind), str(kind))


def membership(op: ast.cmpop, container: Type, node: ast.expr) -> Callable[[Any, Any], Any] | None:
    if not isinstance(op, (ast.In, ast.NotIn)):
        return None
    if not isinstance(container, (Listed, Mapped)) and container not in ("str", None):
        raise ExpressionError(f"{ast.unparse(node)}: right of `in` stands a list, a map or a text")
    wanted = isinstance(op, ast.In)

    def member(value: Any, values: Any) -> Any:
        if value in values:
            return wanted
        unseen = [] if isinstance(values, str) else [v for v in values if isinstance(v, (Missing, Unknown))]
        if unseen:
            return merged(v if isinstance(v, Unknown) else Unknown((v,)) for v in unseen)
        return not wanted

    return member


def order(
    op: ast.cmpop, left: Type, right: Type, left_node: ast.expr, right_node: ast.expr
) -> Callable[[Any, Any], Any]:
    apply = _ORDER.get(type(op))
    if apply is None:
        raise ExpressionError(f"{type(op).__name__} is not allowed")
    family = next((kind.family for kind in (left, right) if isinstance(kind, Versioned)), None)
    if family is not None:
        for kind, node in ((left, left_node), (right, right_node)):
            if not isinstance(kind, Versioned) and kind not in ("str", None):
                raise ExpressionError(f"{ast.unparse(node)} is {name_of(kind)}, not a version in quotes")
        return _version_order(apply, family)
    if left is not None and right is not None and left != right and not (left in NUMBERS and right in NUMBERS):
        sides = (f"{ast.unparse(node)} ({name_of(kind)})" for node, kind in ((left_node, left), (right_node, right)))
        raise ExpressionError(f"{' and '.join(sides)} cannot be compared")
    if not isinstance(op, (ast.Eq, ast.NotEq)) and "str" in (left, right):
        raise ExpressionError(f"{ast.unparse(left_node)} is a text: texts have no order, only versions have")
    return apply


def _version_order(apply: Callable[[Any, Any], bool], family: str) -> Callable[[Any, Any], Any]:
    def order(left: str, right: str) -> Any:
        answer = versions.compare(family, left, right)
        if answer is None:
            return Unknown((Missing(Reason.FAILED, f"{left} and {right} cannot be compared", f"{family} versions"),))
        return apply(answer, 0)

    return order
