"""Any file comes as whole lines in flat memory: encodings, colours, power cuts, lines without end."""

from __future__ import annotations

import io
import tracemalloc
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.logs.files import LogFile
from ascend_doctor.logs.reading import CHUNK, LONGEST, MOST_OF_A_LINE, Lines, is_binary, line_feeds
from ascend_doctor.logs.records import Records
from ascend_doctor.logs.scanning import Anchors, scanner

SCANNER = scanner(Anchors(("507015", "内存不足")), fast=False)


def lines(data: bytes) -> Lines:
    return Lines(io.BytesIO(data))


def texts(data: bytes) -> list[str]:
    records = Records(LogFile("x", lambda: io.BytesIO(data)), SCANNER)
    return [record.text for record in records]


class Endless(io.RawIOBase):
    """``size`` bytes of one pattern, which are never held."""

    def __init__(self, pattern: bytes, size: int) -> None:
        self._pattern, self._left, self._at = pattern * (2 * CHUNK // len(pattern) + 1), size, 0
        self._period = len(pattern)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._pattern[self._at : self._at + min(size, self._left, CHUNK)]
        self._left -= len(data)
        self._at = (self._at + len(data)) % self._period
        return data


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\x1b", b"")), max_size=20).map(b"\n".join))
def test_chunks_joined_are_the_file(data: bytes) -> None:
    if not is_binary(data) and data[:2] not in (b"\xff\xfe", b"\xfe\xff") and data[:3] != b"\xef\xbb\xbf":
        assert b"".join(chunk.data for chunk in lines(data)) == data


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16-le", "utf-16-be"])
def test_chinese_is_read_in_every_encoding(encoding: str) -> None:
    text = ("\ufeff" if encoding.startswith("utf-16") else "") + "一行\r\n错误：设备内存不足\r\n"
    data = text.encode(encoding)
    records = Records(LogFile("x", lambda: io.BytesIO(data)), SCANNER)
    assert [record.text for record in records] == ["错误：设备内存不足"]
    assert records.coverage.encoding == encoding


def test_a_last_line_cut_within_a_character_is_read() -> None:
    assert texts("507015 内存".encode()[:-1])[0].startswith("507015 内")


def test_what_a_power_cut_leaves_is_no_binary_and_is_counted() -> None:
    reader = lines(b"507015\n" + b"\0" * 100_000)
    assert next(iter(reader)).data[:6] == b"507015"
    assert (reader.nuls, reader.binary) == (100_000, False)


@pytest.mark.parametrize(
    "data", [b"\x7fELF" + b"\0" * 99, bytes(range(256)) * 20, b"\x01\x02\x03" * 99, b"ab\0\0cd\0\0" * 99]
)
def test_a_binary_is_not_read(data: bytes) -> None:
    reader = lines(data)
    assert list(reader) == []
    assert "binary" in reader.problem


def test_a_long_line_comes_in_pieces_that_overlap() -> None:
    line = b"x" * (LONGEST - 3) + b"507015" + b"y" * 100
    assert any(b"507015" in chunk.data for chunk in lines(line))
    assert len(texts(line)) == 1


def test_of_an_endless_line_the_rest_is_left_and_said() -> None:
    tracemalloc.start()
    reader = Lines(cast(BinaryIO, Endless(b"abcdefgh", 64 << 20)))
    given_bytes = sum(len(chunk.data) for chunk in reader)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert given_bytes < MOST_OF_A_LINE + 2 * LONGEST
    assert "first 16 MiB" in reader.problem
    assert peak < 12 << 20


def test_memory_is_flat_whatever_the_size() -> None:
    line = b"[ERROR] HCCL(7,p):2025-03-01-00:00:00.000.001 [a.cc:1][1]507015 again and again\n"
    peaks = []
    for count in (4000, 16000):
        tracemalloc.start()
        file = LogFile("x", lambda count=count: cast(BinaryIO, Endless(line, count * len(line))))  # type: ignore[misc]
        assert sum(record.repeated for record in Records(file, SCANNER)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.5


def test_a_stream_that_breaks_gives_what_came_before() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            if not data:
                raise OSError(5, "Input/output error")
            return data

    records = Records(LogFile("x", lambda: Broken(b"507015\n")), SCANNER)
    assert [record.text for record in records] == ["507015"]
    assert "Input/output error" in records.coverage.skipped


@given(st.lists(st.binary(max_size=300), max_size=60), st.integers(0, 9000), st.integers(0, 9000))
def test_line_feeds_are_counted_in_any_part(parts: list[bytes], start: int, end: int) -> None:
    data = b"\n".join(parts)
    start, end = min(start, len(data)), min(end, len(data))
    assert line_feeds(data, start, end) == data[start:end].count(b"\n")
