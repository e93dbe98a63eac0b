"""Writes down every question that a run asks and its answer, and saves them as a snapshot."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Callable

from ascend_doctor.host import (
    COMMAND_SECONDS,
    Answer,
    Extent,
    Host,
    Identity,
    Missing,
    Output,
    Python,
    Stat,
    StatVfs,
)
from ascend_doctor.host.once import Once
from ascend_doctor.host.redact import Hiding
from ascend_doctor.host.resolve import tidy
from ascend_doctor.host.saving import Saving
from ascend_doctor.host.writing import RecordError, write_snapshot

__all__ = ["RecordError", "Recorder"]


class Recorder:
    """A host that answers like another one. The same question has one answer, the first, as in a snapshot."""

    def __init__(self, inner: Host) -> None:
        self._inner = inner
        self._once: Once[Any] = Once()
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, Any], Any] = {}

    def _kept(self, kind: str, subject: Any, ask: Callable[[], Answer[Any]]) -> Answer[Any]:
        def asked() -> Answer[Any]:
            answer = ask()
            with self._lock:
                self._answers[kind, subject] = answer.value
            return answer

        found: Answer[Any] = self._once.of((kind, subject), asked)
        return found

    def read(self, path: str) -> Answer[bytes]:
        return self._kept("read", tidy(path), lambda: self._inner.read(path))

    def open(self, path: str) -> Answer[BinaryIO]:
        """The snapshot will have what the file holds when it is saved."""
        answer = self._inner.open(path)
        with self._lock:
            self._answers["open", tidy(path)] = answer.value if isinstance(answer.value, Missing) else None
        return answer

    def list(self, path: str) -> Answer[tuple[str, ...]]:
        return self._kept("list", tidy(path), lambda: self._inner.list(path))

    def stat(self, path: str) -> Answer[Stat]:
        return self._kept("stat", tidy(path), lambda: self._inner.stat(path))

    def statvfs(self, path: str) -> Answer[StatVfs]:
        return self._kept("statvfs", tidy(path), lambda: self._inner.statvfs(path))

    def link(self, path: str) -> Answer[str]:
        return self._kept("link", tidy(path), lambda: self._inner.link(path))

    def run(self, argv: Sequence[str], timeout: float = COMMAND_SECONDS) -> Answer[Output]:
        return self._kept("run", tuple(argv), lambda: self._inner.run(argv, timeout))

    def env(self, name: str) -> Answer[str]:
        return self._kept("env", name, lambda: self._inner.env(name))

    def env_names(self) -> Answer[tuple[str, ...]]:
        return self._kept("env_names", "", self._inner.env_names)

    def observed(self, area: str, measure: Callable[[], object]) -> Answer[object]:
        return self._kept("observed", area, lambda: self._inner.observed(area, measure))

    @property
    def extent(self) -> Extent:
        return self._inner.extent

    @property
    def origin(self) -> str:
        return self._inner.origin

    @property
    def identity(self) -> Identity:
        found: Identity = self._once.of("identity", lambda: self._inner.identity)
        return found

    @property
    def python(self) -> Answer[Python]:
        return self._kept("python", "", lambda: self._inner.python)

    def now(self) -> datetime:
        found: datetime = self._once.of("now", self._inner.now)
        return found

    def save(self, path: Path, hide: Hiding | None = None) -> None:
        """A folder, or an archive where the name ends in .tar.gz or .tgz. Raises RecordError; overwrites nothing.

        ``hide``: what is taken out; secrets alone where nothing is given.
        """
        hide = hide or Hiding()
        python = self.python.value
        with self._lock:
            answers = sorted(self._answers.items())
        hide.learn(text for (kind, subject), value in answers for text in texts_of(kind, subject, value))
        saving = Saving(self._inner, hide)
        for (kind, subject), value in answers:
            saving.take(kind, subject, value)
        members = saving.members(self.now(), self.identity, python)
        write_snapshot(path, members, self.now())


def texts_of(kind: str, subject: Any, value: Any) -> Iterator[str]:
    """All texts of a question and its answer, in which names may stand."""
    if isinstance(value, bytes):
        yield value.decode("utf-8", "surrogateescape")
    elif isinstance(value, Output):
        for stream in (value.stdout, value.stderr):
            yield stream.decode("utf-8", "surrogateescape")
    elif kind == "env" and isinstance(value, str):
        yield f"{subject}={value}"
    elif kind == "list" and isinstance(value, tuple):
        yield from (f"{subject}/{name}" for name in value) if subject == "/home" else ()
    elif kind == "observed":
        yield from _texts_in(value)
    elif isinstance(value, str):
        yield value
    if kind != "env" and isinstance(subject, str):
        yield subject
    elif kind == "run":
        yield "\0".join(subject)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts_in(key)
            yield f"{key}={item}" if isinstance(item, str) else ""
            yield from _texts_in(item)
