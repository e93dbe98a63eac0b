"""The model file that a call of ATC names. Given with a launch.

Source: https://www.hiascend.com/document/detail/zh/canncommercial/850/devaids/atctool/atlasatc_16_0001.html
"""

from __future__ import annotations

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason
from ascend_doctor.records import dataclass

NOT_GIVEN = Missing(Reason.UNSUPPORTED, "no call of atc was given")


@dataclass(frozen=True)
class Atc:
    """``there``: whether the file of --model is there; a relative path is not looked for."""

    there: bool | Missing


def collect(host: Host) -> Collected[Atc]:
    """Asks nothing: what is to be compiled is said by a launch command."""
    return Area("atc").of(Atc(NOT_GIVEN))


def atc(host: Host, model: str | Missing) -> Collected[Atc]:
    """Asks for one file."""
    area = Area("atc")
    if isinstance(model, Missing) or not model.startswith("/"):
        return area.of(Atc(Missing(Reason.UNSUPPORTED, "no whole path of a model")))
    answer = host.stat(model)
    gone = isinstance(answer.value, Missing)
    there: bool | Missing = not gone
    if isinstance(answer.value, Missing) and answer.value.reason is not Reason.ABSENT:
        there = answer.value
    shown = "not there" if gone else "there"
    return area.of(Atc(area.take("there", Parsed(there, answer.source, {"": f"{model}: {shown}"}))))
