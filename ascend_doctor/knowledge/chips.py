"""Families of chips, by the names that npu-smi prints and by PCI ids: rules/hardware/chips.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ascend_doctor.knowledge.rule_file import RuleFile, text, texts
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Family:
    """``kernels``: folders of operators that serve it; ``package``: how the vendor names it in file names."""

    family: str
    kernels: tuple[str, ...]
    package: str
    names: tuple[str, ...]
    starts: tuple[str, ...]
    pci: str
    lacks: tuple[str, ...] = ()
    """Types of numbers that it does not compute with."""

    def is_named(self, name: str) -> bool:
        plain = name[len("Ascend") :] if name.startswith("Ascend") else name
        return name in self.names or (bool(self.starts) and plain.startswith(self.starts))


@dataclass(frozen=True)
class Chips:
    families: tuple[Family, ...]

    def named(self, name: str) -> Family | None:
        return next((family for family in self.families if family.is_named(name)), None)

    def on_bus(self, device_id: str) -> Family | None:
        return next((family for family in self.families if family.pci == device_id), None)

    def of(self, family: str) -> Family:
        return next(entry for entry in self.families if entry.family == family)


def load(folders: Sequence[Path]) -> Chips:
    """All folders together, later ones first. Raises RuleError, naming file and entry."""
    found: list[Family] = []
    for folder in folders:
        path = folder / "hardware" / "chips.yaml"
        if not path.is_file():
            continue
        rules = RuleFile(path)
        own = []
        for entry, where in rules.entries("families"):
            rules.named(entry, where)
            kernels, names, starts = (texts(entry, key, where) for key in ("kernels", "names", "starts"))
            family, package, pci = (text(entry, key, where) for key in ("family", "package", "pci"))
            lacks = texts(entry, "lacks", where)
            own.append(Family(family, kernels, package, names, starts, pci, lacks))
        found = own + found
    return Chips(tuple(found))
