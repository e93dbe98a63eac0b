"""What lines of the kernel log mean: rules/signatures/kernel.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, Source, load_yaml, source_of
from ascend_doctor.records import dataclass

EVENTS = ("heartbeat-lost", "bus-fatal", "bus-uncorrected", "bus-corrected", "killed-for-memory")
LONGEST = 400


@dataclass(frozen=True)
class Signature:
    """Lines with this pattern tell of the event; groups are device, address, pid, process or cgroup."""

    event: str
    pattern: re.Pattern[str]
    source: Source


@dataclass(frozen=True)
class KernelSignatures:
    signatures: tuple[Signature, ...]

    def found(self, text: str, events: Sequence[str] = EVENTS) -> tuple[str, Mapping[str, str]] | None:
        """The first event among those asked for, and the parts that its pattern names."""
        for signature in self.signatures:
            if signature.event in events and (match := signature.pattern.search(text)):
                return signature.event, {name: value for name, value in match.groupdict().items() if value}
        return None


def load(folders: Sequence[Path]) -> KernelSignatures:
    """All folders together. Raises RuleError, naming file and entry."""
    found: list[Signature] = []
    for folder in folders:
        path = folder / "signatures" / "kernel.yaml"
        if not path.is_file():
            continue
        for number, entry in enumerate(load_yaml(path) or (), 1):
            found.append(_signature(entry, f"{path}: entry {number}"))
    return KernelSignatures(tuple(found))


def _signature(entry: Any, where: str) -> Signature:
    if not isinstance(entry, Mapping) or entry.get("event") not in EVENTS:
        raise RuleError(f"{where}: event is one of {', '.join(EVENTS)}")
    pattern = entry.get("pattern")
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST:
        raise RuleError(f"{where}: pattern is a regular expression of at most {LONGEST} characters")
    try:
        return Signature(entry["event"], re.compile(pattern, re.ASCII), source_of(entry, where))
    except re.error as error:
        raise RuleError(f"{where}: pattern: {error}") from None
