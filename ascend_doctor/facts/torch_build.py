"""How the target's torch was compiled, read from a file of its wheel.

Source: PyTorch, cmake/TorchConfig.cmake.in: ``set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")``.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

FILE = "torch/share/cmake/Torch/TorchConfig.cmake"


@dataclass(frozen=True)
class TorchBuild:
    """``cxx_abi``: 1 for the C++11 ABI, 0 for the one before it."""

    cxx_abi: int | Missing


def cxx_abi(data: bytes) -> Shown[int | Missing]:
    found = re.search(r"_GLIBCXX_USE_CXX11_ABI=([01])\b", decoded(data))
    if not found:
        return Shown(Missing(Reason.UNSUPPORTED, "TorchConfig.cmake names no C++ ABI"), {"": "no C++ ABI"})
    return Shown(int(found[1]), {"": found[0]})


def collect(host: Host) -> Collected[TorchBuild]:
    """Reads one file, of the first folder that has it."""
    area = Area("torch_build")
    return area.of(TorchBuild(area.take("cxx_abi", _found(host))))


def _found(host: Host) -> Parsed[int | Missing]:
    python = host.python
    site = python.value if isinstance(python.value, Missing) else python.value.site
    if isinstance(site, Missing):
        return Parsed(site, python.source, {"": site.reason.value})
    for folder in site:
        answer = host.read(f"{folder}/{FILE}")
        if not (isinstance(answer.value, Missing) and answer.value.reason is Reason.ABSENT):
            return parsed(answer, cxx_abi)
    return Parsed(Missing(Reason.ABSENT, f"no {FILE}"), python.source, {"": f"no {FILE}"})
