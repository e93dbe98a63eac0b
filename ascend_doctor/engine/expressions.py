"""Conditions of checks: a closed piece of Python's syntax over facts and rows, with three answers.

A leaf that is Missing makes its expression Unknown, unless the rest decides (Kleene's logic). What an expression read
is kept, so that a finding can show it. Nothing can be called but FUNCTIONS; nothing can grow without bound.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any, Callable

from ascend_doctor.derive import row_set
from ascend_doctor.engine.comparisons import ExpressionError, membership, order, want
from ascend_doctor.engine.functions import FUNCTIONS, compile_call
from ascend_doctor.engine.scope import Evaluate, Locate, Scope, Unknown, mapped, merged, placed, used
from ascend_doctor.engine.types import NUMBERS, Listed, Mapped, Type, area_type, field_type, fields_of, rows_type
from ascend_doctor.facts import AREAS
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.reading import nearest
from ascend_doctor.records import dataclass

TEXT_LIMIT = 2000
"""Characters of an expression."""
DEPTH_LIMIT = 24
_ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Expression:
    """A compiled expression. ``areas`` and ``row_sets`` are what it needs; ``variables`` the loop variables it uses."""

    text: str
    type: Type
    areas: frozenset[str]
    row_sets: frozenset[str]
    variables: frozenset[str]
    value: Evaluate
    locate: Locate | None


def compiled(text: str, variables: Mapping[str, Type] | None = None) -> Expression:
    """Compiles an expression; ``variables`` are the loop variables and their types. Raises ExpressionError."""
    if len(text) > TEXT_LIMIT:
        raise ExpressionError(f"longer than {TEXT_LIMIT} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        raise ExpressionError(f"no expression{place}: {text.strip()!r}") from None
    compiler = _Compiler(dict(variables or {}))
    locate: Locate | None = None
    if isinstance(tree, (ast.Name, ast.Attribute, ast.Subscript)):
        locate, kind = compiler.reference(tree, 0)
        value = _read(locate)
    else:
        value, kind = compiler.compile(tree, 0)
    return Expression(
        text.strip(),
        kind,
        frozenset(compiler.areas),
        frozenset(compiler.row_sets),
        frozenset(compiler.used),
        value,
        locate,
    )


def _read(locate: Locate) -> Evaluate:
    return lambda scope: used(locate, scope)


class _Compiler:
    """One walk over a tree: closures, types, and what is referred to."""

    def __init__(self, variables: dict[str, Type]) -> None:
        self.variables = variables
        self.areas: set[str] = set()
        self.row_sets: set[str] = set()
        self.used: set[str] = set()

    def compile(self, node: ast.expr, depth: int) -> tuple[Evaluate, Type]:
        if depth > DEPTH_LIMIT:
            raise ExpressionError(f"nested deeper than {DEPTH_LIMIT}")
        depth += 1
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            locate, kind = self.reference(node, depth)
            return _read(locate), kind
        if isinstance(node, ast.BoolOp):
            return self._logic(node, depth)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node, depth)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node, depth)
        if isinstance(node, ast.Compare):
            return self._comparison(node, depth)
        if isinstance(node, (ast.Tuple, ast.List)):
            parts = [self.compile(part, depth) for part in node.elts]
            kinds = {str(kind) for _, kind in parts}
            element = parts[0][1] if len(kinds) == 1 else None
            return (lambda scope: tuple(evaluate(scope) for evaluate, _ in parts)), Listed(element)
        if isinstance(node, ast.Call):
            return compile_call(self, node, depth)
        raise ExpressionError(f"{type(node).__name__} is not allowed here")

    def _constant(self, node: ast.Constant) -> tuple[Evaluate, Type]:
        value = node.value
        if not isinstance(value, (bool, int, float, str)):
            raise ExpressionError(f"{value!r} is not allowed; use `is absent` for what is not there")
        return (lambda _: value), type(value).__name__

    def reference(self, node: ast.expr, depth: int) -> tuple[Locate, Type]:
        """Gives (value, path), a Missing as it is. Raises ExpressionError for names that do not exist."""
        if depth > DEPTH_LIMIT:
            raise ExpressionError(f"nested deeper than {DEPTH_LIMIT}")
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id not in self.variables:
                found = self._rows_or_fact(node.value.id, node.attr)
                if found:
                    return found
            return self._attribute(node, depth + 1)
        if isinstance(node, ast.Subscript):
            return self._element(node, depth + 1)
        raise ExpressionError(f"{type(node).__name__} has no parts; name a fact or a row")

    def _name(self, name: str) -> tuple[Locate, Type]:
        if name in self.variables:
            self.used.add(name)
            return (lambda scope: scope.bound[name]), self.variables[name]
        if name in AREAS:
            self.areas.add(name)
            return (lambda scope: (scope.facts(name), name)), area_type(name)
        raise ExpressionError(f"unknown name {name}{nearest(name, (*AREAS, *self.variables, *FUNCTIONS))}")

    def _rows_or_fact(self, head: str, attribute: str) -> tuple[Locate, Type] | None:
        is_fact = head in AREAS and attribute in fields_of(area_type(head))
        rows = None if is_fact else row_set(f"{head}.{attribute}")
        if rows is None:
            return None
        name = rows.name
        self.row_sets.add(name)
        return (lambda scope: (scope.rows(name), name)), rows_type(rows)

    def _attribute(self, node: ast.Attribute, depth: int) -> tuple[Locate, Type]:
        base, owner = self.reference(node.value, depth)
        name = node.attr
        kind: Type = None
        if isinstance(owner, Mapped):
            kind = owner.value
        elif isinstance(owner, type):
            try:
                kind = field_type(owner, name)
            except KeyError:
                raise ExpressionError(f"unknown fact {ast.unparse(node)}{nearest(name, fields_of(owner))}") from None
        elif owner is not None:
            raise ExpressionError(f"{ast.unparse(node.value)} has no parts, so {ast.unparse(node)} is nothing")

        def locate(scope: Scope) -> tuple[Any, str]:
            value, path = base(scope)
            if isinstance(value, (Missing, Unknown)):
                return value, path
            reads = getattr(value, "reads", None)
            if reads is not None:
                scope.read.update(dict.fromkeys(reads))
            inner = f"{path}.{name}"
            if isinstance(value, Mapping):
                return value.get(name, Missing(Reason.NOT_COLLECTED, "not asked for", inner)), inner
            found = getattr(value, name)
            # what a row was made from is read in its place; only a Missing needs the row's own path
            return found, "" if reads is not None and not isinstance(found, Missing) else inner

        return locate, kind

    def _element(self, node: ast.Subscript, depth: int) -> tuple[Locate, Type]:
        base, owner = self.reference(node.value, depth)
        key, key_kind = self.compile(node.slice, depth)
        if isinstance(owner, Listed):
            kind = owner.element
            if key_kind not in ("int", None):
                raise ExpressionError(f"{ast.unparse(node)}: a list takes a number in brackets")
        elif isinstance(owner, Mapped):
            kind = owner.value
        elif owner is None:
            kind = None
        else:
            raise ExpressionError(f"{ast.unparse(node.value)} is no list and no map")

        def locate(scope: Scope) -> tuple[Any, str]:
            value, path = base(scope)
            if isinstance(value, (Missing, Unknown)):
                return value, path
            at = key(scope)
            if isinstance(at, Unknown):
                return at, path
            inner = keyed(path, at)
            if isinstance(value, Mapping):
                found = value.get(at)
            else:
                found = value[at] if isinstance(at, int) and 0 <= at < len(value) else None
            return (Missing(Reason.ABSENT, "no such element", inner) if found is None else found), inner

        return locate, kind

    def _logic(self, node: ast.BoolOp, depth: int) -> tuple[Evaluate, Type]:
        parts = []
        for part in node.values:
            evaluate, kind = self.compile(part, depth)
            want(kind, ("bool",), part, "a condition")
            parts.append(evaluate)
        decisive = isinstance(node.op, ast.Or)

        def logic(scope: Scope) -> Any:
            answers: list[Any] = []
            reads: dict[str, None] = {}
            for evaluate in parts:
                inner = scope.apart()
                answer = evaluate(inner)
                if answer is decisive:
                    scope.read.update(inner.read)
                    return decisive
                reads.update(inner.read)
                answers.append(answer)
            scope.read.update(reads)
            unknown = merged(answers)
            return unknown if unknown.why else not decisive

        return logic, "bool"

    def _unary(self, node: ast.UnaryOp, depth: int) -> tuple[Evaluate, Type]:
        operand, kind = self.compile(node.operand, depth)
        if isinstance(node.op, ast.Not):
            want(kind, ("bool",), node.operand, "a condition")
            return (lambda scope: mapped(operand(scope), operator.not_)), "bool"
        if isinstance(node.op, ast.USub):
            want(kind, NUMBERS, node.operand, "a number")
            return (lambda scope: mapped(operand(scope), operator.neg)), kind
        raise ExpressionError(f"{type(node.op).__name__} is not allowed")

    def _arithmetic(self, node: ast.BinOp, depth: int) -> tuple[Evaluate, Type]:
        apply = _ARITHMETIC.get(type(node.op))
        if apply is None:
            raise ExpressionError(f"{type(node.op).__name__} is not allowed; known are + - * /")
        left, left_kind = self.compile(node.left, depth)
        right, right_kind = self.compile(node.right, depth)
        want(left_kind, NUMBERS, node.left, "a number")
        want(right_kind, NUMBERS, node.right, "a number")
        text = ast.unparse(node)

        def arithmetic(scope: Scope) -> Any:
            a, b = left(scope), right(scope)
            if isinstance(a, Unknown) or isinstance(b, Unknown):
                return merged((a, b))
            if apply is operator.truediv and b == 0:
                return Unknown((Missing(Reason.FAILED, "division by nothing", text),))
            return apply(a, b)

        division = isinstance(node.op, ast.Div)
        return arithmetic, "float" if division or "float" in (left_kind, right_kind) else left_kind or right_kind

    def _comparison(self, node: ast.Compare, depth: int) -> tuple[Evaluate, Type]:
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return self._presence(node, depth)
        operands = [self.compile(part, depth) for part in (node.left, *node.comparators)]
        nodes = [node.left, *node.comparators]
        links = []
        for n, op in enumerate(node.ops):
            (left, left_kind), (right, right_kind) = operands[n], operands[n + 1]
            test = membership(op, right_kind, node) or order(op, left_kind, right_kind, nodes[n], nodes[n + 1])
            links.append((left, test, right))

        def comparison(scope: Scope) -> Any:
            answers = []
            for left, test, right in links:
                a, b = left(scope), right(scope)
                answer = merged((a, b)) if isinstance(a, Unknown) or isinstance(b, Unknown) else test(a, b)
                if answer is False:
                    return False
                answers.append(answer)
            unknown = merged(answers)
            return unknown if unknown.why else True

        return comparison, "bool"

    def _presence(self, node: ast.Compare, depth: int) -> tuple[Evaluate, Type]:
        word = node.comparators[0]
        known = isinstance(word, ast.Name) and word.id in ("absent", "present")
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Is) or not known:
            raise ExpressionError(f"{ast.unparse(node)}: write `X is absent` or `X is present`")
        locate, _ = self.reference(node.left, depth)
        wanted = isinstance(word, ast.Name) and word.id == "absent"

        def presence(scope: Scope) -> Any:
            value, path = locate(scope)
            if path:
                scope.read[path] = None
            if isinstance(value, Unknown):
                return value
            if isinstance(value, Missing):
                return wanted if value.reason is Reason.ABSENT else Unknown((placed(value, path),))
            return not wanted

        return presence, "bool"
