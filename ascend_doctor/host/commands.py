"""Commands of the machine that we run on: bounded in time and output, whatever the program does."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import resource
import select
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Callable, Protocol, Union

from ascend_doctor.host import COMMAND_SECONDS, Answer, Missing, Output, Reason
from ascend_doctor.host.once import Once
from ascend_doctor.records import dataclass

OUTPUT_LIMIT = 4 << 20
"""Bytes kept of each stream; what follows is read and dropped."""

FLOOD_LIMIT = 64 << 20
"""A program that prints more is killed."""

AT_A_TIME = 4
CANARIES = {"npu-smi": ("npu-smi", "info")}
"""What runs first and alone: where it hangs, nothing else of that tool is started."""

DRIVER_TOOLS = "/usr/local/Ascend/driver/tools"
ALSO_SEARCHED = ("/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/bin", "/usr/sbin", "/sbin", DRIVER_TOOLS)

_GRACE_SECONDS = 0.2
_DEATH_SECONDS = 1.0
_LONGEST_POLL_MS = 20


@dataclass(frozen=True)
class Start:
    """How a program is started: ``file`` is executed with ``argv`` and nothing but ``env``."""

    file: str
    argv: Sequence[str]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Waiting:
    """A command that runs: since when (``time.monotonic``), and for how many seconds it may."""

    command: str
    began: float
    seconds: float


class Place(Protocol):
    """Where programs are."""

    def program(self, name: str) -> str | Missing:
        """Its path there."""

    def start(self, program: str, argv: Sequence[str]) -> Start: ...

    def answer(self, program: str, output: Output) -> Output | Missing:
        """What the output says of the program: that it ran, or why it did not."""


class Here:
    """This machine; our own environment, in the C locale."""

    def program(self, name: str) -> str | Missing:
        return found_program(name, os.environ.get("PATH", ""), runnable)

    def start(self, program: str, argv: Sequence[str]) -> Start:
        env = {name: value for name, value in os.environ.items() if name != "LANGUAGE"}
        return Start(program, argv, {**env, "LC_ALL": "C"})

    def answer(self, program: str, output: Output) -> Output | Missing:
        return output


class Commands:
    """Runs each command once; ``budget``: seconds for all of them, from the first on."""

    def __init__(self, budget: float, place: Place | None = None) -> None:
        self._budget, self._place = budget, place or Here()
        self._ends: float | None = None
        self._once: Once[Answer[Output]] = Once()
        self._tools: Once[_Tool] = Once()

    def run(self, argv: Sequence[str], timeout: float) -> Answer[Output]:
        return self._once.of(tuple(argv), lambda: self._run(tuple(argv), timeout))

    def _run(self, argv: tuple[str, ...], timeout: float) -> Answer[Output]:
        source = "command:" + " ".join(argv)
        program = self._place.program(argv[0]) if argv else Missing(Reason.FAILED, "no command")
        if isinstance(program, Missing):
            return Answer(source, program)
        canary = CANARIES.get(argv[0])
        if canary and argv != canary:
            self.run(canary, COMMAND_SECONDS)
        tool = self._tools.of(argv[0], _Tool)
        with tool.places:
            if tool.hung:
                return Answer(source, Missing(Reason.TIMEOUT, f"not started: {tool.hung} hung"))
            began = time.monotonic()
            self._ends = self._ends or began + self._budget
            seconds = min(timeout, self._ends - began)
            if seconds <= 0:
                spent = f"not started: the {self._budget:g} s for all commands are over"
                return Answer(source, Missing(Reason.TIMEOUT, spent))
            value = outcome(self._place.start(program, argv), seconds)
            if isinstance(value, Missing) and value.reason is Reason.TIMEOUT:
                tool.hung = tool.hung or " ".join(argv)
            if isinstance(value, Output):
                value = self._place.answer(program, value)
            return Answer(source, value, time.monotonic() - began)


class _Tool:
    def __init__(self) -> None:
        self.places = threading.BoundedSemaphore(AT_A_TIME)
        self.hung = ""


def found_program(name: str, path: str, runnable: Callable[[str], str | Missing]) -> str | Missing:
    """A program in the folders of ``path`` (as PATH has them), or in the usual ones where PATH is poor."""
    if "/" in name:
        return runnable(name) if name.startswith("/") else Missing(Reason.FAILED, f"{name}: not an absolute path")
    nearly: Missing | None = None
    for folder in (*path.split(":"), *ALSO_SEARCHED):
        if not folder.startswith("/"):
            continue
        found = runnable(f"{folder.rstrip('/')}/{name}")
        if isinstance(found, str):
            return found
        if found.reason is not Reason.ABSENT:
            nearly = nearly or found
    return nearly or Missing(Reason.ABSENT, "no such program")


def runnable(path: str) -> str | Missing:
    """A folder that may not be searched has no program for this user."""
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        return Missing(Reason.ABSENT, "no such program")
    if not stat.S_ISREG(kind):
        return Missing(Reason.FAILED, f"{path}: not a program")
    return path if os.access(path, os.X_OK) else Missing(Reason.DENIED, f"{path}: not executable for this user")


def outcome(start: Start, seconds: float) -> Union[Output, Missing]:
    """What a program answers within ``seconds``; where it has not ended then, its whole process group is killed."""
    try:
        with _STARTING:
            if _ENDING.is_set():
                return Missing(Reason.FAILED, "not started: interrupted")
            process = _started(start)
            _RUNNING[process] = Waiting(" ".join(start.argv), time.monotonic(), seconds)
    except OSError as error:
        return not_started(start.file, error)
    except ValueError as error:
        return Missing(Reason.FAILED, f"not started: {error}")
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))  # a crash leaves no core file
    watched = _Watched(process, seconds)
    try:
        return watched.outcome()
    finally:
        watched.end()


def _started(start: Start) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(start.argv),
        executable=start.file,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        cwd="/",
        env=start.env,
    )


def not_started(program: str, error: OSError) -> Missing:
    if error.errno in (errno.EACCES, errno.EPERM):
        return Missing(Reason.DENIED, f"{program}: {error.strerror}")
    if error.errno == errno.ENOENT:
        return Missing(Reason.FAILED, f"{program}: its interpreter is not there")
    return Missing(Reason.FAILED, f"{program}: {error.strerror}")


class _Watched:
    """A process while it runs."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        assert process.stdout
        assert process.stderr
        self._process, self._seconds = process, seconds
        self._ends = time.monotonic() + seconds
        self._pipes = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        self._out, self._err = self._pipes.values()
        self._printed = 0
        self._poll = select.poll()
        for descriptor in self._pipes:
            self._poll.register(descriptor, select.POLLIN)

    def outcome(self) -> Union[Output, Missing]:
        step = 1
        while self._process.poll() is None:
            left = self._ends - time.monotonic()
            if left <= 0:
                return self._killed(Reason.TIMEOUT, f"{self._seconds:.3g} s")
            if self._printed > FLOOD_LIMIT:
                return self._killed(Reason.FAILED, f"printed more than {FLOOD_LIMIT >> 20} MiB")
            self._read(min(step, left * 1000))
            step = min(step * 2, _LONGEST_POLL_MS)
        self._drain()
        return Output(self._process.returncode, bytes(self._out), bytes(self._err))

    def _read(self, milliseconds: float) -> bool:
        """Reads what is there; False where nothing came within that time."""
        if not self._pipes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(milliseconds / 1000)
            return False
        ready = self._poll.poll(milliseconds)
        for descriptor, _ in ready:
            data = os.read(descriptor, 1 << 16)
            if not data:
                self._poll.unregister(descriptor)
                del self._pipes[descriptor]
                continue
            self._printed += len(data)
            kept = self._pipes[descriptor]
            kept += data[: OUTPUT_LIMIT - len(kept)]
        return bool(ready)

    def _drain(self) -> None:
        """The program has ended; one that it started may hold its pipes, and is not waited for."""
        ends = time.monotonic() + _GRACE_SECONDS
        while self._pipes and time.monotonic() < ends:
            self._read(_LONGEST_POLL_MS)

    def _killed(self, reason: Reason, detail: str) -> Missing:
        self._kill()
        ends = time.monotonic() + _DEATH_SECONDS
        while self._process.poll() is None:
            if time.monotonic() > ends:
                return Missing(reason, f"{detail}; process {self._process.pid} cannot be killed")
            time.sleep(0.005)
        return Missing(reason, detail)

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Closes the pipes; interrupted, kills the program first."""
        _RUNNING.pop(self._process, None)
        if self._process.poll() is None:
            self._kill()
            if self._process.poll() is None:
                _LEFT_BEHIND.append(self._process)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()


_RUNNING: dict[subprocess.Popen[bytes], Waiting] = {}
"""What other threads wait for; a run that is interrupted ends without them, but not without their programs."""


def waiting() -> tuple[Waiting, ...]:
    """What is waited for now, the longest first: for who shows it to a user."""
    return tuple(_RUNNING.copy().values())


_STARTING, _ENDING = threading.Lock(), threading.Event()


@atexit.register
def _end_running() -> None:
    _ENDING.set()
    _STARTING.acquire(timeout=_DEATH_SECONDS)
    for process in list(_RUNNING):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


_LEFT_BEHIND: list[subprocess.Popen[bytes]] = []
"""Never awaited; kept so that their end is nobody's business."""
