"""The cells of npu-smi's table: which columns a header's cell holds, and what stands below each.

One cell holds up to three columns, parted by nothing but blanks, and numbers may be glued (``65099/ 65536``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ascend_doctor.host import Missing, Reason

NO_COLUMN = Missing(Reason.UNSUPPORTED, "no such column")
NOTHING = ("", "NA", "N/A", "-", "--")

_LABELS = re.compile(
    r"(?P<npu_util_percent>NPU[ -]?Util\S*)|(?P<npu_id>NPU(?: ?ID)?(?![\w-]))|(?P<aicore_percent>AI ?Core\S*)"
    r"|(?P<hugepages>Huge\S*)|(?P<hbm>HBM(?:[ -]Usage)?\S*)|(?P<memory>Mem(?:ory)?(?:[ -]Usage)?\S*)"
    r"|(?P<power_w>Power\S*)|(?P<temp_c>Temp\S*)|(?P<name>Name(?!\S))|(?P<health>Health(?!\S))"
    r"|(?P<chip_id>Chip(?: ?ID)?(?!\S))|(?P<phy_id>Phy[ -]?ID(?!\S))|(?P<logic_id>Device(?!\S))"
    r"|(?P<bus_id>Bus[ -]?ID(?!\S))|(?P<unit>\([^)|]*\))|(?P<other>\S+)",
    re.IGNORECASE,
)
PAIRS = ("hugepages", "memory", "hbm")
_TOKEN = re.compile(r"N/A|[^\s/]+\s*/\s*[^\s/]+|\S+")


def labels_of(cell: str) -> tuple[str, ...]:
    """The columns inside one cell of a header, from left to right."""
    return tuple(str(m.lastgroup) for m in _LABELS.finditer(cell) if m.lastgroup != "unit")


def assigned(header: Sequence[tuple[str, ...]], cells: Sequence[str]) -> dict[str, str] | None:
    """Column -> what stands below it; None where the row has not as many cells as the header: it was cut."""
    if len(cells) != len(header):
        return None
    values: dict[str, str] = {}
    for labels, cell in zip(header, cells):
        values.update(_in_cell(labels, cell))
    return values


def _in_cell(labels: tuple[str, ...], cell: str) -> dict[str, str]:
    if len(labels) == 1:
        return {labels[0]: cell}
    if labels[:1] in (("npu_id",), ("chip_id",)):  # blanks may stand in a name, and an id may be left blank
        words = cell.split(None, len(labels) - 1)
        return dict(zip(labels, (*words, *[""] * len(labels))))
    tokens = _TOKEN.findall(cell)
    if len(tokens) == len(labels) and all(_fits(label, token) for label, token in zip(labels, tokens)):
        return dict(zip(labels, tokens))
    values: dict[str, str] = {}
    for is_pair in (True, False):  # one kind is incomplete: the other can still be told
        names = [label for label in labels if (label in PAIRS) == is_pair]
        found = [token for token in tokens if ("/" in token and token != "N/A") == is_pair]
        if len(names) == len(found):
            values.update(zip(names, found))
    return values


def _fits(label: str, token: str) -> bool:
    """Used and total stand below a pair's label and nowhere else; NA may stand anywhere."""
    return label == "other" or token in NOTHING or ("/" in token) == (label in PAIRS)


def nothing(text: str) -> Missing:
    return Missing(Reason.UNSUPPORTED, text or "blank")


def unread(text: str) -> Missing:
    return Missing(Reason.FAILED, f"not understood: {text[:40]}")


def is_count(text: str) -> bool:
    return re.fullmatch(r"\d{1,12}", text, re.ASCII) is not None


def count(text: str | None) -> int | Missing:
    if text is None:
        return NO_COLUMN
    if text in NOTHING:
        return nothing(text)
    bare = text[:-1] if text.endswith("%") else text
    return int(bare) if is_count(bare) else unread(text)


def decimal(text: str | Missing) -> float | Missing:
    if isinstance(text, Missing):
        return text
    return float(text) if re.fullmatch(r"-?\d{1,9}(?:\.\d{1,6})?", text, re.ASCII) else unread(text)


def whole(number: float | Missing) -> float | Missing:
    """A temperature without a fraction is a whole number, as it is printed."""
    return int(number) if isinstance(number, float) and number.is_integer() else number
