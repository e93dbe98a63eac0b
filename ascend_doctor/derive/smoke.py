"""The stages of a smoke run, each as one row for each device: passed, failed with its cause, or not run and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ascend_doctor.derive import rows
from ascend_doctor.derive.import_probe import classified, of_libraries, told_import
from ascend_doctor.derive.smoke_gates import Failure, gravest, words, worst
from ascend_doctor.derive.smoke_logs import cause
from ascend_doctor.facts.import_probe import Attempt
from ascend_doctor.facts.libraries import Libraries, Target
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.facts.smoke import ENDS, DeviceRun, Smoke, Step
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.import_errors import ImportErrors
from ascend_doctor.knowledge.log_book import LogBook
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.remedies import RemedyStep, Texts
from ascend_doctor.knowledge.smoke_gates import SmokeGates, Stage
from ascend_doctor.records import dataclass

OPENING = ("import", "device")
"""Stages whose failures are those of any import or first call on a device."""
WITH_LOGS = (*ENDS, "raised")
AFTER = "after_exit"
"""A step that only devices have; any other one that cannot be run leaves its stage unjudged."""


@dataclass(frozen=True)
class Rung:
    """One stage on one device. ``fault``: the id of what is wrong, "" where nothing is, Missing where it was not run.

    ``step``: the one that decides.
    """

    device: str
    kind: str
    stage: str
    number: int
    fault: str | Missing
    step: str
    severity: str
    found: Texts
    expected: Texts
    why: Texts
    remedy: tuple[RemedyStep, ...]
    sources: tuple[Source, ...]
    seconds: float
    deadline: float
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Book:
    """The rules that a rung is judged by."""

    gates: SmokeGates
    imports: ImportErrors
    libraries: Libraries
    python: TargetPython
    logs: LogBook


@rows("smoke.libraries")
def libraries_of(smoke: Smoke, libraries: Libraries, smoke_gates: SmokeGates) -> tuple[Rung, ...] | Missing:
    """What the files predict, for all devices of the run: the line that the loader would print, if it cannot go on."""
    if isinstance(smoke.devices, Missing):
        return smoke.devices
    stage = next(stage for stage in smoke_gates.stages if stage.id == "libraries")
    return tuple(_predicted(device, 0, stage, libraries) for device in smoke.devices[:1])


ROW_SETS = {
    "imports": "import",
    "opened": "device",
    **{stage: stage for stage in ("layers", "forced", "free", "decode", "latency", "memory", "ranks")},
}
"""Name of a row set -> its stage; those of libraries and operators are made in another way."""


def _registered(name: str, stage: str) -> None:
    @rows(f"smoke.{name}")
    def of_stage(
        smoke: Smoke,
        smoke_gates: SmokeGates,
        import_errors: ImportErrors,
        libraries: Libraries,
        python: TargetPython,
        log_book: LogBook,
    ) -> tuple[Rung, ...] | Missing:
        return rungs(stage, smoke, Book(smoke_gates, import_errors, libraries, python, log_book))


for _name, _stage in ROW_SETS.items():
    _registered(_name, _stage)


def rungs(stage: str, smoke: Smoke, book: Book) -> tuple[Rung, ...] | Missing:
    """One row for each device whose run has this stage."""
    if isinstance(smoke.devices, Missing):
        return smoke.devices
    rule = next(one for one in book.gates.stages if one.id == stage)
    found = []
    for index, device in enumerate(smoke.devices):
        if isinstance(smoke.plan, Missing) or stage in smoke.plan.stages:
            found.append(_rung(device, index, rule, book))
    return tuple(found)


def _rung(device: DeviceRun, index: int, stage: Stage, book: Book) -> Rung:
    path = keyed("devices", index)
    at = [(number, step) for number, step in enumerate(device.steps) if step.stage == stage.id]
    rung = replace(
        bare(device, stage),
        seconds=round(sum(step.seconds for _, step in at), 3),
        deadline=max((step.deadline for _, step in at), default=0.0),
        reads=tuple(f"smoke.{path}.steps[{number}]" for number, _ in at) or (f"smoke.{path}",),
    )
    if device.refused:
        return replace(rung, fault=Missing(Reason.NOT_COLLECTED, device.refused, f"smoke.{path}"))
    not_run = _not_run(stage, at, f"smoke.{path}")
    found = [(number, step, failure) for number, step in at if (failure := _failure(step, device, book))]
    if not found:
        return rung if not_run is None else replace(rung, fault=not_run)
    gravest_one = gravest([failure for _, _, failure in found])
    number, step, failure = next(one for one in found if one[2] is gravest_one)
    if step.outcome in WITH_LOGS:
        failure = with_cause(failure, step, book.logs)
    return replace(
        rung,
        fault=failure.id,
        step=step.step,
        severity=failure.severity,
        found=failure.found,
        expected=failure.expected,
        why=failure.why,
        remedy=failure.remedy,
        sources=failure.sources,
        reads=(f"smoke.{path}.steps[{number}]", *rung.reads),
    )


def bare(device: DeviceRun, stage: Stage) -> Rung:
    """A stage that passed."""
    return Rung(device.device, device.kind, stage.id, stage.number, "", "", "info", {}, {}, {}, (), (), 0.0, 0.0, ())


def _not_run(stage: Stage, at: Iterable[tuple[int, Step]], path: str) -> Missing | None:
    """Why nothing can be said of a stage: it was not reached, would have taken too much, or has nothing to measure."""
    steps = [step for _, step in at]
    if not steps:
        return Missing(Reason.UNSUPPORTED, "not part of this run", path)
    unreached = next((step.outcome for step in steps if isinstance(step.outcome, Missing)), None)
    if unreached is not None:
        return replace(unreached, path=path)
    refused = next((step for step in steps if step.outcome == "refused"), None)
    if refused is not None:
        return Missing(Reason.NOT_COLLECTED, refused.detail, path)
    unprepared = next((step for step in steps if step.outcome == "unprepared"), None)
    if unprepared is not None:
        return Missing(
            Reason.UNSUPPORTED, f"not run: {unprepared.step} could not be made, as an earlier stage tells", path
        )
    lacking = next((step for step in steps if step.outcome in ("absent", "unsupported") and step.step != AFTER), None)
    if lacking is not None:
        return Missing(Reason.NOT_COLLECTED, lacking.detail, path)  # never a skip: nothing would stand for it
    return None


def _failure(step: Step, device: DeviceRun, book: Book) -> Failure | None:
    if step.stage in OPENING and step.outcome in WITH_LOGS:
        told = _of_import(step, device, book)
        if told is not None:
            return told
    return worst(step, book.gates, device)


def _of_import(step: Step, device: DeviceRun, book: Book) -> Failure | None:
    """As the import probe would tell it, with what the libraries show; of a first call only what is known by name."""
    attempt = Attempt(
        module=step.step if step.stage == "import" else device.device,
        outcome=step.outcome,
        version="",
        seconds=step.seconds,
        code=step.code,
        signal=step.signal,
        errors=step.errors,
        stdout=step.stdout,
        stderr=step.stderr,
        library=step.library,
        state=step.state,
    )
    exceptions = [f"{error.type}: {error.text}" for error in step.errors]
    faults = of_libraries(book.libraries)
    if step.stage != "import" and book.imports.of_exceptions(exceptions, faults) is None:
        return None
    assert isinstance(step.outcome, str)
    if classified(step.outcome, attempt, faults, book.imports) is None:
        return None
    executable = "python3" if isinstance(book.python.executable, Missing) else book.python.executable
    row = told_import(attempt, faults, executable, book.imports)
    if isinstance(row.cause, Missing):
        return None
    values = words(step, device)
    expected = {
        "en": f"{values['step']} within {values['deadline']} s",
        "zh": f"{values['step']} 在 {values['deadline']} 秒内完成",
    }
    return Failure(row.cause, row.severity, row.found, expected, row.why, row.remedy, row.sources)


def with_cause(failure: Failure, step: Step, book: LogBook) -> Failure:
    """With the root cause that the logs of the child name, and what is to be done about that first."""
    told = cause(step, book)
    if told is None:
        return failure
    found = {
        language: f"{text}; {told.title.get(language, told.signature)} ({told.signature}): {told.line}"
        for language, text in failure.found.items()
    }
    return replace(failure, found=found, remedy=(*told.remedy, *failure.remedy))


def _predicted(device: DeviceRun, index: int, stage: Stage, libraries: Libraries) -> Rung:
    path = f"smoke.devices[{index}]"
    at = [(number, step) for number, step in enumerate(device.steps) if step.stage == stage.id]
    rung = replace(
        bare(device, stage),
        seconds=sum(step.seconds for _, step in at),
        deadline=max((step.deadline for _, step in at), default=0.0),
        reads=(path, "libraries.targets"),
    )
    if device.refused:
        return replace(rung, fault=Missing(Reason.NOT_COLLECTED, device.refused, path))
    if isinstance(libraries.targets, Missing):
        return replace(rung, fault=libraries.targets)
    wanted = ("torch", "torch_npu") if device.kind == "npu" else ("torch",)
    seen = [
        (n, target)
        for n, target in enumerate(libraries.targets)
        if not isinstance(target, Missing) and target.name in wanted
    ]
    if not seen:
        return replace(
            rung, fault=Missing(Reason.UNSUPPORTED, "no library of torch where this interpreter looks", path)
        )
    unknown = next((target.first_error for _, target in seen if isinstance(target.first_error, Missing)), None)
    if isinstance(unknown, Missing):
        return replace(rung, fault=unknown)
    broken = next(((n, target) for n, target in seen if target.first_error or target.dies), None)
    if broken is None:
        return replace(rung, reads=(path, *(f"libraries.targets[{n}]" for n, _ in seen)))
    number, target = broken
    return replace(
        rung,
        fault="libraries.will-not-load",
        step=target.name,
        severity="error",
        found=dict.fromkeys(("en", "zh"), target.first_error),
        reads=(f"libraries.targets[{number}]", path),
    )


def _line_of(target: Target) -> Texts:
    """What the loader would print, or which file would kill the process."""
    if target.first_error:
        return dict.fromkeys(("en", "zh"), target.first_error)
    fault = next((f for f in target.faults if f.fatal), None)
    path = fault.path or fault.library if fault else target.path
    return {"en": f"the process dies while it loads {path}", "zh": f"加载 {path} 时进程会崩溃"}
