"""MindIE as its own file names it.

Layout: /usr/local/Ascend/mindie/<version>/ with ``latest`` beside it; its version.info has a line
``Ascend-mindie : MindIE 2.1.RC1.B152``.
Source: https://www.hiascend.com/document/detail/zh/mindie/21RC1/releasenote/releasenote_0004.html and its images.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

PLACES = ("/usr/local/Ascend/mindie/latest/version.info", "/usr/local/Ascend/mindie/version.info")


@dataclass(frozen=True)
class MindIE:
    """``version`` without its build: 2.1.RC1; ``file``: where it stands, or would."""

    version: str | Missing
    file: str


def release(data: bytes) -> Shown[str | Missing]:
    text = decoded(data)
    found = re.search(r"(?im)^\s*Ascend-mindie\s*:\s*(?:MindIE\s+)?(\S{1,60})", text)
    if not found:
        return Shown(Missing(Reason.FAILED, "version.info names no Ascend-mindie"), {"": text[:80]})
    return Shown(re.sub(r"(?i)\.B\d{1,6}$", "", found[1]), {"": found[0].strip()})


def collect(host: Host) -> Collected[MindIE]:
    """Reads one file, the second place only where the first has none."""
    area = Area("mindie")
    for file in PLACES:
        answer = host.read(file)
        if not (isinstance(answer.value, Missing) and answer.value.reason is Reason.ABSENT):
            break
    else:
        file = PLACES[0]
    return area.of(MindIE(area.take("version", parsed(answer, release)), file))
