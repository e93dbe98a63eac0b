"""Which chip the installed vllm_ascend was compiled for, read from a file of its wheel.

Source: vllm-ascend, setup.py, writes _build_info.py: ``__device_type__ = 'A2'``, ``__soc_version__ = 'ascend910b1'``.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, parsed
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
    return area.of(VllmBuild(area.take("target", _found(host))))


def _found(host: Host) -> Parsed[str | Missing]:
    python = host.python
    site = python.value if isinstance(python.value, Missing) else python.value.site
    if isinstance(site, Missing):
        return Parsed(site, python.source, {"": site.reason.value})
    for folder in site:
        answer = host.read(f"{folder}/{FILE}")
        if not (isinstance(answer.value, Missing) and answer.value.reason is Reason.ABSENT):
            return parsed(answer, target)
    return Parsed(Missing(Reason.ABSENT, f"no {FILE}"), python.source, {"": f"no {FILE}"})
