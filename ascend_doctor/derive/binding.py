"""Whether the processes of a service run, and keep their memory, near the NPUs that they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ascend_doctor.derive import rows
from ascend_doctor.derive.cpu_lists import cpus_by_node, nodes_of, of_nodes, written
from ascend_doctor.derive.numa import Affinity, affinity
from ascend_doctor.facts.cpu import Cpu
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.numa import Numa, cpu_set
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.processes import Process, Processes
from ascend_doctor.facts.topo import Topo
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass

NO_NPU = Missing(Reason.ABSENT, "npu-smi shows this process on no NPU", "npu.processes")
BOUND_POLICY = re.compile(r"(?:bind|interleave|weighted interleave)(?:=[a-z]+)*:(\d[\d,-]*)")


@dataclass(frozen=True)
class Worker:
    """A process. ``npus``: those that it holds, "" for none; ``near``: the nodes of these.

    ``narrow``: somebody gave it fewer CPUs than the host has. ``inside``/``outside``: how many of its CPUs are near
    its NPUs, and not. ``far_*``: memory that lies on other nodes than its NPUs' (its CPUs' where it holds none).
    ``odd_nodes``: nodes to which its memory is bound and on which it has no CPU. ``count``: CPUs of all its threads.
    ``strayed``: threads without any CPU near. ``with_others``: processes of other NPUs on the same CPUs.
    """

    pid: int
    name: str | Missing
    npus: str | Missing
    near: str | Missing
    near_cpus: str | Missing
    cpus: str | Missing
    nodes: str | Missing
    count: int | Missing
    least: int
    narrow: bool | Missing
    inside: int | Missing
    outside: int | Missing
    memory: str | Missing
    home: str | Missing
    far_mib: int | Missing
    far_percent: int | Missing
    far_limit: int
    odd_nodes: str | Missing
    policy: str | Missing
    threads: int | Missing
    strayed: int | Missing
    stray_cpus: str | Missing
    migrations: int | Missing
    with_others: str | Missing
    reads: tuple[str, ...]


@rows("binding.workers")
def workers(
    processes: Processes, npu: Npu, pci: Pci, topo: Topo, numa: Numa, cpu: Cpu, limits: Limits
) -> tuple[Worker, ...] | Missing:
    """One row for each process."""
    if isinstance(processes.running, Missing):
        return processes.running
    by_node = cpus_by_node(numa)
    if isinstance(by_node, Missing):
        return by_node
    cards = affinity(npu, pci, topo, numa)
    if isinstance(cards, Missing):
        nodes_of_card: Mapping[int, Affinity] = {}
    else:
        nodes_of_card = {card.npu: card for card in cards}
    held = {pid: _held(npu, pid) for pid in processes.running}
    online = cpu.online if isinstance(cpu.online, Missing) else cpu_set(cpu.online)
    found = []
    for pid, process in processes.running.items():
        near = _near(held[pid], nodes_of_card)
        found.append(_worker(process, held, near, by_node, online, processes.running, limits))
    return tuple(found)


def _held(npu: Npu, pid: int) -> tuple[int, ...] | Missing:
    """The cards on which npu-smi shows the process; none where it shows no NPU at all."""
    if isinstance(npu.processes, Missing):
        return () if npu.status == "error" else npu.processes
    return tuple(dict.fromkeys(p.npu_id for p in npu.processes if p.pid == pid))


def _near(held: tuple[int, ...] | Missing, cards: Mapping[int, Affinity]) -> tuple[int, ...] | Missing:
    if isinstance(held, Missing):
        return held
    if not held:
        return NO_NPU
    found: set[int] = set()
    for card in held:
        numbers = cards[card].numbers if card in cards else Missing(Reason.FAILED, f"no NPU {card}", "npu.chips")
        if isinstance(numbers, Missing):
            return numbers
        found.update(numbers)
    return tuple(sorted(found))


def _worker(
    process: Process,
    held: Mapping[int, tuple[int, ...] | Missing],
    near: tuple[int, ...] | Missing,
    by_node: dict[int, frozenset[int]],
    online: frozenset[int] | Missing,
    running: Mapping[int, Process],
    limits: Limits,
) -> Worker:
    own = process.cpus if isinstance(process.cpus, Missing) else cpu_set(process.cpus)
    near_cpus = near if isinstance(near, Missing) else of_nodes(near, by_node)
    nodes = own if isinstance(own, Missing) else nodes_of(own, by_node)
    narrow = _narrow(own, online)
    npus = held[process.pid]
    path = keyed("processes.running", process.pid)
    home, far, percent = _far(process, near, nodes)
    strayed, stray_cpus = _strayed(process, near_cpus)
    return Worker(
        pid=process.pid,
        name=process.name,
        npus=npus if isinstance(npus, Missing) else ", ".join(map(str, npus)),
        near=near if isinstance(near, Missing) else written(near),
        near_cpus=near_cpus if isinstance(near_cpus, Missing) else written(near_cpus),
        cpus=process.cpus,
        nodes=nodes if isinstance(nodes, Missing) else written(nodes),
        count=_all_cpus(process, own),
        least=int(limits["cpu.least_for_npu"]),
        narrow=narrow,
        inside=_count(own, near_cpus, True),
        outside=_count(own, near_cpus, False),
        memory=_amounts(process.memory_mib),
        home=home,
        far_mib=far,
        far_percent=percent,
        far_limit=int(limits["numa.far_percent"]),
        odd_nodes=_odd_nodes(process.policies, nodes),
        policy=process.policies if isinstance(process.policies, Missing) else ", ".join(process.policies),
        threads=process.threads,
        strayed=strayed,
        stray_cpus=stray_cpus,
        migrations=process.migrations,
        with_others=_with_others(process.pid, own, narrow, held, running),
        reads=(f"{path}.cpus", f"{path}.memory_mib", f"{path}.thread_cpus", "npu.processes", "cpu.online"),
    )


def _narrow(own: frozenset[int] | Missing, online: frozenset[int] | Missing) -> bool | Missing:
    if isinstance(own, Missing) or isinstance(online, Missing):
        return own if isinstance(own, Missing) else online  # type: ignore[return-value]
    return bool(online - own)


def _count(own: frozenset[int] | Missing, near: frozenset[int] | Missing, inside: bool) -> int | Missing:
    if isinstance(own, Missing) or isinstance(near, Missing):
        return own if isinstance(own, Missing) else near  # type: ignore[return-value]
    return len(own & near) if inside else len(own - near)


def _far(
    process: Process, near: tuple[int, ...] | Missing, nodes: tuple[int, ...] | Missing
) -> tuple[str | Missing, int | Missing, int | Missing]:
    """Where its memory should be, MiB elsewhere, and their share in percent."""
    home = nodes if isinstance(near, Missing) and near.reason is Reason.ABSENT else near
    memory = process.memory_mib
    if isinstance(home, Missing) or isinstance(memory, Missing):
        why = memory if isinstance(memory, Missing) else home
        return (home if isinstance(home, Missing) else written(home)), why, why  # type: ignore[return-value]
    far = sum(mib for node, mib in memory.items() if node not in home)
    whole = sum(memory.values())
    return written(home), int(far), int(100 * far / whole) if whole else 0


def _amounts(memory: Mapping[int, float] | Missing) -> str | Missing:
    if isinstance(memory, Missing):
        return memory
    return ", ".join(f"{node}: {mib:.0f} MiB" for node, mib in memory.items())


def _odd_nodes(policies: Sequence[str] | Missing, nodes: tuple[int, ...] | Missing) -> str | Missing:
    if isinstance(policies, Missing) or isinstance(nodes, Missing):
        return policies if isinstance(policies, Missing) else nodes  # type: ignore[return-value]
    bound: set[int] = set()
    for policy in policies:
        match = BOUND_POLICY.fullmatch(policy)
        numbers = cpu_set(match[1]) if match else frozenset()
        bound |= frozenset() if isinstance(numbers, Missing) else numbers
    return written(bound - set(nodes))


def _all_cpus(process: Process, own: frozenset[int] | Missing) -> int | Missing:
    """A framework that binds each thread for itself leaves the first one few: all of them count."""
    if isinstance(own, Missing) or isinstance(process.thread_cpus, Missing):
        return own if isinstance(own, Missing) else process.thread_cpus  # type: ignore[return-value]
    masks = [cpu_set(text) for text in process.thread_cpus]
    return len(own.union(*(mask for mask in masks if not isinstance(mask, Missing))))


def _strayed(process: Process, near: frozenset[int] | Missing) -> tuple[int | Missing, str | Missing]:
    """Threads of which no CPU is near, and their CPUs."""
    if isinstance(near, Missing) or isinstance(process.thread_cpus, Missing):
        why = near if isinstance(near, Missing) else process.thread_cpus
        return why, why  # type: ignore[return-value]
    count = 0
    cpus: set[int] = set()
    for text, threads in process.thread_cpus.items():
        mask = cpu_set(text)
        if not isinstance(mask, Missing) and mask and not mask & near:
            count += threads
            cpus |= mask
    return count, written(cpus)


def _with_others(
    pid: int,
    own: frozenset[int] | Missing,
    narrow: bool | Missing,
    held: Mapping[int, tuple[int, ...] | Missing],
    running: Mapping[int, Process],
) -> str | Missing:
    """Where this process was given CPUs of its own: the holders of other NPUs that were given some of them too."""
    mine = held[pid]
    if isinstance(mine, Missing) or isinstance(own, Missing) or isinstance(narrow, Missing):
        return next(part for part in (mine, own, narrow) if isinstance(part, Missing))
    if not mine or not narrow:
        return ""
    others = []
    for other, process in running.items():
        theirs, cpus = held[other], process.cpus if isinstance(process.cpus, Missing) else cpu_set(process.cpus)
        if other == pid or isinstance(theirs, Missing) or isinstance(cpus, Missing):
            continue
        if theirs and not set(theirs) & set(mine) and cpus & own:
            others.append(str(other))
    return ", ".join(others)
