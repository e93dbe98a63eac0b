"""The machine that we run on. Reads files, starts commands that only read, and remembers every answer."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, BinaryIO, Callable, TypeVar, Union

from ascend_doctor.host import (
    COMMAND_SECONDS,
    Answer,
    Extent,
    Identity,
    Missing,
    Output,
    Python,
    Reason,
    Stat,
    StatVfs,
    files,
)
from ascend_doctor.host.commands import Commands
from ascend_doctor.host.files import Files
from ascend_doctor.host.interpreter import target_python
from ascend_doctor.host.once import Once
from ascend_doctor.host.reasons import NOT_SET
from ascend_doctor.host.redact import is_secret
from ascend_doctor.records import dataclass

T = TypeVar("T")

COLLECTION_SECONDS = 60.0
UNKNOWN_NAME = Missing(Reason.NOT_COLLECTED, "not a variable that the rules know")


@dataclass(frozen=True)
class KnownEnv:
    """The variables that may be read: known to the rules by name or beginning, unless the name tells of a secret."""

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return (name in self.names or name.startswith(self.prefixes)) and not is_secret(name)


class LiveHost:
    """Safe to ask from several threads. ``python``: the target interpreter where the user or a launch names one."""

    _files: Files = files

    def __init__(
        self,
        known_env: KnownEnv,
        timeout: float = COLLECTION_SECONDS,
        python: str | None = None,
        extent: Extent = Extent(),  # noqa: B008 - it is frozen
    ) -> None:
        self._extent = extent
        self._known_env, self._given_python = known_env, python
        self._commands = Commands(timeout)
        self._answers: Once[Any] = Once()

    def read(self, path: str) -> Answer[bytes]:
        return self._of_file("read", path, self._files.read)

    def open(self, path: str) -> Answer[BinaryIO]:
        """Not remembered: each caller reads and closes a stream of its own."""
        return Answer(f"file:{path}", files.absolute(path) or self._files.open_file(path))

    def list(self, path: str) -> Answer[tuple[str, ...]]:
        return self._of_file("list", path, self._files.names)

    def stat(self, path: str) -> Answer[Stat]:
        return self._of_file("stat", path, self._files.status)

    def statvfs(self, path: str) -> Answer[StatVfs]:
        return self._of_file("statvfs", path, self._files.file_system)

    def link(self, path: str) -> Answer[str]:
        return self._of_file("link", path, self._files.target)

    def _of_file(self, question: str, path: str, ask: Callable[[str], Union[T, Missing]]) -> Answer[T]:
        def answer() -> Answer[T]:
            return Answer(f"file:{path}", files.absolute(path) or ask(path))

        found: Answer[T] = self._answers.of((question, path), answer)
        return found

    def run(self, argv: Sequence[str], timeout: float = COMMAND_SECONDS) -> Answer[Output]:
        return self._commands.run(argv, timeout)

    def env(self, name: str) -> Answer[str]:
        value = os.environ.get(name, NOT_SET) if name in self._known_env else UNKNOWN_NAME
        return Answer(f"env:{name}", value)

    def env_names(self) -> Answer[tuple[str, ...]]:
        return Answer("env", tuple(sorted(name for name in os.environ if name in self._known_env)))

    def observed(self, area: str, measure: Callable[[], object]) -> Answer[object]:
        found: Answer[object] = self._answers.of(
            ("observed", area), lambda: Answer(f"observed:{area}", _measured(measure))
        )
        return found

    @property
    def extent(self) -> Extent:
        return self._extent

    @property
    def origin(self) -> str:
        return "live"

    @property
    def identity(self) -> Identity:
        found: Identity = self._answers.of("identity", _identity)
        return found

    @property
    def python(self) -> Answer[Python]:
        found: Answer[Python] = self._answers.of(
            "python", lambda: Answer("python", target_python(self._given_python, os.environ))
        )
        return found

    def now(self) -> datetime:
        """The time of the first question, to the second: one run judges at one time."""
        found: datetime = self._answers.of("now", lambda: datetime.now(timezone.utc).replace(microsecond=0))
        return found


def _identity() -> Identity:
    system = os.uname()
    groups = tuple(sorted({*os.getgroups(), os.getgid()}))
    return Identity(system.nodename, system.machine, system.release, os.getuid(), groups)


def _measured(measure: Callable[[], object]) -> object:
    """As a snapshot would give it again: plain JSON values, or why not."""
    try:
        value = measure()
        return value if isinstance(value, Missing) else json.loads(json.dumps(value, allow_nan=False))
    except Exception as error:  # what is measured may fail in any way, and the rest of the run goes on
        return Missing(Reason.FAILED, f"{type(error).__name__}: {error}"[:400])
