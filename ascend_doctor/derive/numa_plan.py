"""Which CPUs and which memory each worker should have: a plan, printed and never carried out.

Only nodes that own a device of the plan are used. The CPUs of a node are shared out to all of its devices, chosen or
not, so that the plans of two services on one node have no CPU in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ascend_doctor.derive import rows
from ascend_doctor.derive.cpu_lists import cpus_by_node, of_nodes, siblings_together, threads_of_core, written
from ascend_doctor.derive.numa import Affinity, affinity
from ascend_doctor.facts.cpu import Cpu
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.npu_failure import Failure
from ascend_doctor.facts.numa import Numa, cpu_set
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.placement import Placement
from ascend_doctor.facts.topo import Topo
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass

NO_NPU = ("command_not_found",)
"""Of npu-smi's failures, those that say that nothing is here; after another one nobody knows."""
NO_CARD = -1


@dataclass(frozen=True)
class Device:
    """A device of this host with what is near it; ``device`` is its place in the list of chips."""

    device: int
    npu: int | Missing
    nodes: str | Missing
    numbers: tuple[int, ...] | Missing
    cpus: str | Missing
    free_mib: int | Missing
    total_mib: int | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Worker:
    """One process for one device; ``cpus`` is empty where none is left for it. ``here``: the host has that device."""

    device: int
    here: bool
    npu: int | Missing
    nodes: str | Missing
    cpus: str | Missing
    count: int | Missing
    least: int
    command: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """A node of the plan: ``need_mib`` for the devices of the plan; ``rather``: devices whose nodes have more free."""

    node: int
    devices: str
    free_mib: int | Missing
    need_mib: int
    short: bool | Missing
    rather: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Service:
    """The whole deployment under one numactl; ``command`` is empty where there is nothing to bind to."""

    nodes: str
    cpus: str
    count: int
    one_node: bool
    command: str
    reads: tuple[str, ...]


@rows("numa_plan.devices")
def devices(npu: Npu, pci: Pci, topo: Topo, numa: Numa, cpu: Cpu) -> tuple[Device, ...] | Missing:
    """One row for each chip, in the order in which a process counts them."""
    if isinstance(npu.chips, Missing):
        return npu.chips
    cards = affinity(npu, pci, topo, numa)
    if isinstance(cards, Missing):
        return cards
    by_card = {card.npu: card for card in cards}
    found = []
    for index, chip in enumerate(npu.chips):
        near = by_card.get(chip.npu_id)
        where = _only_node(numa) if near is None or isinstance(near.numbers, Missing) else near.numbers
        if isinstance(where, Missing) and near is not None and isinstance(near.numbers, Missing):
            where = near.numbers
        found.append(_device(index, chip.npu_id, where, near, numa, cpu))
    return tuple(found)


def _only_node(numa: Numa) -> tuple[int, ...] | Missing:
    """Where a host has one node, every device is near it."""
    if isinstance(numa.nodes, Missing):
        return numa.nodes
    if len(numa.nodes) == 1:
        return tuple(numa.nodes)
    return Missing(Reason.FAILED, "nobody says which node is near this device", "topo.rows")


def _device(
    index: int, card: int, where: tuple[int, ...] | Missing, near: Affinity | None, numa: Numa, cpu: Cpu
) -> Device:
    reads = (*(near.reads if near else ()), "cpu.allowed", "cpu.isolated")
    if isinstance(where, Missing):
        return Device(index, card, where, where, where, where, where, reads)
    open_ = open_cpus(where, numa, cpu)
    free, total = _memory(where, numa, "free_mib"), _memory(where, numa, "total_mib")
    cpus = open_ if isinstance(open_, Missing) else written(open_)
    reads = (*reads, *(f"{keyed('numa.nodes', node)}.free_mib" for node in where))
    return Device(index, card, ", ".join(map(str, where)), where, cpus, free, total, reads)


def open_cpus(nodes: Sequence[int], numa: Numa, cpu: Cpu) -> frozenset[int] | Missing:
    """The CPUs of the nodes that this process may use and that are not isolated."""
    by_node = cpus_by_node(numa)
    if isinstance(by_node, Missing):
        return by_node
    cpus = of_nodes(nodes, by_node)
    allowed = cpu.allowed if isinstance(cpu.allowed, Missing) else cpu_set(cpu.allowed)
    apart: frozenset[int] | Missing = frozenset()
    if not isinstance(cpu.isolated, Missing):
        apart = cpu_set(cpu.isolated)
    elif cpu.isolated.reason is not Reason.ABSENT:
        apart = cpu.isolated
    for part in (cpus, allowed, apart):
        if isinstance(part, Missing):
            return part
    return (cpus & allowed) - apart  # type: ignore[operator]


def _memory(nodes: Sequence[int], numa: Numa, name: str) -> int | Missing:
    total = 0
    for node in nodes:
        there = numa.nodes.get(node) if not isinstance(numa.nodes, Missing) else None
        amount = Missing(Reason.FAILED, f"no node{node}", "numa.nodes") if there is None else getattr(there, name)
        if isinstance(amount, Missing):
            return amount
        total += amount
    return total


@rows("numa_plan.workers")
def workers(
    placement: Placement, npu: Npu, pci: Pci, topo: Topo, numa: Numa, cpu: Cpu, limits: Limits
) -> tuple[Worker, ...] | Missing:
    """One row for each device of the plan."""
    if placement.asked is not True:
        return Missing(Reason.ABSENT, "no plan was asked for", "placement.devices")
    here = _here(placement, npu, pci, topo, numa, cpu)
    if isinstance(here, Missing):
        return here
    chosen = _chosen(placement, here)
    shares = _shares(here, chosen, placement, numa, cpu)
    least = int(limits["cpu.least_for_npu"])
    short = {node.node for node in _nodes_of_plan(here, chosen, numa, limits) if node.short is not False}
    several = not isinstance(numa.count, int) or numa.count > 1
    return tuple(_worker(number, here, shares, least, short, several) for number in chosen)


def _here(placement: Placement, npu: Npu, pci: Pci, topo: Topo, numa: Numa, cpu: Cpu) -> dict[int, Device] | Missing:
    """By number; without an NPU on a host of one node, the devices that were named are near that node."""
    found = devices(npu, pci, topo, numa, cpu)
    if not isinstance(found, Missing):
        return {device.device: device for device in found}
    only = _only_node(numa)
    if isinstance(only, Missing) or npu.status != "error":
        return found
    if isinstance(placement.devices, Missing):
        nothing = isinstance(npu.error, Failure) and npu.error.kind in NO_NPU
        return Missing(Reason.ABSENT, "no NPU is here", "npu.chips") if nothing else found
    return {number: _device(number, NO_CARD, only, None, numa, cpu) for number in placement.devices}


def _chosen(placement: Placement, here: Mapping[int, Device]) -> tuple[int, ...]:
    return tuple(here) if isinstance(placement.devices, Missing) else tuple(dict.fromkeys(placement.devices))


def _shares(
    here: Mapping[int, Device], chosen: Sequence[int], placement: Placement, numa: Numa, cpu: Cpu
) -> dict[int, list[int] | Missing]:
    """Device -> its CPUs. No CPU is given twice, whichever nodes the devices have in common."""
    groups: dict[tuple[int, ...], list[int]] = {}
    found: dict[int, list[int] | Missing] = {}
    for number, device in here.items():
        if isinstance(device.numbers, Missing):
            found[number] = device.numbers
        else:
            groups.setdefault(device.numbers, []).append(number)
    taken: set[int] = set()
    for nodes, members in sorted(groups.items()):
        cpus = open_cpus(nodes, numa, cpu)
        if isinstance(cpus, Missing):
            found.update(dict.fromkeys(members, cpus))
            continue
        free = cpus - taken
        pool, threads = siblings_together(free), threads_of_core(free)
        if isinstance(placement.per_worker, Missing):
            each = len(pool) // len(members)
            size = each - each % threads or each
        else:
            members = [number for number in members if number in chosen]
            size = placement.per_worker
        size = max(1, size)
        for place, number in enumerate(members):
            part = pool[place * size : (place + 1) * size]
            found[number] = part if len(part) == size else []
            taken.update(part)
    return found


def _worker(
    number: int,
    here: Mapping[int, Device],
    shares: Mapping[int, list[int] | Missing],
    least: int,
    short: set[int],
    several_nodes: bool,
) -> Worker:
    device = here.get(number)
    if device is None:
        gone = Missing(Reason.ABSENT, f"there is no device {number}", "npu.chips")
        return Worker(number, False, gone, gone, gone, gone, least, "", ("npu.chips",))
    cpus = shares.get(number, device.cpus)
    card = Missing(Reason.ABSENT, "npu-smi shows no NPU", "npu.chips") if device.npu == NO_CARD else device.npu
    if isinstance(cpus, (Missing, str)) or isinstance(device.numbers, Missing):
        why = next(part for part in (cpus, device.numbers) if isinstance(part, Missing))
        return Worker(number, True, card, device.nodes, why, why, least, "", device.reads)
    bound = device.numbers if several_nodes else ()
    command = _numactl("physcpubind", written(cpus), bound, short) if cpus else ""
    return Worker(number, True, card, device.nodes, written(cpus), len(cpus), least, command, device.reads)


def _numactl(option: str, value: str, nodes: Sequence[int], short: set[int]) -> str:
    """One CPU option only: of several the last one wins. Memory is bound where the nodes have enough of it."""
    memory = "" if not nodes or short & set(nodes) else f" --membind={written(nodes)}"
    return f"numactl --{option}={value}{memory} COMMAND"


@rows("numa_plan.nodes")
def nodes(
    placement: Placement, npu: Npu, pci: Pci, topo: Topo, numa: Numa, cpu: Cpu, limits: Limits
) -> tuple[Node, ...] | Missing:
    """One row for each node of the plan."""
    if placement.asked is not True:
        return Missing(Reason.ABSENT, "no plan was asked for", "placement.devices")
    here = _here(placement, npu, pci, topo, numa, cpu)
    if isinstance(here, Missing):
        return here
    return _nodes_of_plan(here, _chosen(placement, here), numa, limits)


def _nodes_of_plan(here: Mapping[int, Device], chosen: Sequence[int], numa: Numa, limits: Limits) -> tuple[Node, ...]:
    served = _served(here, chosen)
    shared, each = int(limits["numa.shared_mib"]), int(limits["numa.per_card_mib"])
    enough = [
        device.device
        for device in here.values()
        if device.device not in chosen and isinstance(device.free_mib, int) and device.free_mib >= shared + each
    ]
    found = []
    for node, members in sorted(served.items()):
        need, free = shared + each * len(members), _memory((node,), numa, "free_mib")
        short = free if isinstance(free, Missing) else free < need
        rather = written(enough) if short is True else ""
        reads = (f"{keyed('numa.nodes', node)}.free_mib", *here[members[0]].reads)
        found.append(Node(node, written(members), free, need, short, rather, reads))
    return tuple(found)


def _served(here: Mapping[int, Device], chosen: Sequence[int]) -> dict[int, list[int]]:
    """Node -> the devices of the plan that are near it."""
    served: dict[int, list[int]] = {}
    for number in chosen:
        device = here.get(number)
        for node in () if device is None or isinstance(device.numbers, Missing) else device.numbers:
            served.setdefault(node, []).append(number)
    return served


@rows("numa_plan.services")
def services(
    placement: Placement, npu: Npu, pci: Pci, topo: Topo, numa: Numa, cpu: Cpu, limits: Limits
) -> tuple[Service, ...] | Missing:
    """One row: the deployment as a whole, where the node of each device is known."""
    if placement.asked is not True:
        return Missing(Reason.ABSENT, "no plan was asked for", "placement.devices")
    here = _here(placement, npu, pci, topo, numa, cpu)
    if isinstance(here, Missing):
        only = _only_node(numa)
        if isinstance(only, Missing) or here.reason is not Reason.ABSENT:
            return here
        here = {0: _device(0, NO_CARD, only, None, numa, cpu)}
    chosen = _chosen(placement, here)
    unknown = next((here[n].numbers for n in chosen if n in here and isinstance(here[n].numbers, Missing)), None)
    if isinstance(unknown, Missing):
        return unknown
    used = tuple(sorted(_served(here, chosen)))
    if not used:
        return ()
    cpus, all_nodes = open_cpus(used, numa, cpu), cpus_by_node(numa)
    for part in (cpus, all_nodes):
        if isinstance(part, Missing):
            return part
    return (_service(used, cpus, all_nodes, _nodes_of_plan(here, chosen, numa, limits)),)  # type: ignore[arg-type]


def _service(
    used: Sequence[int], cpus: frozenset[int], by_node: Mapping[int, frozenset[int]], plan: Sequence[Node]
) -> Service:
    short = {node.node for node in plan if node.short is not False}
    whole = cpus == frozenset().union(*(by_node[node] for node in used))
    option, value = ("cpunodebind", written(used)) if whole else ("physcpubind", written(cpus))
    one = len(by_node) == 1
    command = "" if one else _numactl(option, value, used, short)
    reads = tuple(dict.fromkeys(path for node in plan for path in node.reads))
    return Service(written(used), written(cpus), len(cpus), one, command, reads)


def as_json(found: Mapping[str, object]) -> dict[str, Any]:
    """``numa`` of a report: each row set by its name, a Missing as null with its reason under ``missing``."""
    names = {name: name.partition(".")[2] for name in found}
    missing = {names[name]: value for name, value in found.items() if isinstance(value, Missing)}
    reasons = {
        name: {"path": one.path, "reason": one.reason.value, "detail": one.detail} for name, one in missing.items()
    }
    return {**{names[name]: _plain(value) for name, value in found.items()}, "missing": reasons}


def _plain(value: object) -> Any:
    if isinstance(value, Missing):
        return None
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__ if name != "reads"}
    return value
