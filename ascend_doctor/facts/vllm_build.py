"""Which chip the installed vllm_ascend was compiled for, read from a file of its wheel.

Source: vllm-ascend, setup.py, writes _build_info.py: ``__device_type__ = 'A2'``, ``__soc_version__ = 'ascend910b1'``.
"""

from __future__ import annotations

import re

from ascend_doctor.facts.site_file import of_site
from ascend_doctor.host import Area, Collected, Host, Missing, Reason, Shown, decoded
from ascend_doctor.records import dataclass

FILE = "vllm_ascend/_build_info.py"


@dataclass(frozen=True)
class VllmBuild:
    """``target``: as the file has it, a kind of machine (A2, A3, _310P) or a chip (ascend910b1)."""

    target: str | Missing


def target(data: bytes) -> Shown[str | Missing]:
    found = re.search(r"""(?m)^__(?:soc_version|device_type)__\s*=\s*['"](\w{1,40})['"]""", decoded(data), re.ASCII)
    if not found:
        return Shown(Missing(Reason.UNSUPPORTED, "_build_info.py names no chip"), {"": "no chip"})
    return Shown(found[1], {"": found[0]})


def collect(host: Host) -> Collected[VllmBuild]:
    """Reads one file, of the first folder that has it."""
    area = Area("vllm_build")
    return area.of(VllmBuild(area.take("target", of_site(host, FILE, target))))
