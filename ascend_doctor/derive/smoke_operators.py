"""The operators that were probed, each as one row for each device: the worst of its types and sizes decides."""

from __future__ import annotations

from dataclasses import replace

from ascend_doctor.derive import rows
from ascend_doctor.derive.smoke import WITH_LOGS, with_cause
from ascend_doctor.derive.smoke_gates import NOT_JUDGED, Failure, gravest, worst
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.smoke import DeviceRun, Smoke, Step
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.log_book import LogBook
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.remedies import RemedyStep, Texts
from ascend_doctor.knowledge.smoke_gates import SmokeGates
from ascend_doctor.records import dataclass

STAGE = "operators"
GIB = 1 << 30
OF_OLD_LINKS, OF_LINKS = 8 / 10, 128 / 130
"""What of the bits is data, up to 5 GT/s and above (PCI Express Base Specification: 8b/10b, 128b/130b)."""


@dataclass(frozen=True)
class Operator:
    """``fault``: the id of what is wrong, "" where nothing is, Missing where nothing can be said; ``step`` decides.

    ``probes``: how many were run of it. Fused operators that are not to be had here are one row, named in ``step``.
    """

    device: str
    operator: str
    fault: str | Missing
    step: str
    severity: str
    found: Texts
    expected: Texts
    why: Texts
    remedy: tuple[RemedyStep, ...]
    sources: tuple[Source, ...]
    probes: int
    reads: tuple[str, ...]


@rows("smoke_operators.rows")
def operators(smoke: Smoke, pci: Pci, smoke_gates: SmokeGates, log_book: LogBook) -> tuple[Operator, ...] | Missing:
    """One row for each operator of each device, in the order in which they were probed."""
    if isinstance(smoke.devices, Missing):
        return smoke.devices
    found: list[Operator] = []
    link = slowest_link_gib_s(pci)
    for index, device in enumerate(smoke.devices):
        if isinstance(smoke.plan, Missing) or STAGE in smoke.plan.stages:
            found += _of_device(device, f"smoke.{keyed('devices', index)}", link, smoke_gates, log_book)
    return tuple(found)


def slowest_link_gib_s(pci: Pci) -> float | None:
    """What the slowest link of an NPU carries; None where there is none on the bus, or one is not known."""
    if isinstance(pci.npus, Missing) or not pci.npus:
        return None
    carried = []
    for function in pci.npus.values():
        speed, width = function.current_speed_gts, function.current_width
        if isinstance(speed, Missing) or isinstance(width, Missing):
            return None
        carried.append(speed * width * (OF_OLD_LINKS if speed <= 5 else OF_LINKS) * 1e9 / 8 / GIB)
    return min(carried)


def _of_device(device: DeviceRun, path: str, link: float | None, gates: SmokeGates, logs: LogBook) -> list[Operator]:
    at = [(f"{path}.steps[{number}]", step) for number, step in enumerate(device.steps) if step.stage == STAGE]
    if device.refused:
        return [_bare(device, STAGE, Missing(Reason.NOT_COLLECTED, device.refused, path), (path,))]
    not_run = next((step.outcome for _, step in at if isinstance(step.outcome, Missing)), None)
    if not_run is not None:
        return [_bare(device, STAGE, not_run, (path,))]
    if not at:
        return [_bare(device, STAGE, Missing(Reason.UNSUPPORTED, "no operator was probed", path), (path,))]
    groups: dict[str, list[tuple[str, Step]]] = {}
    for place, step in at:
        name = str(step.outcome) if step.outcome in NOT_JUDGED and device.kind == "npu" else step.step.partition(".")[0]
        groups.setdefault(name, []).append((place, _with_share(step, link)))
    return [_row(device, name, group, gates, logs) for name, group in groups.items()]


def _with_share(step: Step, link: float | None) -> Step:
    """A copy knows what share of the link it reached."""
    reached = step.measures.get("to_device_gib_s")
    if link is None or not isinstance(reached, (int, float)):
        return step
    return replace(step, measures={**step.measures, "link_gib_s": link, "link_share": reached / link})


def _row(device: DeviceRun, name: str, group: list[tuple[str, Step]], gates: SmokeGates, logs: LogBook) -> Operator:
    row = replace(_bare(device, name, "", tuple(place for place, _ in group)), probes=len(group))
    if name in NOT_JUDGED:
        group = [(group[0][0], replace(group[0][1], step=", ".join(dict.fromkeys(_operator(s) for _, s in group))))]
    found = [(place, step, failure) for place, step in group if (failure := worst(step, gates, device))]
    if not found:
        return row
    grave = gravest([failure for _, _, failure in found])
    place, step, failure = next(one for one in found if one[2] is grave)
    if step.outcome in WITH_LOGS:
        failure = with_cause(failure, step, logs)
    return replace(
        row,
        fault=failure.id,
        step=step.step,
        severity=failure.severity,
        found=_with_others(failure, step, [other.step for _, other, _ in found if other is not step]),
        expected=failure.expected,
        why=failure.why,
        remedy=failure.remedy,
        sources=failure.sources,
        reads=(place, *row.reads),
    )


def _operator(step: Step) -> str:
    return step.step.partition(".")[0]


def _with_others(failure: Failure, step: Step, others: list[str]) -> Texts:
    """The words of the gravest, and the names of the others of the same operator that are wrong too."""
    if not others:
        return failure.found
    return {language: f"{text} (+ {', '.join(others)})" for language, text in failure.found.items()}


def _bare(device: DeviceRun, name: str, fault: str | Missing, reads: tuple[str, ...]) -> Operator:
    return Operator(device.device, name, fault, "", "info", {}, {}, {}, (), (), 0, reads)
