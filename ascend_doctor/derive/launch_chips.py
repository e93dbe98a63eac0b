"""The program of a launch against the chips here, and the way in which it will bind its workers."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ascend_doctor.derive import rows
from ascend_doctor.derive.launch import flags_of
from ascend_doctor.derive.parts import chip_families, chip_part
from ascend_doctor.facts.binding_tools import BindingTools
from ascend_doctor.facts.command_line import VLLM
from ascend_doctor.facts.launch import Launch
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.shell import open_to_the_shell
from ascend_doctor.facts.vllm_build import VllmBuild
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.chips import Chips
from ascend_doctor.knowledge.programs import Programs
from ascend_doctor.records import dataclass

BINDING = "enable_cpu_binding"


@dataclass(frozen=True)
class Supported:
    """``refused``: the program does not run on a chip that is here."""

    program: str
    chips: str | Missing
    refused: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Built:
    """``target``: what vllm_ascend was compiled for; ``other``: none of the chips here is of that family."""

    target: str
    chips: str | Missing
    other: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Binding:
    """One row where the command asks for CPU binding."""

    migratepages: bool | Missing
    reads: tuple[str, ...]


@rows("launch_chips.supported")
def supported(launch: Launch, npu: Npu, pci: Pci, chips: Chips, programs: Programs) -> tuple[Supported, ...] | Missing:
    """One row for a program of which the rules know chips that it does not run on."""
    if isinstance(launch.program, Missing):
        return launch.program
    own = programs.named(launch.program)
    if own is None or not own.without:
        return ()
    here = chip_families(npu, pci, chips)
    refused = here if isinstance(here, Missing) else any(family.family in own.without for family in here)
    return (Supported(own.name, chip_part(npu, pci, chips).version, refused, ("launch.program", "npu.chips")),)


@rows("launch_chips.built")
def built(
    launch: Launch, vllm_build: VllmBuild, npu: Npu, pci: Pci, chips: Chips, programs: Programs
) -> tuple[Built, ...] | Missing:
    """One row where vllm is started and the installed vllm_ascend tells what it was compiled for."""
    if isinstance(launch.program, Missing):
        return launch.program
    target = vllm_build.target
    if launch.program != VLLM or (isinstance(target, Missing) and target.reason in (Reason.ABSENT, Reason.UNSUPPORTED)):
        return ()
    if isinstance(target, Missing):
        return target
    own, here = programs.named(VLLM), chip_families(npu, pci, chips)
    wanted = own.built_for.get(target) if own else None
    if wanted is None:
        named = chips.named(f"Ascend{target[6:].upper()}" if target.lower().startswith("ascend") else target)
        wanted = named.family if named else None
    other: bool | Missing
    if wanted is None:
        other = Missing(Reason.FAILED, f"{target} is no chip that the rules know", "vllm_build.target")
    else:
        other = here if isinstance(here, Missing) else wanted not in {family.family for family in here}
    return (Built(target, chip_part(npu, pci, chips).version, other, ("vllm_build.target", "npu.chips")),)


@rows("launch_chips.binding")
def binding(launch: Launch, binding_tools: BindingTools) -> tuple[Binding, ...] | Missing:
    """One row where --additional-config switches vllm-ascend's CPU binding on."""
    if isinstance(launch.program, Missing):
        return launch.program
    flags = flags_of(launch)
    if launch.program != VLLM or isinstance(flags, Missing):
        return flags if isinstance(flags, Missing) else ()
    text = flags.get("additional-config", "")
    if open_to_the_shell(text) or not _binds(text):
        return ()
    return (Binding(binding_tools.migratepages, ("launch.flags", "binding_tools.migratepages")),)


def _binds(text: str) -> bool:
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(words, Mapping) and words.get(BINDING) is True
