"""A launch command as it is judged: its facts, the host as the command will find it, the checks that hold for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ascend_doctor.facts import numactl
from ascend_doctor.facts.checkpoint import checkpoint
from ascend_doctor.facts.command_line import MINDIE, SGLANG, VLLM, Read, no_file
from ascend_doctor.facts.launch import Launch, launch, wishes
from ascend_doctor.facts.mindie_config import mindie_config
from ascend_doctor.host import Collected, Host, Missing, decoded
from ascend_doctor.host.launched import LaunchedHost
from ascend_doctor.records import dataclass

REPLACED = "memory.ascend-mem-size"
"""A check of hosts that has one of its own for launches."""
LONGER = ("rope-scaling", "rope-parameters", "hf-overrides")
"""Options that give a model another context than its config.json says."""
ALLOWED_LONGER = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"


@dataclass(frozen=True)
class Command:
    """A launch command as it was given, and its facts."""

    argv: tuple[str, ...]
    facts: Collected[Launch]

    @property
    def requested(self) -> tuple[str, ...]:
        """Globs of the checks that judge it."""
        launch = self.facts.facts
        serves = ("budget.*",) if launch.program in (VLLM, SGLANG) else ()
        own = ("mindie-config.*",) if launch.program == MINDIE else ()
        return ("launch.*", *serves, *own, *(("numactl.*",) if isinstance(launch.numactl, str) else ()))

    def passed_over(self, host: Host) -> tuple[str, ...]:
        """Checks that do not hold for it: the context of a model that is stretched, and what has another of its own."""
        flags = self.facts.facts.flags
        longer = isinstance(flags, dict) and any(name in flags for name in LONGER)
        return (REPLACED, "budget.context") if longer or host.env(ALLOWED_LONGER).value == "1" else (REPLACED,)


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
        own = mindie_config(host)
        return (command.facts, own, *checkpoint(host, own.facts.weights, None), *line)
    return (command.facts, *checkpoint(host, model, wishes(found, there)), *line)
