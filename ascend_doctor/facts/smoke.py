"""What a reduced model did on a device, step by step, as children/smoke.py tells it (or children/ranks.py for ranks).

Nothing is measured here: smoke/ starts the children where the user wants it, and a snapshot has what they said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, Union

from ascend_doctor.facts.import_probe import Raised
from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, keyed
from ascend_doctor.records import dataclass

T = TypeVar("T")

Scalar = Union[bool, int, float, str]

OUTCOMES = (
    *("passed", "raised", "absent", "unsupported", "refused", "unprepared"),
    *("signal", "exit", "deadline", "flood", "stuck"),
)
ENDS = ("signal", "exit", "deadline", "flood", "stuck")
"""Outcomes of the process; the step is the one that had begun."""

NOT_WANTED = Missing(Reason.UNSUPPORTED, "only with --smoke, or the verb smoke")
WRONG_SHAPE = Missing(Reason.FAILED, "not in the form of a smoke run")
SHOWN = 12
"""Measures that are shown as evidence of a step."""


@dataclass(frozen=True)
class Step:
    """``outcome``: of OUTCOMES; of a stage that was not reached there is one step "" whose outcome is Missing.

    ``errors``: the exception and those that it came from, the first one last. ``code``, ``signal``, ``state``, what was
    printed, ``library`` and ``logs`` (file -> text) are of the process, where it ended with this step.
    """

    stage: str
    step: str
    outcome: str | Missing
    seconds: float
    deadline: float
    measures: Mapping[str, object]
    errors: tuple[Raised, ...]
    detail: str
    code: int
    signal: str
    state: str
    pid: int
    stdout: str
    stderr: str
    library: str
    logs: Mapping[str, str]


@dataclass(frozen=True)
class DeviceRun:
    """One device as the process sees it (``npu:3``, ``cpu``). ``refused``: why nothing was started there, "" if it was.

    ``memory``: name of a part -> bytes that were predicted for the device; ``free_bytes``: before the run, absent where
    nobody could tell.
    """

    device: str
    kind: str
    name: str
    dtype: str
    refused: str
    memory: Mapping[str, int]
    need_bytes: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Plan:
    """What was asked. ``config``: the sizes of the model; ``stages``: in their order."""

    size: str
    seq: int
    decode: int
    ranks: int
    config: Mapping[str, object]
    stages: tuple[str, ...]


@dataclass(frozen=True)
class Smoke:
    plan: Plan | Missing
    devices: tuple[DeviceRun, ...] | Missing


def collect(host: Host) -> Collected[Smoke]:
    """Starts nothing: of a snapshot that has a run, that run."""
    if not host.extent.smoke:
        return Area("smoke").of(Smoke(NOT_WANTED, NOT_WANTED))
    return collected(host.observed("smoke", lambda: Missing(Reason.NOT_COLLECTED, "only the verb starts it")))


def collected(answer: Answer[object]) -> Collected[Smoke]:
    """The area of an observation, with a line of evidence for each step."""
    area = Area("smoke")
    found = answer.value if isinstance(answer.value, Missing) else smoke(answer.value)
    if isinstance(found, Missing):
        if found.reason in (Reason.ABSENT, Reason.UNSUPPORTED):
            found = Missing(Reason.NOT_COLLECTED, found.detail)  # a run was wanted, and there is none: no skip
        area.take("devices", Parsed(None, answer.source, {"": found.detail or found.reason.value}))
        return area.of(Smoke(found, found))
    area.take(
        "plan", Parsed(None, answer.source, {"": f"size {found.plan.size}" if isinstance(found.plan, Plan) else ""})
    )
    for number, device in enumerate(() if isinstance(found.devices, Missing) else found.devices):
        path = keyed("devices", number)
        area.take(
            path, Parsed(None, answer.source, {"": device.refused or f"{device.device}: {len(device.steps)} steps"})
        )
        for index, step in enumerate(device.steps):
            area.take(f"{path}.steps[{index}]", Parsed(None, answer.source, {"": line(device, step)}))
    return area.of(found)


def line(device: DeviceRun, step: Step) -> str:
    """How a step went: ``cpu forced.numbers: passed in 0.21 s of 300 s; rel_l2 0.0216, cosine 0.99977``."""
    if isinstance(step.outcome, Missing):
        return f"{device.device} {step.stage}: {step.outcome.detail}"
    name = f"{step.stage}.{step.step}" if step.step else step.stage
    words = [f"{device.device} {name}: {step.outcome} {step.signal}".rstrip()]
    words[0] += f" in {step.seconds:.3g} s of {step.deadline:g} s"
    said = str(step.measures.get("said", ""))
    measures = [f"{key} {_short(value)}" for key, value in step.measures.items() if _in_a_line(key, value)]
    words += [", ".join(measures[:SHOWN])] if measures else []
    words += [f"{error.type}: {error.text.strip()} ({error.where})" for error in step.errors[:2]]
    words += [step.detail] if step.detail else []
    words += [f"process {step.pid}, state {step.state}"] if step.state else []
    words += [said.strip()[-1500:]] if said.strip() else []
    words += [step.stderr.strip()[-1500:]] if step.outcome in ENDS and step.stderr.strip() else []
    return "; ".join(words)[:3000]


def _in_a_line(key: str, value: object) -> bool:
    return key != "said" and not isinstance(value, (list, tuple)) and value != ""


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:80]


def smoke(value: object) -> Smoke | Missing:
    """The facts of an observation; Missing(failed) for any value of another form."""
    try:
        whole = _of(value, dict)
        devices = tuple(_device(_of(entry, dict)) for entry in _of(whole["devices"], list))
        return Smoke(_plan(_of(whole["plan"], dict)), devices)
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError):
        return WRONG_SHAPE


def _plan(entry: Mapping[str, Any]) -> Plan:
    return Plan(
        size=_of(entry["size"], str),
        seq=_whole(entry["seq"]),
        decode=_whole(entry["decode"]),
        ranks=_whole(entry.get("ranks", 0)),
        config=_scalars(entry.get("config", {})),
        stages=tuple(_of(stage, str) for stage in _of(entry["stages"], list)),
    )


def _device(entry: Mapping[str, Any]) -> DeviceRun:
    device = _of(entry["device"], str)
    return DeviceRun(
        device=device,
        kind=device.partition(":")[0],
        name=_of(entry.get("name", ""), str),
        dtype=_of(entry.get("dtype", ""), str),
        refused=_of(entry.get("refused", ""), str),
        memory={key: _whole(size) for key, size in _of(entry.get("memory", {}), dict).items()},
        need_bytes=_whole(entry.get("need_bytes", 0)),
        steps=tuple(_step(_of(step, dict)) for step in _of(entry.get("steps", []), list)),
    )


def _step(entry: Mapping[str, Any]) -> Step:
    outcome: str | Missing = _of(entry["outcome"], str)
    detail = _of(entry.get("detail", ""), str)
    if outcome == "not_reached":
        outcome = Missing(Reason.UNSUPPORTED, detail)
    elif outcome not in OUTCOMES:
        raise ValueError(outcome)
    text = {key: _of(entry.get(key, ""), str) for key in ("signal", "state", "stdout", "stderr", "library")}
    errors = _of(entry.get("errors", []), list)
    return Step(
        stage=_of(entry["stage"], str),
        step=_of(entry.get("step", ""), str),
        outcome=outcome,
        seconds=_number(entry.get("seconds", 0)),
        deadline=_number(entry.get("deadline", 0)),
        measures=_scalars(entry.get("measures", {})),
        errors=tuple(Raised(*(_of(_of(e, dict)[key], str) for key in ("type", "text", "where"))) for e in errors),
        detail=detail,
        code=_whole(entry.get("code", 0)),
        pid=_whole(entry.get("pid", 0)),
        logs={key: _of(text_, str) for key, text_ in _of(entry.get("logs", {}), dict).items()},
        **text,
    )


def _scalars(value: object) -> dict[str, object]:
    """Numbers, words, and lists of numbers."""
    found: dict[str, object] = {}
    for key, item in _of(value, dict).items():
        if isinstance(item, list):
            found[key] = tuple(_number(one) for one in item)
        elif isinstance(item, (bool, int, float, str)):
            found[key] = item
        elif item is not None:
            raise TypeError(key)
    return found


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    return float(value)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return value


def _of(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(kind)
    return value
