from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.memory import collect, page_kib, table
from ascend_doctor.host import Missing, Reason

PROC = Path(__file__).parent / "captures" / "proc"


def test_a_real_meminfo_gives_every_figure() -> None:
    found = table((PROC / "meminfo-linux-6.18-x86_64.txt").read_bytes())
    assert isinstance(found.value.total_mib, int)
    assert found.value.total_mib == 24105
    assert (found.value.swap_total_mib, found.value.swap_used_mib, found.value.huge_mib) == (0, 0, 0)
    assert found.texts["total_mib"] == "MemTotal: 24683656 kB"


def test_a_real_auxiliary_vector_tells_the_page_size() -> None:
    assert page_kib((PROC / "auxv-x86_64.bin").read_bytes()).value == 4


@pytest.mark.parametrize(("size", "kib"), [(4096, 4), (16384, 16), (65536, 64)])
def test_the_page_size_is_that_of_at_pagesz(size: int, kib: int) -> None:
    assert page_kib(struct.pack("<6Q", 33, 0x7F30, 6, size, 0, 0)).value == kib


def test_swap_in_use_is_what_is_not_free() -> None:
    found = table(b"SwapTotal: 8388608 kB\nSwapFree: 2097152 kB\n").value
    assert (found.swap_total_mib, found.swap_used_mib) == (8192, 6144)


def test_huge_pages_of_another_size_count_by_hugetlb() -> None:
    text = b"HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\nHugetlb: 4194304 kB\n"
    assert table(text).value.huge_mib == 4096


def test_a_kernel_without_huge_pages_has_none_of_their_figures() -> None:
    free = table(b"MemTotal: 1024 kB\n").value.huge_free_mib
    assert isinstance(free, Missing)
    assert free.reason is Reason.ABSENT


def test_an_unseen_meminfo_leaves_the_settings_known() -> None:
    facts = collect(host("a2-healthy", set={"missing": {"/proc/meminfo": "denied"}})).facts
    assert isinstance(facts.total_mib, Missing)
    assert facts.total_mib.reason is Reason.DENIED
    assert facts.total_mib.path == "memory.total_mib"
    assert (facts.swappiness, facts.page_kib) == (10, 4)


@given(st.binary(max_size=300))
def test_any_bytes_give_figures_or_missing(text: bytes) -> None:
    assert isinstance(table(text).value.total_mib, (int, Missing))
    assert isinstance(page_kib(text).value, (int, Missing))
