"""The functions that expressions may call, and the one-level ``for`` inside them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any, Callable, Protocol

from ascend_doctor.engine.comparisons import ExpressionError, want
from ascend_doctor.engine.scope import Evaluate, Locate, Scope, Unknown, mapped, merged, placed
from ascend_doctor.engine.types import NUMBERS, Listed, Mapped, Type, Versioned
from ascend_doctor.facts import AREAS
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.reading import nearest

PATTERN_LIMIT = 200
"""Characters of a pattern of ``matches``."""
MATCHED_LIMIT = 4096
"""Characters of a text that ``matches`` looks at."""

FUNCTIONS = ("all", "any", "len", "lower", "matches", "max", "min", "startswith", "sum")


class Compiler(Protocol):
    """What a call needs of the compiler of the expression around it."""

    variables: dict[str, Type]
    used: set[str]

    def compile(self, node: ast.expr, depth: int) -> tuple[Evaluate, Type]: ...

    def reference(self, node: ast.expr, depth: int) -> tuple[Locate, Type]: ...


def compile_call(compiler: Compiler, node: ast.Call, depth: int) -> tuple[Evaluate, Type]:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in FUNCTIONS:
        raise ExpressionError(f"unknown function {name}{nearest(name, FUNCTIONS)}")
    if node.keywords:
        raise ExpressionError(f"{name} takes no named arguments")
    if name in ("lower", "startswith", "matches"):
        return _text_function(compiler, name, node, depth)
    if len(node.args) != 1:
        raise ExpressionError(f"{name} takes one argument, not {len(node.args)}")
    items, element = _items(compiler, node.args[0], depth)
    if name in ("any", "all"):
        want(element, ("bool",), node.args[0], "conditions")
        return _quantifier(items, name == "any"), "bool"
    if name == "len":
        return (lambda scope: _folded(items(scope), scope, lambda values: len(values), True)), "int"
    want(element, NUMBERS, node.args[0], "numbers")
    folds: Mapping[str, Callable[[Any], Any]] = {"min": min, "max": max, "sum": sum}
    fold = folds[name]
    return (lambda scope: _folded(items(scope), scope, fold, name == "sum")), element


def _text_function(compiler: Compiler, name: str, node: ast.Call, depth: int) -> tuple[Evaluate, Type]:
    wanted = 1 if name == "lower" else 2
    if len(node.args) != wanted:
        raise ExpressionError(f"{name} takes {wanted} argument{'s' * (wanted > 1)}, not {len(node.args)}")
    text, kind = compiler.compile(node.args[0], depth)
    if not isinstance(kind, Versioned):
        want(kind, ("str",), node.args[0], "a text")
    if name == "lower":
        return (lambda scope: mapped(text(scope), str.lower)), "str"
    other = node.args[1]
    if not isinstance(other, ast.Constant) or not isinstance(other.value, str):
        raise ExpressionError(f"{name}: give the second argument as a text in quotes")
    literal = other.value
    if name == "startswith":
        return (lambda scope: mapped(text(scope), lambda value: value.startswith(literal))), "bool"
    if len(literal) > PATTERN_LIMIT:
        raise ExpressionError(f"matches: the pattern is longer than {PATTERN_LIMIT} characters")
    try:
        pattern = re.compile(literal)
    except re.error as error:
        raise ExpressionError(f"matches: {literal!r} is no pattern: {error}") from None
    return (lambda scope: mapped(text(scope), lambda value: pattern.search(value[:MATCHED_LIMIT]) is not None)), "bool"


def _items(compiler: Compiler, node: ast.expr, depth: int) -> tuple[Callable[[Scope], Any], Type]:
    """Gives a list of (value or Unknown, what was read for it), or Unknown."""
    if isinstance(node, ast.GeneratorExp):
        return _generator(compiler, node, depth)
    locate, kind = compiler.compile(node, depth)
    if not isinstance(kind, (Listed, Mapped)) and kind is not None:
        raise ExpressionError(f"{ast.unparse(node)} is no list")
    element = kind.element if isinstance(kind, Listed) else kind.value if isinstance(kind, Mapped) else None

    def items(scope: Scope) -> Any:
        values = locate(scope)
        if isinstance(values, Unknown):
            return values
        values = values.values() if isinstance(values, Mapping) else values
        return [(Unknown((v,)) if isinstance(v, Missing) else v, {}) for v in values]

    return items, element


def _generator(compiler: Compiler, node: ast.GeneratorExp, depth: int) -> tuple[Callable[[Scope], Any], Type]:
    if len(node.generators) != 1:
        raise ExpressionError("one `for` only; derive a row for more")
    loop = node.generators[0]
    if not isinstance(loop.target, ast.Name) or loop.is_async:
        raise ExpressionError(f"{ast.unparse(loop.target)}: one loop variable only")
    if any(isinstance(inner, ast.GeneratorExp) for part in (node.elt, *loop.ifs) for inner in ast.walk(part)):
        raise ExpressionError("no `for` inside a `for`; derive a row for that")
    locate, kind = compiler.reference(loop.iter, depth)
    if not isinstance(kind, (Listed, Mapped)) and kind is not None:
        raise ExpressionError(f"{ast.unparse(loop.iter)} is no list")
    element = kind.element if isinstance(kind, Listed) else kind.value if isinstance(kind, Mapped) else None
    variable = loop.target.id
    if variable in compiler.variables or variable in AREAS:
        raise ExpressionError(f"{variable} is taken; choose another loop variable")
    compiler.variables[variable] = element
    wanted, result = compiler.compile(node.elt, depth)
    filters = []
    for condition in loop.ifs:
        evaluate, condition_kind = compiler.compile(condition, depth)
        want(condition_kind, ("bool",), condition, "a condition")
        filters.append(evaluate)
    del compiler.variables[variable]
    compiler.used.discard(variable)

    def items(scope: Scope) -> Any:
        values, path = locate(scope)
        if path:
            scope.read[path] = None
        if isinstance(values, Missing):
            return Unknown((placed(values, path),))
        if isinstance(values, Unknown):
            return values
        pairs = values.items() if isinstance(values, Mapping) else enumerate(values)
        found = []
        for key, value in pairs:
            inner = scope.binding(variable, value, keyed(path, key))
            kept = [condition(inner) for condition in filters]
            if any(k is False for k in kept):
                continue
            unknown = merged(kept)
            found.append((unknown if unknown.why else wanted(inner), inner.read))
        return found

    return items, result


def _quantifier(items: Callable[[Scope], Any], decisive: bool) -> Evaluate:
    def quantifier(scope: Scope) -> Any:
        found = items(scope)
        if isinstance(found, Unknown):
            return found
        deciding = [read for value, read in found if value is decisive]
        for read in deciding or [read for _, read in found]:
            scope.read.update(read)
        if deciding:
            return decisive
        unknown = merged(value for value, _ in found)
        return unknown if unknown.why else not decisive

    return quantifier


def _folded(found: Any, scope: Scope, fold: Callable[[Any], Any], empty_is_known: bool) -> Any:
    if isinstance(found, Unknown):
        return found
    for _, read in found:
        scope.read.update(read)
    values = [value for value, _ in found]
    unknown = merged(values)
    if unknown.why:
        return unknown
    if not values and not empty_is_known:
        return Unknown((Missing(Reason.ABSENT, "of nothing", "min or max"),))
    return fold(values)
