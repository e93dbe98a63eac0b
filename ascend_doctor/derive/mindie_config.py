"""The numbers of MindIE's config.json against each other and against the devices here."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_doctor.derive import rows
from ascend_doctor.derive.host import visible_chips
from ascend_doctor.derive.launch import whole
from ascend_doctor.derive.memory import VISIBLE
from ascend_doctor.facts.checkpoint import Checkpoint
from ascend_doctor.facts.mindie_config import MindieConfig
from ascend_doctor.facts.npu import Npu
from ascend_doctor.host import Missing
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Numbers:
    """``listed``: devices in npuDeviceIds; ``beyond``: those that are not visible; ``vision``: a model that sees."""

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
    reads: tuple[str, ...]


@rows("mindie_config.numbers")
def numbers(
    mindie_config: MindieConfig, checkpoint: Checkpoint, npu: Npu, env: Mapping[str, str | Missing]
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
        reads=("mindie_config", "npu.chips", f"env.{VISIBLE}"),
    )
    return (row,)
