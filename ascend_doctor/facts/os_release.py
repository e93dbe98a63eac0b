"""The distribution, as /etc/os-release names it; in a container it is the image's.

Source: os-release(5).
"""

from __future__ import annotations

from ascend_doctor.facts.info_files import info_file
from ascend_doctor.host import Area, Collected, Host, Missing, Reason
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class OsRelease:
    """``id`` in lower case, such as ``openeuler`` or ``ubuntu``; a rolling distribution has no ``version_id``."""

    id: str | Missing
    version_id: str | Missing
    name: str | Missing


def collect(host: Host) -> Collected[OsRelease]:
    """Reads one file, the second place only where the first has none."""
    area = Area("os_release")
    answer = host.read("/etc/os-release")
    if isinstance(answer.value, Missing) and answer.value.reason is Reason.ABSENT:
        answer = host.read("/usr/lib/os-release")
    file = info_file(answer)
    name = area.take("id", file.parsed("id"))
    return area.of(
        OsRelease(
            id=name if isinstance(name, Missing) else name.lower(),
            version_id=area.take("version_id", file.parsed("version_id")),
            name=area.take("name", file.parsed("pretty_name", "name")),
        )
    )
