"""What the kernel log tells about the NPUs and the host's memory: each question is one row, so silence is a pass."""

from __future__ import annotations

from collections.abc import Sequence

from ascend_doctor.derive import rows
from ascend_doctor.facts.kernel_log import KernelLog
from ascend_doctor.facts.pci import Function, Pci
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.kernel_signatures import KernelSignatures
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.records import dataclass

BUS_EVENTS = ("bus-fatal", "bus-uncorrected", "bus-corrected")
SHOWN = 3
"""Lines and names that a finding shows of many: the first and the last of them."""


@dataclass(frozen=True)
class Happened:
    """Lines of one kind: how many, about what, when the last one came. ``recent``: or it has no time."""

    count: int
    which: str
    hours_ago: float | Missing
    recent: bool
    reads: tuple[str, ...]


@dataclass(frozen=True)
class BusErrors:
    """Errors of the link of one NPU function, as it or the port above it reported them."""

    address: str
    fatal: int | Missing
    uncorrected: int | Missing
    corrected: int | Missing
    many_corrected: bool | Missing
    hours_ago: float | Missing
    recent: bool
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Hit:
    """A line that tells of an event."""

    index: int
    event: str
    parts: dict[str, str]


@rows("kernel_log.heartbeats")
def heartbeats(
    kernel_log: KernelLog, kernel_signatures: KernelSignatures, limits: Limits
) -> tuple[Happened, ...] | Missing:
    """One row: the devices that stopped to answer their driver."""
    hits = _hits(kernel_log, kernel_signatures, ("heartbeat-lost",))
    if isinstance(hits, Missing):
        return hits
    return (_happened(kernel_log, limits, hits, [hit.parts.get("device", "?") for hit in hits]),)


@rows("kernel_log.kills")
def kills(kernel_log: KernelLog, kernel_signatures: KernelSignatures, limits: Limits) -> tuple[Happened, ...] | Missing:
    """One row: the processes that the kernel killed for want of memory."""
    hits = _hits(kernel_log, kernel_signatures, ("killed-for-memory",))
    if isinstance(hits, Missing):
        return hits
    names = [f"{hit.parts.get('process', '?')} ({hit.parts.get('pid', '?')})" for hit in hits]
    return (_happened(kernel_log, limits, hits, names),)


@rows("kernel_log.bus_errors")
def bus_errors(
    kernel_log: KernelLog, pci: Pci, kernel_signatures: KernelSignatures, limits: Limits
) -> tuple[BusErrors, ...] | Missing:
    """One row for each NPU function; errors of other devices are no business of ours."""
    if isinstance(pci.npus, Missing):
        return () if pci.npus.reason is Reason.ABSENT else pci.npus
    if not pci.npus:
        return ()
    hits = _hits(kernel_log, kernel_signatures, BUS_EVENTS)
    if isinstance(hits, Missing):
        return hits
    return tuple(_of_function(kernel_log, limits, hits, function) for function in pci.npus.values())


def _of_function(kernel_log: KernelLog, limits: Limits, hits: Sequence[Hit], function: Function) -> BusErrors:
    """The port above sees the same link; where it is not known, that the function itself is silent says nothing."""
    port = function.bridge if isinstance(function.bridge, Missing) else function.bridge.address
    doubt = port if isinstance(port, Missing) and port.reason is not Reason.ABSENT else None
    mine = [hit for hit in hits if hit.parts.get("address") in (function.address, port)]
    counts = {event: sum(hit.event == event for hit in mine) for event in BUS_EVENTS}
    grave = [hit for hit in mine if hit.event != "bus-corrected"]
    hours = _hours_ago(kernel_log, grave or mine)
    return BusErrors(
        function.address,
        fatal=counts["bus-fatal"] or doubt or 0,
        uncorrected=counts["bus-uncorrected"] or doubt or 0,
        corrected=counts["bus-corrected"] or doubt or 0,
        many_corrected=counts["bus-corrected"] >= limits["kernel_log.corrected_errors"] or doubt or False,
        hours_ago=hours,
        recent=_is_recent(hours, limits),
        reads=(*_lines(mine), f"{keyed('pci.npus', function.address)}.bridge"),
    )


def _hits(log: KernelLog, signatures: KernelSignatures, events: Sequence[str]) -> list[Hit] | Missing:
    if isinstance(log.lines, Missing):
        return log.lines
    found = []
    for index, line in enumerate(log.lines):
        told = signatures.found(line.text, events)
        if told:
            found.append(Hit(index, told[0], dict(told[1])))
    return found


def _happened(log: KernelLog, limits: Limits, hits: Sequence[Hit], names: Sequence[str]) -> Happened:
    hours = _hours_ago(log, hits)
    different = list(dict.fromkeys(names))
    more = f" +{len(different) - 2 * SHOWN}" if len(different) > 2 * SHOWN else ""
    which = ", ".join(different if not more else [*different[:SHOWN], *different[-SHOWN:]]) + more
    return Happened(len(hits), which, hours, _is_recent(hours, limits), _lines(hits))


def _hours_ago(log: KernelLog, hits: Sequence[Hit]) -> float | Missing:
    """Since the last of them."""
    if not hits or isinstance(log.lines, Missing):
        return Missing(Reason.UNSUPPORTED, "nothing happened")
    seconds = log.lines[hits[-1].index].seconds
    if isinstance(seconds, Missing):
        return seconds
    if isinstance(log.uptime_seconds, Missing):
        return log.uptime_seconds
    return round(max(0.0, log.uptime_seconds - seconds) / 3600, 1)


def _is_recent(hours: float | Missing, limits: Limits) -> bool:
    return isinstance(hours, Missing) or hours <= limits["kernel_log.recent_hours"]


def _lines(hits: Sequence[Hit]) -> tuple[str, ...]:
    shown = hits if len(hits) <= 2 * SHOWN else [*hits[:SHOWN], *hits[-SHOWN:]]
    return tuple(keyed("kernel_log.lines", hit.index) for hit in shown) or ("kernel_log.lines",)
