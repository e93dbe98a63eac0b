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
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ascend_doctor.host import Missing, decoded
from ascend_doctor.host.commands import not_started, runnable
from ascend_doctor.host.watching import DEATH_SECONDS, RUNNING, End, Pace, Watched, end_all
from ascend_doctor.records import dataclass

SCRIPTS = Path(__file__).parent.parent / "children"
ANSWER = 3
LOADER_LOG = "loader"
LOADER_LOG_LIMIT = 1 << 16
"""Bytes read of the end of what the loader noted."""
ASIDE = "stderr.operators"
"""Where a child has what libraries print on stderr while it looks for their words; what is left there belongs to it."""
LOG_LIMIT, MOST_LOGS = 1 << 18, 16
"""Bytes kept of the end of each log file that was written into the folder, and how many files."""

_ABOVE = 10
"""Descriptors below are where the child's own are put."""

_LOADED = re.compile(rb"^\s*\d+:\s+(?:calling init: (.+)|file=(\S+) \[\d+\];\s+generating link map)$", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    """``how``: exit, signal, deadline or flood. ``state``: of a process that could not be killed, such as D.

    ``answer``: what came on descriptor 3, whole or not. ``library``: the last one that the loader named.
    ``logs``: path below the folder -> what the process wrote there, such as plog, where it was to be kept.
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
    pid: int
    logs: Mapping[str, bytes]


def child(
    python: str,
    script: str,
    arguments: Sequence[str],
    seconds: float,
    pace: Pace | None = None,
    with_logs: bool = False,
) -> Ended | Missing:
    """Runs a script of children/ with its folder and the arguments; Missing where it cannot be started.

    ``seconds``: to its end; with a ``pace``: to its first line, and each line says how long the next may take.
    """
    program = runnable(python)
    if isinstance(program, Missing):
        return program
    folder = tempfile.mkdtemp(prefix="ascend-doctor-")
    try:
        argv = [python, str(SCRIPTS / script), folder, *arguments]
        started = _watched(program, argv, folder, seconds, pace)
        if isinstance(started, Missing):
            return started
        pid, end = started
        logs = dict(_logs(Path(folder))) if with_logs else {}
        aside = _end_of(f"{folder}/{ASIDE}", LOG_LIMIT)
        return Ended(
            how=end.how,
            code=end.code,
            signal=end.signal,
            seconds=end.seconds,
            answer=end.answer,
            stdout=end.stdout,
            stderr=end.stderr + aside,
            library=_last_library(f"{folder}/{LOADER_LOG}.{pid}"),
            state=end.state,
            pid=pid,
            logs=logs,
        )
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


def _watched(
    program: str, argv: Sequence[str], folder: str, seconds: float, pace: Pace | None
) -> tuple[int, End] | Missing:
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
                RUNNING.add(pid)
        except OSError as error:
            return not_started(program, error)
        finally:
            for end in writing:
                os.close(end)
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))  # a crash leaves no core file
        watched = Watched(pid, reading, seconds, pace)
        try:
            return pid, watched.ended()
        finally:
            watched.end()


def _logs(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The newest files last; a file that goes away meanwhile is no log."""
    paths = [path for path in folder.rglob("*.log") if path.is_file() and not path.is_symlink()]
    for path in sorted(paths, key=lambda path: (path.stat().st_mtime, str(path)))[-MOST_LOGS:]:
        data = _end_of(str(path), LOG_LIMIT)
        if data:
            yield str(path.relative_to(folder)), data


def _end_of(path: str, limit: int) -> bytes:
    with contextlib.suppress(OSError), open(path, "rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - limit))
        return stream.read(limit)
    return b""


def _last_library(log: str) -> str:
    """The library that the loader was mapping or that it had last called; glibc alone notes them."""
    found = _LOADED.findall(_end_of(log, LOADER_LOG_LIMIT))
    return decoded(found[-1][0] or found[-1][1]) if found else ""


_STARTING = threading.Lock()


@atexit.register
def _end_running() -> None:
    _STARTING.acquire(timeout=DEATH_SECONDS)
    end_all()
