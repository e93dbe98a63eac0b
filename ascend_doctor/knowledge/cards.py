"""The memory of a device by the name of its chip: rules/hardware/cards.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError, Source
from ascend_doctor.knowledge.rule_file import RuleFile, text
from ascend_doctor.records import dataclass

UNITS = {"GB": 10**9, "GIB": 1 << 30, "G": 1 << 30, "MIB": 1 << 20, "MB": 1 << 20, "M": 1 << 20}
"""npu-smi writes MB and means MiB; a card's size in GB is what is sold."""


@dataclass(frozen=True)
class Card:
    name: str
    bytes: int
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Cards:
    cards: Mapping[str, Card] = field(default_factory=dict)

    def named(self, name: str) -> Card | None:
        """``910B3``, ``Ascend910B3``, or a size such as ``64GB`` (10^9) and ``64GiB``."""
        plain = name.strip()
        size = re.fullmatch(r"(\d{1,5}(?:\.\d{1,3})?)\s*([A-Za-z]{1,3})", plain, re.ASCII)
        if size and size[2].upper() in UNITS:
            return Card(plain, int(float(size[1]) * UNITS[size[2].upper()]))
        short = plain[len("Ascend") :] if plain.lower().startswith("ascend") else plain
        return self.cards.get(short.upper())


def load(folders: Sequence[Path]) -> Cards:
    """Later folders win, card by card. Raises RuleError, naming file and entry."""
    found: dict[str, Card] = {}
    for folder in folders:
        path = folder / "hardware" / "cards.yaml"
        if not path.is_file():
            continue
        rules = RuleFile(path)
        for entry, where in rules.entries("cards"):
            name, mib, gb = text(entry, "name", where), entry.get("mib", 0), entry.get("gb", 0)
            if not isinstance(mib, int) or not isinstance(gb, int) or bool(mib) == bool(gb):
                raise RuleError(f"{where}: give mib or gb, as a whole number")
            found[name.upper()] = Card(name, mib << 20 if mib else gb * 10**9, rules.named(entry, where))
    return Cards(found)
