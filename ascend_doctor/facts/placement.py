"""Which devices a deployment is to use, and how many CPUs for each. Given with a call, never found on a host.

Source: numactl(8) for how lists are written.
"""

from __future__ import annotations

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason
from ascend_doctor.records import dataclass

NOT_GIVEN = Missing(Reason.ABSENT, "not given with the call")


@dataclass(frozen=True)
class Placement:
    """``devices``: places in the list of chips, absent for all; ``per_worker``: CPUs, absent for an even share."""

    asked: bool
    devices: tuple[int, ...] | Missing
    per_worker: int | Missing


def collect(host: Host) -> Collected[Placement]:
    """Asks nothing: no host tells what is to be deployed."""
    return Area("placement").of(Placement(False, NOT_GIVEN, NOT_GIVEN))


def placement(devices: tuple[int, ...] | None, per_worker: int | None) -> Collected[Placement]:
    """As a call asks for it."""
    area = Area("placement")
    shown = "all devices" if devices is None else ", ".join(map(str, devices))
    area.take("", Parsed(None, "option:--devices", {"": shown}))
    return area.of(Placement(True, NOT_GIVEN if devices is None else devices, per_worker or NOT_GIVEN))
