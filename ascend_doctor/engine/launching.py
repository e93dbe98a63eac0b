"""A launch command as it is judged: its facts, the host as the command will find it, the checks that hold for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ascend_doctor.facts import numactl
from ascend_doctor.facts.atc import atc
from ascend_doctor.facts.checkpoint import checkpoint
from ascend_doctor.facts.command_line import ATC, MINDIE, SGLANG, VLLM, Read, no_file
from ascend_doctor.facts.demand import Wishes
from ascend_doctor.facts.launch import Launch, launch, wishes
from ascend_doctor.facts.launch_options import share
from ascend_doctor.facts.mindie_config import MindieConfig, mindie_config
from ascend_doctor.facts.model_place import model_place
from ascend_doctor.facts.rank_table import VARIABLES
from ascend_doctor.host import Collected, Host, Missing, Reason, decoded
from ascend_doctor.host.launched import LaunchedHost
from ascend_doctor.records import dataclass

REPLACED = "memory.ascend-mem-size"
"""A check of hosts that has one of its own for launches."""
OF_ATC = ("launch.framework", "launch.input-shape", "launch.precision-mode", "launch.model-file", "launch.soc-version")
LONGER = ("rope-scaling", "rope-parameters", "hf-overrides")
"""Options that give a model another context than its config.json says."""
ALLOWED_LONGER = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
FRACTION, MINDIE_SHARE = "NPU_MEMORY_FRACTION", 0.8
"""MindIE's share of a device's memory, and what it is where nobody says."""


def by_environment(host: Host) -> tuple[str, ...]:
    """Globs of checks on request that a variable asks for."""
    values = (host.env(name).value for name in VARIABLES)
    return ("rank-table.*",) if any(value for value in values if isinstance(value, str)) else ()


@dataclass(frozen=True)
class Command:
    """A launch command as it was given, and its facts."""

    argv: tuple[str, ...]
    facts: Collected[Launch]

    @property
    def requested(self) -> tuple[str, ...]:
        """Globs of the checks that judge it."""
        launch = self.facts.facts
        serves = ("budget.*",) if launch.program in (VLLM, SGLANG, MINDIE) else ()
        own = ("mindie-config.*",) if launch.program == MINDIE else ()
        return ("launch.*", *serves, *own, *(("numactl.*",) if isinstance(launch.numactl, str) else ()))

    def passed_over(self, host: Host) -> tuple[str, ...]:
        """Checks that do not hold for it: the context of a model that is stretched, and what has another of its own."""
        flags = self.facts.facts.flags
        longer = isinstance(flags, dict) and any(name in flags for name in LONGER)
        longer = longer or host.env(ALLOWED_LONGER).value == "1"
        others = () if self.facts.facts.program == ATC else OF_ATC  # not even read
        return (REPLACED, *others, *(("budget.context",) if longer else ()))


def command_of(argv: Sequence[str], host: Host | None = None, folder: str = "") -> Command | None:
    """None where no command was given.

    With a host the scripts and files of options that it names are read there; ``folder``: what relative paths are of.
    """
    return Command(tuple(argv), launch(argv, _reader(host, folder) if host else no_file)) if argv else None


def _reader(host: Host, folder: str) -> Read:
    def read(path: str) -> str | Missing:
        answer = host.read(path if path.startswith("/") or not folder else f"{folder}/{path}")
        return answer.value if isinstance(answer.value, Missing) else decoded(answer.value)

    return read


def launched(host: Host, command: Command, names: Collection[str], prefixes: Sequence[str]) -> Host:
    """The host with the variables of the command that the rules know."""
    found = command.facts.facts
    assigned: dict[str, str] = found.assigned if isinstance(found.assigned, dict) else {}
    unset = found.unset if isinstance(found.unset, tuple) else ()
    if not assigned and not unset and found.cleared is not True:
        return host
    starts = tuple(prefixes)
    known = {name: value for name, value in assigned.items() if name in names or name.startswith(starts)}
    return LaunchedHost(host, known, unset, found.cleared is True)


def given(host: Host, command: Command, folder: str | None = None) -> tuple[Collected[Any], ...]:
    """The areas that follow from the command: itself, the model's folder, its demand, its numactl line.

    ``folder``: the whole path of the model where the command names one relative to its working folder.
    """
    found = command.facts.facts
    model = folder or found.model
    there = isinstance(model, str) and model.startswith("/") and not isinstance(host.list(model).value, Missing)
    line = (numactl.line(found.numactl),) if isinstance(found.numactl, str) else ()
    if found.program == MINDIE:
        own = mindie_config(host, found.config)
        model = own.facts.weights
        asked = of_mindie(own.facts, host.env(FRACTION).value)
        return (command.facts, own, model_place(host, model), *checkpoint(host, model, asked), *line)
    if found.program == ATC:
        return (command.facts, atc(host, model), *line)
    return (command.facts, model_place(host, model), *checkpoint(host, model, wishes(found, there)), *line)


def of_mindie(config: MindieConfig, fraction: str | Missing) -> Wishes | Missing | None:
    """What the sum of memory needs to know of MindIE's settings; None where they name no model."""
    if isinstance(config.weights, Missing):
        return None
    for part in (config.several_nodes, config.world_size, config.longest, config.prefill_tokens):
        if isinstance(part, Missing) and part.reason is not Reason.ABSENT:
            return part
    if config.several_nodes is True or isinstance(config.world_size, Missing) or not 0 < config.world_size < 1 << 16:
        return Missing(Reason.FAILED, "how many ranks there are is not said", "mindie_config.world_size")
    if isinstance(fraction, Missing) and fraction.reason is not Reason.ABSENT:
        return fraction
    taken = share(fraction) if isinstance(fraction, str) else MINDIE_SHARE
    tokens, batched = config.longest, config.prefill_tokens
    return Wishes(
        config.weights,
        tp=config.world_size,
        max_model_len=tokens if isinstance(tokens, int) and tokens > 0 else None,
        batched_tokens=batched if isinstance(batched, int) and batched > 0 else None,
        gpu_memory_utilization=MINDIE_SHARE if isinstance(taken, Missing) else taken,
        eager=True,
    )
