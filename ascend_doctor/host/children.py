"""Children: scripts of children/ that the target interpreter runs, whatever becomes of it (DESIGN section 4).

They run code of the deployment, so they get an own session, a temporary folder as cwd, HOME and log folder, and a
deadline. Their answer is what they write to descriptor 3: torch_npu and others print to stdout as they like.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import resource
import select
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ascend_doctor.host import Missing, decoded
from ascend_doctor.host.commands import not_started, runnable
from ascend_doctor.records import dataclass

SCRIPTS = Path(__file__).parent.parent / "children"
ANSWER = 3
LOADER_LOG = "loader"
ANSWER_LIMIT = 1 << 20
PRINTED_LIMIT = 1 << 16
"""Bytes kept of the end of each stream."""
FLOOD_LIMIT = 256 << 20
LOADER_LOG_LIMIT = 1 << 16
"""Bytes read of the end of what the loader noted."""

_GRACE_SECONDS = 0.2
_DEATH_SECONDS = 2.0
_LONGEST_POLL_MS = 20
_ABOVE = 10
"""Descriptors below are where the child's own are put."""

_LOADED = re.compile(rb"^\s*\d+:\s+(?:calling init: (.+)|file=(\S+) \[\d+\];\s+generating link map)$", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    """``how``: exit, signal, deadline or flood. ``state``: of a process that could not be killed, such as D.

    ``answer``: what came on descriptor 3, whole or not. ``library``: the last one that the loader named.
    """

    how: str
    code: int
    signal: str
    seconds: float
    answer: bytes
    stdout: bytes
    stderr: bytes
    library: str
    state: str


def child(python: str, script: str, arguments: Sequence[str], seconds: float) -> Ended | Missing:
    """Runs a script of children/ with its folder and the arguments; Missing where it cannot be started."""
    program = runnable(python)
    if isinstance(program, Missing):
        return program
    folder = tempfile.mkdtemp(prefix="ascend-doctor-")
    try:
        return _ended(program, [python, str(SCRIPTS / script), folder, *arguments], folder, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(folder: str, given: Mapping[str, str]) -> dict[str, str]:
    """As given, but nothing is written outside of the folder, and the loader notes there what it loads.

    Packages in the user's own folder are found although HOME is another one; torch loads no backend by itself, so that
    each package is tried alone.
    """
    home = given.get("HOME", "")
    own = {"PYTHONUSERBASE": f"{home}/.local"} if home and "PYTHONUSERBASE" not in given else {}
    return {
        **given,
        **own,
        "HOME": folder,
        "TMPDIR": folder,
        "XDG_CACHE_HOME": folder,
        "ASCEND_PROCESS_LOG_PATH": folder,
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "LD_DEBUG": "files",
        "LD_DEBUG_OUTPUT": f"{folder}/{LOADER_LOG}",
    }


def _ended(program: str, argv: Sequence[str], folder: str, seconds: float) -> Ended | Missing:
    with contextlib.ExitStack() as opened:
        reading, writing = [], []
        for _ in range(3):
            ours, theirs = os.pipe()
            opened.callback(os.close, ours)
            reading.append(ours)
            writing.append(fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, _ABOVE))
            os.close(theirs)
        actions: list[tuple[object, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, end, at) for end, at in zip(writing, (1, 2, ANSWER))]
        try:
            with _STARTING:
                pid = os.posix_spawn(
                    program, list(argv), environment(folder, os.environ), file_actions=actions, setsid=True
                )
                _RUNNING.add(pid)
        except OSError as error:
            return not_started(program, error)
        finally:
            for end in writing:
                os.close(end)
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))  # a crash leaves no core file
        watched = _Watched(pid, reading, seconds)
        try:
            return watched.ended(folder)
        finally:
            watched.end()


class _Watched:
    """A child while it runs."""

    def __init__(self, pid: int, descriptors: Sequence[int], seconds: float) -> None:
        self._pid, self._began = pid, time.monotonic()
        self._ends = self._began + seconds
        self._kept = {descriptor: bytearray() for descriptor in descriptors}
        self._out, self._err, self._answer = self._kept.values()
        self._printed = 0
        self._status: int | None = None
        self._poll = select.poll()
        for descriptor in descriptors:
            self._poll.register(descriptor, select.POLLIN)

    def ended(self, folder: str) -> Ended:
        how, step = "", 1
        while not how and not self._has_ended():
            left = self._ends - time.monotonic()
            how = "deadline" if left <= 0 else "flood" if self._printed > FLOOD_LIMIT else ""
            self._read(min(step, max(left, 0) * 1000))
            step = min(step * 2, _LONGEST_POLL_MS)
        seconds = time.monotonic() - self._began
        self._kill()
        state = "" if self._dies() else _state(self._pid)
        self._drain()
        status = 0 if self._status is None else self._status
        by_signal = -os.waitstatus_to_exitcode(status) if not how and os.WIFSIGNALED(status) else 0
        return Ended(
            how=how or ("signal" if by_signal else "exit"),
            code=0 if how or by_signal else os.waitstatus_to_exitcode(status),
            signal=_name(by_signal) if by_signal else "",
            seconds=round(seconds, 3),
            answer=bytes(self._answer),
            stdout=bytes(self._out),
            stderr=bytes(self._err),
            library=_last_library(f"{folder}/{LOADER_LOG}.{self._pid}"),
            state=state,
        )

    def _has_ended(self) -> bool:
        """Not reaped yet, so that its process group is still its own when it is killed."""
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def _kill(self) -> None:
        """With all that it started in its session."""
        with contextlib.suppress(OSError):
            os.killpg(self._pid, signal.SIGKILL)

    def _dies(self) -> bool:
        ends = time.monotonic() + _DEATH_SECONDS
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
            else:
                kept += data
                del kept[:-PRINTED_LIMIT]
        return bool(ready)

    def _drain(self) -> None:
        """What is in the pipes; one that left the session may hold them, and is not waited for."""
        ends = time.monotonic() + _GRACE_SECONDS
        while self._kept and time.monotonic() < ends and self._read(_LONGEST_POLL_MS):
            pass

    def end(self) -> None:
        """Interrupted, kills the child first; one that cannot be killed is left behind."""
        _RUNNING.discard(self._pid)
        if self._status is None:
            self._kill()
            self._reaped()


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _state(pid: int) -> str:
    """The letter in /proc; D: in the kernel, where no signal reaches it."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
        found = re.search(rb"\) ([A-Za-z]) ", stat.read())
        if found:
            return found[1].decode()
    return "?"


def _last_library(log: str) -> str:
    """The library that the loader was mapping or that it had last called; glibc alone notes them."""
    with contextlib.suppress(OSError), open(log, "rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - LOADER_LOG_LIMIT))
        found = _LOADED.findall(stream.read(LOADER_LOG_LIMIT))
        if found:
            return decoded(found[-1][0] or found[-1][1])
    return ""


_RUNNING: set[int] = set()
"""What other threads wait for: a run that is interrupted ends without them, but not without their children."""

_STARTING = threading.Lock()


@atexit.register
def _end_running() -> None:
    _STARTING.acquire(timeout=_DEATH_SECONDS)
    for pid in list(_RUNNING):
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
