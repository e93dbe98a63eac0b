"""Error codes in a line, spelled the way the knowledge looks them up.

The same word is used for several spaces of numbers (``ret[7]`` is HCCL's only where HCCL speaks), so the spelling names
the space: ``507015``, ``EI0006``, ``ERR00100``, ``0x7020010``, ``retCode:0x31``, ``drvRetCode:7``, ``hccl:7``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FORMS = tuple(
    (space, needle, re.compile(pattern, re.ASCII))
    for space, needle, pattern in (
        ("manager", "", r"[EW](?<![A-Za-z0-9_].)[A-Z1-9]\d{4}(?![A-Za-z0-9])"),
        ("torch", "ERR", r"ERR(?<![A-Za-z0-9]...)\d{5}(?!\d)"),
        ("mindie", "MIE", r"MIE(?<![A-Za-z0-9]...)[0-9A-F]{2}[A-Z][0-9A-F]{5,8}\b"),
        (
            "hex",
            "0x",
            r"(?:(?:[Rr]et[Cc]ode|InnerCode|err(?:or)?Code|status|result|tdt error)\s?[=:]\s?|error code=)"
            r"(0x[0-9a-fA-F]{1,8})\b",
        ),
        ("driver", "drv", r"\bdrv_?[Rr]et_?[Cc]ode\s?[=:]\s?(\d{1,3})\b"),
        ("hccl_long", "errNo[", r"errNo\[(0x[0-9a-fA-F]{16})\]"),
        ("hccl", "hcclRet", r"hcclRet -> (\d{1,2})\b"),
        ("ret", "ret[", r"\bret\[(\d{1,2})\]"),
        ("hccl", "HCCL function error", r"HCCL function error: [^,]{1,80}, error code is (\d{1,2})\b"),
        ("hccl", "Hccl", r"Hccl[A-Za-z]{1,40}(?: fail)?, ?error(?: code is |:)(\d{1,2})\b"),
        ("dcmi", "-8", r"\bret(?:urn)?(?: is |[ _]?[Cc]ode[:=] ?)(-8\d{3})\b"),
        ("cqe", "CQE status", r"CQE status\[(\d{1,3})\]"),
        ("cqe", "cqe error", r"cqe error status\[(\d{1,3})\]"),
        ("event", "0x", r"0x(?<![0-9A-Za-z]..)[48ABab][0-9A-Fa-f]{7}(?![0-9A-Fa-f])"),
    )
)
"""Space, a text without which there is none of it, and the form; each begins so that few places are looked at."""

_ACL = re.compile(r"[1-5]\d{5}(?!\d)", re.ASCII)
_BEFORE_ACL = re.compile(
    r"(?:[Ee]rror ?[Cc]ode|ErrCode|errorcode|resul ?t|\bret(?:urn)?|failed)(?: is |\W{1,3})\Z", re.ASCII
)
_REACH = 24
"""Characters before a number that may say that it is one of ACL."""

_SPACES = {"driver": "drvRetCode:", "hccl": "hccl:", "dcmi": "dcmi:", "cqe": "cqe:"}
_TASK_SCHEDULER_MAXIMUM = 0xFFF


def codes_in(line: str, module: str = "") -> tuple[str, ...]:
    """The codes of a line, each once, in their order."""
    places = sorted(_places(line))
    found, end = [], 0
    for start, _, space, text in places:
        if start >= end:  # of two forms of one number the first counts
            end = start + len(text)
            found.append(_spelled(space, text, module))
    return tuple(dict.fromkeys(code for code in found if code))


def _places(line: str) -> Iterator[tuple[int, int, str, str]]:
    """Where each code stands, the form's rank, its space, and the code as written."""
    for rank, (space, needle, form) in enumerate(_FORMS):
        if needle in line:
            for match in form.finditer(line):
                yield match.start(form.groups), rank, space, match[form.groups]
    for match in _ACL.finditer(line):
        if _BEFORE_ACL.search(line, max(0, match.start() - _REACH), match.start()):
            yield match.start(), len(_FORMS), "acl", match[0]


def _spelled(space: str, text: str, module: str) -> str:
    if space == "hex":
        number = int(text, 16)
        return f"retCode:0x{number:x}" if number <= _TASK_SCHEDULER_MAXIMUM else text.lower()
    if space == "ret":
        return f"hccl:{text}" if module.startswith("HCC") else ""
    if space == "event":
        return text.lower()
    return _SPACES.get(space, "") + text
