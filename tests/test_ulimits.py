from __future__ import annotations

from pathlib import Path

from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.ulimits import collect, limits
from ascend_doctor.host import Missing, Reason

REAL = (Path(__file__).parent / "captures" / "proc" / "limits-linux-6.18.txt").read_bytes()


def test_a_real_file_gives_numbers_in_their_units() -> None:
    found = limits(REAL).value
    assert (found.open_files, found.open_files_hard, found.processes) == (20000, 20000, 96364)
    assert (found.locked_kib, found.stack_kib, found.core_kib) == (8192, 8192, 0)


def test_no_limit_is_absent_and_not_a_number() -> None:
    found = limits(REAL).value.address_space_kib
    assert found == Missing(Reason.ABSENT, "unlimited")


def test_the_line_that_shows_a_limit_is_kept() -> None:
    source, text = collect(host("a2-healthy")).provenance["ulimits.open_files"]
    assert (source, text) == ("file:/proc/self/limits", "Max open files 1048576 1048576 files")


def test_a_line_that_is_not_there_is_not_unlimited() -> None:
    found = limits(b"Max open files 1024 4096 files\n").value
    assert isinstance(found.processes, Missing)
    assert found.processes.reason is Reason.FAILED


@given(st.binary(max_size=300))
def test_any_bytes_give_limits_or_missing(text: bytes) -> None:
    assert isinstance(limits(text).value.open_files, (int, Missing))
