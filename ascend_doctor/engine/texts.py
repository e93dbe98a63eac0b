"""Texts of checks in their languages, with expressions in braces."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Callable

from ascend_doctor.engine.expressions import Expression
from ascend_doctor.engine.scope import Scope, Unknown
from ascend_doctor.host import Missing
from ascend_doctor.records import dataclass

LANGUAGES = ("en", "zh")
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True)
class Template:
    """A text whose pieces are words and expressions."""

    pieces: tuple[str | Expression, ...]

    def filled(self, scope: Scope, language: str = "en", quote: bool = False) -> str:
        """The text with values; ``quote``: each value quoted for a shell."""
        parts = (p if isinstance(p, str) else shown(p.value(scope), language) for p in self.pieces)
        if quote:
            parts = (p if isinstance(p, str) else shlex.quote(shown(p.value(scope), language)) for p in self.pieces)
        return "".join(parts)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(p for p in self.pieces if not isinstance(p, str))


Texts = Mapping[str, Template]
"""Language -> template."""


def template(text: str, compile_: Callable[[str], Expression]) -> Template:
    """A text with its placeholders compiled; what ``compile_`` raises goes through."""
    if "{" not in text and "}" not in text:
        return Template((text,))
    pieces: list[str | Expression] = []
    end = 0
    for match in _PIECE.finditer(text):
        pieces.append(text[end : match.start()])
        end = match.end()
        if match[0] in ("{{", "}}"):
            pieces.append(match[0][0])
        elif match[1] is None:
            pieces.append(match[0])  # a lone brace is only a brace
        else:
            pieces.append(compile_(match[1]))
    pieces.append(text[end:])
    return Template(tuple(p for p in pieces if p != ""))


def filled(texts: Texts, scope: Scope) -> dict[str, str]:
    """Each language's text with its values."""
    return {language: text.filled(scope, language) for language, text in texts.items()}


def shown(value: Any, language: str = "en") -> str:
    """A value in words: (reason) for what is unknown; a row's text in its language."""
    if isinstance(value, Missing):
        return f"({value.reason.value})"
    if isinstance(value, Unknown):
        return f"({value.why[0].reason.value})" if value.why else "(unknown)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(shown(part, language) for part in value)
    if isinstance(value, Mapping):
        return str(value[language]) if language in value else ", ".join(str(key) for key in value)
    return str(value)
