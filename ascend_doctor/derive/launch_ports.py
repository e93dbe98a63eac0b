"""The ports that a launch will listen on, and the NPUs that it would share with a running job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ascend_doctor.derive import rows
from ascend_doctor.derive.host import visible_chips
from ascend_doctor.derive.launch import SERVERS, flags_of, needed_here, whole
from ascend_doctor.derive.memory import VISIBLE
from ascend_doctor.derive.network import BASE_PORT, HOST_RANGE, NPU_RANGE
from ascend_doctor.facts.command_line import MINDIE, TORCHRUN, VLLM
from ascend_doctor.facts.launch import Launch
from ascend_doctor.facts.launch_options import port as port_of
from ascend_doctor.facts.mindie_config import MindieConfig
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.ports import Ports
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass

RENDEZVOUS = ("standalone", "rdzv-endpoint", "rdzv-backend")
"""With these torchrun does not listen on --master-port."""


@dataclass(frozen=True)
class Listening:
    """``use``: what the port is for; ``taken``: somebody listens there; ``of_hccl``: HCCL will want it as well."""

    use: str
    port: int | Missing
    taken: bool | Missing
    of_hccl: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Shared:
    """NPUs that the launch would use and that another process holds; ``ranged``: its processes have own ports."""

    npus: str
    holders: str
    ranged: bool | Missing
    reads: tuple[str, ...]


@rows("launch_ports.listening")
def listening(
    launch: Launch, mindie_config: MindieConfig, ports: Ports, env: Mapping[str, str | Missing], limits: Limits
) -> tuple[Listening, ...] | Missing:
    """One row for each port that the command opens on this host."""
    if isinstance(launch.program, Missing):
        return launch.program
    taken, flags = whole(ports.listening), flags_of(launch)
    if isinstance(flags, Missing):
        return flags
    found = []
    for use, port in _ports(launch, flags, mindie_config):
        busy: bool | Missing
        if isinstance(port, Missing) or isinstance(taken, Missing):
            busy = port if isinstance(port, Missing) else taken  # type: ignore[assignment]
        else:
            busy = port in taken
        reads = ("launch.port", "ports.listening", f"env.{BASE_PORT}")
        found.append(Listening(use, port, busy, _of_hccl(port, launch, env, limits), reads))
    return tuple(found)


def _ports(launch: Launch, flags: Mapping[str, str], mindie: MindieConfig) -> Iterator[tuple[str, int | Missing]]:
    if launch.program in SERVERS and launch.headless is not True:
        yield "--port", launch.port
    leads = flags.get("data-parallel-start-rank", "0") == "0" and flags.get("node-rank", "0") == "0"
    if launch.program == VLLM and "data-parallel-rpc-port" in flags and leads:
        yield "--data-parallel-rpc-port", port_of(flags["data-parallel-rpc-port"])
    if launch.program == TORCHRUN and leads and not any(name in flags for name in RENDEZVOUS):
        yield "--master-port", launch.port
    if launch.program == MINDIE and isinstance(mindie.ports, dict):
        yield from mindie.ports.items()


def _of_hccl(port: int | Missing, launch: Launch, env: Mapping[str, str | Missing], limits: Limits) -> bool | Missing:
    """Whether it lies among the host ports of HCCL, where several ranks talk to each other."""
    base = _of(env, BASE_PORT)
    ranks = needed_here(launch)
    for part in (port, ranks):
        if isinstance(part, Missing):
            return False if part is ranks and part.reason is not Reason.NOT_COLLECTED else part
    if isinstance(base, Missing) and base.reason is not Reason.ABSENT:
        return base
    first = int(limits["network.hccl_base_port"])
    if isinstance(base, str):
        own = port_of(base)
        if isinstance(own, Missing):
            return False
        first = own
    assert isinstance(port, int)
    assert isinstance(ranks, int)
    return ranks > 1 and first <= port < first + int(limits["network.hccl_ports"])


@rows("launch_ports.shared")
def shared(launch: Launch, npu: Npu, env: Mapping[str, str | Missing]) -> tuple[Shared, ...] | Missing:
    """One row for a command of several ranks: HCCL listens on a fixed port of each NPU."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program not in (*SERVERS, TORCHRUN):
        return ()
    ranks, devices = needed_here(launch), visible_chips(npu, env)
    for part in (ranks, devices, npu.chips, npu.processes):
        if isinstance(part, Missing):
            return part
    assert isinstance(ranks, int)
    assert not isinstance(devices, Missing)
    assert not isinstance(npu.chips, Missing)
    assert not isinstance(npu.processes, Missing)
    if ranks < 2:
        return ()
    used = {(npu.chips[device].npu_id, npu.chips[device].chip_id) for device in devices[:ranks]}
    holding = [p for p in npu.processes if (p.npu_id, p.chip_id) in used]
    values = [
        env.get(name, Missing(Reason.NOT_COLLECTED, f"${name}", f"env.{name}")) for name in (NPU_RANGE, HOST_RANGE)
    ]
    ranged: bool | Missing = all(isinstance(value, str) and value.strip() for value in values)
    unseen = next((v for v in values if isinstance(v, Missing) and v.reason is not Reason.ABSENT), None)
    return (
        Shared(
            npus=", ".join(sorted({str(p.npu_id) for p in holding}, key=int)),
            holders=", ".join(f"{p.pid} {p.name or '?'}" for p in holding[:4]) + (", …" if len(holding) > 4 else ""),
            ranged=unseen or ranged,
            reads=("npu.processes", f"env.{VISIBLE}", f"env.{NPU_RANGE}"),
        ),
    )


def _of(env: Mapping[str, str | Missing], name: str) -> str | Missing:
    return env.get(name, Missing(Reason.NOT_COLLECTED, f"${name}", f"env.{name}"))
