"""Which NUMA node serves which NPU, and how much memory it should keep free for them.

The kernel's word on a PCI function comes first; ``npu-smi info -t topo`` is heard only where the kernel has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ascend_doctor.derive import rows
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.npu_table import Chip
from ascend_doctor.facts.numa import Numa, cpu_set
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.topo import Topo, TopoRow
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Affinity:
    """The nodes near one card, such as ``6`` or ``0, 1``; absent where neither the kernel nor npu-smi names one."""

    npu: int
    nodes: str | Missing
    numbers: tuple[int, ...] | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Need:
    """A node that serves NPUs; ``npus`` are its cards, ``reads`` the facts that this row was made from."""

    node: int
    npus: str
    cards: int
    cpus: str | Missing
    total_mib: int | Missing
    free_mib: int | Missing
    file_cache_mib: int | Missing
    need_mib: int | Missing
    reads: tuple[str, ...]


@rows("numa.affinity")
def affinity(npu: Npu, pci: Pci, topo: Topo, numa: Numa) -> tuple[Affinity, ...] | Missing:
    """One row for each card: the nodes of all its chips, Missing where one chip's is."""
    if isinstance(npu.chips, Missing):
        return npu.chips
    cards: dict[int, list[tuple[frozenset[int] | Missing, tuple[str, ...]]]] = {}
    for index, chip in enumerate(npu.chips):
        if isinstance(chip.npu_id, Missing):
            return chip.npu_id
        cards.setdefault(chip.npu_id, []).append(_nodes_of(chip, f"npu.chips[{index}]", pci, topo, numa))
    return tuple(_card(card, chips) for card, chips in cards.items())


@rows("numa.needs")
def needs(npu: Npu, pci: Pci, topo: Topo, numa: Numa, limits: Limits) -> tuple[Need, ...] | Missing:
    """One row for each node with a card; a card of unknown node makes every need unknown.

    A card near several nodes counts in full on each: its process may run, and take memory, on any of them.
    """
    cards = affinity(npu, pci, topo, numa)
    if isinstance(cards, Missing):
        return cards
    unknown = next((card.numbers for card in cards if isinstance(card.numbers, Missing)), None)
    served: dict[int, list[Affinity]] = {}
    for card in cards:
        for node in () if isinstance(card.numbers, Missing) else card.numbers:
            served.setdefault(node, []).append(card)
    if unknown is not None and not served:
        return replace(unknown, reason=Reason.FAILED) if unknown.reason is Reason.ABSENT else unknown
    shared, each = int(limits["numa.shared_mib"]), int(limits["numa.per_card_mib"])
    found = []
    for node, near in sorted(served.items()):
        need = unknown if unknown is not None else shared + each * len(near)
        found.append(_need(node, near, numa, need))
    return tuple(found)


def _need(node: int, cards: list[Affinity], numa: Numa, need: int | Missing) -> Need:
    nodes, path = numa.nodes, keyed("numa.nodes", node)
    if isinstance(nodes, Missing):
        memory = (nodes, nodes, nodes, nodes)
    elif node not in nodes:
        gone = Missing(Reason.FAILED, f"/sys/devices/system/node has no node{node}", path)
        memory = (gone, gone, gone, gone)
    else:
        at = nodes[node]
        memory = (at.cpus, at.total_mib, at.free_mib, at.file_cache_mib)  # type: ignore[assignment]
    reads = (f"{path}.free_mib", f"{path}.file_cache_mib", *(path for card in cards for path in card.reads))
    npus = ", ".join(str(card.npu) for card in cards)
    return Need(node, npus, len(cards), *memory, need, tuple(dict.fromkeys(reads)))


def _card(card: int, chips: Iterable[tuple[frozenset[int] | Missing, tuple[str, ...]]]) -> Affinity:
    numbers: set[int] = set()
    reads: dict[str, None] = {}
    unknown: Missing | None = None
    for nodes, paths in chips:
        reads.update(dict.fromkeys(paths))
        if isinstance(nodes, Missing):
            unknown = unknown or nodes
        else:
            numbers |= nodes
    if unknown is not None:
        return Affinity(card, unknown, unknown, tuple(reads))
    ordered = tuple(sorted(numbers))
    return Affinity(card, ", ".join(map(str, ordered)), ordered, tuple(reads))


def _nodes_of(
    chip: Chip, path: str, pci: Pci, topo: Topo, numa: Numa
) -> tuple[frozenset[int] | Missing, tuple[str, ...]]:
    """The nodes of one chip and the facts that say so."""
    bus = chip.bus_id
    seen = (f"{path}.bus_id",)
    if isinstance(bus, Missing):
        if bus.reason not in (Reason.ABSENT, Reason.UNSUPPORTED):
            return bus, seen
        return _by_topo(chip, path, topo, numa, "no bus address")
    if isinstance(pci.npus, Missing):
        if pci.npus.reason is not Reason.ABSENT:
            return pci.npus, seen
        return _by_topo(chip, path, topo, numa, "no PCI bus")
    function = pci.npus.get(bus.lower())
    if function is None:
        return _by_topo(chip, path, topo, numa, f"no PCI function {bus}")
    place = f"{keyed('pci.npus', bus.lower())}.numa_node"
    if isinstance(function.numa_node, Missing):
        if function.numa_node.reason is not Reason.ABSENT:
            return function.numa_node, (*seen, place)
        return _by_topo(chip, path, topo, numa, "the kernel names no node", place)
    return frozenset((function.numa_node,)), (*seen, place)


def _by_topo(
    chip: Chip, path: str, topo: Topo, numa: Numa, why: str, place: str = ""
) -> tuple[frozenset[int] | Missing, tuple[str, ...]]:
    """By the CPU Affinity column; ``why`` is what the first opinion lacked, at the fact ``place``."""
    nobody = Missing(Reason.ABSENT, f"{why}, and npu-smi names no CPUs", place or f"{path}.bus_id")
    if isinstance(topo.rows, Missing):
        if topo.rows.reason not in (Reason.ABSENT, Reason.UNSUPPORTED):
            return topo.rows, ("topo.rows",)
        known_elsewhere = not place and topo.rows.detail.startswith("not asked")
        return (replace(nobody, reason=Reason.FAILED, detail=why) if known_elsewhere else nobody), ("topo.rows",)
    for index, row in enumerate(topo.rows):
        if _is_of(row, chip):
            reads = (f"topo.rows[{index}]",)
            if isinstance(row.cpus, Missing):
                return (nobody if row.cpus.reason is Reason.ABSENT else row.cpus), reads
            return _nodes_with(row.cpus, numa), reads
    return replace(nobody, reason=Reason.FAILED, detail=f"{why}, and npu-smi's topology has no row for it"), (
        "topo.rows",
    )


def _is_of(row: TopoRow, chip: Chip) -> bool:
    return row.number == (chip.npu_id if row.numbered == "NPU" else chip.phy_id)


def _nodes_with(cpus: str, numa: Numa) -> frozenset[int] | Missing:
    wanted = cpu_set(cpus)
    if isinstance(wanted, Missing) or isinstance(numa.nodes, Missing):
        return wanted if isinstance(wanted, Missing) else numa.nodes  # type: ignore[return-value]
    found: set[int] = set()
    for node in numa.nodes.values():
        own = node.cpus if isinstance(node.cpus, Missing) else cpu_set(node.cpus)
        if isinstance(own, Missing):
            return own
        if own & wanted:
            found.add(node.node)
    return frozenset(found) if found else Missing(Reason.FAILED, f"no node has the CPUs {cpus}", "topo.rows")
