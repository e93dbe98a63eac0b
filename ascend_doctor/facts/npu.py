"""The NPUs as ``npu-smi info`` shows them, or how it fails; the fault codes of those that are not OK.

Sources: https://github.com/hicann/driver (npu-smi is in it); tests/captures/npu-smi. npu-smi answers on either stream
with any exit code, so its text decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ascend_doctor.facts.npu_failure import Failure, failure, failure_without_text
from ascend_doctor.facts.npu_health import HealthReport, HealthText, health_text
from ascend_doctor.facts.npu_table import Chip, Process, Table, table
from ascend_doctor.host import (
    TEXT_LIMIT,
    Answer,
    Area,
    Collected,
    Host,
    Missing,
    Output,
    Parsed,
    Reason,
    Shown,
    decoded,
    parsed,
)
from ascend_doctor.records import dataclass

COMMAND = ("npu-smi", "info")
HEALTHY = "OK"


@dataclass(frozen=True)
class Npu:
    """``status``: ok, or error where npu-smi gave no table; then ``error`` says how and the table's parts are Missing.

    ``health_reports``: one for each chip whose health is not OK.
    """

    status: str | Missing
    tool_version: str | Missing
    driver_version: str | Missing
    chips: tuple[Chip, ...] | Missing
    process_table_present: bool | Missing
    processes: tuple[Process, ...] | Missing
    idle_npus: tuple[int, ...] | Missing
    error: Failure | Missing
    health_reports: tuple[HealthReport, ...] | Missing


def npu_smi_info(data: bytes) -> Shown[Npu]:
    """Reads what ``npu-smi info`` printed, or a text in which that was pasted."""
    text = decoded(data)
    found = table(text)
    if found and found.chips:
        return Shown(_seen(found), _texts(found))
    shown = text.strip()[:TEXT_LIMIT] or "npu-smi printed nothing"
    said = failure(text)
    return Shown(_failed(said, Missing(Reason.FAILED, f"npu-smi: {said.kind}"), found), {"": shown})


def collect(host: Host) -> Collected[Npu]:
    """Starts ``npu-smi info``, and once more for each chip that is not OK."""
    area = Area("npu")
    answer = host.run(COMMAND)
    npu = area.take("", _asked(answer))
    if isinstance(npu, Missing):
        return area.of(Npu(npu, npu, npu, npu, npu, npu, npu, npu, npu))
    if isinstance(npu.chips, Missing):
        return area.of(npu)
    unwell = [chip for chip in npu.chips if isinstance(chip.health, str) and chip.health != HEALTHY]
    reports = tuple(_report(host, area, chip, f"health_reports[{n}]") for n, chip in enumerate(unwell))
    area.provenance.setdefault("npu.health_reports", (answer.source, _health_of(npu.chips)))
    return area.of(replace(npu, health_reports=reports))


def _asked(answer: Answer[Output]) -> Parsed[Npu]:
    if isinstance(answer.value, Missing):
        why = answer.value
        said = failure_without_text(why.reason)
        if said is None:
            return parsed(answer, lambda output: why)
        reason = Reason.FAILED if why.reason is Reason.ABSENT else why.reason
        npu = _failed(said, Missing(reason, f"npu-smi: {said.kind}"), None)
        return Parsed(npu, answer.source, {"": f"{why.reason.value}: {why.detail}".rstrip(": ")})
    return parsed(answer, lambda output: npu_smi_info(output.stdout + b"\n" + output.stderr))


def _report(host: Host, area: Area, chip: Chip, path: str) -> HealthReport:
    """The 950's npu-smi refuses ``-c``: it has no chip below the NPU."""
    argv = [*COMMAND, "-t", "health", "-i", str(chip.npu_id)]
    if isinstance(chip.chip_id, int):
        argv += ["-c", str(chip.chip_id)]
    answer: Parsed[HealthText] = parsed(host.run(argv), health_text)
    said = area.take(path, answer)
    if isinstance(said, Missing):
        return HealthReport(chip.npu_id, chip.chip_id, said, said, said)
    return HealthReport(chip.npu_id, chip.chip_id, said.status, said.codes, said.information)


def _seen(found: Table) -> Npu:
    return Npu(
        status="ok",
        tool_version=found.tool_version,
        driver_version=found.driver_version,
        chips=tuple(found.chips),
        process_table_present=found.process_table_present,
        processes=tuple(found.processes),
        idle_npus=tuple(found.idle_npus),
        error=Missing(Reason.ABSENT, "npu-smi printed its table"),
        health_reports=Missing(Reason.NOT_COLLECTED, "a text alone cannot be asked for details"),
    )


def _failed(said: Failure, why: Missing, found: Table | None) -> Npu:
    return Npu(
        status="error",
        tool_version=found.tool_version if found else why,
        driver_version=found.driver_version if found else why,
        chips=why,
        process_table_present=False,
        processes=why,
        idle_npus=why,
        error=said,
        health_reports=why,
    )


def _texts(found: Table) -> Mapping[str, str]:
    """The lines that show each part; a part without its own is shown by the table as a whole."""
    count = len(found.chips)
    whole = f"{count} chip{'s' * (count != 1)}: {_health_of(found.chips)}"
    processes = f"{len(found.processes)} rows" if found.process_table_present else "no process table"
    return {"": whole, "chips": whole, "processes": processes, **found.texts}


def _health_of(chips: Sequence[Chip]) -> str:
    """``NPU 0 OK, NPU 1 chip 0 Alarm``."""
    words = [
        f"NPU {chip.npu_id}{f' chip {chip.chip_id}' if isinstance(chip.chip_id, int) else ''} "
        f"{chip.health if isinstance(chip.health, str) else f'({chip.health.detail})'}"
        for chip in chips
    ]
    text = ", ".join(words)
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"
