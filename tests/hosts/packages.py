"""Python packages as pip leaves them: a dist-info folder with METADATA for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis import analysis_of_torch
from linux import Folder

REQUIRES: Mapping[str, Sequence[str]] = {
    "torch_npu": ("torch=={torch_build}",),
    "vllm": ("torch=={torch}", "transformers>=4.56.0,<5", "numpy"),
    "vllm_ascend": (
        "numpy<2.0.0", "torch=={torch}", "torch-npu=={torch_npu}", "triton-ascend=={triton_ascend}",
        "transformers<5,>=4.57.4",
    ),
    "transformers": ("numpy>=1.17", "tokenizers<=0.23.0,>=0.22.0", 'torch>=2.2; extra == "torch"'),
}  # fmt: skip
"""What their METADATA asks of each other, as far as the doctor looks: {name} is that package's version here,
{torch_build} torch's with +cpu.
"""

TORCH: Mapping[str, Mapping[str, str]] = {
    "8.3.RC1": {"torch": "2.7.1", "torch_npu": "2.7.1", "numpy": "1.26.4"},
    "8.5.0": {"torch": "2.8.0", "torch_npu": "2.8.0.post2", "numpy": "1.26.4"},
    "9.0.0": {"torch": "2.8.0", "torch_npu": "2.8.0.post4", "numpy": "1.26.4"},
    "9.1.0": {"torch": "2.7.1", "torch_npu": "2.7.1.post8", "numpy": "1.26.4"},
}
"""By CANN, for Python 3.9 and newer."""

VLLM_CANN_8_5 = {
    **TORCH["8.5.0"],
    "vllm": "0.13.0",
    "vllm_ascend": "0.13.0",
    "triton_ascend": "3.2.0",
    "transformers": "4.57.6",
    "tokenizers": "0.22.1",
}
"""Releases that the vendor's tables name together."""


def packages(host: Folder, versions: Mapping[str, str]) -> None:
    """Into the first folder of packages of the host's Python; on x86_64 the torch of these releases is a +cpu build."""
    assert host.python
    site = host.python["site"]
    assert isinstance(site, list)
    local = "+cpu" if host.machine.arch == "x86_64" else ""
    torch = versions["torch"] + local
    for name, version in {**versions, "torch": torch}.items():
        asked = [text.format(torch_build=torch, **versions) for text in REQUIRES.get(name, ())]
        if name == "vllm":
            asked[0] = "torch==2.9.0"  # vLLM's own, for CUDA
        lines = ["Metadata-Version: 2.1", f"Name: {name.replace('_', '-')}", f"Version: {version}"]
        lines += [f"Requires-Dist: {text}" for text in asked]
        host.file(f"{site[0]}/{name}-{version}.dist-info/METADATA", "\n".join(lines) + "\n\nA package.\n")
    home = str(host.env.get("ASCEND_HOME_PATH"))
    analysis_of_torch(host, site[0], f"{home}/lib64")
