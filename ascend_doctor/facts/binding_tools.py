"""Whether the programs are there by which vllm-ascend binds its workers to CPUs and moves their memory.

Source: https://github.com/vllm-project/vllm-ascend/blob/main/docs/source/user_guide/feature_guide/cpu_binding.md
"""

from __future__ import annotations

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason
from ascend_doctor.records import dataclass

MOST_FOLDERS = 32


@dataclass(frozen=True)
class BindingTools:
    """``migratepages``: of the package numactl; it moves memory that is there already."""

    migratepages: bool | Missing
    lscpu: bool | Missing


def collect(host: Host) -> Collected[BindingTools]:
    """Looks into the folders of PATH; starts nothing."""
    area = Area("binding_tools")
    path = host.env("PATH").value
    return area.of(BindingTools(*(area.take(name, _there(host, path, name)) for name in ("migratepages", "lscpu"))))


def _there(host: Host, path: str | Missing, name: str) -> Parsed[bool | Missing]:
    if isinstance(path, Missing):
        return Parsed(path, "env:PATH", {"": path.detail or path.reason.value})
    unseen: Missing | None = None
    for folder in [folder for folder in path.split(":") if folder.startswith("/")][:MOST_FOLDERS]:
        answer = host.stat(f"{folder.rstrip('/')}/{name}")
        if not isinstance(answer.value, Missing):
            return Parsed(True, answer.source, {"": f"{folder}/{name}"})
        unseen = unseen or (answer.value if answer.value.reason is not Reason.ABSENT else None)
    return Parsed(False if unseen is None else unseen, "env:PATH", {"": f"no {name} in PATH"})
