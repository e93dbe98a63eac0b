"""The lines of a child, as they come and when it has ended: which step ran, how long, and which one was the last."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable

from ascend_doctor.host import decoded
from ascend_doctor.host.children import Ended

AGAIN = "again"
START_SECONDS, IDLE_SECONDS, MARGIN = 60.0, 60.0, 0.5
"""To the first line, between two steps, and above the deadline that the child itself watches."""
PRINTED, LOGS, MOST_LOGS = 8000, 65536, 4
"""Characters kept of each stream and of each log file, and how many files, where a step failed."""

OUTCOMES = {"end": "passed", "error": "raised"}
"""Event -> outcome of a step; other events are called as the outcome is."""
ENDING = ("end", "error", "absent", "unsupported", "refused", "unprepared")

Step = dict[str, Any]


class Listening:
    """The pace of a child: each step has the deadline that our plan gives its stage, whatever the child says."""

    def __init__(self, seconds: Mapping[str, float], say: Callable[[str], None]) -> None:
        self._seconds, self._say = seconds, say
        self._stage = ""

    def __call__(self, line: bytes) -> float | None:
        entry = parsed(line)
        if entry is None:
            return None
        if entry["event"] != "begin":
            return IDLE_SECONDS
        stage = str(entry.get("stage"))
        if stage != self._stage:
            self._stage = stage
            self._say(stage)
        told = entry.get("deadline")
        most = max(self._seconds.values())
        wanted = float(told) if isinstance(told, (int, float)) else most
        return min(wanted, most) + MARGIN


def parsed(line: bytes) -> dict[str, Any] | None:
    """A line of the protocol; None for anything else that came on the descriptor."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("event"), str) else None


class Told:
    """What one child said. ``left``: stages that it went through; ``whole``: it came to its end."""

    def __init__(self, ended: Ended) -> None:
        self.steps: list[Step] = []
        self.left: dict[str, bool] = {}
        self.whole = False
        self._open: list[tuple[str, str, float]] = []
        for entry in _entries(ended):
            self._take(entry)
        self.culprit = self._culprit(ended)
        if self.culprit is not None:
            self.steps.append(self.culprit)
        self._file_logs(ended)

    def _take(self, entry: Mapping[str, Any]) -> None:
        event = entry["event"]
        stage, step = _place(entry)
        if event == "begin":
            self._open.append((stage, step, _number(entry.get("deadline"))))
        elif event in ENDING:
            at = next((n for n in reversed(range(len(self._open))) if self._open[n][:2] == (stage, step)), None)
            deadline = self._open.pop(at)[2] if at is not None else 0.0
            if entry.get("stage") == AGAIN and event == "end":
                return  # told by an earlier child
            self.steps.append(
                {
                    "stage": stage,
                    "step": step,
                    "outcome": OUTCOMES.get(event, event),
                    "seconds": _number(entry.get("seconds")),
                    "deadline": deadline,
                    "measures": entry.get("measures") or {},
                    "errors": entry.get("errors") or [],
                    "detail": str(entry.get("detail") or ""),
                }
            )
        elif event == "left":
            self.left[stage] = entry.get("passed") is True
        elif event == "done":
            self.whole = True

    def _culprit(self, ended: Ended) -> Step | None:
        """The step that had begun last, where the process did not come to its end."""
        if self.whole and not ended.state:
            return None
        if not self._open and self.steps and ended.how == "exit" and self.steps[-1]["outcome"] == "raised":
            return None  # it ended itself after what it told
        stage, step, deadline = (
            self._open[-1] if self._open else (self.steps[-1]["stage"] if self.steps else "import", "", 0.0)
        )
        before = sum(one["seconds"] for one in self.steps)
        return {
            "stage": stage,
            "step": step,
            "outcome": "stuck" if ended.state else ended.how,
            "seconds": round(max(0.0, ended.seconds - before), 3),
            "deadline": deadline or START_SECONDS,
            "code": ended.code,
            "signal": ended.signal,
            "state": ended.state,
            "pid": ended.pid,
            "library": ended.library,
        }

    def _file_logs(self, ended: Ended) -> None:
        """What was printed and logged, to the step that failed: of several the last one."""
        failed = [step for step in self.steps if step is self.culprit or step["outcome"] == "raised"]
        if failed:
            logs = list(ended.logs.items())[-MOST_LOGS:]
            failed[-1].update(
                stdout=decoded(ended.stdout)[-PRINTED:],
                stderr=decoded(ended.stderr)[-PRINTED:],
                logs={name: decoded(data)[-LOGS:] for name, data in logs},
            )


def _entries(ended: Ended) -> Iterator[dict[str, Any]]:
    """Of the child itself: a process that it forked may hold the descriptor."""
    for line in ended.answer.split(b"\n"):
        entry = parsed(line)
        if entry is not None and entry.get("pid", ended.pid) == ended.pid:
            yield entry


def _place(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Stage and step; of what is made again those under which it was made first."""
    stage, step = str(entry.get("stage", "")), str(entry.get("step", ""))
    if stage == AGAIN:
        stage, _, step = step.partition(".")
    return stage, step


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def names(steps: Iterable[Step]) -> list[str]:
    return [f"{step['stage']}/{step['step']}" for step in steps]
