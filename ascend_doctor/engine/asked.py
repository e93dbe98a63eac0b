"""What somebody asks of a host beside its own state: a launch command, a plan of CPUs, a running service.

Each adds areas of facts that no host tells, and the checks that judge them.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ascend_doctor.engine.launching import Command, by_environment, command_of, given, launched
from ascend_doctor.facts.numa import cpu_set
from ascend_doctor.facts.placement import placement
from ascend_doctor.facts.processes import of_process
from ascend_doctor.host import Collected, Host, Missing
from ascend_doctor.host.delta import HostError
from ascend_doctor.records import dataclass

KEYS = ("launch", "devices", "per_worker", "pid")


@dataclass(frozen=True)
class Asked:
    """``requested``: globs of checks that are judged on request only; ``passed_over``: of those that do not hold."""

    host: Host
    given: tuple[Collected[Any], ...]
    requested: tuple[str, ...]
    passed_over: tuple[str, ...]


def asked(host: Host, words: Mapping[str, Any], where: str, known: tuple[Collection[str], Sequence[str]]) -> Asked:
    """``asked`` of a host.yaml. ``known``: names and prefixes of variables. Raises HostError."""
    unknown = [key for key in words if key not in KEYS]
    if unknown:
        raise HostError(f"{where}: asked: {unknown[0]} is unknown; give {', '.join(KEYS)}")
    areas: tuple[Collected[Any], ...] = ()
    requested: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    command = command_of(shlex.split(str(words.get("launch", ""))), host) if "launch" in words else None
    if isinstance(command, Command):
        host = launched(host, command, *known)
        areas += given(host, command)
        requested, passed_over = command.requested, command.passed_over(host)
    if "devices" in words:
        devices = cpu_set(str(words["devices"]))
        if isinstance(devices, Missing):
            raise HostError(f"{where}: asked: devices: {words['devices']} is no list such as 0-3")
        areas += (placement(tuple(sorted(devices)), words.get("per_worker")),)
        requested += ("placement.*",)
    if "pid" in words:
        areas += (of_process(host, int(words["pid"])),)
        requested += ("binding.*",)
    return Asked(host, areas, (*requested, *by_environment(host)), passed_over)
