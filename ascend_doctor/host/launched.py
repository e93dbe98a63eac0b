"""A host as a launch command would find it: with the variables that the command sets, and the Python that it starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

from ascend_doctor.host import Answer, Host, Missing
from ascend_doctor.host.collection_log import CollectionLog
from ascend_doctor.host.reasons import NOT_SET

SHEBANG_LIMIT = 512


class LaunchedHost(CollectionLog):
    """Passes every question on, except those for variables that the command sets or takes away.

    ``known``: whether the rules know a variable; ``cleared``: the command starts from no environment (env -i).
    """

    def __init__(
        self,
        inner: Host,
        assigned: Mapping[str, str],
        unset: Sequence[str] = (),
        cleared: bool = False,
    ) -> None:
        super().__init__(inner)
        self._assigned, self._unset, self._cleared = dict(assigned), frozenset(unset), cleared

    def env(self, name: str) -> Answer[str]:
        if name in self._assigned:
            return Answer(f"env:{name}", self._assigned[name])
        if name in self._unset or self._cleared:
            return Answer(f"env:{name}", NOT_SET)
        return self._inner.env(name)

    def env_names(self) -> Answer[tuple[str, ...]]:
        answer = self._inner.env_names()
        if isinstance(answer.value, Missing):
            return answer
        before = () if self._cleared else answer.value
        return Answer(answer.source, tuple(sorted({*before, *self._assigned} - (self._unset - self._assigned.keys()))))


def interpreter_of(program: str, environ: Mapping[str, str]) -> str | None:
    """The Python that a program is started with: itself, or the one its first line names; None where neither tells."""
    path = shutil.which(program, path=environ.get("PATH"))
    if path is None:
        return None
    if os.path.basename(path).startswith("python"):
        return path
    try:
        with open(path, "rb") as stream:
            line = stream.readline(SHEBANG_LIMIT)
    except OSError:
        return None
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    named = words[1] if len(words) > 1 and os.path.basename(words[0]) == "env" else "".join(words[:1])
    return named if os.path.basename(named).startswith("python") else None
