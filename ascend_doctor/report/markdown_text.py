"""Texts inside Markdown that GitHub, Gitee and Jira show as they are: no markup, mention, reference or link works.

A backslash does not stop GitHub from linking ``#1`` or ``@name``, which it looks for in the rendered text; a character
of no width behind the sign does (github/cmark-gfm issue 181, github/markup issue 1168).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ascend_doctor.report.console import printable

NO_WIDTH = "\u200b"

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#!~&|^]")
_REFERENCE = re.compile(r"(?i)(@|#(?=\w)|!(?=\d)|\bgh-(?=\d)|://|\bwww\.)")
_AT_BEGINNING = re.compile(r"^(\s*)([-+=]|\d{1,9}[.)])(?=[\s=-]|$)")
_NO_ADDRESS = re.compile(r"[\s<>\"'`|\\^{}\[\]()*]")


def plain(text: str) -> str:
    """A sentence of ours with values of a host in it, on one line."""
    apart = _REFERENCE.sub(rf"\1{NO_WIDTH}", printable(text).replace("\n", " "))
    escaped = _MARKUP.sub(r"\\\g<0>", apart)
    return _AT_BEGINNING.sub(lambda found: f"{found[1]}{found[2][:-1]}\\{found[2][-1]}", escaped)


def code(text: str) -> str:
    """Text of a host as inline code, whatever backticks it has."""
    one_line = printable(text).replace("\n", " ")
    ticks = "`" * (_longest_run(one_line) + 1)
    pad = " " if one_line.startswith("`") or one_line.endswith("`") or not one_line.strip() else ""
    return f"{ticks}{pad}{one_line}{pad}{ticks}"


def code_cell(text: str) -> str:
    """The same in a table, where a bar ends the cell even inside code."""
    return code(text.replace("\\|", f"\\{NO_WIDTH}|")).replace("|", "\\|")


def block(text: str, indent: str = "", language: str = "") -> Iterator[str]:
    """Text as a code block that nothing in it can end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    yield f"{indent}{fence}{language}"
    for line in printable(text).split("\n"):
        yield f"{indent}{line}".rstrip() if indent else line
    yield f"{indent}{fence}"


def in_html(text: str) -> str:
    """A text between tags, where Markdown's own escapes do not work."""
    apart = _REFERENCE.sub(rf"\1{NO_WIDTH}", printable(text).replace("\n", " "))
    return apart.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def link(url: str) -> str:
    """An address that may be followed; nothing of it is markup."""
    return _NO_ADDRESS.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), printable(url))


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
