"""Reads a YAML file of rules: plain values, or an error that names the file and the line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ascend_doctor.records import dataclass

CONFIDENCES = ("vendor-doc", "vendor-file", "vendor-tool", "vendor-fixture", "field-report", "pypi-only", "unverified")
NEVER_AN_ERROR = ("pypi-only", "unverified")


def nearest(word: str, words: Iterable[str]) -> str:
    """``; did you mean X?``, or nothing where no word is near."""
    import difflib

    found = difflib.get_close_matches(word, list(words), 1, 0.6)
    return f"; did you mean {found[0]}?" if found else ""


class RuleError(Exception):
    """A rule file that cannot be used: what, where, and what to do."""


@dataclass(frozen=True)
class Source:
    """Where a fact is from, and how sure it is (one of CONFIDENCES)."""

    title: str
    url: str
    confidence: str


def load_yaml(path: Path) -> Any:
    """The document in a file. Raises RuleError."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _values(loader(path.read_bytes()))
    except OSError as error:
        raise RuleError(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise RuleError(f"{place}: no valid YAML: {getattr(error, 'problem', None) or error}") from None


def _values(loader: Any) -> Any:
    """Of the loader's only document. As its own constructor makes them, in two thirds of the time."""
    made: dict[int, Any] = {}

    def value(node: Any) -> Any:
        if node.tag == "tag:yaml.org,2002:str":
            return node.value
        if id(node) not in made:
            if node.tag == "tag:yaml.org,2002:map":
                made[id(node)] = {value(key): value(item) for key, item in node.value}
            elif node.tag == "tag:yaml.org,2002:seq":
                made[id(node)] = [value(item) for item in node.value]
            else:
                made[id(node)] = loader.construct_object(node, deep=True)
        return made[id(node)]

    try:
        root = loader.get_single_node()
        return None if root is None else value(root)
    finally:
        loader.dispose()


def source_of(entry: Mapping[str, Any], where: str) -> Source:
    """The source that an entry names. Raises RuleError where it names none."""
    confidence = str(entry.get("confidence", ""))
    if confidence not in CONFIDENCES:
        raise RuleError(f"{where}: confidence is {confidence or 'missing'}; give one of {', '.join(CONFIDENCES)}")
    return Source(str(entry.get("title", "")), str(entry.get("url", "")), confidence)
