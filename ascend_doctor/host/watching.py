"""A child while it runs: reads what it writes, ends it at its deadline, and tells how it ended."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import Callable, Optional

from ascend_doctor.records import dataclass

ANSWER_LIMIT = 1 << 20
PRINTED_LIMIT = 1 << 16
"""Bytes kept of the end of each stream."""
FLOOD_LIMIT = 256 << 20

Pace = Callable[[bytes], Optional[float]]
"""Told each line of an answer as it comes; gives the seconds within which the next has to come, None: as before."""

GRACE_SECONDS = 0.2
DEATH_SECONDS = 2.0
TERM_SECONDS = 5.0
"""Between asking a child that hangs to end, so that it may let go of its device, and killing it."""
_LONGEST_POLL_MS = 20

RUNNING: set[int] = set()
"""What other threads wait for: a run that is interrupted ends without them, but not without their children."""


@dataclass(frozen=True)
class End:
    """``how``: exit, signal, deadline or flood; ``state``: of a process that could not be killed, such as D."""

    how: str
    code: int
    signal: str
    seconds: float
    answer: bytes
    stdout: bytes
    stderr: bytes
    state: str


class Watched:
    """``descriptors``: our ends of its stdout, stderr and answer. With a ``pace`` each line sets the deadline anew."""

    def __init__(self, pid: int, descriptors: Sequence[int], seconds: float, pace: Pace | None = None) -> None:
        self._pid, self._began, self._pace = pid, time.monotonic(), pace
        self._ends = self._began + seconds
        self._kept = {descriptor: bytearray() for descriptor in descriptors}
        self._out, self._err, self._answer = self._kept.values()
        self._printed = self._told = 0
        self._status: int | None = None
        self._given_up = False
        self._poll = select.poll()
        for descriptor in descriptors:
            self._poll.register(descriptor, select.POLLIN)

    def ended(self) -> End:
        how, step = "", 1
        while not how and not self._has_ended():
            left = self._ends - time.monotonic()
            how = "deadline" if left <= 0 else "flood" if self._printed > FLOOD_LIMIT else ""
            self._read(min(step, max(left, 0) * 1000))
            step = min(step * 2, _LONGEST_POLL_MS)
        seconds = time.monotonic() - self._began
        if how and self._pace:
            self._ask_to_end()
        self._kill()
        state = "" if self._dies() else state_of(self._pid)
        self._given_up = bool(state)
        self._drain()
        status = 0 if self._status is None else self._status
        by_signal = -os.waitstatus_to_exitcode(status) if not how and os.WIFSIGNALED(status) else 0
        return End(
            how=how or ("signal" if by_signal else "exit"),
            code=0 if how or by_signal else os.waitstatus_to_exitcode(status),
            signal=_name(by_signal) if by_signal else "",
            seconds=round(seconds, 3),
            answer=bytes(self._answer),
            stdout=bytes(self._out),
            stderr=bytes(self._err),
            state=state,
        )

    def _has_ended(self) -> bool:
        """Not reaped yet, so that its process group is still its own when it is killed."""
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def _ask_to_end(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._pid, signal.SIGTERM)
        ends = time.monotonic() + TERM_SECONDS
        while time.monotonic() < ends and not self._has_ended():
            self._read(_LONGEST_POLL_MS)

    def _kill(self) -> None:
        """With all that it started in its session."""
        with contextlib.suppress(OSError):
            os.killpg(self._pid, signal.SIGKILL)

    def _dies(self) -> bool:
        ends = time.monotonic() + DEATH_SECONDS
        while time.monotonic() < ends:
            if self._reaped():
                return True
            time.sleep(0.005)
        return False

    def _reaped(self) -> bool:
        if self._status is None:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self._pid, 0
            self._status = status if pid else None
        return self._status is not None

    def _read(self, milliseconds: float) -> bool:
        """Reads what is there, and keeps its end, of the answer its beginning; False where nothing came."""
        if not self._kept:
            time.sleep(milliseconds / 1000)
            return False
        ready = self._poll.poll(milliseconds)
        for descriptor, _ in ready:
            data = os.read(descriptor, 1 << 16)
            if not data:
                self._poll.unregister(descriptor)
                del self._kept[descriptor]
                continue
            self._printed += len(data)
            kept = self._kept[descriptor]
            if kept is self._answer:
                kept += data[: ANSWER_LIMIT - len(kept)]
                self._hear()
            else:
                kept += data
                del kept[:-PRINTED_LIMIT]
        return bool(ready)

    def _hear(self) -> None:
        """Hands each whole line on, once."""
        while self._pace and (end := self._answer.find(b"\n", self._told)) >= 0:
            seconds = self._pace(bytes(self._answer[self._told : end]))
            self._told = end + 1
            if seconds is not None:
                self._ends = time.monotonic() + seconds

    def _drain(self) -> None:
        """What is in the pipes; one that left the session may hold them, and is not waited for."""
        ends = time.monotonic() + GRACE_SECONDS
        while self._kept and time.monotonic() < ends and self._read(_LONGEST_POLL_MS):
            pass

    def end(self) -> None:
        """Interrupted, kills the child first; one that cannot be killed is left behind, and named."""
        if self._status is None and not self._given_up:
            self._kill()
            if not self._dies():
                name_left_behind([self._pid])
        RUNNING.discard(self._pid)


def end_all() -> None:
    """Kills what still runs and names what no signal ends."""
    pids = list(RUNNING)
    for pid in pids:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    ends = time.monotonic() + DEATH_SECONDS
    while any(map(_is_there, pids)) and time.monotonic() < ends:
        time.sleep(0.01)
    name_left_behind([pid for pid in pids if _is_there(pid)])


def name_left_behind(pids: Sequence[int]) -> None:
    """To stderr: the report will not be written, and somebody has to know of them."""
    for pid in pids:
        message = f"left behind: process {pid} (state {state_of(pid)}); no signal ends it, it waits in the kernel\n"
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(message)


def _is_there(pid: int) -> bool:
    return state_of(pid) not in ("?", "Z", "X")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def state_of(pid: int) -> str:
    """The letter in /proc; D: in the kernel, where no signal reaches it."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
        found = re.search(rb"\) ([A-Za-z]) ", stat.read())
        if found:
            return found[1].decode()
    return "?"
