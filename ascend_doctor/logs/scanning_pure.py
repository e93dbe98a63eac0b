"""The standard engine, in pure Python, and the truth: a gate for CANN's lines, an index of all anchors for the rest.

Most lines of a CANN log are passed over by one regular expression, which looks only at the start of each line (over
1 GB/s). What is left is read as numbers of four bytes, at every second place: each anchor of five bytes and more holds
two fours of which one stands at such a place wherever the anchor stands; for those of four bytes the other places are
looked at too. So a look at a set tells which few anchors may be in a line, and a search says whether they are.
"""

from __future__ import annotations

import re
from collections import Counter
from struct import Struct

from ascend_doctor.logs.scanning import ERROR, HEAD, MARKS, QUIET, Anchors, Hit, spelled

_LOUD = re.compile(rb"\n(?!" + QUIET + rb")")
_STARTS_QUIET = re.compile(QUIET)
_OF_CANN = re.compile(rb"\[[A-Z]{4,7}\] ?[A-Z]")
_LATER_OF_CANN = re.compile(rb"\n\[[A-Z]{4,7}\] ?[A-Z]")
_ERROR = ERROR.encode()

_FOUR = Struct("=I")
_FEWEST = 5
_SHIFTS = (0, 1, 2, 3)
_PIECE = 4096
"""Bytes that are read as numbers at once; a longer line is read in pieces that overlap."""
_NUMBERS = [Struct(f"={count}I") for count in range(_PIECE // 4 + 1)]
_COMMON = b"etaoinsrlcdupm_fhg0 1bvy2=,:"
"""Bytes that are frequent in logs, the most frequent first."""


class PureScanner:
    """``feed`` is safe to call from one thread."""

    name = "pure"

    def __init__(self, anchors: Anchors) -> None:
        own = (*anchors.words, *anchors.quiet)
        self._any = _Index(spelled((*own, *MARKS)))
        self._of_cann = _Index(spelled((*own, ERROR)))
        self._quiet = list(spelled(anchors.quiet).items())

    def feed(self, chunk: bytes) -> list[Hit]:
        if _OF_CANN.match(chunk) or _LATER_OF_CANN.search(chunk):
            return self._of_cann_lines(chunk)
        return self._any.hits(chunk)

    def _of_cann_lines(self, chunk: bytes) -> list[Hit]:
        hits = []
        find, match = chunk.find, HEAD.match
        of_cann, of_any = self._of_cann.texts, self._any.texts
        for start in self._loud_lines(chunk):
            end = find(b"\n", start)
            if end < 0:
                end = len(chunk)
            head = match(chunk, start, end)
            if head:
                texts = of_cann(chunk, head.end(), end)
                if chunk.startswith(_ERROR, start):
                    texts.add(ERROR)
            else:
                texts = of_any(chunk, start, end)
            if texts:
                hits.append(Hit(start, end, tuple(sorted(texts))))
        quiet = self._quiet_hits(chunk)
        return sorted([*hits, *quiet]) if quiet else hits

    def _loud_lines(self, chunk: bytes) -> list[int]:
        """Starts of the lines that the gate does not hold back, and of those that end in a glued ERROR record."""
        starts = [found.end() for found in _LOUD.finditer(chunk)]
        if not _STARTS_QUIET.match(chunk):
            starts.insert(0, 0)
        if starts and starts[-1] == len(chunk):
            starts.pop()
        glued = set()
        place = chunk.find(_ERROR)
        while place >= 0:
            after = place + 7
            if place and chunk[place - 1] != 10:
                glued.add(chunk.rfind(b"\n", 0, place) + 1)
                after = chunk.find(b"\n", place)
            place = chunk.find(_ERROR, after) if after > 0 else -1
        return sorted(glued.union(starts)) if glued else starts

    def _quiet_hits(self, chunk: bytes) -> list[Hit]:
        """Lines which the gate holds back and that have an anchor which is wanted even there."""
        found: dict[int, tuple[int, set[str]]] = {}
        for word, text in self._quiet:
            place = chunk.find(word)
            while place >= 0:
                start = chunk.rfind(b"\n", 0, place) + 1
                end = chunk.find(b"\n", place)
                end = len(chunk) if end < 0 else end
                if _STARTS_QUIET.match(chunk, start) and chunk.find(_ERROR, start, end) < 0:
                    head = HEAD.match(chunk, start, end)
                    if not head or place >= head.end():
                        found.setdefault(start, (end, set()))[1].add(text)
                place = chunk.find(word, place + 1)
        return [Hit(start, end, tuple(sorted(texts))) for start, (end, texts) in found.items()]


class _Index:
    """Which words may stand in a line, by the fours of bytes that it has."""

    def __init__(self, words: dict[bytes, str]) -> None:
        self._short = [(word, text) for word, text in words.items() if len(word) < 4]
        self._words: dict[int, list[tuple[bytes, str]]] = {}
        long = [word for word in words if len(word) >= _FEWEST]
        shared = Counter(word[at : at + 4] for word in long for at in range(len(word) - 3))
        for word in long:
            place = min(range(len(word) - 4), key=lambda at: _telling(word[at : at + _FEWEST], shared))
            for at in (place, place + 1):
                self._words.setdefault(_FOUR.unpack_from(word, at)[0], []).append((word, words[word]))
        self._odd = {_FOUR.unpack(word)[0]: [(word, text)] for word, text in words.items() if len(word) == 4}
        for four, known in self._odd.items():
            self._words.setdefault(four, []).extend(known)
        self._fours = frozenset(self._words)
        self._all_of_four = frozenset(self._odd)
        self._longest = max(map(len, words))

    def texts(self, chunk: bytes, start: int, end: int) -> set[str]:
        """The words that stand in a part of a chunk."""
        found: set[str] = set()
        find = chunk.find
        candidates = self._candidates(chunk, start, end)
        for word, text in candidates if len(candidates) < 2 else set(candidates):
            if find(word, start, end) >= 0:
                found.add(text)
        for word, text in self._short:
            if find(word, start, end) >= 0:
                found.add(text)
        return found

    def _candidates(self, chunk: bytes, start: int, end: int) -> list[tuple[bytes, str]]:
        """The words of which a part that tells much stands in a part of a chunk."""
        found: list[tuple[bytes, str]] = []
        words, none, none_of_four = self._words, self._fours.isdisjoint, self._all_of_four.isdisjoint
        at = start
        while end - at > 3:
            size = min(end - at, _PIECE)
            for shift in _SHIFTS[: size - 3]:
                fours = _NUMBERS[(size - shift) >> 2].unpack_from(chunk, at + shift)
                if shift & 1:
                    if not none_of_four(fours):
                        for four in self._all_of_four.intersection(fours):
                            found += self._odd[four]
                elif not none(fours):
                    for four in self._fours.intersection(fours):
                        found += words[four]
            at += _PIECE - 4 if size == _PIECE else size
        return found

    def hits(self, chunk: bytes) -> list[Hit]:
        """All lines with words, without a look at each line."""
        places: dict[int, tuple[int, set[str]]] = {}
        for at in range(0, len(chunk), _PIECE):
            start, end = max(0, at - self._longest), min(len(chunk), at + _PIECE + self._longest)
            for word, text in {*self._candidates(chunk, at, min(len(chunk), at + _PIECE + 4)), *self._short}:
                place = chunk.find(word, start, end)
                while place >= 0:
                    line = chunk.rfind(b"\n", 0, place) + 1
                    stop = chunk.find(b"\n", place)
                    stop = len(chunk) if stop < 0 else stop
                    places.setdefault(line, (stop, set()))[1].add(text)
                    place = chunk.find(word, stop, end)
        return [Hit(line, stop, tuple(sorted(texts))) for line, (stop, texts) in sorted(places.items())]


def _telling(five: bytes, shared: Counter[bytes]) -> tuple[int, int]:
    """The lower, the less often these bytes stand in other words and in logs."""
    common = sum(max(0, 30 - _COMMON.find(byte)) if byte in _COMMON else 0 for byte in five)
    return max(shared[five[:4]], shared[five[1:]]), common
