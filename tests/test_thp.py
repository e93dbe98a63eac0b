from __future__ import annotations

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.thp import chosen_word, collect, number
from ascend_doctor.host import Missing, Reason

THP = "/sys/kernel/mm/transparent_hugepage"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"always [madvise] never\n", "madvise"),
        (b"always defer [defer+madvise] madvise never\n", "defer+madvise"),
        (b"[always] madvise never\r\n", "always"),
        (b"always within_size advise [never] deny force\n", "never"),
    ],
)
def test_the_bracketed_word_is_the_setting(text: bytes, word: str) -> None:
    assert chosen_word(text) == word


@pytest.mark.parametrize("text", [b"", b"always madvise never\n", b"[]\n", b"[1]\n"])
def test_a_text_without_a_chosen_word_gives_none(text: bytes) -> None:
    assert chosen_word(text) == Missing(Reason.FAILED, "no word in brackets")


@given(st.binary(max_size=200))
def test_any_bytes_give_a_word_or_missing(text: bytes) -> None:
    assert isinstance(chosen_word(text), (str, Missing))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_number_or_missing(text: bytes) -> None:
    assert isinstance(number(text), (int, Missing))


def test_all_settings_are_read_with_their_file() -> None:
    collected = collect(host("a2-healthy"))
    assert (collected.facts.enabled, collected.facts.defrag) == ("madvise", "madvise")
    assert collected.facts.khugepaged.scan_sleep_milliseconds == 10000
    assert collected.facts.khugepaged.defrag == 1
    source, text = collected.provenance["thp.khugepaged.scan_sleep_milliseconds"]
    assert source == f"file:{THP}/khugepaged/scan_sleep_millisecs"
    assert text == "10000"


def test_a_kernel_without_huge_pages_has_none_of_the_settings() -> None:
    facts = collect(host("a2-healthy", set={"missing": {THP: "absent"}})).facts
    assert isinstance(facts.enabled, Missing)
    assert facts.enabled.reason is Reason.ABSENT
    assert facts.enabled.path == "thp.enabled"
