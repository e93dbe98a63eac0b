"""Hosts made of versions: ``deployment(cann="8.5.0", torch_npu="2.9.0")`` is a healthy base with just these parts.

A part that is not named is not collected, as in a report that does not state it; ``missing`` is known not to be there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hosts import host

from ascend_doctor.host.snapshot import SnapshotHost

SITE = "/opt/serving/lib/python3/site-packages"
ASCEND = "/usr/local/Ascend"
DRIVER, FIRMWARE = f"{ASCEND}/driver/version.info", f"{ASCEND}/firmware/version.info"
BASES = {"950": "950-healthy", "310P": "310p-healthy", "Ascend910": "a3-healthy"}
NAMES = {"a2-healthy": "910B3", "x86-healthy": "910B1", "950-healthy": "Ascend950PR", "310p-healthy": "310P3"}
PACKAGES = (
    *("torch", "torch_npu", "vllm", "vllm_ascend", "numpy", "transformers", "triton", "triton_ascend", "torchaudio"),
    *("mindspore", "mooncake_transfer_engine", "nvidia_nccl_cu12"),
)
UNSTATED = "unstated"
MISSING = "missing"


def deployment(base: str = "", **parts: str) -> SnapshotHost:
    """The host; parts are chip, arch, driver, firmware, cann, python, nnal, kernels, glibc and PACKAGES."""
    base = base or _base(parts.get("chip", ""), parts.get("arch", ""))
    files: dict[str, str] = {}
    missing: dict[str, Any] = {}
    commands: list[dict[str, Any]] = []
    changes: dict[str, Any] = {"files": files, "missing": missing, "commands": commands, "env": {}}
    _python(parts, files, changes)
    _cann(base, parts, files, missing, changes)
    _driver(parts, files, missing)
    if "nnal" not in parts:
        missing[f"{ASCEND}/nnal"] = "not_collected"
        changes["env"]["ATB_HOME_PATH"] = {"missing": "not_collected"}
    elif parts["nnal"] != MISSING:
        _nnal(parts["nnal"], files, changes, parts.get("abi", "1"))
    if "chip" in parts:
        commands.append(_table(base, parts["chip"]))
    else:
        missing["npu-smi info"] = "not_collected"
    if "glibc" in parts:
        commands.append({"argv": ["getconf", "GNU_LIBC_VERSION"], "rc": 0, "stdout": f"glibc {parts['glibc']}\n"})
    if "arch" in parts:
        changes["identity"] = {"arch": parts["arch"]}
    return host(base, set=changes)


def _base(chip: str, arch: str) -> str:
    special = next(
        (name for start, name in BASES.items() if chip.removeprefix("Ascend").startswith(start) or chip == start), ""
    )
    return special or ("x86-healthy" if arch == "x86_64" else "a2-healthy")


def _python(parts: dict[str, str], files: dict[str, str], changes: dict[str, Any]) -> None:
    changes["python"] = {"executable": "/opt/serving/bin/python", "site": [SITE]}
    if "python" in parts:
        changes["python"]["version"] = parts["python"]
    files[f"{SITE}/pip-26.0.dist-info/METADATA"] = "Name: pip\n"
    for name in PACKAGES:
        if parts.get(name) == UNSTATED:
            files[f"{SITE}/{name}.egg-link"] = "/src\n"
        elif name in parts:
            files[f"{SITE}/{name}-{parts[name]}.dist-info/METADATA"] = f"Name: {name}\nVersion: {parts[name]}\n"
    if "torch" in parts:
        flags = f'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI={parts.get("torch_abi", "1")}")\n'
        files[f"{SITE}/torch/share/cmake/Torch/TorchConfig.cmake"] = flags


def _cann(
    base: str, parts: dict[str, str], files: dict[str, str], missing: dict[str, Any], changes: dict[str, Any]
) -> None:
    names = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH")
    home, machine, _ = _seen(base)
    if "cann" not in parts:
        changes["env"].update({name: {"missing": "not_collected"} for name in names})
        missing[home] = "not_collected"
        return
    arch = parts.get("arch", machine)
    for other in ("aarch64", "x86_64"):
        missing[f"{home}/{other}-linux"] = "absent"
    info = f"package_name=Ascend-cann-toolkit\nversion={parts['cann']}\narch={arch}\nos=linux\npath={home}\n"
    files[f"{home}/{arch}-linux/ascend_toolkit_install.info"] = info
    if "kernels" in parts:
        kernel = f"{home}/opp/built-in/op_impl/ai_core/tbe/kernel"
        missing[kernel] = "absent"
        if parts["kernels"] != MISSING:
            files[f"{kernel}/{parts['kernels']}/ops.json"] = "{}\n"
    if "operators" in parts:
        files[f"{home}/opp/version.info"] = f"Version=7.7.0.1.238\nversion_dir={parts['operators']}\n"


def _driver(parts: dict[str, str], files: dict[str, str], missing: dict[str, Any]) -> None:
    if "driver" in parts:
        files[DRIVER] = f"Version={parts['driver']}\n"
    else:
        missing[DRIVER] = "not_collected"
    if "firmware" in parts:
        files[FIRMWARE] = f"Version={parts['firmware']}\n"
    else:
        missing[FIRMWARE] = "not_collected"


def _nnal(version: str, files: dict[str, str], changes: dict[str, Any], abi: str) -> None:
    folder = f"{ASCEND}/nnal/atb/{version}"
    files[f"{folder}/version.info"] = f"    Ascend-cann-atb : {version}\n    Ascend-cann-atb Version : {version}.B150\n"
    for number in "01":
        files[f"{folder}/atb/cxx_abi_{number}/lib/libatb.so"] = "\x7fELF"
    changes["env"]["ATB_HOME_PATH"] = f"{folder}/atb/cxx_abi_{abi}"


@cache
def _seen(base: str) -> tuple[str, str, str]:
    """Of a base: the folder of CANN, the architecture, and npu-smi's table."""
    asked = host(base)
    output = asked.run(("npu-smi", "info")).value
    return str(asked.env("ASCEND_HOME_PATH").value), str(asked.identity.arch), output.stdout.decode()


def _table(base: str, chip: str) -> dict[str, Any]:
    """npu-smi's table of the base with other chips in it."""
    text = _seen(base)[2]
    old = NAMES.get(base, "Ascend910")
    text = text.replace(old.ljust(len(chip)), chip.ljust(len(old)))
    return {"argv": ["npu-smi", "info"], "rc": 0, "stdout": text}
