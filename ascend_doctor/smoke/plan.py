"""Which devices a smoke run takes, with which model, and which of them it leaves alone: before anything is started."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import ceil
from pathlib import Path
from typing import Any

from ascend_doctor.derive import memory as chip_memory
from ascend_doctor.derive.host import visible_chips
from ascend_doctor.facts import cgroup, env, npu
from ascend_doctor.facts import memory as host_memory
from ascend_doctor.facts.npu import Npu
from ascend_doctor.host import Host, Missing, Reason
from ascend_doctor.knowledge import limits as limit_rules
from ascend_doctor.knowledge import smoke_gates, smoke_sizes
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.knowledge.smoke_gates import Stage
from ascend_doctor.knowledge.smoke_sizes import Size
from ascend_doctor.records import dataclass
from ascend_doctor.smoke import sums

KINDS = ("cpu", "cuda", "npu")
_DEVICE = re.compile(r"(npu|cuda)(?::(\d{1,4}))?|cpu|auto", re.ASCII)
FEW_THREADS_BELOW_GIB, MANY_THREADS = 1.5, 8
"""Small models are as fast on one thread, and many threads would take the CPUs of what else runs there."""


class SmokeError(Exception):
    """A call that makes no run: what, and what to do."""


@dataclass(frozen=True)
class Wishes:
    """The options of a call; None where one was not given. ``ranks``: so many devices together, 0 for one alone."""

    device: str = "auto"
    size: str = "default"
    each: bool = False
    force: bool = False
    layers: int | None = None
    experts: int | None = None
    dtype: str | None = None
    seq: int | None = None
    decode: int | None = None
    seed: int = 7
    ranks: int = 0
    step_seconds: float | None = None


@dataclass(frozen=True)
class Target:
    """One device: ``index`` as a process sees it; ``refused``: why it is left alone, "" where it is taken.

    ``free_mib``: of the device before the run, or of the host for the CPU.
    """

    kind: str
    index: int
    name: str
    refused: str
    memory: Mapping[str, int]
    free_mib: int | Missing

    @property
    def word(self) -> str:
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"

    @property
    def need_bytes(self) -> int:
        return sum(self.memory.values())


@dataclass(frozen=True)
class Planned:
    """What will be done."""

    wishes: Wishes
    size: Size
    dtype: str
    targets: tuple[Target, ...]
    stages: tuple[Stage, ...]
    host_memory: Mapping[str, int]
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        return 1 if sums.fp32_gib(self.size.config) < FEW_THREADS_BELOW_GIB else MANY_THREADS

    def as_json(self) -> dict[str, Any]:
        return {
            "size": self.size.name,
            "seq": self.size.sequence,
            "decode": self.size.decode,
            "ranks": self.wishes.ranks,
            "config": sums.as_json(self.size.config),
            "stages": [stage.id for stage in self.stages],
        }

    def for_child(
        self, target: Target, stages: Sequence[str], done: Sequence[str], broken: Sequence[str]
    ) -> dict[str, Any]:
        """What children/smoke.py is told."""
        size = self.size
        return {
            "kind": target.kind,
            "index": target.index,
            "config": sums.as_json(size.config),
            "dtype": self.dtype,
            "seed": self.wishes.seed,
            "seq": size.sequence,
            "decode": size.decode,
            "warmup": sums.WARMUP,
            "timed": sums.TIMED,
            "iterations": sums.ITERATIONS,
            "threads": self.threads,
            "stages": [
                {"id": stage.id, "needs": list(stage.needs), "seconds": self.seconds[stage.id]}
                for stage in self.stages
                if stage.id in stages
            ],
            "done": list(done),
            "broken": list(broken),
            "need_bytes": target.need_bytes,
            "tensor_bytes": target.need_bytes - target.memory.get("runtime", 0),
            "force": self.wishes.force,
            "predicted": sums.predicted(size.config, size.sequence, size.decode),
        }


def planned(host: Host, wishes: Wishes, folders: Sequence[Path]) -> Planned:
    """Asks npu-smi once. Raises SmokeError for a call that makes no run, RuleError for rules that cannot be read."""
    sizes, gates, limits = smoke_sizes.load(folders), smoke_gates.load(folders), limit_rules.load(folders)
    try:
        size = sizes.named(wishes.size).changed(wishes.layers, wishes.experts, wishes.dtype, wishes.seq, wishes.decode)
    except RuleError as error:
        raise SmokeError(str(error)) from None
    dtype = wishes.dtype or ("auto" if size.dtype == "bf16" else size.dtype)
    costs = size.config, size.sequence, size.decode, size.dtype, limits
    on_host = sums.host_sum(*costs)
    targets = _targets(host, wishes, sums.device_sum(*costs), on_host, limits)
    refused = _host_refusal(host, on_host) if not wishes.force else ""
    if refused and not wishes.ranks:
        targets = tuple(_left_alone(target, target.refused or refused) for target in targets)
    ranks = wishes.ranks > 0
    stages = tuple(stage for stage in gates.stages if (stage.id == "ranks") == ranks)
    gib = sums.fp32_gib(size.config)
    seconds = {
        stage.id: wishes.step_seconds or float(ceil(stage.seconds + stage.seconds_per_gib * gib)) for stage in stages
    }
    return Planned(wishes, size, dtype, targets, stages, on_host, seconds)


def _targets(
    host: Host, wishes: Wishes, on_device: Mapping[str, int], on_host: Mapping[str, int], limits: Limits
) -> tuple[Target, ...]:
    found = _DEVICE.fullmatch(wishes.device)
    if not found:
        raise SmokeError(f"--device {wishes.device}: give auto, cpu, npu, npu:3 or cuda:0")
    kind, index = found[1] or wishes.device, None if found[2] is None else int(found[2])
    if kind == "auto":
        kind = _kind_here(host)
    many = wishes.each or wishes.ranks > 1
    if many and index is not None:
        raise SmokeError(
            f"--device {wishes.device} names one device, --each and --ranks mean several: name the kind alone"
        )
    if kind == "cpu":
        free = _host_free(host)
        return (Target("cpu", 0, "", "", on_host, free),) * max(1, wishes.ranks)
    if kind == "cuda":
        devices = range(wishes.ranks or (len(_nodes(host, r"nvidia\d+")) or 1 if wishes.each else 1))
        unknown = Missing(Reason.NOT_COLLECTED, "only torch knows")
        return tuple(Target("cuda", index or n, "", "", on_device, unknown) for n in devices)
    return _npus(host, wishes, index, on_device, limits)


def _kind_here(host: Host) -> str:
    """An NPU where a tool or a device node shows one, else a CUDA device, else the CPU."""
    if isinstance(npu.collect(host).facts.chips, tuple) or _nodes(host, r"davinci\d+"):
        return "npu"
    return "cuda" if _nodes(host, r"nvidia\d+") else "cpu"


def _nodes(host: Host, pattern: str) -> list[str]:
    names = host.list("/dev").value
    return [] if isinstance(names, Missing) else [name for name in names if re.fullmatch(pattern, name, re.ASCII)]


def _npus(
    host: Host, wishes: Wishes, index: int | None, parts: Mapping[str, int], limits: Limits
) -> tuple[Target, ...]:
    """Those that a process sees, in its order; without a name the first that is free."""
    facts = npu.collect(host).facts
    places = visible_chips(facts, env.collect(host).facts)
    if isinstance(places, Missing) or isinstance(facts.chips, Missing):
        return _unseen(host, wishes, index, parts, places if isinstance(places, Missing) else facts.chips)  # type: ignore[arg-type]
    seen = tuple(_npu(facts, place, number, parts, limits, wishes.force) for number, place in enumerate(places))
    free = [
        target
        for number, target in enumerate(seen)
        if not _npu(facts, places[number], number, parts, limits, False).refused  # forced or not
    ]
    if index is not None:
        chosen = [target for target in seen if target.index == index]
        if not chosen:
            raise SmokeError(f"--device npu:{index}: a process sees {len(seen)} NPUs here, numbered from 0")
        return tuple(chosen)
    if not seen:
        refused = "no NPU is visible: ASCEND_RT_VISIBLE_DEVICES lets none through; --device cpu runs without one"
        return (Target("npu", 0, "", refused, parts, Missing(Reason.ABSENT, "no NPU is visible")),)
    if wishes.each:
        return seen
    if wishes.ranks:
        if wishes.ranks > len(seen):
            raise SmokeError(f"--ranks {wishes.ranks}: a process sees {len(seen)} NPUs here")
        return tuple((free if len(free) >= wishes.ranks else seen)[: wishes.ranks])
    return ((free or seen)[0],)


def _unseen(
    host: Host, wishes: Wishes, index: int | None, parts: Mapping[str, int], why: Missing
) -> tuple[Target, ...]:
    """Nobody can tell who holds the card: so it is left alone."""
    said = why.detail or why.reason.value
    refused = "" if wishes.force else f"nobody can tell whether the NPU is free ({said}); --force runs nevertheless"
    count = wishes.ranks or (len(_nodes(host, r"davinci\d+")) or 1 if wishes.each else 1)
    return tuple(Target("npu", index or number, "", refused, parts, why) for number in range(count))


def _npu(facts: Npu, place: int, number: int, parts: Mapping[str, int], limits: Limits, force: bool) -> Target:
    assert isinstance(facts.chips, tuple)
    chip = facts.chips[place]
    name = chip.name if isinstance(chip.name, str) else ""
    rows = chip_memory.chips(facts, limits)
    if isinstance(rows, Missing):
        refused = f"nobody can tell whether NPU {number} is free ({rows.detail or rows.reason.value})"
        return Target("npu", number, name, "" if force else f"{refused}; --force runs nevertheless", parts, rows)
    row, need_mib = rows[place], -(-sum(parts.values()) // sums.MIB)
    refused = ""
    if row.holders:
        refused = f"NPU {row.name} is held by {row.holders}"
    elif row.busy is True:
        refused = f"{row.used_mib} MiB of NPU {row.name} are in use, more than a chip without work uses"
    elif not isinstance(row.free_mib, Missing) and row.free_mib < need_mib:
        refused = f"{row.free_mib} MiB are free on NPU {row.name}; needed are {sums.told(parts)}"
    elif isinstance(row.free_mib, Missing) or isinstance(row.busy, Missing):
        refused = f"nobody can tell how much of NPU {row.name} is free"
    hint = "; --device npu:N takes another one, --force runs nevertheless"
    return Target("npu", number, name, f"{refused}{hint}" if refused and not force else "", parts, row.free_mib)


def _host_free(host: Host) -> int | Missing:
    """MiB that a process may still take: of the machine, and of its control group."""
    free = host_memory.collect(host).facts.available_mib
    group = cgroup.collect(host).facts
    if isinstance(free, int) and isinstance(group.memory_limit_mib, int) and isinstance(group.memory_used_mib, int):
        return min(free, group.memory_limit_mib - group.memory_used_mib)
    return free


def _host_refusal(host: Host, parts: Mapping[str, int]) -> str:
    free = _host_free(host)
    if isinstance(free, Missing) or free * sums.MIB >= sum(parts.values()):
        return ""
    return f"{free} MiB of host memory are free; needed are {sums.told(parts)}; take a smaller --size, or --force"


def _left_alone(target: Target, refused: str) -> Target:
    return Target(target.kind, target.index, target.name, refused, target.memory, target.free_mib)
