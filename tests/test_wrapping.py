"""Lines of a terminal: no wider than asked for, nothing lost, and broken where a reader of either language expects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ascend_doctor.report.wrapping import CLOSING, breaks


def lines(text: str, width: int) -> list[str]:
    ends = [0, *breaks(text, width), len(text)]
    return [text[start:end] for start, end in zip(ends, ends[1:])]


@pytest.mark.parametrize(
    ("text", "width", "found"),
    [
        ("the driver fits", 9, ["the ", "driver ", "fits"]),
        ("the driver fits", 10, ["the driver ", "fits"]),
        ("驱动与版本匹配", 8, ["驱动与版", "本匹配"]),  # two cells each
        ("升级到 CANN 9.1.0 的驱动", 16, ["升级到 CANN ", "9.1.0 的驱动"]),
        ("驱动与版本，匹配", 10, ["驱动与版", "本，匹配"]),  # no line begins with a comma
        ("驱动（版本）匹配", 6, ["驱动", "（版", "本）匹", "配"]),  # and none ends with what opens
        ("/usr/local/Ascend", 6, ["/usr/l", "ocal/A", "scend"]),
    ],
)
def test_where_a_line_ends(text: str, width: int, found: list[str]) -> None:
    assert lines(text, width) == found


@given(st.text(alphabet="ab 驱动，（）。/\t", max_size=80), st.integers(4, 40))
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, width: int) -> None:
    found = lines(text, width)
    assert "".join(found) == text
    assert all(cell_len(line.rstrip()) <= width for line in found if line.strip() == line.rstrip())


@given(st.lists(st.sampled_from(["驱", "动", "版，", "本。", "卡）。", "x,"]), max_size=20))
def test_no_line_begins_with_what_closes(pieces: list[str]) -> None:
    assert not [line for line in lines("".join(pieces), 12) if line[:1] and line[0] in CLOSING]
