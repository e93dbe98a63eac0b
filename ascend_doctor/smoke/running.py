"""Runs a plan: one child for each device, and after a step that ended it a new one, which goes on behind that step."""

from __future__ import annotations

import json
import time
from typing import Any, Callable

from ascend_doctor.facts import libraries
from ascend_doctor.facts import smoke as facts
from ascend_doctor.facts.smoke import Smoke
from ascend_doctor.host import Collected, Host, Missing
from ascend_doctor.host.children import child
from ascend_doctor.smoke.plan import Planned, Target
from ascend_doctor.smoke.told import IDLE_SECONDS, START_SECONDS, Listening, Step, Told, names

SCRIPT, RANKS = "smoke.py", "ranks.py"
MOST_CHILDREN = 8
"""For one device: after so many ends nothing new is learned."""
OPENING = ("import", "device")
PATIENCE = 60.0
"""Seconds for an exchange between ranks that are connected; to connect takes HCCL up to two minutes."""

Say = Callable[[str], None]


def run(host: Host, plan: Planned, say: Say) -> Collected[Smoke]:
    """The area of facts; the children are started where this host is the machine that we run on."""
    return facts.collected(host.observed("smoke", lambda: observed(host, plan, say)))


def observed(host: Host, plan: Planned, say: Say) -> object:
    """Plain values, or why there is none."""
    python = host.python.value
    if isinstance(python, Missing):
        return python
    if plan.wishes.ranks:
        return {"plan": plan.as_json(), "devices": [_ranks(python.executable, plan, say)]}
    devices = []
    for target in plan.targets:
        entry = _entry(plan, target)
        if not target.refused:
            entry["steps"].append(_prediction(host, plan))
            steps = _Device(python.executable, plan, target, say).steps()
            if isinstance(steps, Missing):
                return steps
            entry["steps"] += steps
            entry["dtype"] = _dtype(steps) or entry["dtype"]
            entry["name"] = _name(steps) or entry["name"]
        devices.append(entry)
    return {"plan": plan.as_json(), "devices": devices}


def _entry(plan: Planned, target: Target) -> dict[str, Any]:
    return {
        "device": target.word,
        "name": target.name,
        "dtype": plan.size.dtype if plan.dtype == "auto" else plan.dtype,
        "refused": target.refused,
        "memory": dict(target.memory),
        "need_bytes": target.need_bytes,
        "steps": [],
    }


def _prediction(host: Host, plan: Planned) -> Step:
    """The first stage starts no child: what the files of the libraries say. It is asked for here to take its time."""
    begun = time.monotonic()
    libraries.collect(host)
    seconds = round(time.monotonic() - begun, 3)
    deadline = plan.seconds["libraries"]
    return {"stage": "libraries", "step": "prediction", "outcome": "passed", "seconds": seconds, "deadline": deadline}


class _Device:
    """All children of one device."""

    def __init__(self, python: str, plan: Planned, target: Target, say: Say) -> None:
        self._python, self._plan, self._target, self._say = python, plan, target, say
        self._ids = [stage.id for stage in plan.stages if stage.id != "libraries"]
        self._rules = {stage.id: stage for stage in plan.stages}
        self._steps: list[Step] = []
        self._broken: dict[str, str] = {}
        self._left: set[str] = set()
        self._stuck = False

    def steps(self) -> list[Step] | Missing:
        for number in range(MOST_CHILDREN):
            told = self._child(self._ids)
            if isinstance(told, Missing):
                if not self._steps:
                    return told
                break  # what an earlier child told stays
            self._steps += told.steps
            for stage, passed in told.left.items():
                self._left.add(stage)
                if not passed:
                    self._broken.setdefault(stage, "failed")
            if told.whole or not self._goes_on(told, number):
                break
        self._after_exit()
        return [*self._steps, *self._not_reached()]

    def _child(self, stages: list[str]) -> Told | Missing:
        plan = self._plan.for_child(self._target, stages, names(self._steps), list(self._broken))
        pace = Listening(self._plan.seconds, lambda stage: self._say(f"{self._target.word}: {stage}"))
        seconds = min(START_SECONDS, self._plan.wishes.step_seconds or START_SECONDS) + 10
        ended = child(self._python, SCRIPT, [json.dumps(plan)], seconds, pace, with_logs=True)
        return ended if isinstance(ended, Missing) else Told(ended)

    def _goes_on(self, told: Told, number: int) -> bool:
        """Whether a new child can do what this one left."""
        last = told.culprit or (told.steps[-1] if told.steps else None)
        if last is None or number + 1 == MOST_CHILDREN:
            return False
        stage = last["stage"]
        self._stuck = last["outcome"] == "stuck"
        if self._stuck:
            self._broken.update({one: "failed" for one in self._ids if one not in self._left})
            return False
        rule = self._rules.get(stage)
        if rule is None or stage in OPENING or not last["step"] or stage in self._left:
            self._broken.setdefault(stage, "failed")
            return False
        if not rule.independent or last["step"] in PREPARING:
            self._broken.setdefault(stage, "failed")
        return any(self._can_run(one) for one in self._ids)

    def _can_run(self, stage: str) -> bool:
        return stage not in self._left and not self._blocked(stage)

    def _blocked(self, stage: str) -> str:
        """The stage that failed and that this one needs, or is; empty where there is none."""
        if stage in self._broken:
            return stage
        return next((found for need in self._rules[stage].needs if (found := self._blocked(need))), "")

    def _not_reached(self) -> list[Step]:
        tried = {step["stage"] for step in self._steps}
        found = []
        for stage in self._ids:
            if stage not in tried:
                because = self._blocked(stage)
                why = (
                    f"not run: it needs stage {because}, which did not pass"
                    if because
                    else "not run: the process ended before"
                )
                if self._stuck:
                    why = "not run: a process hangs on this device and no signal ends it"
                found.append({"stage": stage, "step": "", "outcome": "not_reached", "detail": why})
            elif stage not in self._left and not any(_failed(s) for s in self._steps if s["stage"] == stage):
                why = "not run to its end: the process ended before"
                found.append({"stage": stage, "step": "", "outcome": "not_reached", "detail": why})
        return found

    def _after_exit(self) -> None:
        """What is free once the process has gone; only a new process can ask, and only a device may keep some."""
        before = next((s for s in self._steps if (s["stage"], s["step"]) == ("device", "memory")), None)
        if "memory" not in self._left or before is None:
            return
        free = before.get("measures", {}).get("free")
        step: Step = {"stage": "memory", "step": "after_exit", "outcome": "unsupported", "seconds": 0.0}
        step["detail"] = "only a device can keep memory after its process has ended"
        if self._target.kind != "cpu" and isinstance(free, int):
            fresh = _Device(self._python, self._plan, self._target, lambda stage: None)
            told = fresh._child(list(OPENING))
            after = (
                {}
                if isinstance(told, Missing)
                else {s["step"]: s["measures"].get("free") for s in told.steps if s.get("measures")}
            )
            now = after.get("memory")
            if isinstance(now, int):
                step = {"stage": "memory", "step": "after_exit", "outcome": "passed", "seconds": 0.0}
                step["measures"] = {"before": free, "after": now, "kept": free - now}
        step["deadline"] = self._plan.seconds["device"]
        self._steps.append(step)


PREPARING = ("tensor", "weights", "wide", "placed", "golden", "model", "caches")
"""Steps that make what the others of their stage need."""


def _failed(step: Step) -> bool:
    return step["outcome"] not in ("passed", "absent", "unsupported")


def _measure(steps: list[Step], name: str) -> str:
    found = next((step for step in steps if (step["stage"], step["step"]) == ("device", "properties")), None)
    return str(found["measures"].get(name, "")) if found and found.get("measures") else ""


def _dtype(steps: list[Step]) -> str:
    return _measure(steps, "dtype")


def _name(steps: list[Step]) -> str:
    return _measure(steps, "name")


def _ranks(python: str, plan: Planned, say: Say) -> dict[str, Any]:
    """Several devices together; one that is held keeps all from being taken."""
    first = plan.targets[0]
    entry = _entry(plan, first)
    entry["device"] = (
        f"{first.kind}:0-{len(plan.targets) - 1}" if first.kind == "cpu" else "+".join(t.word for t in plan.targets)
    )
    entry["refused"] = next((target.refused for target in plan.targets if target.refused), "")
    if entry["refused"]:
        return entry
    seconds = plan.seconds["ranks"]
    asked = {"kind": first.kind, "devices": [target.word for target in plan.targets], "seconds": seconds}
    asked["patience"] = min(PATIENCE, seconds)
    pace = Listening(plan.seconds, lambda stage: say(f"{entry['device']}: {stage}"))
    ended = child(python, RANKS, [json.dumps(asked)], START_SECONDS + IDLE_SECONDS, pace, with_logs=True)
    if isinstance(ended, Missing):
        entry["steps"] = [
            {"stage": "ranks", "step": "start", "outcome": "raised", "detail": ended.detail or ended.reason.value}
        ]
        return entry
    entry["steps"] = Told(ended).steps
    return entry
