"""Values of a stored document, each with its place, so that what is not of the expected kind can be named by it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Callable, TypeVar

from ascend_doctor.records import dataclass

T = TypeVar("T")

DEEPEST = 64
"""No part of a run is nested as deep."""

_WEB = re.compile(r"https?://[^\s<>\"'\x00-\x1f]{1,2000}", re.IGNORECASE)


class StoredError(Exception):
    """A stored run that cannot be used: which file, where in it, and what to do."""


@dataclass(frozen=True)
class Field:
    """A value of a JSON document; ``place`` reads as ``findings[3].remedy[0].effect``."""

    value: Any
    place: str = ""

    def error(self, expected: str) -> StoredError:
        shown = repr(self.value)
        return StoredError(f"{self.place or 'the document'}: expected {expected}, found {shown[:60]}")

    def __getitem__(self, name: str) -> Field:
        """A key of an object; null where it is not there."""
        place = f"{self.place}.{name}" if self.place else name
        return Field(self.mapping().get(name), place)

    def mapping(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict):
            raise self.error("an object")
        return self.value

    def items(self) -> Iterator[Field]:
        """The elements of a list."""
        if not isinstance(self.value, list):
            raise self.error("a list")
        return (Field(item, f"{self.place}[{number}]") for number, item in enumerate(self.value))

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("a text")
        return self.value

    def whole(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.error("a whole number")
        return self.value

    def number(self) -> float:
        if not isinstance(self.value, (int, float)) or isinstance(self.value, bool):
            raise self.error("a number")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.error("true or false")
        return self.value

    def one_of(self, words: Sequence[str]) -> str:
        if self.value not in words:
            raise self.error(f"one of {', '.join(words)}")
        return str(self.value)

    def or_none(self, read: Callable[[Field], T]) -> T | None:
        """``field.or_none(Field.text)``: null stays None."""
        return None if self.value is None else read(self)

    def each(self, read: Callable[[Field], T]) -> tuple[T, ...]:
        return tuple(read(item) for item in self.items())

    def texts(self) -> dict[str, str]:
        """A text in both languages."""
        found = {language: Field(text, f"{self.place}.{language}").text() for language, text in self.mapping().items()}
        if not {"en", "zh"} <= found.keys():
            raise self.error("a text in en and zh")
        return found

    def link(self) -> str:
        """An address of the web, or nothing: a stored run comes from a stranger, and readers click."""
        text = self.text()
        if text and not _WEB.fullmatch(text):
            raise self.error("an address that begins with http:// or https://")
        return text

    def moment(self) -> datetime:
        """A time of a time line, without a zone."""
        try:
            return datetime.fromisoformat(self.text()).replace(tzinfo=None)
        except ValueError:
            raise self.error("a time such as 2026-09-02T13:45:01") from None


def sound(value: Any, place: str = "", depth: int = 0) -> None:
    """Refuses what no report can print: nesting without end, and halves of characters. Raises StoredError."""
    if depth > DEEPEST:
        raise StoredError(f"{place}: nested more than {DEEPEST} deep; no run is")
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise StoredError(f"{place}: holds half of a character (a lone surrogate)") from None
    elif isinstance(value, dict):
        for key, part in value.items():
            sound(key, f"{place}: a key", depth)
            sound(part, f"{place}.{key}" if place else str(key), depth + 1)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            sound(part, f"{place}[{number}]", depth + 1)
