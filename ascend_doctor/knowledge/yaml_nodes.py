"""YAML as nodes that know their place, so that every complaint about a rule file names file, line and column.

What YAML would let through is refused: a key given twice, anchors and aliases. Words are words: whether an unquoted
one would be a number or nothing is asked only where it matters, which makes reading a fifth faster.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import yaml

from ascend_doctor.knowledge.reading import RuleError, nearest

SIZE_LIMIT = 4 << 20
"""Bytes of one rule file."""
_BASE: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")
_NOTHING = ("", "~", "null")
_LONGEST_NOTHING = 4
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_ALIAS = re.compile(rb"(?:^|[\s:,\[{-])\*[A-Za-z0-9_]", re.MULTILINE)
"""Where an alias might be; most files have none, and the search for those that have is not needed for them."""


class _Loader(_BASE):  # type: ignore[misc]
    """Asks of no word what it may mean."""

    def resolve(self, kind: type, value: object, implicit: object) -> str:
        return ""

    def descend_resolver(self, current_node: object, current_index: object) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass


class Place:
    """A node of a file. There are thousands in a run, so it is no dataclass."""

    __slots__ = ("file", "node")

    def __init__(self, file: Path, node: yaml.Node) -> None:
        self.file = file
        self.node = node

    def error(self, message: str) -> RuleError:
        mark = self.node.start_mark
        return RuleError(f"{self.file}:{mark.line + 1}:{mark.column + 1}: {message}")

    @property
    def line(self) -> int:
        return int(self.node.start_mark.line) + 1

    def mapping(self, known: Collection[str], needed: Collection[str] = ()) -> dict[str, Place]:
        """Key -> its value's place. Raises RuleError for unknown, doubled and lacking keys."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error(f"expected keys ({', '.join(sorted(known)) or 'a map'}), found {_kind(self.node)}")
        found: dict[str, Place] = {}
        for key_node, value_node in self.node.value:
            name = key_node.value if isinstance(key_node, yaml.ScalarNode) else Place(self.file, key_node).text()
            if known and name not in known:
                raise Place(self.file, key_node).error(f"unknown key {name}{nearest(name, known)}")
            if name in found:
                raise Place(self.file, key_node).error(f"{name} is given twice")
            found[name] = Place(self.file, value_node)
        for name in needed:
            if name not in found:
                raise self.error(f"{name} is missing")
        return found

    def items(self) -> list[Place]:
        """The elements of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error(f"expected a list, found {_kind(self.node)}")
        return [Place(self.file, node) for node in self.node.value]

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def text(self) -> str:
        """A scalar as it is written; true, 1.10 and null have to be quoted where text is meant."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.error(f"expected a text, found {_kind(self.node)}")
        value: str = self.node.value
        if len(value) <= _LONGEST_NOTHING and self._is_plain and value.lower() in _NOTHING:
            raise self.error("expected a text, found nothing; put it in quotes")
        return value

    def choice(self, words: Collection[str]) -> str:
        """One of the words."""
        word = self.text()
        if word not in words:
            raise self.error(f"{word} is none of {', '.join(words)}{nearest(word, words)}")
        return word

    def below(self) -> Iterator[Place]:
        """This node and all nodes in it."""
        yield self
        if isinstance(self.node, yaml.ScalarNode):
            return
        for part in self.node.value:
            for node in part[1:] if isinstance(part, tuple) else (part,):
                yield from Place(self.file, node).below()

    def keys(self) -> list[str]:
        """The keys of a map, as they are written; none for what is no map."""
        return [str(key.value) for key, _ in self.node.value] if self.is_mapping else []

    def scalars(self) -> dict[str, Place]:
        """Those values of a map that are single words or numbers."""
        pairs = self.node.value if self.is_mapping else ()
        return {str(k.value): Place(self.file, v) for k, v in pairs if isinstance(v, yaml.ScalarNode)}

    @property
    def _is_plain(self) -> bool:
        """Whether it is a scalar without quotes."""
        return isinstance(self.node, yaml.ScalarNode) and not self.node.style

    @property
    def is_number(self) -> bool:
        """Whether YAML reads it as a number."""
        return self._is_plain and _NUMBER.fullmatch(self.node.value) is not None

    def number(self) -> int | float:
        """A whole or decimal number."""
        if not self.is_number:
            raise self.error(f"expected a number, found {_kind(self.node)}")
        text = str(self.node.value)
        return int(text) if text.lstrip("+-").replace("_", "").isdigit() else float(text)

    def flag(self) -> bool:
        """true or false."""
        word = str(self.node.value).lower() if self._is_plain else ""
        if word not in (*_YES, *_NO):
            raise self.error("expected true or false")
        return word in _YES

    def plain(self) -> Any:
        """The values below, places forgotten."""
        if isinstance(self.node, yaml.MappingNode):
            return {key: value.plain() for key, value in self.mapping(()).items()}
        if isinstance(self.node, yaml.SequenceNode):
            return [item.plain() for item in self.items()]
        word = str(self.node.value).lower() if self._is_plain else None
        if word in _NOTHING:
            return None
        return word in _YES if word in (*_YES, *_NO) else self.text()


def composed(path: Path) -> Place | None:
    """The root of a file's only document; None for an empty file. Raises RuleError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RuleError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > SIZE_LIMIT:
        raise RuleError(f"{path}: larger than {SIZE_LIMIT >> 20} MiB")
    try:
        root = yaml.compose(data, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise RuleError(f"{place}: no valid YAML: {error.problem or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise RuleError(f"{path}: no valid YAML: {error}") from None
    if root is None:
        return None
    if _ALIAS.search(data):
        _refuse_aliases(path, root)
    return Place(path, root)


def _refuse_aliases(path: Path, root: yaml.Node) -> None:
    seen: set[int] = set()
    rest = [root]
    while rest:
        node = rest.pop()
        if isinstance(node, yaml.ScalarNode):
            continue  # an alias of a scalar repeats a word, nothing more
        if id(node) in seen:
            raise Place(path, node).error("anchors and aliases are not used in rules; write it out")
        seen.add(id(node))
        rest.extend(part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,)))


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return f"the text {node.value!r}" if node.value else "nothing"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a map"
