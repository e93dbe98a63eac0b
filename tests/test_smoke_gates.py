"""Gates of a smoke run: each is hit just beyond its bound and not at it, and says so in whole sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf, nan, nextafter

import pytest
from smoke_runs import RULES, needs_torch, smoked

from ascend_doctor.derive.smoke_gates import Failure, failing, within, worst
from ascend_doctor.facts.import_probe import Raised
from ascend_doctor.facts.smoke import OUTCOMES, DeviceRun, Smoke, Step
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.smoke_gates import Bound, Gate, load

RULEBOOK = load(RULES)
GATES = {gate.told.id: gate for gate in RULEBOOK.gates if gate.stage != "operators"}
"""Those of single operators have tests of their own."""
ENDS = {end.told.id: end for end in RULEBOOK.ends}

STEP = Step(
    stage="forced",
    step="numbers",
    outcome="passed",
    seconds=0.5,
    deadline=120.0,
    measures={},
    errors=(),
    detail="",
    code=0,
    signal="",
    state="",
    pid=4711,
    stdout="",
    stderr="",
    library="",
    logs={},
)


def device_of(kinds: tuple[str, ...] = (), dtypes: tuple[str, ...] = ()) -> DeviceRun:
    """The first device that such a gate is for."""
    kind = kinds[0] if kinds else "npu"
    name = "cpu" if kind == "cpu" else f"{kind}:3"
    return DeviceRun(name, kind, "", dtypes[0] if dtypes else "bf16", "", {}, 0, ())


def step_of(gate: Gate, value: object) -> Step:
    name = gate.step.replace("*", "x")
    if gate.outcome:
        return replace(STEP, stage=gate.stage, step=name, outcome=str(value))
    return replace(STEP, stage=gate.stage, step=name, measures={gate.measure: value})


def hits(gate: Gate, value: object) -> bool:
    found = failing(step_of(gate, value), RULEBOOK, device_of(gate.kinds, gate.dtypes))
    return gate.told.id in [failure.id for failure in found]


def beyond(bound: Bound, how: str) -> object:
    """The nearest value that is no more within."""
    if how == "equals":
        return not bound if isinstance(bound, bool) else bound + 1 if isinstance(bound, (int, float)) else "changed"
    assert isinstance(bound, (int, float))
    if isinstance(bound, int):
        return bound + 1 if how == "most" else bound - 1
    return nextafter(bound, inf if how == "most" else -inf)


@pytest.mark.parametrize("gate", GATES.values(), ids=list(GATES))
def test_a_gate_is_hit_just_beyond_its_bound(gate: Gate) -> None:
    assert hits(gate, gate.outcome or beyond(gate.bound, gate.how))


@pytest.mark.parametrize("gate", [gate for gate in GATES.values() if not gate.outcome], ids=lambda gate: gate.told.id)
def test_a_gate_is_not_hit_at_its_bound(gate: Gate) -> None:
    assert not hits(gate, gate.bound)


@pytest.mark.parametrize("gate", [g for g in GATES.values() if g.how in ("most", "least")], ids=lambda g: g.told.id)
@pytest.mark.parametrize("value", [nan, "nan", "inf", "-inf", True])
def test_what_is_no_number_is_within_no_bound(gate: Gate, value: object) -> None:
    assert not within(gate, value)


@pytest.mark.parametrize("gate", [gate for gate in GATES.values() if gate.kinds], ids=lambda gate: gate.told.id)
def test_a_gate_of_some_kinds_is_of_no_other(gate: Gate) -> None:
    other = next(kind for kind in ("npu", "cpu", "cuda") if kind not in gate.kinds)
    step = step_of(gate, gate.outcome or beyond(gate.bound, gate.how))
    found = failing(step, RULEBOOK, device_of((other,), gate.dtypes))
    assert gate.told.id not in [failure.id for failure in found]


@pytest.mark.parametrize("gate", [gate for gate in GATES.values() if gate.dtypes], ids=lambda gate: gate.told.id)
def test_a_gate_of_some_formats_is_of_no_other(gate: Gate) -> None:
    other = next(dtype for dtype in ("fp32", "bf16", "fp16") if dtype not in gate.dtypes)
    step = step_of(gate, beyond(gate.bound, gate.how))
    found = failing(step, RULEBOOK, device_of(gate.kinds, (other,)))
    assert gate.told.id not in [failure.id for failure in found]


@pytest.mark.parametrize(
    ("stage", "step", "measure"),
    [(stage, step, m) for stage, step in (("forced", "numbers"), ("decode", "cached")) for m in ("rel_l2", "finite")],
)
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_each_format_has_a_gate_for_its_numbers(stage: str, step: str, measure: str, dtype: str) -> None:
    wrong = replace(STEP, stage=stage, step=step, measures={measure: 0.9 if measure == "rel_l2" else False})
    found = worst(wrong, RULEBOOK, device_of((), (dtype,)))
    assert found is not None
    assert found.severity == "error"


# How a step ended

ENDED = {
    "smoke.no-device": {"stage": "device", "outcome": "raised", "errors": "RuntimeError: device_count() is 0"},
    "smoke.memory-exhausted": {
        "outcome": "raised",
        "errors": "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB",
    },
    "smoke.killed": {"outcome": "signal", "signal": "SIGKILL"},
    "smoke.crashed": {"outcome": "signal", "signal": "SIGSEGV"},
    "smoke.stuck": {"outcome": "stuck", "state": "D"},
    "smoke.hangs": {"outcome": "deadline"},
    "smoke.floods": {"outcome": "flood"},
    "smoke.exited": {"outcome": "exit", "code": 3},
    "smoke.raised": {"outcome": "raised", "errors": "RuntimeError: expected scalar type Half"},
}
"""One step for each end; the texts are those of torch, torch_npu and children/stages/device.py."""
TRACE = 'Current thread 0x1 (most recent call first):\n  File "/x/experts.py", line 56 in _through\n'


def ended(change: Mapping[str, object]) -> Step:
    kind, _, text = str(change.get("errors", "")).partition(": ")
    errors = (Raised(kind, text, "/x/experts.py:56"),) if kind else ()
    return replace(STEP, stderr=TRACE, **{**change, "errors": errors})


def test_each_end_has_a_step_here() -> None:
    assert set(ENDED) == set(ENDS)


@pytest.mark.parametrize("end", ENDED)
def test_a_step_that_did_not_end_is_told_by_its_end(end: str) -> None:
    assert [failure.id for failure in failing(ended(ENDED[end]), RULEBOOK, device_of())] == [end]


@pytest.mark.parametrize("outcome", [word for word in OUTCOMES if word not in ("passed", "refused")])
def test_each_outcome_but_a_good_one_says_something_or_is_no_fault(outcome: str) -> None:
    found = failing(replace(STEP, outcome=outcome), RULEBOOK, device_of())
    assert bool(found) == (outcome not in ("absent", "unsupported", "unprepared"))


@pytest.mark.parametrize("end", ["smoke.crashed", "smoke.hangs", "smoke.raised"])
def test_an_end_names_the_place(end: str) -> None:
    failure = worst(ended(ENDED[end]), RULEBOOK, device_of())
    assert failure is not None
    assert "/x/experts.py:56" in failure.found["en"]


@pytest.mark.parametrize("end", ENDED)
def test_an_end_is_told_in_whole_sentences(end: str) -> None:
    for failure in failing(ended(ENDED[end]), RULEBOOK, device_of()):
        assert not list(unfilled(failure))


def test_a_step_that_was_not_reached_is_no_fault() -> None:
    blocked = replace(STEP, outcome=Missing(Reason.UNSUPPORTED, "layers did not pass"))
    assert worst(blocked, RULEBOOK, device_of()) is None


def test_the_gravest_of_several_faults_is_told() -> None:
    """The warning below 0.90 and the error below 0.75 are both hit."""
    step = replace(STEP, stage="free", step="overlap", measures={"experts": 0.5})
    found = worst(step, RULEBOOK, device_of())
    assert found is not None
    assert (found.id, found.severity) == ("free.experts-elsewhere", "error")


# What a real run measures


@pytest.fixture(scope="module")
def healthy() -> DeviceRun:
    run = smoked().facts
    assert isinstance(run, Smoke)
    assert not isinstance(run.devices, Missing)
    return run.devices[0]


def steps_of(gate: Gate, run: DeviceRun) -> list[Step]:
    return [
        step
        for step in run.steps
        if step.stage == gate.stage
        and re.fullmatch(gate.step.replace(".", r"\.").replace("*", ".*"), step.step)
        and gate.measure in step.measures
    ]


ON_A_DEVICE_ONLY: dict[str, dict[str, object]] = {
    "device.not-available": {"device_count": 1, "is_available": True},
    "layers.weights-changed": {"bytes": 1 << 24, "copied": True},
    "memory.over-budget": {"tensors": 1 << 24, "reserved": 1 << 25, "reserved_over_predicted": 2.0},
    "memory.reserved-grows": {"reserved_slope": 0},
    "memory.not-given-back": {"before": 1 << 34, "after": 1 << 34, "kept": 0},
}
"""Gates of measures that a run on the CPU has not, and what children/stages and smoke/running.py measure there."""
MODEL_GATES = [gate for gate in GATES.values() if gate.stage != "ranks"]


@needs_torch
@pytest.mark.parametrize("gate", MODEL_GATES, ids=lambda gate: gate.told.id)
def test_a_gate_has_a_step_that_measures_it(healthy: DeviceRun, gate: Gate) -> None:
    assert bool(steps_of(gate, healthy)) != (gate.told.id in ON_A_DEVICE_ONLY)


@needs_torch
@pytest.mark.parametrize("gate", MODEL_GATES, ids=lambda gate: gate.told.id)
def test_a_gate_names_only_what_its_step_measures(healthy: DeviceRun, gate: Gate) -> None:
    """Of real measures one is changed: no sentence has a name in braces left, in either language."""
    steps = steps_of(gate, healthy)
    if gate.told.id in ON_A_DEVICE_ONLY:
        steps = [replace(STEP, stage=gate.stage, step=gate.step, measures=ON_A_DEVICE_ONLY[gate.told.id])]
    for step in steps:
        changed = replace(step, measures={**step.measures, gate.measure: beyond(gate.bound, gate.how)})
        failures = failing(changed, RULEBOOK, device_of(gate.kinds, gate.dtypes))
        told = [failure for failure in failures if failure.id == gate.told.id]
        assert told
        assert not [word for failure in told for word in unfilled(failure)]


def unfilled(failure: Failure) -> Iterator[str]:
    """Names in braces that nothing was put in for."""
    for texts in (failure.found, failure.expected, failure.why, *(step.text for step in failure.remedy)):
        assert set(texts) == {"en", "zh"}
        for text in texts.values():
            yield from re.findall(r"\{[^}]*\}", text)


@needs_torch
def test_a_healthy_run_hits_nothing(healthy: DeviceRun) -> None:
    assert [failure.id for step in healthy.steps for failure in failing(step, RULEBOOK, healthy)] == []


def test_ends_are_of_stages_that_there_are() -> None:
    stages = {stage.id for stage in RULEBOOK.stages}
    named = [*(stage for end in RULEBOOK.ends for stage in end.stages), *(gate.stage for gate in RULEBOOK.gates)]
    assert set(named) <= stages
