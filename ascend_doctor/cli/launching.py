"""How ``preflight -- COMMAND`` starts what it judged, and by which Python it is judged."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ascend_doctor.cli.session import SessionError

if TYPE_CHECKING:
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.launching import Command

STARTED_ON = (0, 3)


def python_of(command: Command) -> str | None:
    """The interpreter that the command starts, on this machine."""
    from ascend_doctor.host.launched import interpreter_of

    launch = command.facts.facts
    if isinstance(launch.interpreter, str):
        return interpreter_of(launch.interpreter, os.environ) or launch.interpreter
    words = launch.words if isinstance(launch.words, tuple) else ()
    return interpreter_of(words[0], os.environ) if words else None


def folder_of(command: Command) -> str | None:
    """The whole path of the model, where the command names a folder that is here."""
    model = command.facts.facts.model
    return str(Path(model).resolve()) if isinstance(model, str) and Path(model).is_dir() else None


def starts(exit_code: int, gate: Gate) -> bool:
    """Whether the gate lets the command start."""
    return exit_code == 0 or (exit_code in STARTED_ON and not gate.strict)


def heed_signals() -> None:
    """As the first process of a container: the kernel drops signals that it does not handle; these end the gate.

    The program that is started afterwards finds them as they were.
    """
    for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name)
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, frame: object) -> NoReturn:
    sys.stderr.flush()
    os._exit(128 + number)


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
