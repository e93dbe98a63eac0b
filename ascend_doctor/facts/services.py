"""Which services systemd runs on this host, as far as control groups show: those that keep the clock, and irqbalance.

A service that runs has a folder in system.slice. Sources: systemd.slice(5); systemd-timesyncd.service(8) for the file
that it leaves once the clock was set.
"""

from __future__ import annotations

from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, Shown, Stat, parsed
from ascend_doctor.records import dataclass

SLICES = (
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
)
"""Control groups version 2, version 1, and both."""

CLOCKS = ("systemd-timesyncd", "chronyd", "chrony", "ntpd", "ntp", "ntpsec", "openntpd", "ptp4l", "phc2sys")
SYNCHRONIZED = "/run/systemd/timesync/synchronized"


@dataclass(frozen=True)
class Services:
    """``clock``: the services that keep the clock right; a tuple without any where none runs.

    Both are Missing where no system.slice is to be seen: a container, or a host without systemd.
    ``clock_set``: systemd-timesyncd has set the clock since boot; of other services no file tells.
    """

    clock: tuple[str, ...] | Missing
    clock_set: bool | Missing
    irqbalance: bool | Missing


def collect(host: Host) -> Collected[Services]:
    """Lists a folder and looks for one file; starts nothing."""
    area = Area("services")
    names = _running(host)
    clock: Parsed[tuple[str, ...] | Missing] = parsed(names, clocks_among)
    irqbalance: Parsed[bool | Missing] = parsed(names, has_irqbalance)
    return area.of(
        Services(
            clock=area.take("clock", clock),
            clock_set=area.take("clock_set", _clock_set(host.stat(SYNCHRONIZED))),
            irqbalance=area.take("irqbalance", irqbalance),
        )
    )


def clocks_among(names: tuple[str, ...]) -> Shown[tuple[str, ...] | Missing]:
    """Those of the folders in system.slice that keep the clock."""
    found = tuple(name for name in CLOCKS if f"{name}.service" in names)
    return Shown(found, {"": ", ".join(f"{name}.service" for name in found) or "no service that keeps the clock"})


def has_irqbalance(names: tuple[str, ...]) -> Shown[bool | Missing]:
    """Whether its folder is among them."""
    runs = "irqbalance.service" in names
    return Shown(runs, {"": "irqbalance.service" if runs else "no irqbalance.service"})


def _running(host: Host) -> Answer[tuple[str, ...]]:
    for path in SLICES:
        answer = host.list(path)
        if not isinstance(answer.value, Missing) or answer.value.reason is not Reason.ABSENT:
            return answer
    return Answer(f"file:{SLICES[0]}", Missing(Reason.FAILED, "no system.slice: services cannot be seen from here"))


def _clock_set(answer: Answer[Stat]) -> Parsed[bool | Missing]:
    if not isinstance(answer.value, Missing):
        return Parsed(True, answer.source, {"": "is there"})
    if answer.value.reason is not Reason.ABSENT:
        return Parsed(answer.value, answer.source, {"": answer.value.reason.value})
    untold = Missing(Reason.UNSUPPORTED, "only systemd-timesyncd tells it by a file")
    return Parsed(untold, answer.source, {"": "not there"})
