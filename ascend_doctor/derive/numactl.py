"""What a numactl line really does on this host, beside what it says.

numactl sets the CPUs once for each CPU option, in order, so that the last one wins; of memory policies it takes one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ascend_doctor.derive import rows
from ascend_doctor.derive.cpu_lists import cpus_by_node, nodes_of, written
from ascend_doctor.derive.numa import affinity
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.numa import Numa, cpu_set
from ascend_doctor.facts.numactl import Numactl, Option
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.topo import Topo
from ascend_doctor.host import Missing, Reason
from ascend_doctor.records import dataclass

CPU_OPTIONS = ("cpunodebind", "physcpubind")
MEMORY_OPTIONS = ("membind", "interleave", "preferred", "preferred-many", "localalloc", "weighted-interleave")
ON_NODES = ("cpunodebind", "membind", "interleave", "preferred", "preferred-many", "weighted-interleave")
WHOLE_SETS = ("membind", "interleave", "weighted-interleave")
"""Policies that put memory on their nodes only; the others take what is near first."""


@dataclass(frozen=True)
class Line:
    """``acts``: the CPU option that counts; ``void``: those that do not. ``cpus``: what the process then runs on.

    ``stray_*``: CPUs and nodes that it runs on although a void option says else; ``idle``: nodes that a void option
    names and that get no CPU. ``agree``: all CPU options leave the same. ``far_memory``: nodes of its memory without
    one of its CPUs; ``bare_cpus``: nodes of its CPUs without its memory. ``same``: a line that does as it says.
    """

    acts: str
    void: str
    cpu_options: int
    agree: bool | Missing
    cpus: str | Missing
    nodes: str | Missing
    stray_cpus: str | Missing
    stray_nodes: str | Missing
    idle: str | Missing
    unknown: str
    missing_cpus: str | Missing
    missing_nodes: str | Missing
    there_nodes: str | Missing
    there_cpus: str | Missing
    policies: int
    policy_words: str
    memory_nodes: str | Missing
    far_memory: str | Missing
    bare_cpus: str | Missing
    empty_nodes: str | Missing
    same: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Near:
    """Nodes on which the line runs and that own no NPU, and those that own one."""

    cpus: str
    without: str | Missing
    owners: str | Missing
    reads: tuple[str, ...]


@rows("numactl.lines")
def lines(numactl: Numactl, numa: Numa) -> tuple[Line, ...] | Missing:
    """One row where a line was given."""
    if isinstance(numactl.options, Missing):
        return numactl.options
    options = numactl.options
    by_node = cpus_by_node(numa)
    cpu = [option for option in options if option.name in CPU_OPTIONS]
    memory = [option for option in options if option.name in MEMORY_OPTIONS]
    sets = [_cpus_of(option, by_node) for option in cpu]
    said, absent = _stray(sets, by_node), _absent(options, by_node)
    places = _memory(memory, sets, numa, by_node)
    return (
        Line(
            acts=cpu[-1].written if cpu else "",
            void=" ".join(option.written for option in cpu[:-1]),
            cpu_options=len(cpu),
            agree=_agree(sets),
            cpus=said[0],
            nodes=said[1],
            stray_cpus=said[2],
            stray_nodes=said[3],
            idle=said[4],
            unknown="" if isinstance(numactl.unknown, Missing) else " ".join(numactl.unknown),
            missing_cpus=absent["missing_cpus"],
            missing_nodes=absent["missing_nodes"],
            there_nodes=absent["there_nodes"],
            there_cpus=absent["there_cpus"],
            policies=len({option.name for option in memory}),
            policy_words=" ".join(option.written for option in memory),
            memory_nodes=places["memory_nodes"],
            far_memory=places["far_memory"],
            bare_cpus=places["bare_cpus"],
            empty_nodes=places["empty_nodes"],
            same=_same(sets, memory, by_node),
            reads=("numactl", "numa.nodes"),
        ),
    )


@rows("numactl.near")
def near(numactl: Numactl, numa: Numa, npu: Npu, pci: Pci, topo: Topo) -> tuple[Near, ...] | Missing:
    """One row where the line binds CPUs and it is known which nodes own the NPUs."""
    if isinstance(numactl.options, Missing):
        return numactl.options
    by_node = cpus_by_node(numa)
    cpu = [option for option in numactl.options if option.name in CPU_OPTIONS]
    cards = affinity(npu, pci, topo, numa)
    if not cpu:
        return ()
    cpus = _cpus_of(cpu[-1], by_node)
    for part in (by_node, cards, cpus):
        if isinstance(part, Missing):
            return part
    unknown = next((card.numbers for card in cards if isinstance(card.numbers, Missing)), None)  # type: ignore[union-attr]
    if unknown is not None:
        return unknown
    owners = {node for card in cards for node in card.numbers}  # type: ignore[union-attr]
    used = nodes_of(cpus, by_node)  # type: ignore[arg-type]
    without = written(node for node in used if node not in owners)
    reads = ("numactl", "numa.nodes", *(path for card in cards for path in card.reads))  # type: ignore[union-attr]
    return (Near(written(cpus), without, written(owners), tuple(dict.fromkeys(reads))),)  # type: ignore[arg-type]


def numbers(text: str, everything: frozenset[int]) -> frozenset[int] | Missing:
    """``0-3,5``, ``all``, ``!0``; a relative list (``+0``), ``same`` and the node of a device are not told here."""
    plain = text.strip()
    if plain == "all":
        return everything
    inverted = plain.startswith("!")
    found = cpu_set(plain[inverted:]) if plain[inverted:] else Missing(Reason.FAILED, "")
    if isinstance(found, Missing):
        return Missing(Reason.FAILED, f"{text!r} is no list of numbers that can be told here", "numactl.options")
    return everything - found if inverted else found


def _cpus_of(option: Option, by_node: dict[int, frozenset[int]] | Missing) -> frozenset[int] | Missing:
    """Those that the option asks for and that are here."""
    if isinstance(by_node, Missing):
        return by_node
    all_cpus: frozenset[int] = frozenset().union(*by_node.values())
    if option.name == "physcpubind":
        found = numbers(option.value, all_cpus)
        return found if isinstance(found, Missing) else found & all_cpus
    nodes = numbers(option.value, frozenset(by_node))
    if isinstance(nodes, Missing):
        return nodes
    return frozenset().union(*(by_node[node] for node in nodes if node in by_node))


def _agree(sets: Sequence[frozenset[int] | Missing]) -> bool | Missing:
    """Whether the last of several is within each of the others: then all of them say the truth."""
    unknown = next((s for s in sets if isinstance(s, Missing)), None)
    if unknown is not None or not sets:
        return unknown if unknown is not None else True
    last = sets[-1]
    return bool(last) and all(last <= other for other in sets[:-1])  # type: ignore[operator]


def _stray(
    sets: Sequence[frozenset[int] | Missing], by_node: dict[int, frozenset[int]] | Missing
) -> tuple[str | Missing, ...]:
    """CPUs, nodes, stray CPUs, stray nodes, idle nodes."""
    unknown = next((s for s in (by_node, *sets) if isinstance(s, Missing)), None)
    if isinstance(unknown, Missing):
        return (unknown,) * 5
    assert not isinstance(by_node, Missing)
    if not sets:
        return ("",) * 5
    known = [s for s in sets if not isinstance(s, Missing)]
    last, said = known[-1], known[:-1]
    stray: frozenset[int] = frozenset().union(*(last - other for other in said)) if said else frozenset()
    idle = {node for other in said for node in nodes_of(other, by_node) if not by_node[node] & last}
    texts = (last, nodes_of(last, by_node), stray, nodes_of(stray, by_node), idle)
    return tuple(written(part) for part in texts)


def _absent(options: Sequence[Option], by_node: dict[int, frozenset[int]] | Missing) -> dict[str, str | Missing]:
    """What the line names and this host does not have; numactl then refuses."""
    if isinstance(by_node, Missing):
        return dict.fromkeys(("missing_cpus", "missing_nodes", "there_nodes", "there_cpus"), by_node)
    cpus: frozenset[int] = frozenset().union(*by_node.values())
    named: dict[str, set[int]] = {"physcpubind": set(), "nodes": set()}
    for option in options:
        kind = "nodes" if option.name in ON_NODES else option.name
        value = numbers(option.value, frozenset()) if kind in named else frozenset()
        if kind in named and not isinstance(value, Missing) and not option.value.strip().startswith("!"):
            named[kind] |= value
    return {
        "missing_cpus": written(named["physcpubind"] - cpus),
        "missing_nodes": written(named["nodes"] - frozenset(by_node)),
        "there_nodes": written(by_node),
        "there_cpus": written(cpus),
    }


def _memory(
    memory: Sequence[Option],
    sets: Sequence[frozenset[int] | Missing],
    numa: Numa,
    by_node: dict[int, frozenset[int]] | Missing,
) -> dict[str, str | Missing]:
    names = ("memory_nodes", "far_memory", "bare_cpus", "empty_nodes")
    bound = [option for option in memory if option.name in WHOLE_SETS]
    if not bound:
        return dict.fromkeys(names, "")
    if isinstance(by_node, Missing) or isinstance(numa.nodes, Missing):
        return dict.fromkeys(names, by_node if isinstance(by_node, Missing) else Missing(Reason.FAILED, "", "numa"))
    nodes = numbers(bound[-1].value, frozenset(by_node))
    if isinstance(nodes, Missing):
        return dict.fromkeys(names, nodes)
    there = nodes & frozenset(by_node)
    empty = written(node for node in there if numa.nodes[node].total_mib == 0)
    if not sets or isinstance(sets[-1], Missing):
        return {"memory_nodes": written(nodes), "far_memory": "", "bare_cpus": "", "empty_nodes": empty}
    used = nodes_of(sets[-1], by_node)
    far, bare = written(there - frozenset(used)), written(node for node in used if node not in there)
    return {"memory_nodes": written(nodes), "far_memory": far, "bare_cpus": bare, "empty_nodes": empty}


def _same(
    sets: Sequence[frozenset[int] | Missing],
    memory: Sequence[Option],
    by_node: dict[int, frozenset[int]] | Missing,
) -> str:
    """A line for what the first CPU option asks, with one CPU option; "" where that cannot be told."""
    if not sets or isinstance(sets[0], Missing) or isinstance(by_node, Missing) or not sets[0]:
        return ""
    nodes = nodes_of(sets[0], by_node)
    whole = sets[0] == frozenset().union(*(by_node[node] for node in nodes))
    option = f"--cpunodebind={written(nodes)}" if whole else f"--physcpubind={written(sets[0])}"
    policy = f" --membind={written(nodes)}" if any(o.name in WHOLE_SETS for o in memory) else ""
    return f"numactl {option}{policy} COMMAND"
