"""Loading the weights of a launch: over which file system, into how much host memory, and where a hub's model goes."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_doctor.derive import rows
from ascend_doctor.derive.budget import sums
from ascend_doctor.derive.launch import SERVERS, flags_of, needed_here, whole
from ascend_doctor.facts.cgroup import Cgroup
from ascend_doctor.facts.checkpoint import Checkpoint
from ascend_doctor.facts.command_line import MINDIE
from ascend_doctor.facts.demand import Demand
from ascend_doctor.facts.launch import Launch
from ascend_doctor.facts.launch_options import share_of_gib
from ascend_doctor.facts.memory import Memory
from ascend_doctor.facts.model_place import ModelPlace
from ascend_doctor.facts.npu import Npu
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.cards import Cards
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.knowledge.models import Models
from ascend_doctor.records import dataclass

MIB = 1 << 20
NOTHING = Missing(Reason.UNSUPPORTED, "no weight files are there to be measured", "checkpoint.shards")


@dataclass(frozen=True)
class Loading:
    """``ranks``: processes here that read the weights; ``strategy``: --safetensors-load-strategy, "" for none.

    ``largest_mib``: the largest file. ``free_mib``: of the host, or what the container may still use. ``offload_mib``:
    what --cpu-offload-gb keeps in host memory for all ranks here.
    """

    folder: str
    filesystem: str | Missing
    device: str | Missing
    weights_mib: int | Missing
    largest_mib: int | Missing
    free_mib: int | Missing
    ranks: int | Missing
    strategy: str
    offload_mib: int | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Download:
    """A model that is named and not a folder here. ``cached``: something of it is in the cache already."""

    model: str
    cache: str | Missing
    cached: bool | Missing
    offline: bool | Missing
    free_mib: int | Missing
    need_mib: int | Missing
    reads: tuple[str, ...]


@rows("storage.loading")
def loading(
    launch: Launch, checkpoint: Checkpoint, model_place: ModelPlace, memory: Memory, cgroup: Cgroup
) -> tuple[Loading, ...] | Missing:
    """One row where a command serves the model of a folder."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program not in (*SERVERS, MINDIE):
        return ()
    if isinstance(checkpoint.folder, Missing):
        return checkpoint.folder
    shards = whole(checkpoint.shards)
    sizes: list[int] | Missing
    if isinstance(shards, Missing):
        sizes = NOTHING if shards.reason is Reason.ABSENT else shards
    else:
        unknown = next((shard.size_bytes for shard in shards if isinstance(shard.size_bytes, Missing)), None)
        sizes = unknown or [shard.size_bytes for shard in shards]
    flags = flags_of(launch)
    if isinstance(flags, Missing):
        return flags
    ranks = needed_here(launch)
    offload = share_of_gib(flags.get("cpu-offload-gb", "0"))
    kept = ranks if isinstance(ranks, Missing) else offload
    return (
        Loading(
            folder=checkpoint.folder,
            filesystem=model_place.filesystem,
            device=model_place.device,
            weights_mib=sizes if isinstance(sizes, Missing) else -(-sum(sizes) // MIB),
            largest_mib=sizes if isinstance(sizes, Missing) else -(-max(sizes, default=0) // MIB),
            free_mib=_free(memory, cgroup),
            ranks=ranks,
            strategy=flags.get("safetensors-load-strategy", ""),
            offload_mib=kept if isinstance(kept, Missing) else 0 if not offload else _times(offload, ranks),
            reads=("checkpoint.shards", "memory.available_mib", "cgroup.memory_limit_mib", "model_place.filesystem"),
        ),
    )


def _times(gib: float | Missing, ranks: int | Missing) -> int | Missing:
    if isinstance(gib, Missing) or isinstance(ranks, Missing):
        return gib if isinstance(gib, Missing) else ranks
    return int(gib * 1024) * ranks


def _free(memory: Memory, cgroup: Cgroup) -> int | Missing:
    """What is available, no more than the control group leaves."""
    limit, used = cgroup.memory_limit_mib, cgroup.memory_used_mib
    if isinstance(limit, Missing):
        return memory.available_mib if limit.reason is Reason.ABSENT else limit
    if isinstance(used, Missing) or isinstance(memory.available_mib, Missing):
        return used if isinstance(used, Missing) else memory.available_mib
    return min(memory.available_mib, limit - used)


@rows("storage.download")
def download(
    launch: Launch,
    model_place: ModelPlace,
    demand: Demand,
    npu: Npu,
    env: Mapping[str, str | Missing],
    models: Models,
    cards: Cards,
    limits: Limits,
) -> tuple[Download, ...] | Missing:
    """One row where a command serves a model by its name."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program not in SERVERS:
        return ()
    model = launch.model
    if isinstance(model, Missing):
        return model
    if "/" not in model or model.startswith(("/", ".")):
        return ()  # a folder, or no name that a hub has
    found = sums(demand, npu, env, models, cards, limits)
    weights = found if isinstance(found, Missing) else found[0].weights_bytes
    return (
        Download(
            model=model,
            cache=model_place.cache,
            cached=model_place.cached,
            offline=model_place.offline,
            free_mib=model_place.free_mib,
            need_mib=weights if isinstance(weights, Missing) else -(-weights // MIB),
            reads=("launch.model", "model_place"),
        ),
    )
