"""Who the processes are that npu-smi shows on the NPUs: program, user and container.

Sources: proc(5) (status, cgroup of each process), passwd(5); names of control groups as Docker, containerd, CRI-O,
Podman and LXC give them. A process's environment and arguments are not read. Inside a container the numbers that
npu-smi shows may be of the host, where other processes have them here: who asks for the rows has to know.
"""

from __future__ import annotations

import re

from ascend_doctor.facts.npu import COMMAND, npu_smi_info
from ascend_doctor.facts.user import accounts
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, keyed, parsed
from ascend_doctor.records import dataclass

MOST = 128
"""Processes that are looked at: a chip has eight in the table."""

NO_CONTAINER = Missing(Reason.ABSENT, "in no container's control group")
_ID = re.compile(r"(?<![0-9a-f])([0-9a-f]{12})[0-9a-f]{52}(?![0-9a-f])")
_NAME = re.compile(r"/lxc(?:\.payload)?[./]([\w.-]{1,64})")


@dataclass(frozen=True)
class Holder:
    """``container``: the first twelve characters of its id, or its name; ``user`` is absent without an entry."""

    pid: int
    program: str | Missing
    uid: int | Missing
    user: str | Missing
    container: str | Missing


@dataclass(frozen=True)
class NpuHolders:
    """By process: ``processes[78617]``."""

    processes: dict[int, Holder] | Missing


def program(text: bytes) -> str | Missing:
    """``Name`` of /proc/PID/status."""
    found = re.search(r"(?m)^Name:\t?[ ]*(\S[^\n]{0,63})$", decoded(text))
    return found[1] if found else Missing(Reason.FAILED, "no line Name")


def owner(text: bytes) -> Shown[int | Missing]:
    """The effective user of /proc/PID/status: whose rights the process has."""
    found = re.search(r"(?m)^Uid:\s+\d{1,10}\s+(\d{1,10})\b[^\n]*$", decoded(text), re.ASCII)
    if not found:
        return Shown(Missing(Reason.FAILED, "no line Uid"), {"": "no line Uid"})
    return Shown(int(found[1]), {"": " ".join(found[0].split())})


def container_of(text: bytes) -> str | Missing:
    """Of /proc/PID/cgroup."""
    said = decoded(text)
    found = _ID.search(said) or _NAME.search(said)
    return found[1] if found else NO_CONTAINER


def collect(host: Host) -> Collected[NpuHolders]:
    """Reads two files for each process that npu-smi shows; starts nothing but ``npu-smi info``."""
    area = Area("npu_holders")
    pids: Parsed[tuple[int, ...]] = parsed(
        host.run(COMMAND), lambda output: _pids(output.stdout + b"\n" + output.stderr)
    )
    shown = area.take("processes", pids)
    if isinstance(shown, Missing):
        return area.of(NpuHolders(shown))
    return area.of(NpuHolders({pid: _holder(host, area, pid) for pid in shown[:MOST]}))


def _pids(data: bytes) -> Shown[tuple[int, ...]]:
    table = npu_smi_info(data).value
    found = Missing(Reason.FAILED, "no table") if isinstance(table, Missing) else table.processes
    if isinstance(found, Missing):
        return Shown(found, {"": found.detail})
    pids = tuple(dict.fromkeys(process.pid for process in found))
    return Shown(pids, {"": f"{len(pids)} processes"})


def _holder(host: Host, area: Area, pid: int) -> Holder:
    path, status = keyed("processes", pid), host.read(f"/proc/{pid}/status")
    asked: Parsed[int | Missing] = parsed(status, owner)
    uid = area.take(f"{path}.uid", asked)
    return Holder(
        pid=pid,
        program=area.take(f"{path}.program", parsed(status, program)),
        uid=uid,
        user=_user(host, area, uid, path),
        container=area.take(f"{path}.container", parsed(host.read(f"/proc/{pid}/cgroup"), container_of)),
    )


def _user(host: Host, area: Area, uid: int | Missing, path: str) -> str | Missing:
    if isinstance(uid, Missing):
        return uid
    known = parsed(host.read("/etc/passwd"), accounts)
    if isinstance(known.value, Missing):
        return known.value
    line = known.value.get(uid)
    nobody = f"no entry for {uid}"
    shown = line[0] if line else nobody
    area.provenance[f"npu_holders.{path}.user"] = (known.source, shown)
    return line[0] if line else Missing(Reason.ABSENT, nobody)
