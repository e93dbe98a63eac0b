"""Both engines find the same anchors in the same lines; marks are told from anchors; quiet lines are passed over."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_doctor.logs.scanning import ALWAYS, ERROR, MARKS, Anchors, Hit, Scanner, scanner
from ascend_doctor.logs.scanning_pure import PureScanner

WORDS = (
    "EI0006",
    "507015",
    "507",
    "Getting socket",
    "socket times out",
    "HCCL_E_TIMEOUT",
    "内存不足",
    "page",
    "aaaa",
    "aab",
)
ANCHORS = Anchors(WORDS, (*ALWAYS, "HCCL_E_TIMEOUT"))
PURE = PureScanner(ANCHORS)
CAPTURES = Path(__file__).parent / "captures" / "logs"
HEAD = b"[%s] HCCL(7,python3):2025-03-01-00:00:00.000.001 [op_base.cc:1] [7]"


def fast() -> Scanner:
    pytest.importorskip("hyperscan")
    return scanner(ANCHORS)


def found(data: bytes, engine: Scanner = PURE) -> list[tuple[bytes, tuple[str, ...]]]:
    return [(data[hit.start : hit.end], hit.anchors) for hit in engine.feed(data)]


def test_a_line_is_found_by_its_anchors_and_overlapping_ones_all_count() -> None:
    text = b"nothing here\nGetting socket times out, error 507015\nnor here\n"
    assert found(text) == [
        (b"Getting socket times out, error 507015", ("507", "507015", "Getting socket", "socket times out"))
    ]


def test_an_error_of_cann_is_found_without_an_anchor_and_a_quiet_line_is_not() -> None:
    data = (
        HEAD % b"INFO"
        + b"EI0006\n"
        + HEAD % b"ERROR"
        + b"x\n"
        + HEAD % b"WARNING"
        + b"x\n"
        + HEAD % b"EVENT"
        + b"507\n"
    )
    assert found(data) == [(HEAD % b"ERROR" + b"x", (ERROR,))]


def test_anchors_that_are_wanted_on_quiet_lines_are_found_there() -> None:
    data = (
        HEAD % b"INFO" + b"Entry-HcclCommInitRootInfo:ranks[8], rank[0] EI0006\n" + HEAD % b"INFO" + b"HCCL_E_TIMEOUT"
    )
    assert [anchors for _, anchors in found(data)] == [ALWAYS, ("HCCL_E_TIMEOUT",)]


def test_an_error_glued_to_a_quiet_line_is_found() -> None:
    data = HEAD % b"INFO" + b"ret[9]" + HEAD % b"ERROR" + b"EI0006\n"
    assert [anchors for _, anchors in found(data)] == [("EI0006", ERROR)]


def test_the_head_of_a_cann_line_holds_no_anchor() -> None:
    assert found(b"[WARNING] HCCL(507015,507):2025-03-01-00:00:00.000.001 [x.cc:1]nothing\n") == []


def test_what_the_kernel_and_the_firmware_of_the_device_log_as_events_is_not_quiet() -> None:
    data = b"[EVENT] KERNEL(1,sklogd):2021-10-05-23:49:05.098.226 [klogd.c:248][1.0] EI0006\n"
    assert [anchors for _, anchors in found(data)] == [("EI0006",)]


@pytest.mark.parametrize(
    "line", [b"Traceback (most recent call last):", b"ValueError: x", b"x | ERROR    | y", b"[E313 06:55:06"]
)
def test_errors_of_others_are_found_by_marks(line: bytes) -> None:
    assert found(line)
    assert set(found(line)[0][1]) <= set(MARKS)


def test_words_in_chinese_are_found_in_both_encodings() -> None:
    for encoding in ("utf-8", "gb18030"):
        assert [anchors for _, anchors in found("设备内存不足".encode(encoding))] == [("内存不足",)]


@pytest.mark.parametrize("length", [0, 1, 3, 4095, 4096, 4097, 8190, 9000])
def test_an_anchor_is_found_wherever_it_stands_in_a_long_line(length: int) -> None:
    line = b"x" * length + b"EI0006" + b"y" * 5000
    assert [anchors for _, anchors in found(line)] == [("EI0006",)]


PIECES = [
    *(word.encode() for word in WORDS),
    *(mark.encode() for mark in MARKS),
    *(HEAD % level for level in (b"ERROR", b"INFO", b"EVENT", b"WARNING")),
    "内存不足".encode("gb18030"),
    b"Entry-HcclCommInit",
    b"\n",
    b"\n",
    b" ",
    b"\0",
    b"\r\n",
    b"[INFO] X(",
    b"aa",
    b"50",
]


@pytest.mark.fast
@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=6)), max_size=40).map(b"".join))
def test_the_fast_engine_gives_what_the_pure_one_gives(data: bytes) -> None:
    assert fast().feed(data) == PURE.feed(data)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=6)), max_size=40).map(b"".join))
def test_the_pure_engine_gives_what_the_words_of_its_meaning_say(data: bytes) -> None:
    assert PURE.feed(data) == meant(data)


def meant(data: bytes) -> list[Hit]:
    """The meaning of scanning.py, written as slowly and plainly as can be."""
    from ascend_doctor.logs.scanning import HEAD as OF_CANN
    from ascend_doctor.logs.scanning import QUIET, spelled

    own = spelled((*ANCHORS.words, *ANCHORS.quiet))
    hits, start = [], 0
    for line in data.split(b"\n"):
        head = OF_CANN.match(line)
        body = line[head.end() :] if head else line
        words = {**own, **spelled([ERROR] if head else MARKS)}
        texts = {text for word, text in words.items() if word in body}
        texts |= {ERROR} if line.startswith(b"[ERROR]") else set()
        if __import__("re").match(QUIET, line) and b"[ERROR]" not in line:
            texts &= set(ANCHORS.quiet)
        if texts:
            hits.append(Hit(start, start + len(line), tuple(sorted(texts))))
        start += len(line) + 1
    return hits


@pytest.mark.fast
@pytest.mark.parametrize("path", sorted(CAPTURES.rglob("*.log")), ids=lambda path: path.name)
def test_both_engines_agree_on_real_logs(path: Path) -> None:
    data = path.read_bytes()
    assert fast().feed(data) == PURE.feed(data) == meant(data)
