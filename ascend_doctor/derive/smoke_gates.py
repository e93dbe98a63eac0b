"""What a step of a smoke run comes to: within its gates, beyond one of them, or ended before it was done."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ascend_doctor.facts.smoke import ENDS, DeviceRun, Step
from ascend_doctor.host import Missing
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.remedies import RemedyStep, Texts
from ascend_doctor.knowledge.smoke_gates import End, Gate, SmokeGates, Told
from ascend_doctor.records import dataclass

SEVERITIES = ("error", "warning", "info")
NOT_JUDGED = ("absent", "unsupported", "unprepared")
SAID = 300
"""Characters of an exception's first line that a finding quotes."""


@dataclass(frozen=True)
class Failure:
    """A gate that was not kept or an end before the end, in words; ``id`` of that gate or end."""

    id: str
    severity: str
    found: Texts
    expected: Texts
    why: Texts
    remedy: tuple[RemedyStep, ...]
    sources: tuple[Source, ...]


def worst(step: Step, gates: SmokeGates, device: DeviceRun) -> Failure | None:
    """The gravest that is wrong with a step, the first of equals; None where nothing is."""
    found = failing(step, gates, device)
    return min(found, key=lambda failure: SEVERITIES.index(failure.severity)) if found else None


def failing(step: Step, gates: SmokeGates, device: DeviceRun) -> tuple[Failure, ...]:
    """All that is wrong with a step, in the order of the rules."""
    if isinstance(step.outcome, Missing):
        return ()
    hit = tuple(_gate_failure(gate, step, device) for gate in gates.gates if _is_hit(gate, step, device))
    if step.outcome == "passed" or hit or step.outcome in NOT_JUDGED:
        return hit
    end = next((end for end in gates.ends if _fits(end, step)), None)
    return (_end_failure(end, step, device),) if end else ()


def _is_hit(gate: Gate, step: Step, device: DeviceRun) -> bool:
    asked = (
        gate.stage == step.stage
        and fnmatchcase(step.step, gate.step)
        and (not gate.kinds or device.kind in gate.kinds)
        and (not gate.dtypes or device.dtype in gate.dtypes)
    )
    if not asked:
        return False
    if gate.outcome:
        return gate.outcome == step.outcome
    value = step.measures.get(gate.measure)
    return value is not None and not within(gate, value)


def within(gate: Gate, value: object) -> bool:
    """Words for what is no number (nan, inf) are within no bound."""
    if gate.how == "equals":
        return value == gate.bound
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isinstance(gate.bound, (int, float)):
        return False
    return value <= gate.bound if gate.how == "most" else value >= gate.bound


def _fits(end: End, step: Step) -> bool:
    if end.stages and step.stage not in end.stages:
        return False
    if end.outcomes and step.outcome not in end.outcomes:
        return False
    if end.signals and step.signal not in end.signals:
        return False
    said = [*(f"{error.type}: {error.text}" for error in step.errors), step.detail, step.stderr]
    return not end.pattern or any(re.search(end.pattern, text) for text in said if text)


def _gate_failure(gate: Gate, step: Step, device: DeviceRun) -> Failure:
    value = step.measures.get(gate.measure, "")
    return _told(gate.told, {**words(step, device), "value": shown(value), "limit": shown(gate.bound)})


def _end_failure(end: End, step: Step, device: DeviceRun) -> Failure:
    return _told(end.told, words(step, device))


def words(step: Step, device: DeviceRun) -> dict[str, str]:
    """What texts of rules may name in braces: the step, how it ended, and its measures by their own names."""
    exception = f"{step.errors[0].type}: {step.errors[0].text}" if step.errors else step.detail
    return {
        **{name: shown(value) for name, value in step.measures.items()},
        "stage": step.stage,
        "step": f"{step.stage}.{step.step}" if step.step else step.stage,
        "name": step.step,
        "device": device.device,
        "kind": device.kind,
        "dtype": device.dtype,
        "signal": step.signal,
        "code": str(step.code),
        "state": step.state,
        "pid": str(step.pid),
        "seconds": f"{step.seconds:.3g}",
        "deadline": f"{step.deadline:g}",
        "last": step.library or "?",
        "says": exception.strip().partition("\n")[0][:SAID],
        "where": stopped_at(step) if step.outcome in ENDS else step.errors[0].where if step.errors else "",
    }


def stopped_at(step: Step) -> str:
    """The innermost line of Python that the interpreter wrote when it crashed or hung; empty where it wrote none."""
    blocks = re.split(r"(?m)^(?:Current thread|Thread) [^\n]*\n", step.stderr)
    found = re.search(r'File "([^"\n]{1,400})", line (\d{1,7}) in (\S{1,100})', blocks[-1] if len(blocks) > 1 else "")
    return f"{found[1]}:{found[2]} ({found[3]})" if found else ""


def shown(value: object) -> str:
    """A number with four figures, of bytes and counts all of them."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.4g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(shown(item) for item in value[:8])
    return str(value)


def _told(told: Told, values: Mapping[str, str]) -> Failure:
    return Failure(
        id=told.id,
        severity=told.severity,
        found=filled(told.found, values),
        expected=filled(told.expected, values),
        why=filled(told.why, values),
        remedy=tuple(_step(step, values) for step in told.remedy),
        sources=told.sources,
    )


def filled(texts: Texts, values: Mapping[str, str]) -> Texts:
    return {language: _with(text, values) for language, text in texts.items()}


def _step(step: RemedyStep, values: Mapping[str, str]) -> RemedyStep:
    quoted = {name: shlex.quote(value) for name, value in values.items()}
    command = None if step.command is None else _with(step.command, quoted)
    return replace(step, text=filled(step.text, values), command=command)


def _with(text: str, values: Mapping[str, str]) -> str:
    """Names in braces that are known; ``{size/MiB}`` is bytes as MiB; other braces are the shell's."""

    def value(found: re.Match[str]) -> str:
        said = values.get(found[1])
        if said is None:
            return found[0]
        if not found[2]:
            return said
        try:
            return f"{float(said) / (1 << 20):.4g}"
        except ValueError:
            return said

    return re.sub(r"\{([a-z0-9_]+)(/MiB)?\}", value, text)


def gravest(failures: Sequence[Failure]) -> Failure:
    return min(failures, key=lambda failure: SEVERITIES.index(failure.severity))
