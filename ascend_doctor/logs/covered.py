"""What was read of each file; beyond the first thousands the files of one folder are told together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ascend_doctor.logs import Coverage

TOLD_APART = 5000


class Covered:
    """Takes the coverage of files one by one, in flat memory; iterates over what is to be told."""

    def __init__(self, told_apart: int = TOLD_APART) -> None:
        self._most = told_apart
        self._apart: list[Coverage] = []
        self._together: dict[tuple[str, str, str], Coverage] = {}

    def add(self, one: Coverage) -> None:
        if len(self._apart) < self._most:
            self._apart.append(one)
            return
        key = (one.path.rpartition("/")[0], one.kind, one.skipped[:40])
        if key not in self._together and len(self._together) >= self._most:
            key = ("", *key[1:])
        seen = self._together.get(key)
        self._together[key] = replace(one, path=f"{key[0]}/*" if key[0] else "*") if seen is None else _both(seen, one)

    def __iter__(self) -> Iterator[Coverage]:
        yield from self._apart
        yield from self._together.values()


def _both(one: Coverage, other: Coverage) -> Coverage:
    firsts = [time for time in (one.first, other.first) if time]
    lasts = [time for time in (one.last, other.last) if time]
    return replace(
        one,
        bytes=one.bytes + other.bytes,
        lines=one.lines + other.lines,
        first=min(firsts, default=None),
        last=max(lasts, default=None),
        files=one.files + other.files,
    )
