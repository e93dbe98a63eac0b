"""A host that starts no command and writes down what it was asked."""

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

T = TypeVar("T")

NOT_STARTED = Missing(Reason.NOT_COLLECTED, "planned only")


class Planned:
    """Files are asked of the host behind, since what is read next depends on them."""

    def __init__(self, inner: Host) -> None:
        self._inner = inner
        self._asked: dict[str, dict[str, None]] = {"file": {}, "command": {}, "env": {}}

    def commands(self) -> list[str]:
        """Command lines in the order in which they were first asked for."""
        return list(self._asked["command"])

    def files(self) -> list[str]:
        """Paths, sorted."""
        return sorted(self._asked["file"])

    def variables(self) -> list[str]:
        """Names of environment variables, sorted."""
        return sorted(self._asked["env"])

    def read(self, path: str) -> Answer[bytes]:
        return self._file(path, self._inner.read)

    def open(self, path: str) -> Answer[BinaryIO]:
        return self._file(path, self._inner.open)

    def list(self, path: str) -> Answer[tuple[str, ...]]:
        return self._file(path, self._inner.list)

    def stat(self, path: str) -> Answer[Stat]:
        return self._file(path, self._inner.stat)

    def statvfs(self, path: str) -> Answer[StatVfs]:
        return self._file(path, self._inner.statvfs)

    def link(self, path: str) -> Answer[str]:
        return self._file(path, self._inner.link)

    def _file(self, path: str, ask: Callable[[str], Answer[T]]) -> Answer[T]:
        self._asked["file"][path] = None
        return ask(path)

    def run(self, argv: Sequence[str], timeout: float = COMMAND_SECONDS) -> Answer[Output]:
        self._asked["command"][" ".join(argv)] = None
        return Answer(f"command:{' '.join(argv)}", NOT_STARTED)

    def env(self, name: str) -> Answer[str]:
        self._asked["env"][name] = None
        return self._inner.env(name)

    def env_names(self) -> Answer[tuple[str, ...]]:
        return self._inner.env_names()

    def observed(self, area: str, measure: Callable[[], object]) -> Answer[object]:
        self._asked["command"][f"({area})"] = None
        return Answer(f"observed:{area}", NOT_STARTED)

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
