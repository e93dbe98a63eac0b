"""Error codes in a line, spelled the way the knowledge looks them up.

The same word is used for several spaces of numbers (``ret[7]`` is HCCL's only where HCCL speaks), so the spelling names
the space: ``507015``, ``EI0006``, ``ERR00100``, ``0x7020010``, ``retCode:0x31``, ``drvRetCode:7``, ``hccl:7``.
"""

from __future__ import annotations

import re

_CODES = re.compile(
    r"(?<![A-Za-z0-9_])(?P<manager>[EW][A-Z1-9]\d{4})(?![A-Za-z0-9])"
    r"|(?<![A-Za-z0-9])(?P<torch>ERR\d{5})(?!\d)"
    r"|(?<![A-Za-z0-9])(?P<mindie>MIE[0-9A-F]{2}[A-Z][0-9A-F]{5,8})\b"
    r"|(?:(?:[Rr]et[Cc]ode|InnerCode|err(?:or)?Code|status|result|tdt error)\s?[=:]\s?|error code=)"
    r"(?P<hex>0x[0-9a-fA-F]{1,8})\b"
    r"|\bdrv_?[Rr]et_?[Cc]ode\s?[=:]\s?(?P<driver>\d{1,3})\b"
    r"|errNo\[(?P<hccl_long>0x[0-9a-fA-F]{16})\]"
    r"|hcclRet -> (?P<hccl>\d{1,2})\b"
    r"|\bret\[(?P<ret>\d{1,2})\]"
    r"|HCCL function error: [^,]{1,80}, error code is (?P<hccl_torch>\d{1,2})\b"
    r"|Hccl[A-Za-z]{1,40}(?: fail)?, ?error(?: code is |:)(?P<hccl_api>\d{1,2})\b"
    r"|\bret(?:urn)?(?: is |[ _]?[Cc]ode[:=] ?)(?P<dcmi>-8\d{3})\b"
    r"|CQE status\[(?P<cqe>\d{1,3})\]|cqe error status\[(?P<cqe_too>\d{1,3})\]"
    r"|(?:[Ee]rror ?[Cc]ode|ErrCode|errorcode|resul ?t|\bret(?:urn)?|failed)(?: is |\W{1,3})(?P<acl>[1-5]\d{5})(?!\d)"
    r"|(?<![0-9A-Za-z])(?P<event>0x[48ABab][0-9A-Fa-f]{7})(?![0-9A-Fa-f])",
    re.ASCII,
)
_SPACES = {"driver": "drvRetCode:", "hccl": "hccl:", "hccl_torch": "hccl:", "hccl_api": "hccl:", "dcmi": "dcmi:"}
_TASK_SCHEDULER_MAXIMUM = 0xFFF


def codes_in(line: str, module: str = "") -> tuple[str, ...]:
    """The codes of a line, each once, in their order."""
    found = [code for match in _CODES.finditer(line) if (code := _spelled(match, module))]
    return tuple(dict.fromkeys(found)) if found else ()


def _spelled(match: re.Match[str], module: str) -> str:
    space = match.lastgroup or ""
    text = match[space]
    if space == "hex":
        number = int(text, 16)
        return f"retCode:0x{number:x}" if number <= _TASK_SCHEDULER_MAXIMUM else text.lower()
    if space == "ret":
        return f"hccl:{text}" if module.startswith("HCC") else ""
    if space in ("cqe", "cqe_too"):
        return f"cqe:{text}"
    if space == "event":
        return text.lower()
    return _SPACES.get(space, "") + text
