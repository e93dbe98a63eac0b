"""Sets of CPUs and of nodes: as lists are written, and which node has which CPU."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ascend_doctor.facts.numa import Numa, cpu_set
from ascend_doctor.host import Missing, Reason, keyed


def written(numbers: Iterable[int]) -> str:
    """``0-23,96``."""
    found: list[str] = []
    for first, last in ranges(numbers):
        found.append(f"{first}-{last}" if last > first else str(first))
    return ",".join(found)


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each unbroken run."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def cpus_by_node(numa: Numa) -> dict[int, frozenset[int]] | Missing:
    """Missing where the CPUs of one node are."""
    if isinstance(numa.nodes, Missing):
        return numa.nodes
    found: dict[int, frozenset[int]] = {}
    for number, node in numa.nodes.items():
        cpus = node.cpus if isinstance(node.cpus, Missing) else cpu_set(node.cpus)
        if isinstance(cpus, Missing):
            return Missing(cpus.reason, cpus.detail, cpus.path or f"{keyed('numa.nodes', number)}.cpus")
        found[number] = cpus
    return found


def nodes_of(cpus: Iterable[int], by_node: dict[int, frozenset[int]]) -> tuple[int, ...]:
    """The nodes that have one of the CPUs at least."""
    wanted = frozenset(cpus)
    return tuple(node for node, own in sorted(by_node.items()) if own & wanted)


def threads_of_core(cpus: Collection[int]) -> int:
    """Kernels number hardware threads in as many runs of equal length as a core has: 0-23 and 96-119."""
    runs = ranges(cpus)
    return len(runs) if len({last - first for first, last in runs}) == 1 else 1


def siblings_together(cpus: Collection[int]) -> list[int]:
    """In an order that keeps the hardware threads of a core side by side."""
    runs = ranges(cpus)
    if threads_of_core(cpus) > 1:
        return [first + n for n in range(runs[0][1] - runs[0][0] + 1) for first, _ in runs]
    return [cpu for first, last in runs for cpu in range(first, last + 1)]


def of_nodes(nodes: Sequence[int], by_node: dict[int, frozenset[int]]) -> frozenset[int] | Missing:
    """All CPUs of the nodes."""
    gone = next((node for node in nodes if node not in by_node), None)
    if gone is not None:
        return Missing(Reason.FAILED, f"/sys/devices/system/node has no node{gone}", "numa.nodes")
    return frozenset().union(*(by_node[node] for node in nodes))
