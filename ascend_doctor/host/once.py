"""One answer to one question, whoever asks, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Callable, Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking: dict[Hashable, threading.Lock] = {}
        self._answers: dict[Hashable, T] = {}

    def of(self, question: Hashable, ask: Callable[[], T]) -> T:
        """The answer that ``ask`` gave the first time; meanwhile only those with the same question wait."""
        with self._lock:
            if question in self._answers:
                return self._answers[question]
            asking = self._asking.setdefault(question, threading.Lock())
        with asking:
            if question not in self._answers:
                self._answers[question] = ask()
            return self._answers[question]
