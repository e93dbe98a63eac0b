"""What differs between the facts of two looks: the documents that ``--facts`` writes, value by value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ascend_doctor.knowledge.differences import Differences
from ascend_doctor.records import dataclass

NAMED = 4
"""Values that tell of an element."""

NOT_FACTS = ("schema", "missing", "versions")


_FOLDERS = re.compile(r"(/[^:]*:)+/[^:]*:?")
"""A list of folders, as LD_LIBRARY_PATH is one."""


@dataclass(frozen=True)
class FactChange:
    """``before`` and ``after`` as text; None: there is no such fact; ``(denied)``: why nobody knows it."""

    path: str
    before: str | None
    after: str | None


def fact_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], known: Differences, same_host: bool
) -> tuple[list[FactChange], int]:
    """What differs, in the order of the facts, and how many differences say nothing.

    Of an element that only one side has, one line tells.
    """
    one, other = dict(_leaves(before, known)), dict(_leaves(after, known))
    inner = _inner(one), _inner(other)
    found: dict[str, FactChange] = {}
    ignored = 0
    for path in dict.fromkeys((*one, *other)):
        values = one.get(path, ABSENT), other.get(path, ABSENT)
        if values[0] == values[1] or any(path in paths for paths in inner):
            continue
        if known.says_nothing(path, same_host) or known.is_near(path, *values):
            ignored += 1
            continue
        if ABSENT in values:
            whole = next(begin for begin in _beginnings(path) if begin not in inner[values[1] is ABSENT])
            found.setdefault(whole, FactChange(whole, _summary(one, whole), _summary(other, whole)))
            continue
        texts = _lists(*values) if all(isinstance(value, list) for value in values) else (_text(v) for v in values)
        found[path] = FactChange(path, *texts)
    return list(found.values()), ignored


def _beginnings(path: str) -> Iterator[str]:
    """``npu.chips[0].health``: npu.chips, npu.chips[0], and itself; never a whole area."""
    ends = [found.start() for found in re.finditer(r"(?<=[^.])[.\[](?![^\[]*\])|\[", path)]
    yield from (path[:end] for end in ends[1:])
    yield path


def _inner(leaves: Mapping[str, Any]) -> set[str]:
    """The paths that have something below them."""
    return {begin for path in leaves for begin in _beginnings(path) if begin != path}


def _summary(leaves: Mapping[str, Any], whole: str) -> str | None:
    """Of an element its first values; of a value itself; None where there is neither."""
    if whole in leaves:
        return _text(leaves[whole])
    start = len(whole)
    below = [
        (path[start:].lstrip("."), value)
        for path, value in leaves.items()
        if path.startswith((f"{whole}.", f"{whole}["))
    ]
    below = [(path, value) for path, value in below if path and not isinstance(value, _Unknown)]
    parts = [f"{path} {text}" for path, value in below if (text := _text(value)) and f"[{text}]" not in whole]
    return ", ".join(parts[:NAMED]) + (", …" if len(parts) > NAMED else "") if below else None


class _Absent:
    """No such fact."""


ABSENT = _Absent()


@dataclass(frozen=True)
class _Unknown:
    reason: str


def _leaves(facts: Mapping[str, Any], known: Differences) -> Iterator[tuple[str, Any]]:
    missing = facts.get("missing") or {}

    def walk(value: Any, path: str, told: str) -> Iterator[tuple[str, Any]]:
        """``told``: the path as the facts' own ``missing`` has it, where elements are counted."""
        if isinstance(value, dict):
            for key, part in value.items():
                step = f".{key}" if key.isidentifier() else f"[{key}]"
                yield from walk(part, path + step, told + step)
        elif isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
            names = known.known_by.get(path, ())
            for number, part in enumerate(value):
                name = "/".join(str(part.get(name)) for name in names) if names else str(number)
                yield from walk(part, f"{path}[{name}]", f"{told}[{number}]")
        elif value is None:
            why = missing.get(told) or missing.get(_quoted(told)) or {}
            yield path, _Unknown(str(why.get("reason", "not known")) if isinstance(why, dict) else "not known")
        elif isinstance(value, str) and _FOLDERS.fullmatch(value):
            yield path, value.split(":")
        else:
            yield path, value

    for area, value in facts.items():
        if area not in NOT_FACTS:
            yield from walk(value, area, area)


def _quoted(path: str) -> str:
    """``python.packages.torch.version`` as a map's key is written: ``python.packages["torch"].version``."""
    return re.sub(r"^(\w+\.\w+)\.(\w+)", r'\1["\2"]', path)


def _lists(before: Sequence[Any], after: Sequence[Any]) -> tuple[str | None, str | None]:
    """Of two lists only what one has and the other has not; both whole where only their order differs."""
    gone, new = [v for v in before if v not in after], [v for v in after if v not in before]
    return (_text(gone), _text(new)) if gone or new else (_text(before), _text(after))


def _text(value: Any) -> str | None:
    if isinstance(value, _Absent):
        return None
    if isinstance(value, _Unknown):
        return f"({value.reason})"
    if isinstance(value, list):
        return ", ".join(_text(part) or "" for part in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
