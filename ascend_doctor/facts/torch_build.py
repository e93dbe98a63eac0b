"""How the target's torch was compiled, read from a file of its wheel.

Source: PyTorch, cmake/TorchConfig.cmake.in: ``set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")``.
"""

from __future__ import annotations

import re

from ascend_doctor.facts.site_file import of_site
from ascend_doctor.host import Area, Collected, Host, Missing, Reason, Shown, decoded
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
    return area.of(TorchBuild(area.take("cxx_abi", of_site(host, FILE, cxx_abi))))
