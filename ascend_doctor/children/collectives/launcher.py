"""Starts the ranks, has them go through the steps together, and names the one that does not come along.

It needs no torch, so that it is there to tell when a rank crashes or hangs. What a rank prints goes to a file of its
own; of a rank at fault the end of it is told.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..stages.protocol import Steps
from .culprits import State, culprits

STAGE = "ranks"
STEPS = ("start", "connect", "all_reduce.fp32", "all_reduce.fp16", "all_gather.fp32")
"""fp16, as bf16 is not had by every chip, nor by gloo of an older torch."""
OPENING = ("start", "connect")
"""Imports and the first use of the links: they take much longer than what comes after."""
GRACE = 1.0
"""Seconds, after the first rank fell, in which the others still show what they have to: that decides who was first."""
DEATH_SECONDS = 2.0
ASKED_SECONDS = 0.3
SAID = 1500
MARGIN = 0.85
"""Of the deadline: the launcher names the rank before its own starter ends it."""


def run(plan: Mapping[str, Any], command: Sequence[str], descriptor: int) -> None:
    """``plan``: kind, devices, ``seconds`` for each step, ``patience``: once all are connected, where it is less.

    A step that failed is the last one.
    """
    seconds = float(plan["seconds"])
    patience = min(seconds, float(plan.get("patience", seconds)))
    steps = Steps(descriptor, {STAGE: seconds})
    ranks = Ranks(plan, command)
    passed = True
    try:
        for step in STEPS:
            measures: dict[str, object] = {}
            limit = MARGIN * (seconds if step in OPENING else patience)
            ended = steps.run(STAGE, step, lambda: ranks.together(step, limit, measures))  # noqa: B023
            passed = ended and not measures["fault"]
            if not passed:
                break
    finally:
        steps.run(STAGE, "end", ranks.end)
    steps.tell(stage=STAGE, event="left", passed=passed)
    steps.tell(event="done")


class Rank:
    """A process of a rank: it is told on its stdin, and answers on its descriptor 3."""

    def __init__(self, number: int, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.number, self.file = number, f"rank-{number}.txt"
        answer, theirs = os.pipe()
        try:
            with open(self.file, "wb") as printed:
                self.process = subprocess.Popen(
                    [*command, str(number), str(theirs)],
                    stdin=subprocess.PIPE,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    pass_fds=(theirs,),
                    env=dict(environment),
                )
        finally:
            os.close(theirs)
        self.answer, self._left = answer, b""

    def order(self, **entry: object) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps(entry).encode() + b"\n")
            self.process.stdin.flush()

    def lines(self) -> list[dict[str, Any]]:
        """What it answered since; empty where nothing came. Raises EOFError where it closed its end."""
        data = os.read(self.answer, 1 << 16)
        if not data:
            raise EOFError
        whole, _, self._left = (self._left + data).rpartition(b"\n")
        return [json.loads(line) for line in whole.split(b"\n") if line.strip()]

    def end(self) -> str:
        """How its process ended, waiting shortly for it to."""
        try:
            code = self.process.wait(DEATH_SECONDS)
        except subprocess.TimeoutExpired:
            return ""
        return _signal(-code) if code < 0 else f"exit {code}"

    def said(self, most: int = SAID) -> str:
        """The end of what it printed, without the lines that are empty."""
        with contextlib.suppress(OSError), open(self.file, "rb") as printed:
            printed.seek(max(0, os.fstat(printed.fileno()).st_size - most))
            text = printed.read(most).decode("utf-8", "replace")
            return "\n".join(line for line in text.splitlines() if line.strip())
        return ""

    def place(self) -> str:
        """The innermost line of Python that its interpreter wrote last; empty where it does not answer."""
        last = self.said(1 << 16).rpartition("thread 0x")[2]
        found = re.search(r'File "([^"\n]+)", line (\d+) in (\S+)', last)
        return f"{found[1]}:{found[2]} ({found[3]})" if found else ""


class Ranks:
    """All of them, going through the same steps."""

    def __init__(self, plan: Mapping[str, Any], command: Sequence[str]) -> None:
        self._devices = [str(device) for device in plan["devices"]]
        self._port = 0
        count = len(self._devices)
        self._ranks = []
        for rank in range(count):
            environment = {
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(count),
                "OMP_NUM_THREADS": "1",
            }
            if plan["kind"] == "cpu":
                environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
            self._ranks.append(Rank(rank, command, environment))

    def together(self, step: str, seconds: float, measures: dict[str, object]) -> dict[str, object]:
        """Fills in and gives the measures of a step; ``fault`` is empty where all ranks went on."""
        states = [State(rank.number) for rank in self._ranks]
        for rank in self._ranks:
            rank.order(step=step, port=self._port)
        begun = time.monotonic()
        over = self._watched(states, step, begun + seconds)
        measures.update({"ranks": len(states), "fault": ""})
        if over or any(state.fell for state in states):
            measures.update(self._fault(states, over))
        else:
            measures.update(_numbers(states))
        return measures

    def _watched(self, states: Sequence[State], step: str, ends: float) -> bool:
        """Until all ranks went on or one fell; True where the time was over first."""
        poll = select.poll()
        waiting = {rank.answer: rank for rank in self._ranks}
        for descriptor in waiting:
            poll.register(descriptor, select.POLLIN)
        fell = False
        while not all(state.settled for state in states):
            left = ends - time.monotonic()
            if left <= 0:
                return not fell
            for descriptor, _ in poll.poll(left * 1000):
                rank = waiting[descriptor]
                try:
                    for line in rank.lines():
                        self._noted(states[rank.number], line, step)
                except EOFError:
                    poll.unregister(descriptor)
                    states[rank.number].end = rank.end() or "closed its answer"
            if not fell and any(state.fell for state in states):
                fell, ends = True, min(ends, time.monotonic() + GRACE)
        return False

    def _noted(self, state: State, line: Mapping[str, Any], step: str) -> None:
        if line.get("step") != step:
            return
        if line["event"] == "entered":
            state.entered = True
            self._port = int(line.get("port", self._port))
        elif line["event"] == "left":
            state.entered = state.left = True
            state.measures = line["measures"]
        else:
            state.raised = "; ".join(f"{error['type']}: {error['text']}" for error in line["errors"])[:SAID]

    def _fault(self, states: Sequence[State], over: bool) -> dict[str, object]:
        """The fault by name, and the ranks that have it under that name."""
        places = self._places([state.rank for state in states if not state.settled]) if over else {}
        fault, numbers = culprits(states, over, places)
        first = numbers[0]
        return {
            "fault": fault,
            fault: _listed(numbers),
            "on": ", ".join(self._devices[number] for number in numbers),
            "how": states[first].end or states[first].raised.partition("\n")[0],
            "said": self._ranks[first].said(),
            "places": "; ".join(f"{number}: {place}" for number, place in places.items()),
            "waiting": _listed([s.rank for s in states if s.entered and not s.settled and s.rank not in numbers]),
        }

    def _places(self, numbers: Sequence[int]) -> dict[int, str]:
        """Where the interpreters of these ranks stand: they write it when they are asked."""
        for number in numbers:
            with contextlib.suppress(OSError):
                self._ranks[number].process.send_signal(signal.SIGUSR1)
        time.sleep(ASKED_SECONDS)
        return {number: self._ranks[number].place() for number in numbers}

    def end(self) -> dict[str, object]:
        """Closes their stdin, which ends them, and kills those that go on; ``left_behind``: those that do not die."""
        for rank in self._ranks:
            assert rank.process.stdin is not None
            with contextlib.suppress(OSError):
                rank.process.stdin.close()
        ends = time.monotonic() + GRACE
        for rank in self._ranks:
            try:
                rank.process.wait(max(0.0, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                rank.process.kill()
        left = [rank for rank in self._ranks if not rank.end()]
        return {"left_behind": ", ".join(f"{rank.number} (process {rank.process.pid})" for rank in left)}


def _numbers(states: Sequence[State]) -> dict[str, object]:
    """Who has wrong numbers, and how fast the slowest was."""
    found: dict[str, object] = {"wrong_ranks": _listed([state.rank for state in states if state.measures.get("wrong")])}
    senders = {number for state in states for number in state.measures.get("senders", ())}
    if any("senders" in state.measures for state in states):
        found["wrong_senders"] = _listed(sorted(senders))
    slowest = max(states, key=lambda state: float(state.measures.get("took", 0.0)))
    took = float(slowest.measures.get("took", 0.0))
    if took:
        found.update(slowest_ms=1000 * took, mib=slowest.measures["bytes"] / (1 << 20))
        found["gib_s"] = slowest.measures["bytes"] / took / (1 << 30)
    found.update({name: states[0].measures[name] for name in ("backend", "of") if name in states[0].measures})
    return found


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
