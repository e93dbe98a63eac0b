"""The parts of a deployment in the order in which they stand on each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ascend_doctor.derive.parts import Part, cann_in_use, interpreter, package
from ascend_doctor.facts.cann import Cann
from ascend_doctor.facts.driver import Driver
from ascend_doctor.facts.mindie import MindIE
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason

if TYPE_CHECKING:
    from ascend_doctor.derive.machine import Seen

PACKAGES = ("torch_npu", "torch", "vllm_ascend", "vllm")


def versions(seen: Seen) -> list[dict[str, Any]]:
    """``{"part", "version", "reason", "where"}``; what is absent is left out."""
    return [
        {
            "part": part.name,
            "version": None if isinstance(part.version, Missing) else part.version,
            "reason": part.version.reason.value if isinstance(part.version, Missing) else None,
            "where": part.where,
        }
        for part in _parts(seen)
        if not _absent(part.version)
    ]


def _absent(version: object) -> bool:
    return isinstance(version, Missing) and version.reason in (Reason.ABSENT, Reason.NOT_COLLECTED)


def _parts(seen: Seen) -> Iterator[Part]:
    npu, driver, cann, python = (seen.facts(area) for area in ("npu", "driver", "cann", "python"))
    if isinstance(driver, Driver):
        yield Part("firmware", driver.firmware_version, "", "driver.firmware_version")
        if isinstance(driver.version, Missing) and isinstance(npu, Npu) and isinstance(npu.driver_version, str):
            yield Part("driver", npu.driver_version, "npu-smi info", "npu.driver_version")
        else:
            yield Part("driver", driver.version, driver.version_file, "driver.version")
    if isinstance(cann, Cann):
        used = cann_in_use(cann)
        yield Part("cann", used, "", "cann.roots") if isinstance(used, Missing) else used
    mindie = seen.facts("mindie")
    if isinstance(mindie, MindIE):
        yield Part("mindie", mindie.version, mindie.file, "mindie.version")
    if isinstance(python, TargetPython):
        yield interpreter(python)
        if not isinstance(python.packages, Missing):
            yield from (found for name in PACKAGES if (found := package(python, name)))
