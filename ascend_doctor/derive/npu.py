"""How each chip is, with the meaning of its fault codes, and whether npu-smi shows every chip that the host has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ascend_doctor.derive import rows
from ascend_doctor.facts.container import Container
from ascend_doctor.facts.devices import Devices
from ascend_doctor.facts.npu import HEALTHY, Npu
from ascend_doctor.facts.npu_table import Chip
from ascend_doctor.facts.pci import Pci
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.faults import Fault, Faults, HealthWord
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.remedies import RemedyStep, Texts
from ascend_doctor.records import dataclass

CARD_NODE = re.compile(r"/dev/davinci\d+", re.ASCII)
GUESTS = "vfio-pci"
"""The driver of functions that a host hands to virtual machines: npu-smi of the host does not show these."""

LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class ChipHealth:
    """``place`` is the NPU, and after a bar the chip of it where npu-smi numbers those; ``chip`` says it in words.

    ``severity``: none where the chip is OK; Missing where codes that were not seen might make it harmless.
    """

    place: str | Missing
    chip: str
    health: str | Missing
    severity: str | Missing
    code_count: int | Missing
    codes: dict[str, str] | Missing
    why: dict[str, str]
    remedy: tuple[RemedyStep, ...]
    sources: tuple[Source, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Count:
    """``lost``: PCI functions without a chip, none inside a container; ``addresses`` names them where that is known."""

    chips: int
    nodes: int | Missing
    inside: bool | Missing
    lost: int | Missing
    addresses: str
    reads: tuple[str, ...]


@rows("npu.chip_health")
def chip_health(npu: Npu, faults: Faults) -> tuple[ChipHealth, ...] | Missing:
    """One row for each chip; nothing is looked up for those that are OK."""
    if isinstance(npu.chips, Missing):
        return npu.chips
    return tuple(_health(chip, f"npu.chips[{n}].health", npu, faults) for n, chip in enumerate(npu.chips))


@rows("npu.counts")
def counts(npu: Npu, devices: Devices, pci: Pci, container: Container) -> tuple[Count, ...] | Missing:
    """One row: chips of npu-smi, cards' nodes in /dev, NPU functions of the PCI bus (two chips of a Duo share one).

    A container shows the whole host's PCI bus whatever cards it was given, so inside one only the nodes count.
    """
    if isinstance(npu.chips, Missing):
        return npu.chips
    nodes, reads = _nodes(devices), ("npu.chips", "devices.nodes", "container.inside")
    if isinstance(container.inside, Missing):
        return (Count(len(npu.chips), nodes, container.inside, container.inside, "", reads),)
    if container.inside:
        return (Count(len(npu.chips), nodes, True, 0, "", reads),)
    lost, addresses = _lost(npu.chips, _functions(pci))
    return (Count(len(npu.chips), nodes, False, lost, ", ".join(addresses), (*reads, "pci.npus")),)


def _health(chip: Chip, path: str, npu: Npu, faults: Faults) -> ChipHealth:
    place = _place(chip)
    name = chip.name if isinstance(chip.name, str) else ""
    words = f"NPU {chip.npu_id if isinstance(place, Missing) else place}" + (f" ({name})" if name else "")
    if isinstance(chip.health, Missing) or chip.health == HEALTHY:
        severity = chip.health if isinstance(chip.health, Missing) else "none"
        return ChipHealth(place, words, chip.health, severity, 0, {}, {}, (), (), (path,))
    codes, report = _codes(chip, npu)
    row = _unwell(chip, ChipHealth(place, words, chip.health, "", 0, {}, {}, (), (), (path, report)), codes, faults)
    if isinstance(chip.name, Missing):
        return replace(row, severity=chip.name)  # of some boards the code is known to be harmless
    harmless = faults.exempt(name, chip.health)
    if not harmless:
        return row
    if isinstance(codes, Missing):
        return replace(row, severity=codes)
    works = faults.harmless(name, chip.health, codes)
    return replace(row, severity="info", why=dict(works.why), remedy=(), sources=(works.source,)) if works else row


def _place(chip: Chip) -> str | Missing:
    if isinstance(chip.npu_id, Missing):
        return chip.npu_id
    if isinstance(chip.chip_id, Missing):
        return f"{chip.npu_id}" if chip.chip_id.reason is Reason.UNSUPPORTED else chip.chip_id
    return f"{chip.npu_id}/{chip.chip_id}"


def _unwell(chip: Chip, row: ChipHealth, codes: tuple[str, ...] | Missing, faults: Faults) -> ChipHealth:
    """What the rules say about a chip that is not OK: its severity is npu-smi's own, its codes give the remedy."""
    assert isinstance(chip.health, str)
    word = faults.health(chip.health)
    known = {} if isinstance(codes, Missing) else {code: faults.of(code) for code in codes}
    found = [fault for fault in known.values() if fault]
    advices = [fault.advice.advice for fault in found]
    if not advices and not isinstance(codes, Missing):
        advices = [faults.unlisted().advice]
    steps = [step for fault in found for step in fault.advice.remedy] or list(faults.unlisted().remedy)
    return replace(
        row,
        severity=word.severity,
        code_count=codes if isinstance(codes, Missing) else len(codes),
        codes=codes if isinstance(codes, Missing) else {language: _named(known, language) for language in LANGUAGES},
        why={language: _why(word, advices, language) for language in LANGUAGES},
        remedy=tuple(_for_chip(step, chip) for step in _unique(steps)),
        sources=tuple(dict.fromkeys((word.source, *(fault.source for fault in found)))),
    )


def _codes(chip: Chip, npu: Npu) -> tuple[tuple[str, ...] | Missing, str]:
    """The fault codes of a chip, and the path of the fact."""
    if isinstance(npu.health_reports, Missing):
        return npu.health_reports, "npu.health_reports"
    number = None if isinstance(chip.chip_id, Missing) else chip.chip_id
    for n, report in enumerate(npu.health_reports):
        other = None if isinstance(report.chip_id, Missing) else report.chip_id
        if (report.npu_id, other) == (chip.npu_id, number):
            return report.codes, f"npu.health_reports[{n}].codes"
    return Missing(Reason.NOT_COLLECTED, "this chip was not asked", "npu.health_reports"), "npu.health_reports"


def _named(known: Mapping[str, Fault | None], language: str) -> str:
    """``80E3A203 (LPM: chip current sensing fault)``, one after another."""
    words = []
    for code, fault in known.items():
        parts = [fault.module, fault.name.get(language, "")] if fault else []
        meaning = ": ".join(part for part in parts if part)
        words.append(f"{code} ({meaning})" if meaning else code)
    return ", ".join(words)


def _why(word: HealthWord, advices: Iterable[Texts], language: str) -> str:
    lines = [f"{word.meaning[language]}." if language == "en" else f"{word.meaning[language]}。"]
    lines += dict.fromkeys(advice[language] for advice in advices)
    text = (" " if language == "en" else "").join(lines)
    return text[:1].upper() + text[1:]


def _unique(steps: Iterable[RemedyStep]) -> list[RemedyStep]:
    found: list[RemedyStep] = []
    for step in steps:
        if step not in found:
            found.append(step)
    return found


def _for_chip(step: RemedyStep, chip: Chip) -> RemedyStep:
    if step.command is None:
        return step
    number = "" if isinstance(chip.chip_id, Missing) else f" -c {chip.chip_id}"
    return replace(step, command=step.command.replace("{npu}", str(chip.npu_id)).replace("{chip}", number))


def _nodes(devices: Devices) -> int | Missing:
    """How many cards have a device in /dev; a node that could not be looked at makes that unknown."""
    if isinstance(devices.nodes, Missing):
        return devices.nodes
    kinds = [node.type for path, node in devices.nodes.items() if CARD_NODE.fullmatch(path)]
    unseen = [kind for kind in kinds if isinstance(kind, Missing) and kind.reason is not Reason.ABSENT]
    return unseen[0] if unseen else kinds.count("char")


def _functions(pci: Pci) -> tuple[str, ...] | Missing:
    """Addresses of the NPU functions that this host keeps for itself."""
    if isinstance(pci.npus, Missing):
        return () if pci.npus.reason is Reason.ABSENT else pci.npus
    found = []
    for address, function in pci.npus.items():
        if isinstance(function.driver, Missing) and function.driver.reason is not Reason.ABSENT:
            return function.driver
        if function.driver != GUESTS:
            found.append(address)
    return tuple(found)


def _lost(chips: Sequence[Chip], functions: tuple[str, ...] | Missing) -> tuple[int | Missing, tuple[str, ...]]:
    """How many functions no chip stands for; which ones, where each chip's address is one of the bus."""
    if isinstance(functions, Missing):
        return functions, ()
    seen = {chip.bus_id.lower() if isinstance(chip.bus_id, str) else "" for chip in chips}
    if seen <= set(functions):
        left = tuple(address for address in functions if address not in seen)
        return len(left), left
    return max(0, len(functions) - len(chips)), ()
