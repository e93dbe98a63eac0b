"""The numbers of MindIE's config.json against each other and against the devices here."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_doctor.derive import rows
from ascend_doctor.derive.budget import sums
from ascend_doctor.derive.host import visible_chips
from ascend_doctor.derive.launch import flags_of, whole
from ascend_doctor.derive.memory import VISIBLE
from ascend_doctor.facts.checkpoint import Checkpoint
from ascend_doctor.facts.demand import Demand
from ascend_doctor.facts.launch import Launch
from ascend_doctor.facts.mindie_config import MindieConfig
from ascend_doctor.facts.npu import Npu
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.cards import Cards
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.knowledge.models import Models
from ascend_doctor.records import dataclass

MIB = 1 << 20
OWN_OPTIONS = ("config-file", "config", "help", "h", "version", "v")


@dataclass(frozen=True)
class Numbers:
    """``listed``: devices in npuDeviceIds; ``beyond``: those that are not visible; ``vision``: a model that sees.

    ``stray``: options that the daemon does not have; ``uneven``: the ranks cannot share the heads.
    """

    file: str
    world_size: int | Missing
    listed: int | Missing
    several_nodes: bool | Missing
    beyond: str | Missing
    visible: int | Missing
    longest: int | Missing
    longest_input: int | Missing
    prefill_tokens: int | Missing
    memory_gib: int | Missing
    vision: bool | Missing
    block_size: int | Missing
    heads: int | Missing
    uneven: bool | Missing
    stray: str | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class CacheOfOne:
    """One sequence of maxSeqLen against npuMemSize, both for each NPU; ``blocks``: of cacheBlockSize tokens."""

    file: str
    memory_mib: int | Missing
    need_mib: int | Missing
    longest: int | Missing
    blocks: int | Missing
    reads: tuple[str, ...]


@rows("mindie_config.numbers")
def numbers(
    launch: Launch,
    mindie_config: MindieConfig,
    checkpoint: Checkpoint,
    npu: Npu,
    env: Mapping[str, str | Missing],
) -> tuple[Numbers, ...] | Missing:
    """One row where MindIE is to be started."""
    if isinstance(mindie_config.file, Missing):
        return mindie_config.file
    devices, here = whole(mindie_config.devices), visible_chips(npu, env)
    beyond: str | Missing
    if isinstance(devices, Missing) or isinstance(here, Missing):
        beyond = devices if isinstance(devices, Missing) else here  # type: ignore[assignment]
    else:
        beyond = ", ".join(str(device) for device in devices if not 0 <= device < len(here))
    row = Numbers(
        file=mindie_config.file,
        world_size=mindie_config.world_size,
        listed=devices if isinstance(devices, Missing) else len(devices),
        several_nodes=mindie_config.several_nodes,
        beyond=beyond,
        visible=here if isinstance(here, Missing) else len(here),
        longest=mindie_config.longest,
        longest_input=mindie_config.longest_input,
        prefill_tokens=mindie_config.prefill_tokens,
        memory_gib=mindie_config.memory_gib,
        vision=checkpoint.vision,
        block_size=mindie_config.block_size,
        heads=checkpoint.heads,
        uneven=_uneven(mindie_config, checkpoint),
        stray=_stray(launch),
        reads=("mindie_config", "npu.chips", f"env.{VISIBLE}"),
    )
    return (row,)


def _uneven(mindie: MindieConfig, checkpoint: Checkpoint) -> bool | Missing:
    for part in (mindie.several_nodes, mindie.world_size, checkpoint.heads):
        if isinstance(part, Missing):
            return part
    if mindie.several_nodes or not mindie.world_size:
        return False  # then the rank table tells how many there are
    return checkpoint.heads % mindie.world_size > 0  # type: ignore[operator]


def _stray(launch: Launch) -> str | Missing:
    flags = flags_of(launch)
    return flags if isinstance(flags, Missing) else ", ".join(f"--{name}" for name in flags if name not in OWN_OPTIONS)


@rows("mindie_config.cache")
def cache(
    mindie_config: MindieConfig,
    demand: Demand,
    npu: Npu,
    env: Mapping[str, str | Missing],
    models: Models,
    cards: Cards,
    limits: Limits,
) -> tuple[CacheOfOne, ...] | Missing:
    """One row where MindIE is to be started and npuMemSize is a number of GiB."""
    if isinstance(mindie_config.file, Missing):
        return mindie_config.file
    size, longest, block = mindie_config.memory_gib, mindie_config.longest, mindie_config.block_size
    if isinstance(size, Missing) or size < 1:
        return size if isinstance(size, Missing) and size.reason is not Reason.ABSENT else ()
    found = sums(demand, npu, env, models, cards, limits)
    need: int | Missing
    if isinstance(found, Missing):
        need = found
    else:
        lines = [line.bytes for line in found[0].lines if line.name == "kv_cache"]
        need = -(-lines[0] // MIB) if lines else Missing(Reason.FAILED, "no sum for this model", "demand.config")
    blocks: int | Missing
    if isinstance(longest, Missing) or isinstance(block, Missing):
        blocks = longest if isinstance(longest, Missing) else block
    else:
        blocks = -(-longest // block) if block > 0 else 0
    reads = ("mindie_config", "demand.config")
    return (CacheOfOne(mindie_config.file, size * 1024, need, longest, blocks, reads),)
