"""What lines of the kernel log mean to preflight: those of rules/signatures/kernel.yaml that name an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.knowledge.signatures import FOLDER, Signatures, read
from ascend_doctor.records import dataclass

EVENTS = ("heartbeat-lost", "bus-fatal", "bus-uncorrected", "bus-corrected", "killed-for-memory")
FILE = "kernel.yaml"


@dataclass(frozen=True)
class KernelSignatures:
    """Groups of their patterns are device, address, pid, process or cgroup."""

    signatures: Signatures

    def found(self, text: str, events: Sequence[str] = EVENTS) -> tuple[str, Mapping[str, str]] | None:
        """The first event among those asked for, and the parts that its pattern names."""
        for signature, match in self.signatures.matching(text, "kernel"):
            if signature.event in events:
                return signature.event, {name: value for name, value in match.groupdict().items() if value}
        return None


def load(folders: Sequence[Path]) -> KernelSignatures:
    """All folders together. Raises RuleError, naming file and entry."""
    paths = [folder / FOLDER / FILE for folder in folders]
    told = [one for path in paths if path.is_file() for one in read(path) if one.event]
    for one in told:
        if one.event not in EVENTS:
            raise RuleError(f"{one.where}: event is one of {', '.join(EVENTS)}")
        one.checked()
    return KernelSignatures(Signatures(tuple(told), {one.id: one for one in told}, tuple(folders)))
