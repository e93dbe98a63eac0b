"""The fast engine, of the extra ``fast``: hyperscan finds all anchors at once, faster than ripgrep finds its lines."""

from __future__ import annotations

import re
from typing import Any

import hyperscan

from ascend_doctor.logs.scanning import ERROR, HEAD, MARKS, QUIET, Anchors, Hit, spelled

_QUIET = re.compile(QUIET)


class FastScanner:
    """``feed`` is safe to call from one thread."""

    name = "hyperscan"

    def __init__(self, anchors: Anchors) -> None:
        words = spelled((*anchors.words, *anchors.quiet, *MARKS))
        self._texts = list(words.values())
        self._lengths = [len(word) for word in words]
        self._strict = frozenset({*anchors.words, *anchors.quiet, ERROR})
        self._quiet = frozenset(spelled(anchors.quiet).values())
        self._database: Any = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=list(words), ids=list(range(len(words))), flags=[0] * len(words), literal=True
        )

    def feed(self, chunk: bytes) -> list[Hit]:
        places: list[tuple[int, int]] = []
        add = places.append
        self._database.scan(chunk, match_event_handler=lambda word, start, end, flags, context: add((end, word)))
        return self._hits(chunk, places)

    def _hits(self, chunk: bytes, places: list[tuple[int, int]]) -> list[Hit]:
        """By line; this loop takes as long as the search where many lines are errors."""
        hits: list[Hit] = []
        start, stop, body = 0, -1, 0
        found: set[str] = set()
        texts, lengths, strict = self._texts, self._lengths, self._strict
        find, rfind, head_of = chunk.find, chunk.rfind, HEAD.match
        for end, word in places:
            if end > stop:
                if found:
                    self._add(hits, chunk, start, stop, found)
                    found = set()
                start = rfind(b"\n", 0, end) + 1
                stop = find(b"\n", end)
                if stop < 0:
                    stop = len(chunk)
                head = head_of(chunk, start, stop)
                body = head.end() if head else start
            at, text = end - lengths[word], texts[word]
            if body == start or (at >= body and text in strict) or (at == start and text == ERROR):
                found.add(text)
        if found:
            self._add(hits, chunk, start, stop, found)
        return hits

    def _add(self, hits: list[Hit], chunk: bytes, start: int, end: int, found: set[str]) -> None:
        if ERROR not in found and _QUIET.match(chunk, start):
            found &= self._quiet
        if found:
            hits.append(Hit(start, end, tuple(found) if len(found) == 1 else tuple(sorted(found))))
