"""What maintainers ask for in an issue: versions, npu-smi, how CANN was installed, environment, the command.

The parts of vllm-ascend's collect_env.py (its issue form wants that script's output), from facts and without running
torch or vLLM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ascend_doctor.host import Host, Missing, Output

PACKAGES = (
    *("torch", "torch_npu", "torchvision", "vllm", "vllm_ascend", "transformers", "numpy", "triton", "triton_ascend"),
    *("sglang", "mindspore", "compressed_tensors", "mooncake", "ray", "tokenizers"),
)
LONGEST = 12_000
"""Characters of one part."""

Section = dict[str, Any]


def issue_block(host: Host, facts: Mapping[str, Any], command: str | None = None) -> list[Section]:
    """Each part with its title; what is not known is left out, but for npu-smi, whose silence tells something."""
    parts = (
        ("versions", "Versions", "版本", "\n".join(_versions(host, facts))),
        ("npu", "npu-smi info", "npu-smi info", _npu_smi(host)),
        ("cann", "CANN", "CANN", "\n".join(_cann(host, facts))),
        ("environment", "Environment", "环境变量", "\n".join(_environment(facts))),
        ("command", "Command", "启动命令", command or "\n".join(_commands(host, facts))),
    )
    return [
        {"name": name, "title": {"en": en, "zh": zh}, "text": text[:LONGEST]} for name, en, zh, text in parts if text
    ]


def _versions(host: Host, facts: Mapping[str, Any]) -> Iterator[str]:
    known = {
        area: facts.get(area) or {} for area in ("os_release", "kernel", "python", "driver", "glibc", "cpu", "npu")
    }
    python, packages = known["python"], known["python"].get("packages") or {}
    chips = [chip for chip in known["npu"].get("chips") or () if chip.get("name")]
    names = dict.fromkeys(chip["name"] for chip in chips)
    lines = {
        "OS": known["os_release"].get("name"),
        "Kernel": known["kernel"].get("release"),
        "Architecture": known["kernel"].get("arch"),
        "Libc": known["glibc"].get("version"),
        "Machine": (facts.get("machine") or {}).get("product"),
        "CPUs": known["cpu"].get("online_count"),
        "Memory": f"{mib} MiB" if (mib := (facts.get("memory") or {}).get("total_mib")) else None,
        "Container": (facts.get("container") or {}).get("kind"),
        "NPU": f"{len(chips)} x {', '.join(names)}" if chips else None,
        "Driver": known["driver"].get("version") or known["npu"].get("driver_version"),
        "Firmware": known["driver"].get("firmware_version"),
        "CANN": ", ".join(str(root["version"]) for root in _roots(facts) if root.get("version")),
        "NNAL": ", ".join(str(one.get("version")) for one in (facts.get("nnal") or {}).get("installations") or ()),
        "Python": python.get("version"),
    }
    yield from (f"{name}: {value}" for name, value in lines.items() if value)
    yield from (f"{name}: {packages[name].get('version')}" for name in PACKAGES if name in packages)


def _roots(facts: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    roots = (facts.get("cann") or {}).get("roots")
    return roots if isinstance(roots, list) else ()


def _npu_smi(host: Host) -> str:
    answer = host.run(("npu-smi", "info")).value
    if isinstance(answer, Output):
        return (answer.stdout + answer.stderr).decode(errors="replace").strip()
    return f"({answer.reason.value}) {answer.detail}".strip()


def _cann(host: Host, facts: Mapping[str, Any]) -> Iterator[str]:
    """``ascend_toolkit_install.info`` as it is, for each installation."""
    arch = host.identity.arch
    for root in _roots(facts):
        if not isinstance(root.get("path"), str) or isinstance(arch, Missing):
            continue
        text = host.read(f"{root['path']}/{arch}-linux/ascend_{root.get('kind')}_install.info").value
        if isinstance(text, bytes):
            yield f"# {root['path']}"
            yield text.decode(errors="replace").strip()


def _environment(facts: Mapping[str, Any]) -> Iterator[str]:
    """The variables that the rules know, without those that are not set."""
    for name, value in (facts.get("env") or {}).items():
        if isinstance(value, str):
            yield f"{name}={value}"


def _commands(host: Host, facts: Mapping[str, Any]) -> Iterator[str]:
    """The command lines of the programs on the NPUs, each once."""
    pids = [one.get("pid") for one in (facts.get("npu") or {}).get("processes") or ()]
    seen: dict[str, None] = {}
    for pid in pids:
        if isinstance(pid, int):
            line = host.read(f"/proc/{pid}/cmdline").value
            if isinstance(line, bytes) and line.strip(b"\0"):
                seen[line.strip(b"\0").replace(b"\0", b" ").decode(errors="replace")] = None
    yield from seen
