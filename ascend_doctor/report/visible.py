"""Text from a host, safe to show: control and direction characters are shown, not obeyed."""

from __future__ import annotations

import re

_ODD = re.compile(r"[^\n\t\x20-\x7e]")


def visible(text: str) -> str:
    """Line ends, tabs and what prints stay; ``\\x1b`` stands for what a terminal or browser would obey."""
    return text if text.isprintable() else _ODD.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    return character if character.isprintable() or character in "\u3000\xa0" else f"\\x{ord(character):02x}"
