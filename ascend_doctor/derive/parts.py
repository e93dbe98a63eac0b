"""The parts of a deployment that have to fit together, each with its version and where that was read."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ascend_doctor.facts.cann import Cann
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.chips import Chips, Family
from ascend_doctor.records import dataclass
from ascend_doctor.versions import compare

FAMILIES = {"cann": "cann", "nnal": "cann", "driver": "driver", "firmware": "firmware", "mindie": "mindie"}
"""Part -> family of versions.compare; every other part is numbered as Python packages are."""

COMMON = "python"
SOURCE_BUILD = re.compile(r"\.dev\d+\+|^0\.1\.dev|\+g[0-9a-f]{6,}")


@dataclass(frozen=True)
class Part:
    """``version`` may be Missing, with the path of its fact; ``path`` is that path."""

    name: str
    version: str | Missing
    where: str
    path: str

    def __str__(self) -> str:
        version = f"({self.version.reason.value})" if isinstance(self.version, Missing) else self.version
        return f"{self.name} {version} ({self.where})" if self.where else f"{self.name} {version}"


def package(python: TargetPython, name: str) -> Part | None:
    """A Python package; None where it is not installed. The packages have to be known."""
    assert not isinstance(python.packages, Missing)
    path = keyed("python.packages", name)
    found = python.packages.get(name)
    if found is None:
        return None
    if isinstance(found, Missing):
        return Part(name, found, "", path)
    return Part(name, found.version, found.folder, f"{path}.version")


def interpreter(python: TargetPython) -> Part:
    where = python.executable if isinstance(python.executable, str) else ""
    return Part("python", python.version, where, "python.version")


def executable(python: TargetPython) -> str:
    """The interpreter as it is typed."""
    return python.executable if isinstance(python.executable, str) else "python3"


def cann_in_use(cann: Cann) -> Part | Missing:
    """The root that the environment or the links select, or the only version; absent where they select none."""
    if isinstance(cann.roots, Missing):
        return cann.roots
    unknown: Missing | None = None
    only_one = len({str(root.version) for root in cann.roots}) == 1
    for number, root in enumerate(cann.roots):
        if root.selected is True or only_one:
            return Part("cann", root.version, root.path, f"cann.roots[{number}].version")
        if isinstance(root.selected, Missing):
            unknown = unknown or root.selected
    return unknown or Missing(Reason.ABSENT, "no CANN is selected", "cann.roots")


def chip_families(npu: Npu, pci: Pci, chips: Chips) -> tuple[Family, ...] | Missing:
    """The families of the chips here, each once; a name that two generations share is told by the PCI bus."""
    if isinstance(npu.chips, Missing):
        return npu.chips
    found: dict[str, Family] = {}
    for number, chip in enumerate(npu.chips):
        if isinstance(chip.name, Missing):
            return chip.name
        family = chips.named(chip.name) or _on_bus(pci, chips)
        if isinstance(family, Missing):
            return family
        if family is None:
            why = f"{chip.name} is no chip that the rules know"
            return Missing(Reason.FAILED, why, f"npu.chips[{number}].name")
        found[family.family] = family
    return tuple(found.values())


def _on_bus(pci: Pci, chips: Chips) -> Family | Missing | None:
    if isinstance(pci.npus, Missing):
        return None if pci.npus.reason is Reason.ABSENT else pci.npus
    ids = {function.device_id for function in pci.npus.values()}
    return chips.on_bus(ids.pop()) if len(ids) == 1 else None


def chip_part(npu: Npu, pci: Pci, chips: Chips) -> Part:
    """The chips as one part: their names, found by npu-smi."""
    names: list[str] = []
    if not isinstance(npu.chips, Missing):
        names = [chip.name for chip in npu.chips if isinstance(chip.name, str)]
    families = chip_families(npu, pci, chips)
    version: str | Missing = families if isinstance(families, Missing) else ", ".join(dict.fromkeys(names))
    return Part("chip", version, "npu-smi info", "npu.chips")


def is_source_build(version: str) -> bool:
    """Whether its number comes from the nearest git tag: ``.devN+gHASH``."""
    return bool(SOURCE_BUILD.search(version))


def ordered(part: str, left: str, right: str) -> int | None:
    """-1, 0, 1 or None, as versions.compare, in the family of the part."""
    return compare(FAMILIES.get(part, COMMON), left, right)


def release(version: str) -> tuple[int, ...]:
    """2.7.1 of ``2.7.1.post2+cpu``; with the zeros that are left out: 0.23 is 0.23.0; () for no version."""
    found = re.match(r"v?(\d{1,6}(?:\.\d{1,6}){0,5})", version)
    if not found:
        return ()
    numbers = tuple(map(int, found[1].split(".")))
    return numbers + (0,) * (3 - len(numbers))


_CONDITION = re.compile(r"\s*(>=|<=|==|!=|<|>|~=)\s*([^\s,]+)\s*")


def meets(part: str, specifier: str, version: str) -> bool | None:
    """Whether a version is in ``>=3.9,<3.12``; None where the two cannot be compared."""
    answers: list[bool | None] = []
    for condition in filter(str.strip, specifier.split(",")):
        found = _CONDITION.fullmatch(condition)
        order = ordered(part, version, found[2]) if found else None
        if found is None or order is None:
            answers.append(None)
            continue
        wanted: Mapping[str, bool] = {
            ">=": order >= 0, "<=": order <= 0, "==": order == 0, "!=": order != 0, "<": order < 0, ">": order > 0,
            "~=": order >= 0 and release(version)[:-1] == release(found[2])[:-1],
        }  # fmt: skip
        answers.append(wanted[found[1]])
    return False if False in answers else None if None in answers else True
