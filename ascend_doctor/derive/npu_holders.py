"""Who holds the memory of the NPUs: process, user and container."""

from __future__ import annotations

from collections.abc import Sequence

from ascend_doctor.derive import rows
from ascend_doctor.facts.container import Container
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.npu_holders import Holder, NpuHolders
from ascend_doctor.facts.npu_table import Process
from ascend_doctor.host import Missing, Reason
from ascend_doctor.records import dataclass

SHOWN = 8


@dataclass(frozen=True)
class Held:
    """All processes that npu-smi shows; ``who`` says of each what it holds and whose it is."""

    count: int
    who: dict[str, str]
    pids: str
    reads: tuple[str, ...]


@rows("npu_holders.held")
def held(npu: Npu, npu_holders: NpuHolders, container: Container) -> tuple[Held, ...] | Missing:
    """One row. Inside a container npu-smi may show numbers of the host, which are other processes here."""
    if isinstance(npu.processes, Missing):
        return npu.processes
    if isinstance(npu.process_table_present, Missing):
        return npu.process_table_present
    if not npu.process_table_present:
        return Missing(Reason.FAILED, "npu-smi printed no process table", "npu.processes")
    unseen = next((p for p in npu.processes if isinstance(p, Missing)), None)
    if unseen:
        return unseen
    holders = (
        {} if container.inside is not False or isinstance(npu_holders.processes, Missing) else npu_holders.processes
    )
    by_pid: dict[int, list[Process]] = {}
    for process in npu.processes:
        by_pid.setdefault(process.pid, []).append(process)
    said = [(pid, _said(rows_, holders.get(pid))) for pid, rows_ in by_pid.items()]
    reads = ("npu.processes", *(f"npu_holders.processes[{pid}]" for pid in by_pid if pid in holders))
    who = {language: "; ".join(words[language] for _, words in said[:SHOWN]) for language in ("en", "zh")}
    if len(said) > SHOWN:
        who = {"en": f"{who['en']}; and {len(said) - SHOWN} more", "zh": f"{who['zh']}；另有 {len(said) - SHOWN} 个"}
    return (Held(len(said), who, ",".join(str(pid) for pid in by_pid), reads),)


def _said(processes: Sequence[Process], holder: Holder | None) -> dict[str, str]:
    """``78617 python3: NPU 0 57010 MiB, user root, container 5f3a9c1e7b42``."""
    name = next((p.name for p in processes if p.name), "")
    if holder and isinstance(holder.program, str):
        name = name or holder.program
    memory = ", ".join(
        f"NPU {p.npu_id} {'?' if isinstance(p.memory_mb, Missing) else p.memory_mb} MiB" for p in processes
    )
    head = f"{processes[0].pid} {name or '?'}: {memory}"
    if holder is None or isinstance(holder.uid, Missing):
        return {"en": head, "zh": head}
    user = holder.user if isinstance(holder.user, str) else f"uid {holder.uid}"
    words = {"en": f"{head}, user {user}", "zh": f"{head}，用户 {user}"}
    if isinstance(holder.container, str):
        return {"en": f"{words['en']}, container {holder.container}", "zh": f"{words['zh']}，容器 {holder.container}"}
    return words
