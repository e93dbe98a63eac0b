"""What a child tells its starter: JSON lines on descriptor 3, one when a step begins and one when it has ended.

The step that began and did not end when the process died or hung is the culprit. Numbers are told, never judged.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import math
import os
import re
import sys
import time
from collections.abc import Collection, Mapping
from typing import Any, Callable, TextIO

LONGEST = 4000
MOST = 20
DEAD_CONTEXT = re.compile(r"\b507\d{3}\b")
"""Codes of the ACL after which nothing works on this device within this process: execution failed on the device."""
AFTER_DEAD_CONTEXT = 70
AGAIN, DEADLINE = "again", 60.0
NOT_HERE = re.compile(r"not implemented for '(?:Half|BFloat16)'")
"""How torch says on a CPU that it computes no such numbers there, as torch before 2.2 with fp16."""


class Absent(Exception):
    """This torch or torch_npu has no such thing."""


class Unsupported(Exception):
    """It is there, and this device or version refuses it."""


class Refused(Exception):
    """We will not do it: there is less free memory than it needs."""


class Unprepared(Exception):
    """What the step needs could not be made; why was told where that was tried."""


class Steps:
    """``done``: steps, as ``stage/step``, that an earlier child has gone through.

    ``cpu``: it runs on the CPU, where numbers that torch does not compute are no fault.
    """

    def __init__(
        self, descriptor: int, seconds: Mapping[str, float], done: Collection[str] = (), cpu: bool = False
    ) -> None:
        self._cpu = cpu
        self._descriptor, self._seconds, self._done = descriptor, dict(seconds), set(done)
        self._pid = os.getpid()
        self._stderr: TextIO | None = None
        with contextlib.suppress(OSError, ValueError):
            self._stderr = os.fdopen(os.dup(2), "w")
        os.register_at_fork(after_in_child=self._let_go)

    def _let_go(self) -> None:
        """A process that a library forks says nothing in our name, and does not hold the pipe."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def is_done(self, stage: str, step: str) -> bool:
        return f"{stage}/{step}" in self._done

    def again(self, stage: str, step: str) -> tuple[str, str]:
        """Under which names a step runs whose result this process needs, whoever has gone through it before."""
        if not self.is_done(stage, step):
            return stage, step
        self._seconds[AGAIN] = self._seconds.get(stage, DEADLINE)
        return AGAIN, f"{stage}.{step}"

    def tell(self, **entry: object) -> None:
        """A line, whole; without a reader the process ends, as nobody waits for it any more."""
        if os.getpid() != self._pid:
            return
        data = json.dumps({**entry, "pid": self._pid}, allow_nan=False).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            os._exit(1)

    def run(self, stage: str, step: str, function: Callable[[], Mapping[str, object] | None]) -> bool:
        """One step; True where it ended with its measures. ``Unprepared`` goes through, untold."""
        if self.is_done(stage, step):
            return True
        seconds = self._seconds.get(stage, DEADLINE)
        self.tell(stage=stage, step=step, event="begin", deadline=seconds)
        self._watch(seconds)
        begun = time.monotonic()
        told: dict[str, object] = {}
        try:
            told = {"event": "end", "measures": plain(function() or {})}
        except Absent as why:
            told = {"event": "absent", "detail": str(why)[:LONGEST]}
        except Unsupported as why:
            told = {"event": "unsupported", "detail": str(why)[:LONGEST]}
        except Refused as why:
            told = {"event": "refused", "detail": str(why)[:LONGEST]}
        except Unprepared:
            told = {"event": "unprepared"}
            raise
        except BaseException as error:  # what is tried may raise anything, SystemExit too
            told = {"event": "error", "errors": chain(error)}
            if self._cpu and NOT_HERE.search(text_of(error)):
                told = {
                    "event": "unsupported",
                    "detail": f"this torch computes no such numbers on a CPU: {text_of(error)}",
                }
        finally:
            faulthandler.cancel_dump_traceback_later()
            self._flush()
            self.tell(stage=stage, step=step, seconds=round(time.monotonic() - begun, 4), **told)
        errors = told.get("errors")
        if isinstance(errors, list) and any(DEAD_CONTEXT.search(error["text"]) for error in errors):
            os._exit(AFTER_DEAD_CONTEXT)
        return told["event"] == "end"

    def _watch(self, seconds: float) -> None:
        """Shortly before the deadline the interpreter writes where it stands."""
        if self._stderr is not None and not self._stderr.closed:
            faulthandler.dump_traceback_later(max(0.05, 0.9 * seconds), file=self._stderr)

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()


def plain(measures: Mapping[str, object]) -> dict[str, object]:
    """Values as JSON has them: what is no number there becomes the word ``nan``, ``inf`` or ``-inf``."""
    return {name: _plain(value) for name, value in measures.items()}


def _plain(value: object) -> object:
    if isinstance(value, (bool, int, str)) or value is None:
        return value[:LONGEST] if isinstance(value, str) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)[:LONGEST]


def chain(error: BaseException | None) -> list[dict[str, str]]:
    """The exception and those that it came from, the first one last."""
    told: list[dict[str, str]] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen and len(told) < MOST:
        seen.add(id(error))
        told.append({"type": type(error).__name__, "text": text_of(error), "where": where(error)})
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return told


def text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as worse:
        text = f"(no text: {type(worse).__name__})"
    return text.encode("utf-8", "backslashreplace").decode()[:LONGEST]


def where(error: BaseException) -> str:
    """File and line of the innermost frame."""
    trace: Any = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
