"""A call of ATC: its options against each other and against the chips here.

Source: https://www.hiascend.com/document/detail/zh/canncommercial/850/devaids/atctool/atlasatc_16_0001.html
"""

from __future__ import annotations

import re

from ascend_doctor.derive import rows
from ascend_doctor.derive.launch import flags_of
from ascend_doctor.derive.parts import chip_families, chip_part
from ascend_doctor.facts.atc import Atc
from ascend_doctor.facts.command_line import ATC
from ascend_doctor.facts.launch import Launch
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.shell import open_to_the_shell
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.chips import Chips
from ascend_doctor.records import dataclass

_SHAPE = re.compile(r"[^:;,][^;]{0,400}:(?:-?\d{1,9}(?:~-?\d{1,9})?(?:,-?\d{1,9}(?:~-?\d{1,9})?){0,31})?", re.ASCII)
DYNAMIC = ("dynamic-batch-size", "dynamic-image-size", "dynamic-dims")
FILLED = Missing(Reason.NOT_COLLECTED, "a shell fills it in", "launch.flags")
COMPILES = ("", "0", "3")
"""Values of --mode with which a model is compiled."""


@dataclass(frozen=True)
class Target:
    """What atc is to compile for, against the chips here; ``other``: no chip here is of that family."""

    soc: str
    chips: str | Missing
    other: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """Options as they are written, "" where one is not. ``wrong_shape``: the part of --input_shape that is no shape.

    ``suffix``: of the model's file. ``lacks_bfloat16``: the chip that is compiled for does not compute with it.
    """

    framework: str | Missing
    compiles: bool
    model: str | Missing
    suffix: str | Missing
    there: bool | Missing
    weight: str | Missing
    soc: str | Missing
    precision: str | Missing
    precision_v2: str | Missing
    wrong_shape: str | Missing
    dynamic: str
    open_dimension: bool
    lacks_bfloat16: bool | Missing
    reads: tuple[str, ...]


@rows("atc.target")
def target(launch: Launch, npu: Npu, pci: Pci, chips: Chips) -> tuple[Target, ...] | Missing:
    """One row for atc."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program != ATC or isinstance(launch.soc_version, Missing):
        return ()
    wanted, here = chips.named(launch.soc_version), chip_families(npu, pci, chips)
    reads = ("launch.soc_version", "npu.chips")
    other: bool | Missing
    if isinstance(here, Missing):
        return (Target(launch.soc_version, here, here, reads),)
    if wanted is None:
        other = Missing(Reason.FAILED, f"{launch.soc_version} is no chip that the rules know", "launch.soc_version")
    else:
        other = wanted.family not in {family.family for family in here}
    return (Target(launch.soc_version, chip_part(npu, pci, chips).version, other, reads),)


@rows("atc.call")
def call(launch: Launch, atc: Atc, chips: Chips) -> tuple[Call, ...] | Missing:
    """One row for atc."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program != ATC:
        return ()
    written = flags_of(launch)
    if isinstance(written, Missing):
        return written

    def option(name: str) -> str | Missing:
        value = written.get(name, "")
        return FILLED if open_to_the_shell(value) else value

    model, shape, soc = option("model"), option("input-shape"), option("soc-version")
    family = chips.named(soc) if isinstance(soc, str) and soc else None
    unknown = Missing(Reason.FAILED, f"{soc} is no chip that the rules know", "launch.soc_version")
    return (
        Call(
            framework=option("framework"),
            compiles=written.get("mode", "") in COMPILES and "singleop" not in written and "help" not in written,
            model=model,
            suffix=model if isinstance(model, Missing) else _suffix(model),
            there=atc.there,
            weight=option("weight"),
            soc=soc,
            precision=option("precision-mode"),
            precision_v2=option("precision-mode-v2"),
            wrong_shape=shape if isinstance(shape, Missing) else _wrong_shape(shape),
            dynamic=", ".join(f"--{name.replace('-', '_')}" for name in DYNAMIC if written.get(name)),
            open_dimension=isinstance(shape, Missing) or not shape or "-1" in shape,
            lacks_bfloat16="bfloat16" in family.lacks if family else unknown,
            reads=("launch.flags", "launch.soc_version"),
        ),
    )


def _suffix(model: str) -> str:
    name = model.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


def _wrong_shape(text: str) -> str:
    """``name:1,3,224,224;other:-1,8``: the first part that is not of this form."""
    parts = [part.strip() for part in text.replace(" ", "").strip(";").split(";")] if text else []
    return next((part or ";" for part in parts if not _SHAPE.fullmatch(part)), "")
