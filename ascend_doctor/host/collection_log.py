"""A host that notes what was asked and what did not answer, for the end of a report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import BinaryIO, Callable, TypeVar

from ascend_doctor.host import (
    COMMAND_SECONDS,
    Answer,
    Extent,
    Host,
    Identity,
    Missing,
    Output,
    Python,
    Reason,
    Stat,
    StatVfs,
)
from ascend_doctor.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """A source that was asked; ``missing``: why it gave nothing, with the detail; None where it answered."""

    source: str
    seconds: float
    missing: str | None


class CollectionLog:
    """Passes every question on. Kept are commands, and files that are there but did not answer."""

    def __init__(self, inner: Host) -> None:
        self._inner = inner
        self._kept: dict[str, Question] = {}

    def questions(self) -> tuple[Question, ...]:
        """Sorted by source, each once."""
        return tuple(self._kept[source] for source in sorted(self._kept))

    def _noted(self, answer: Answer[T]) -> Answer[T]:
        value = answer.value
        gone = isinstance(value, Missing)
        reason = value.reason if isinstance(value, Missing) else None
        if answer.source.startswith("command:") or (gone and reason is not Reason.ABSENT):
            why = f"{value.reason.value}: {value.detail}" if isinstance(value, Missing) else None
            self._kept[answer.source] = Question(answer.source, round(answer.seconds, 3), why)
        return answer

    def read(self, path: str) -> Answer[bytes]:
        return self._noted(self._inner.read(path))

    def open(self, path: str) -> Answer[BinaryIO]:
        return self._noted(self._inner.open(path))

    def list(self, path: str) -> Answer[tuple[str, ...]]:
        return self._noted(self._inner.list(path))

    def stat(self, path: str) -> Answer[Stat]:
        return self._noted(self._inner.stat(path))

    def statvfs(self, path: str) -> Answer[StatVfs]:
        return self._noted(self._inner.statvfs(path))

    def link(self, path: str) -> Answer[str]:
        answer = self._inner.link(path)
        plain = isinstance(answer.value, Missing) and answer.value.reason is Reason.UNSUPPORTED
        return answer if plain else self._noted(answer)

    def run(self, argv: Sequence[str], timeout: float = COMMAND_SECONDS) -> Answer[Output]:
        return self._noted(self._inner.run(argv, timeout))

    def env(self, name: str) -> Answer[str]:
        return self._noted(self._inner.env(name))

    def env_names(self) -> Answer[tuple[str, ...]]:
        return self._noted(self._inner.env_names())

    def observed(self, area: str, measure: Callable[[], object]) -> Answer[object]:
        return self._noted(self._inner.observed(area, measure))

    @property
    def extent(self) -> Extent:
        return self._inner.extent

    @property
    def origin(self) -> str:
        return self._inner.origin

    @property
    def identity(self) -> Identity:
        return self._inner.identity

    @property
    def python(self) -> Answer[Python]:
        return self._inner.python

    def now(self) -> datetime:
        return self._inner.now()
