"""Facts as JSON, and as a tree whose every value has a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ascend_doctor.host import Missing, joined, keyed

SCHEMA = "ascend-doctor/facts/1"


def facts_as_json(areas: Mapping[str, object]) -> dict[str, Any]:
    """Area -> its facts, each Missing a null in its place; all of them with their reasons under ``missing``."""
    missing: dict[str, dict[str, str]] = {}
    document: dict[str, Any] = {"schema": SCHEMA}
    for area, facts in areas.items():
        document[area] = _plain(facts, area, missing)
    document["missing"] = missing
    return document


def _plain(value: object, path: str, missing: dict[str, dict[str, str]]) -> Any:
    if isinstance(value, Missing):
        missing[path] = {"reason": value.reason.value, "detail": value.detail}
        return None
    if isinstance(value, (tuple, list)):
        return [_plain(v, p, missing) for p, v in children(value, path)]
    if isinstance(value, Mapping):
        return {str(k): _plain(v, p, missing) for k, (p, v) in zip(value, children(value, path))}
    if is_dataclass(value):
        return {f.name: _plain(v, p, missing) for f, (p, v) in zip(fields(value), children(value, path))}
    return value


def children(value: object, path: str) -> Iterator[tuple[str, object]]:
    """The parts of a list, map or dataclass with their paths; nothing for a leaf."""
    if isinstance(value, Mapping):
        dotted = "." not in path and "[" not in path  # a map that is a whole area: env.LD_LIBRARY_PATH
        for key, part in value.items():
            yield (joined(path, str(key)) if dotted else keyed(path, key)), part
    elif isinstance(value, (tuple, list)):
        for index, part in enumerate(value):
            yield keyed(path, index), part
    elif is_dataclass(value) and not isinstance(value, (type, Missing)):
        for f in fields(value):
            yield f"{path}.{f.name}", getattr(value, f.name)


def paths(value: object, path: str) -> Iterator[str]:
    """The paths of all that is known at and below a path, outermost first."""
    if isinstance(value, Missing):
        return
    yield path
    for inner, part in children(value, path):
        yield from paths(part, inner)


def without(value: Any, path: str, at: str, missing: Missing) -> Any:
    """The same tree with a Missing at one path."""
    if path == at:
        return replace(missing, path=at)
    if isinstance(value, Mapping):
        return {k: without(v, p, at, missing) for k, (p, v) in zip(value, children(value, path))}
    if isinstance(value, tuple):
        return tuple(without(v, p, at, missing) for p, v in children(value, path))
    if is_dataclass(value) and not isinstance(value, (type, Missing)):
        parts = zip(fields(value), children(value, path))
        return replace(value, **{f.name: without(v, p, at, missing) for f, (p, v) in parts})
    return value
