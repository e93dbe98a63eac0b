"""A launch command against this host and against the model's folder that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ascend_doctor.derive import rows
from ascend_doctor.derive.host import visible_chips
from ascend_doctor.derive.memory import VARIABLE, VISIBLE, MemSize, mem_size
from ascend_doctor.derive.parts import chip_families, chip_part
from ascend_doctor.facts.checkpoint import DESCRIPTION, Checkpoint
from ascend_doctor.facts.command_line import SGLANG, TORCHRUN, VLLM
from ascend_doctor.facts.launch import Launch
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
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
class Heads:
    """Of a model with latent attention, on one rank; ``tp``: what would give a number that is taken, 0 for none."""

    heads: int
    ranks: int
    each: int
    taken: bool
    reads: tuple[str, ...]


def whole(values: tuple[T, ...] | Missing) -> tuple[T, ...] | Missing:
    """A list one of whose elements is not known is not known."""
    if isinstance(values, Missing):
        return values
    return next((value for value in values if isinstance(value, Missing)), values)


def flags_of(launch: Launch) -> dict[str, str] | Missing:
    """The options; one that is not known leaves all unknown."""
    if isinstance(launch.flags, Missing):
        return launch.flags
    return next((value for value in launch.flags.values() if isinstance(value, Missing)), launch.flags)


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


def needed_here(launch: Launch) -> int | Missing:
    """Processes on this host, each with a device of its own."""
    return _needed(launch)[0]


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
