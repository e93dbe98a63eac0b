"""The kernel's own log: all records that are there, without waiting for the next one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ascend_doctor.host import files, kernel_ring


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(kernel_ring.PATH), reason="only root may read /dev/kmsg, where there is one"
)
def test_what_this_kernel_says_is_what_dmesg_prints() -> None:
    said = files.read(kernel_ring.PATH)
    assert isinstance(said, bytes)
    assert said == b"" or said[:1].isdigit()


def test_records_that_were_overwritten_meanwhile_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: Iterator[bytes | Exception] = iter(
        [b"6,1,1,-;first\n", BrokenPipeError(), b"6,9,9,-;ninth\n", BlockingIOError(), b"never read\n"]
    )

    def next_record(descriptor: int, size: int) -> bytes:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    null = os.open(os.devnull, os.O_RDONLY)
    monkeypatch.setattr(kernel_ring.os, "stat", lambda path: _Status())
    monkeypatch.setattr(kernel_ring.os, "open", lambda path, flags: null)
    monkeypatch.setattr(kernel_ring.os, "read", next_record)
    assert kernel_ring.records() == b"6,1,1,-;first\n6,9,9,-;ninth\n"


class _Status:
    st_mode, st_rdev = 0o020600, os.makedev(1, 11)
