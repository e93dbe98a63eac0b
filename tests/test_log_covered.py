"""What was read, told of any number of files."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.logs import Coverage
from ascend_doctor.logs.covered import Covered

FILE = Coverage("a/x.log", "plog", "utf-8", 10, 1, None, None, "")

files = st.lists(
    st.builds(
        lambda folder, name, size, why: replace(FILE, path=f"{folder}/{name}.log", bytes=size, lines=size, skipped=why),
        st.sampled_from("abc"),
        st.integers(0, 99),
        st.integers(0, 1000),
        st.sampled_from(["", "binary, not a text"]),
    ),
    max_size=40,
)


@given(files, st.integers(1, 10))
def test_no_file_byte_or_reason_is_lost_where_many_are_told_together(every: list[Coverage], apart: int) -> None:
    covered = Covered(apart)
    for one in every:
        covered.add(one)
    told = list(covered)
    assert sum(one.files for one in told) == len(every)
    assert sum(one.bytes for one in told) == sum(one.bytes for one in every)
    assert {one.skipped for one in told} == {one.skipped for one in every}
    assert len(told) <= 2 * apart + 4


def test_a_folder_of_many_files_is_one_line_with_their_number() -> None:
    covered = Covered(1)
    for name in ("first", "second", "third"):
        covered.add(replace(FILE, path=f"logs/{name}.log"))
    assert [(one.path, one.files) for one in covered] == [("logs/first.log", 1), ("logs/*", 2)]
