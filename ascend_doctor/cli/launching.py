"""What ``preflight -- COMMAND`` adds to a run: the command's facts, the checks that judge it, and its start."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ascend_doctor.cli.session import SessionError, rule_errors
from ascend_doctor.records import dataclass

if TYPE_CHECKING:
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.rulebook import Rulebook
    from ascend_doctor.facts.launch import Launch
    from ascend_doctor.host import Collected, Host

STARTED_ON = (0, 3)
REPLACED = "memory.ascend-mem-size"
"""A check of hosts that has one of its own for launches."""
LONGER = ("rope-scaling", "rope-parameters", "hf-overrides")
"""Options that give a model another context than its config.json says."""
ALLOWED_LONGER = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"


@dataclass(frozen=True)
class Command:
    """A launch command as it was given, and its facts."""

    argv: tuple[str, ...]
    facts: Collected[Launch]

    @property
    def requested(self) -> tuple[str, ...]:
        """Globs of the checks that judge it."""
        from ascend_doctor.facts.launch import MINDIE, SGLANG, VLLM

        launch = self.facts.facts
        serves = ("budget.*",) if launch.program in (VLLM, SGLANG) else ()
        own = ("mindie-config.*",) if launch.program == MINDIE else ()
        return ("launch.*", *serves, *own, *(("numactl.*",) if isinstance(launch.numactl, str) else ()))

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Checks that do not hold for it: the context of a model that is stretched, and what has another of its own."""
        launch = self.facts.facts
        flags = launch.flags if isinstance(launch.flags, dict) else {}
        assigned = launch.assigned if isinstance(launch.assigned, dict) else {}
        longer = any(name in flags for name in LONGER) or assigned.get(ALLOWED_LONGER) == "1"
        return (REPLACED, "budget.context") if longer or os.environ.get(ALLOWED_LONGER) == "1" else (REPLACED,)


def command_of(argv: Sequence[str]) -> Command | None:
    """None where no command was given."""
    if not argv:
        return None
    from ascend_doctor.facts.launch import launch

    return Command(tuple(argv), launch(argv))


def python_of(command: Command) -> str | None:
    """The interpreter that the command starts, on this machine."""
    from ascend_doctor.host.launched import interpreter_of

    launch = command.facts.facts
    if isinstance(launch.interpreter, str):
        return interpreter_of(launch.interpreter, os.environ) or launch.interpreter
    words = launch.words if isinstance(launch.words, tuple) else ()
    return interpreter_of(words[0], os.environ) if words else None


def launched(host: Host, command: Command, book: Rulebook) -> Host:
    """The host with the variables of the command that the rules know."""
    from ascend_doctor.host.launched import LaunchedHost
    from ascend_doctor.knowledge.environment import known_env

    launch = command.facts.facts
    assigned: dict[str, str] = launch.assigned if isinstance(launch.assigned, dict) else {}
    unset = launch.unset if isinstance(launch.unset, tuple) else ()
    if not assigned and not unset and launch.cleared is not True:
        return host
    with rule_errors(book):
        names, prefixes = known_env(book.rules)
    starts = tuple(prefixes)
    known = {name: value for name, value in assigned.items() if name in names or name.startswith(starts)}
    return LaunchedHost(host, known, unset, launch.cleared is True)


def given(host: Host, command: Command, live: bool) -> tuple[Collected[Any], ...]:
    """The areas that follow from the command: itself, the model's folder, its demand, its numactl line."""
    from ascend_doctor.facts import numactl
    from ascend_doctor.facts.checkpoint import checkpoint
    from ascend_doctor.facts.launch import MINDIE, wishes
    from ascend_doctor.facts.mindie_config import mindie_config
    from ascend_doctor.host import Missing

    launch = command.facts.facts
    model = launch.model
    if live and isinstance(model, str) and Path(model).is_dir():
        model = str(Path(model).resolve())
    there = isinstance(model, str) and model.startswith("/") and not isinstance(host.list(model).value, Missing)
    line = (numactl.line(launch.numactl),) if isinstance(launch.numactl, str) else ()
    if launch.program == MINDIE:
        own = mindie_config(host)
        return (command.facts, own, *checkpoint(host, own.facts.weights, None), *line)
    return (command.facts, *checkpoint(host, model, wishes(launch, there)), *line)


def starts(exit_code: int, gate: Gate) -> bool:
    """Whether the gate lets the command start."""
    return exit_code == 0 or (exit_code in STARTED_ON and not gate.strict)


def start(command: Command) -> NoReturn:
    """Replaces this process by the command; signals that Python ignores are heard again. Raises SessionError."""
    words, environ = list(command.argv), dict(os.environ)
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        name, _, value = words.pop(0).partition("=")
        environ[name] = value
    if not words:
        raise SessionError("--exec: the command only sets variables; there is nothing to start")
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    sys.stderr.flush()
    try:
        os.execvpe(words[0], words, environ)
    except OSError as error:
        raise SessionError(f"--exec: {words[0]}: {error.strerror}") from None
