"""A launch command against this host and against the model's folder that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ascend_doctor.derive import rows
from ascend_doctor.derive.host import visible_chips
from ascend_doctor.derive.memory import VARIABLE, VISIBLE, MemSize, mem_size
from ascend_doctor.derive.parts import chip_families, chip_part, package, release
from ascend_doctor.facts.checkpoint import BROKEN, CUT, DESCRIPTION, GONE, IS_POINTER, Checkpoint, Shard
from ascend_doctor.facts.command_line import ATC, SGLANG, TORCHRUN, VLLM
from ascend_doctor.facts.launch import Launch
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.ports import Ports
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.chips import Chips
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass

T = TypeVar("T")
SERVERS = (VLLM, SGLANG)
NAMED = 3
"""Files that a finding names; the rest is a number."""
TYPES = {"bf16": "bfloat16", "half": "float16", "fp16": "float16", "float": "float32", "fp32": "float32"}
LATENT_HEADS = (32, 64, 128)
"""Heads on a rank that the operator of the FAQ takes."""


@dataclass(frozen=True)
class Ranks:
    """``needed``: processes on this host, each with a device of its own; ``words``: how that was counted."""

    needed: int | Missing
    visible: int | Missing
    words: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Numbers:
    """``dtype``: as the model will be computed; ``said_by``: the option or the file; ``chips``: those that lack it."""

    dtype: str | Missing
    said_by: str
    lacking: str | Missing
    quantised: bool | Missing
    wants_bfloat16: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """The model's folder and its weight files; texts name some of the bad ones, "" where there is none."""

    folder: str
    there: bool | Missing
    count: int | Missing
    gone: str | Missing
    cut: str | Missing
    pointers: str | Missing
    broken: str | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """What a quantised checkpoint is read by; ``near``: a file whose name is almost right."""

    folder: str
    there: bool | Missing
    near: str | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Service:
    """The port that the command is to listen on."""

    port: int | Missing
    taken: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Heads:
    """Of a model with latent attention, on one rank; ``tp``: what would give a number that is taken, 0 for none."""

    heads: int
    ranks: int
    each: int
    taken: bool
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """``newer``: the file was written by a later release of transformers than the one here."""

    architecture: str
    wanted: str | Missing
    here: str | Missing
    newer: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """What atc is to compile for, against the chips here; ``other``: no chip here is of that family."""

    soc: str
    chips: str | Missing
    other: bool | Missing
    reads: tuple[str, ...]


def whole(values: tuple[T, ...] | Missing) -> tuple[T, ...] | Missing:
    """A list one of whose elements is not known is not known."""
    if isinstance(values, Missing):
        return values
    return next((value for value in values if isinstance(value, Missing)), values)


@rows("launch.ranks_here")
def ranks_here(launch: Launch, npu: Npu, env: Mapping[str, str | Missing]) -> tuple[Ranks, ...] | Missing:
    """One row for a command that is known to start ranks."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program not in (*SERVERS, TORCHRUN):
        return ()
    devices = visible_chips(npu, env)
    visible = devices if isinstance(devices, Missing) else len(devices)
    needed, words = _needed(launch)
    return (Ranks(needed, visible, words, ("launch", "npu.chips", f"env.{VISIBLE}")),)


def _needed(launch: Launch) -> tuple[int | Missing, str]:
    if launch.program == TORCHRUN:
        number = launch.ranks
        wide = isinstance(number, Missing) and number.reason is Reason.FAILED
        return (
            Missing(Reason.UNSUPPORTED, "as many as there are", "launch.ranks") if wide else number
        ), "nproc_per_node"
    if launch.backend == "ray":
        return Missing(Reason.UNSUPPORTED, "Ray places the ranks", "launch.backend"), "Ray"
    parts = {
        "TP": launch.tensor_parallel,
        "PP": launch.pipeline_parallel,
        "PCP": launch.context_parallel,
        "DP": 1 if _one_of_data(launch) else launch.data_local,
    }
    number = 1
    for part in (*parts.values(), launch.nodes):
        if isinstance(part, Missing):
            return part, ""
    for part in parts.values():
        number *= part if isinstance(part, int) else 1
    nodes = launch.nodes if isinstance(launch.nodes, int) and launch.nodes > 0 else 1
    words = " x ".join(f"{name} {part}" for name, part in parts.items() if part != 1)
    return -(-number // nodes), (words or "TP 1") + (f" / {nodes} nodes" if nodes > 1 else "")


def _one_of_data(launch: Launch) -> bool:
    """Whether another command starts the other ranks of DP, or they share the devices of TP."""
    flags = {} if isinstance(launch.flags, Missing) else launch.flags
    return "data-parallel-rank" in flags or "dpr" in flags or "enable-dp-attention" in flags


@rows("launch.numbers")
def numbers(launch: Launch, checkpoint: Checkpoint, npu: Npu, pci: Pci, chips: Chips) -> tuple[Numbers, ...] | Missing:
    """One row for a command that serves a model."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program not in SERVERS:
        return ()
    dtype, said_by = launch.dtype, "--dtype"
    if dtype == "auto" or (isinstance(dtype, Missing) and dtype.reason is Reason.ABSENT):
        dtype, said_by = checkpoint.dtype, "config.json"
    families = chip_families(npu, pci, chips)
    plain = dtype if isinstance(dtype, Missing) else TYPES.get(dtype.lower(), dtype.lower())
    lacking: str | Missing
    if isinstance(families, Missing):
        lacking = families
    elif not any(family.lacks for family in families):
        lacking = ""
    elif isinstance(plain, Missing):
        lacking = plain
    else:
        lacking = str(chip_part(npu, pci, chips).version) if any(plain in f.lacks for f in families) else ""
    wants = families if isinstance(families, Missing) else any(f.family in ("910b", "910_93") for f in families)
    reads = ("launch.dtype", "checkpoint.dtype", "npu.chips")
    return (Numbers(plain, said_by, lacking, _quantised(launch, checkpoint), wants, reads),)


def _quantised(launch: Launch, checkpoint: Checkpoint) -> bool | Missing:
    """Whether weights are read by msModelSlim's description."""
    if isinstance(launch.quantization, str):
        return launch.quantization in ("ascend", "modelslim")
    if launch.quantization.reason is not Reason.ABSENT:
        return launch.quantization
    there = whole(checkpoint.descriptions)
    if isinstance(there, Missing):
        return False if there.reason in (Reason.ABSENT, Reason.UNSUPPORTED) else there
    return f"{DESCRIPTION}.json" in there


@rows("launch.files")
def files(launch: Launch, checkpoint: Checkpoint) -> tuple[Files, ...] | Missing:
    """One row where the command names a folder."""
    if isinstance(launch.program, Missing):
        return launch.program
    if isinstance(checkpoint.folder, Missing):
        return checkpoint.folder
    shards = whole(checkpoint.shards)
    if isinstance(shards, Missing):
        nothing = shards if shards.reason is not Reason.ABSENT else None
        none: str | Missing = nothing or ""
        count: int | Missing = nothing or 0
        return (Files(checkpoint.folder, checkpoint.there, count, none, none, none, none, ("checkpoint",)),)
    return (
        Files(
            folder=checkpoint.folder,
            there=checkpoint.there,
            count=len(shards),
            gone=_named(shards, GONE, lambda s: ""),
            cut=_named(shards, CUT, lambda s: f" ({s.size_bytes} of {s.wanted_bytes or '?'} bytes)"),
            pointers=_named(shards, IS_POINTER, lambda s: f" ({s.size_bytes} bytes)"),
            broken=_named(shards, BROKEN, lambda s: f" ({s.detail})"),
            reads=("checkpoint.shards", "checkpoint.descriptions"),
        ),
    )


def _named(shards: Sequence[Shard], problem: str, more: Callable[[Shard], str]) -> str | Missing:
    """The first few with that problem; a file that could not be read leaves open whether there are others."""
    found = [shard for shard in shards if shard.problem == problem]
    if not found:
        return next((shard.problem for shard in shards if isinstance(shard.problem, Missing)), "")
    text = ", ".join(f"{shard.name}{more(shard)}" for shard in found[:NAMED])
    return text + (f", … ({len(found)})" if len(found) > NAMED else "")


@rows("launch.description")
def description(launch: Launch, checkpoint: Checkpoint) -> tuple[Description, ...] | Missing:
    """One row where a folder is served by vllm-ascend's own way of quantisation."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program != VLLM or launch.quantization != "ascend" or isinstance(checkpoint.folder, Missing):
        unsaid = launch.quantization if isinstance(launch.quantization, Missing) else None
        return unsaid if unsaid and unsaid.reason is not Reason.ABSENT else ()
    names = whole(checkpoint.descriptions)
    reads = ("launch.quantization", "checkpoint.descriptions")
    if isinstance(names, Missing):
        gone = names.reason is Reason.ABSENT
        return () if gone else (Description(checkpoint.folder, names, names, reads),)
    exact = f"{DESCRIPTION}.json"
    return (Description(checkpoint.folder, exact in names, ", ".join(n for n in names if n != exact), reads),)


@rows("launch.service")
def service(launch: Launch, ports: Ports) -> tuple[Service, ...] | Missing:
    """One row where the command listens."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program not in SERVERS or launch.headless is True:
        return ()
    port, listening = launch.port, ports.listening
    taken: bool | Missing
    if isinstance(port, Missing) or isinstance(listening, Missing):
        taken = port if isinstance(port, Missing) else listening  # type: ignore[assignment]
    else:
        open_ports = whole(listening)
        taken = open_ports if isinstance(open_ports, Missing) else port in open_ports
    return (Service(port, taken, ("launch.port", "ports.listening")),)


@rows("launch.heads")
def heads(launch: Launch, checkpoint: Checkpoint) -> tuple[Heads, ...] | Missing:
    """One row for a model with latent attention that is to run as captured graphs."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program != VLLM or launch.eager is True:
        return ()
    for part in (checkpoint.latent, checkpoint.heads, launch.tensor_parallel):
        if isinstance(part, Missing):
            return part
    count, ranks = checkpoint.heads, launch.tensor_parallel
    if not checkpoint.latent or isinstance(count, Missing) or isinstance(ranks, Missing) or not ranks or count % ranks:
        return ()
    reads = ("checkpoint.heads", "launch.tensor_parallel")
    return (Heads(count, ranks, count // ranks, count // ranks in LATENT_HEADS, reads),)


@rows("launch.written")
def written(launch: Launch, checkpoint: Checkpoint, python: TargetPython) -> tuple[Written, ...] | Missing:
    """One row where config.json tells which transformers wrote it."""
    if isinstance(launch.program, Missing):
        return launch.program
    wanted, kind = checkpoint.transformers, checkpoint.architecture
    if isinstance(wanted, Missing):
        return wanted
    if isinstance(python.packages, Missing):
        return python.packages
    part = package(python, "transformers")
    if part is None:
        return ()
    here = part.version
    newer = here if isinstance(here, Missing) else release(wanted)[:2] > release(here)[:2]
    name = kind if isinstance(kind, str) else "?"
    return (Written(name, wanted, here, newer, ("checkpoint.transformers", part.path)),)


@rows("launch.target")
def target(launch: Launch, npu: Npu, pci: Pci, chips: Chips) -> tuple[Target, ...] | Missing:
    """One row for atc."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program != ATC or isinstance(launch.soc_version, Missing):
        return ()
    wanted, here = chips.named(launch.soc_version), chip_families(npu, pci, chips)
    reads = ("launch.soc_version", "npu.chips")
    other: bool | Missing
    if isinstance(here, Missing):
        return (Target(launch.soc_version, here, here, reads),)
    if wanted is None:
        other = Missing(Reason.FAILED, f"{launch.soc_version} is no chip that the rules know", "launch.soc_version")
    else:
        other = wanted.family not in {family.family for family in here}
    return (Target(launch.soc_version, chip_part(npu, pci, chips).version, other, reads),)


@rows("launch.mem_size")
def of_launch(
    launch: Launch, npu: Npu, env: Mapping[str, str | Missing], limits: Limits
) -> tuple[MemSize, ...] | Missing:
    """As memory.mem_size, where a command is given that will see the variable."""
    if isinstance(launch.program, Missing):
        return launch.program
    value = env.get(VARIABLE)
    if isinstance(value, Missing) and value.reason is Reason.ABSENT:
        return ()
    return mem_size(npu, env, limits)
