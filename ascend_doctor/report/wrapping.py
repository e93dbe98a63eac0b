"""Lines of a terminal: where a text may be broken, by the cells that its characters take.

Western words stay whole; Chinese may be broken between any two characters, but no line begins with what closes and none
ends with what opens (GB/T 15834, the rules for punctuation marks, sets this for print).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len, get_character_cell_size

CLOSING = "，。、；：！？）」』】》〉”’…％%,.;:!?)]}"
OPENING = "（「『【《〈“‘([{"
_WIDE = "\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
_UNIT = re.compile(rf"[ \t]+|[{_WIDE}]|[^ \t{_WIDE}]+")


def breaks(text: str, width: int) -> list[int]:
    """Offsets at which the lines after the first begin; blanks at a line's end aside, none is wider than ``width``."""
    found: list[int] = []
    used = offset = 0
    for unit in _units(text, width):
        size = cell_len(unit)
        if used and not unit.isspace() and used + size > width:
            found.append(offset)
            used = 0
        used += size
        offset += len(unit)
    return found


def _units(text: str, width: int) -> Iterator[str]:
    """What stays together; what is wider than a line is cut."""
    unit = ""
    for piece in _UNIT.findall(text):
        glued = unit and not unit.isspace() and (piece[0] in CLOSING or unit[-1] in OPENING) and not piece.isspace()
        if not glued and unit:
            yield from _cut(unit, width)
            unit = ""
        unit += piece
    if unit:
        yield from _cut(unit, width)


def _cut(unit: str, width: int) -> Iterator[str]:
    if cell_len(unit) <= width or unit.isspace():
        yield unit
        return
    start = used = 0
    for number, character in enumerate(unit):
        size = get_character_cell_size(character)
        if used + size > width and number > start:
            yield unit[start:number]
            start, used = number, 0
        used += size
    yield unit[start:]
