"""The CPUs for each NPU: how many there are in this process's set, and whether any are on the NPU's own node."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_doctor.derive import rows
from ascend_doctor.derive.host import visible_chips
from ascend_doctor.derive.memory import VISIBLE
from ascend_doctor.derive.numa import affinity
from ascend_doctor.facts.cgroup import Cgroup
from ascend_doctor.facts.cpu import Cpu
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.numa import Numa, cpu_set
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.topo import Topo
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Share:
    """``each`` is how many of the allowed CPUs fall on one visible chip; ``quota_each``: of the group's CPU time."""

    chips: int
    each: int | Missing
    quota_each: float | Missing
    least: int
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Near:
    """A visible card and the CPUs of its nodes: ``allowed`` of them this process may use, ``open`` are not isolated."""

    npu: int
    nodes: str
    cpus: int | Missing
    allowed: int | Missing
    open: int | Missing
    reads: tuple[str, ...]


@rows("cpu.shares")
def shares(
    npu: Npu, env: Mapping[str, str | Missing], cpu: Cpu, cgroup: Cgroup, limits: Limits
) -> tuple[Share, ...] | Missing:
    """One row where a chip is visible."""
    devices = visible_chips(npu, env)
    if isinstance(devices, Missing):
        return devices
    if not devices:
        return ()
    count, quota = cpu.allowed_count, cgroup.cpus
    return (
        Share(
            chips=len(devices),
            each=count if isinstance(count, Missing) else count // len(devices),
            quota_each=quota if isinstance(quota, Missing) else round(quota / len(devices), 2),
            least=int(limits["cpu.least_for_npu"]),
            reads=("npu.chips", f"env.{VISIBLE}", "cpu.allowed", "cgroup.cpus"),
        ),
    )


@rows("cpu.near")
def near(
    npu: Npu, pci: Pci, topo: Topo, numa: Numa, cpu: Cpu, env: Mapping[str, str | Missing]
) -> tuple[Near, ...] | Missing:
    """One row for each visible card of which a node is known."""
    devices = visible_chips(npu, env)
    cards = affinity(npu, pci, topo, numa)
    if isinstance(devices, Missing) or isinstance(cards, Missing) or isinstance(npu.chips, Missing):
        return next(part for part in (devices, cards, npu.chips) if isinstance(part, Missing))
    wanted = {npu.chips[device].npu_id for device in devices}
    found = []
    for card in cards:
        if card.npu not in wanted:
            continue
        if isinstance(card.numbers, Missing):
            if card.numbers.reason is not Reason.ABSENT:
                found.append(Near(card.npu, "?", card.numbers, card.numbers, card.numbers, card.reads))
            continue
        cpus = _cpus_of(card.numbers, numa)
        usable = _inside(cpus, cpu.allowed)
        reads = (*card.reads, *(f"numa.nodes[{node}].cpus" for node in card.numbers), "cpu.allowed", "cpu.isolated")
        found.append(
            Near(
                npu=card.npu,
                nodes=", ".join(map(str, card.numbers)),
                cpus=cpus if isinstance(cpus, Missing) else len(cpus),
                allowed=usable if isinstance(usable, Missing) else len(usable),
                open=_outside(usable, cpu.isolated),
                reads=reads,
            )
        )
    return tuple(found)


def _cpus_of(numbers: tuple[int, ...], numa: Numa) -> frozenset[int] | Missing:
    if isinstance(numa.nodes, Missing):
        return numa.nodes
    found: frozenset[int] = frozenset()
    for number in numbers:
        if number not in numa.nodes:
            return Missing(Reason.FAILED, f"no node{number}", "numa.nodes")
        text = numa.nodes[number].cpus
        cpus = text if isinstance(text, Missing) else cpu_set(text)
        if isinstance(cpus, Missing):
            return cpus
        found |= cpus
    return found


def _inside(cpus: frozenset[int] | Missing, allowed: str | Missing) -> frozenset[int] | Missing:
    if isinstance(cpus, Missing) or isinstance(allowed, Missing):
        return cpus if isinstance(cpus, Missing) else allowed  # type: ignore[return-value]
    mine = cpu_set(allowed)
    return mine if isinstance(mine, Missing) else cpus & mine


def _outside(usable: frozenset[int] | Missing, isolated: str | Missing) -> int | Missing:
    """A kernel that tells of no isolated CPUs has none."""
    if isinstance(usable, Missing):
        return usable
    if isinstance(isolated, Missing):
        return len(usable) if isolated.reason is Reason.ABSENT else isolated
    apart = cpu_set(isolated)
    return apart if isinstance(apart, Missing) else len(usable - apart)
