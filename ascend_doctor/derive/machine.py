"""What a machine looks like, for the pictures of a report: its NPUs, NUMA nodes, links and versions as plain rows.

Made from what a run has collected anyway; nothing is asked for a picture. None stands for what is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ascend_doctor.derive.machine_versions import versions
from ascend_doctor.derive.memory import total_of
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.npu_holders import NpuHolders
from ascend_doctor.facts.npu_table import Chip, Process
from ascend_doctor.facts.numa import Numa
from ascend_doctor.facts.topo import Topo
from ascend_doctor.host import Missing, Reason

FABRIC = ("HCCS", "HCCS_SW", "SIO", "UB")
"""Words of npu-smi's topology for links from chip to chip that leave the host's own buses out."""

MOST_HOLDERS = 8


class Seen(Protocol):
    """What a run has collected, and no more."""

    def facts(self, area: str) -> object:
        """Missing for an area that was not collected."""

    def known_rows(self, name: str) -> object:
        """Missing where a part of what the rows need was not collected."""


def machine(seen: Seen) -> dict[str, Any] | None:
    """``npus``, ``nodes``, ``fabric`` and ``versions``: each only where something of it is known."""
    npu, numa, topo = seen.facts("npu"), seen.facts("numa"), seen.facts("topo")
    found: dict[str, Any] = {}
    if isinstance(npu, Npu) and not isinstance(npu.chips, Missing):
        found["npus"] = list(_npus(npu, seen))
    if isinstance(numa, Numa) and not isinstance(numa.nodes, Missing):
        found["nodes"] = [
            {
                "node": node.node,
                "socket": known(node.socket),
                "cpus": known(node.cpus),
                "total_mib": known(node.total_mib),
                "free_mib": known(node.free_mib),
                "file_cache_mib": known(node.file_cache_mib),
            }
            for node in numa.nodes.values()
        ]
    if isinstance(topo, Topo) and not isinstance(topo.rows, Missing):
        found["fabric"] = fabric([(row.number, row.links) for row in topo.rows])
    parts = versions(seen)
    if parts:
        found["versions"] = parts
    return found or None


def known(value: object) -> Any:
    """None for a Missing."""
    return None if isinstance(value, Missing) else value


def _npus(npu: Npu, seen: Seen) -> Iterator[dict[str, Any]]:
    assert not isinstance(npu.chips, Missing)
    links = seen.known_rows("pci.links")
    asked = not isinstance(links, Missing) or links.reason is not Reason.NOT_COLLECTED
    by_address = {} if isinstance(links, Missing) else {link.address: link for link in links}  # type: ignore[attr-defined]
    affinity = seen.known_rows("numa.affinity")
    near = {} if isinstance(affinity, Missing) else {card.npu: card for card in affinity}  # type: ignore[attr-defined]
    holders = seen.facts("npu_holders")
    for index, chip in enumerate(npu.chips):
        if isinstance(chip, Missing):
            continue
        bus = chip.bus_id.lower() if isinstance(chip.bus_id, str) else None
        link = by_address.get(bus or "")
        total = total_of(chip, index)
        used = getattr(chip, total.path.rpartition(".")[2].replace("total", "used"))
        yield {
            "npu": chip.npu_id,
            "chip": known(chip.chip_id),
            "name": known(chip.name),
            "health": known(chip.health),
            "celsius": known(chip.temp_c),
            "memory": "HBM" if total.path.endswith("hbm_total_mb") else "DDR",
            "used_mib": known(used),
            "total_mib": known(total.mib),
            "bus": bus,
            "link": _link(link) if asked and bus else None,
            "nodes": list(near[chip.npu_id].numbers)
            if chip.npu_id in near and not isinstance(near[chip.npu_id].numbers, Missing)
            else None,
            "holders": _holders(npu, chip, holders),
        }


def _link(link: Any) -> dict[str, Any]:
    """All unknown where the bus could not be seen, or does not show this chip."""
    return {
        "width": known(getattr(link, "current_width", None)),
        "possible_width": known(getattr(link, "possible_width", None)),
        "speed_gts": known(getattr(link, "current_speed_gts", None)),
        "possible_speed_gts": known(getattr(link, "possible_speed_gts", None)),
    }


def _holders(npu: Npu, chip: Chip, holders: object) -> list[dict[str, Any]] | None:
    """Processes on the chip, the largest first."""
    if isinstance(npu.processes, Missing) or npu.process_table_present is not True:
        return None
    own = [p for p in npu.processes if not isinstance(p, Missing) and _is_on(p, chip)]
    names = holders.processes if isinstance(holders, NpuHolders) and not isinstance(holders.processes, Missing) else {}
    rows = []
    for process in own:
        there = names.get(process.pid)
        program = known(there.program) if there else None
        rows.append({"pid": process.pid, "program": process.name or program, "mib": known(process.memory_mb)})
    return sorted(rows, key=lambda row: -(row["mib"] or 0))[:MOST_HOLDERS]


def _is_on(process: Process, chip: Chip) -> bool:
    same = isinstance(process.chip_id, Missing) or process.chip_id == chip.chip_id
    return process.npu_id == chip.npu_id and same


def fabric(rows: Sequence[tuple[int, Sequence[str]]]) -> list[dict[str, Any]]:
    """Groups of NPUs that a link from chip to chip joins, by its word: ``{"word": "HCCS", "npus": [0, 1, 2]}``."""
    groups: dict[str, list[set[int]]] = {}
    numbers = [number for number, _ in rows]
    for number, words in rows:
        for other, word in zip(numbers, words):
            if word in FABRIC and other != number:
                _join(groups.setdefault(word, []), number, other)
    found: list[Mapping[str, Any]] = [
        {"word": word, "npus": sorted(group)} for word, sets in groups.items() for group in sets
    ]
    return [dict(group) for group in sorted(found, key=lambda group: (group["word"], group["npus"]))]


def _join(groups: list[set[int]], one: int, other: int) -> None:
    touched = [group for group in groups if one in group or other in group]
    groups[:] = [group for group in groups if group not in touched]
    groups.append({one, other}.union(*touched))
