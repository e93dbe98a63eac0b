"""What the kernel has said since it started about errors: of the bus, of memory, of the NPU driver.

Source: dmesg(1), Linux kernel documentation, PCI/pcieaer-howto; Huawei's driver, dmc_log.h. The driver prints its
errors at the priority "notice", so lines are chosen by their words. The buffer is a ring: where much is said, the start
is gone.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Output, Parsed, Reason, decoded, parsed
from ascend_doctor.records import dataclass

COMMAND = ("dmesg",)
RING = "/dev/kmsg"
KEPT = re.compile(
    r"\bAER\b|PCIe Bus Error|[Oo]ut of memory|Killed process|\[Hardware Error\]"
    r"|\[ascend\].*\[(?:ERROR|WARN\w*)\]|(?:devdrv|davinci|drv_)\w*.*(?:[Ff]ail|[Ee]rror|lost)",
    re.ASCII,
)
MOST = 4 << 20
"""Bytes of a command's output that a host keeps: the first ones."""

_STAMP = re.compile(r"(?:<\d{1,3}>)?\[\s{0,12}(\d{1,12}\.\d{1,9})\](?:\[[^\]]{1,20}\])? ?", re.ASCII)
_RECORD = re.compile(r"\d{1,4},\d{1,12},(\d{1,18}),[^;\n]{0,40};", re.ASCII)
"""Of /dev/kmsg: priority, number, microseconds, flags. Lines that begin with a blank tell of the record above."""
_SYSLOG = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,255} kernel: ", re.ASCII)
_DATED = re.compile(r"\[(?=[^\]]{0,40}\d\d:\d\d:\d\d)[^\]]{1,60}\] ?")
_DENIED = ("not permitted", "permission denied")


@dataclass(frozen=True)
class Line:
    """``seconds`` after the kernel's start; ``text`` without stamps."""

    seconds: float | Missing
    text: str


@dataclass(frozen=True)
class KernelLog:
    """``lines``: those about errors of the bus, memory or the NPU driver, in order; ``count`` is of all that are left.

    ``first_seconds``: how old the kernel was at the first of all lines; ``uptime_seconds``: how old it is.
    """

    lines: tuple[Line, ...] | Missing
    count: int | Missing
    first_seconds: float | Missing
    uptime_seconds: float | Missing


def log_lines(data: bytes) -> list[Line]:
    """All lines of dmesg, of /dev/kmsg, or of a syslog file's kernel lines."""
    texts = decoded(data).split("\n")
    if _RECORD.match(texts[0]):
        texts = [text for text in texts if not text.startswith(" ")]
    return [_line(text) for text in texts if text.strip()]


def _line(text: str) -> Line:
    record = _RECORD.match(text)
    if record:
        return Line(int(record[1]) / 1e6, text[record.end() :].rstrip())
    syslog = _SYSLOG.match(text)
    rest = text[syslog.end() :] if syslog else text
    stamp = _STAMP.match(rest)
    if stamp:
        return Line(float(stamp[1]), rest[stamp.end() :].rstrip())
    dated = _DATED.match(rest)
    return Line(Missing(Reason.UNSUPPORTED, "no seconds since start"), rest[dated.end() if dated else 0 :].rstrip())


def uptime(data: bytes) -> float | Missing:
    """The first number of /proc/uptime."""
    found = re.match(r"(\d{1,12}(?:\.\d{1,4})?)\s", decoded(data), re.ASCII)
    return float(found[1]) if found else Missing(Reason.FAILED, "no number of seconds")


def printed(answer: Answer[Output]) -> bytes | Missing:
    """What dmesg printed; denied where the kernel keeps its log from this user."""
    if isinstance(answer.value, Missing):
        gone = answer.value.reason is Reason.ABSENT  # the program; whether the log is empty is not known
        return Missing(Reason.FAILED, "no program dmesg") if gone else answer.value
    said = decoded(answer.value.stderr).strip()
    if answer.value.rc != 0 or (said and not answer.value.stdout.strip()):
        reason = Reason.DENIED if any(word in said.lower() for word in _DENIED) else Reason.FAILED
        return Missing(reason, said[:200] or f"exit status {answer.value.rc}")
    if not answer.value.stdout.strip():
        return Missing(Reason.FAILED, "the log is empty: it was cleared, or is kept from this system")
    if len(answer.value.stdout) >= MOST:
        return Missing(Reason.FAILED, f"longer than {MOST >> 20} MiB: what was said last is cut off")
    return answer.value.stdout


def collect(host: Host) -> Collected[KernelLog]:
    """Starts dmesg, where there is none reads the kernel's log itself; and reads one file more."""
    area = Area("kernel_log")
    answer = host.run(COMMAND)
    data = printed(answer)
    source = answer.source
    if isinstance(answer.value, Missing) and answer.value.reason is Reason.ABSENT:
        ring = host.read(RING)
        if isinstance(ring.value, bytes) and ring.value:
            data, source = ring.value, ring.source
    every = data if isinstance(data, Missing) else log_lines(data)
    return area.of(
        KernelLog(
            lines=area.take("lines", _kept(every, source)),
            count=area.take("count", _count(every, source)),
            first_seconds=area.take("first_seconds", _first(every, source)),
            uptime_seconds=area.take("uptime_seconds", parsed(host.read("/proc/uptime"), uptime)),
        )
    )


def _kept(every: list[Line] | Missing, source: str) -> Parsed[tuple[Line, ...] | Missing]:
    if isinstance(every, Missing):
        return Parsed(every, source, {"": every.detail or every.reason.value})
    kept = tuple(line for line in every if KEPT.search(line.text))
    texts = {f"[{n}]": _stamped(line) for n, line in enumerate(kept)}
    return Parsed(kept, source, {"": f"{len(every)} lines, {len(kept)} of them kept", **texts})


def _stamped(line: Line) -> str:
    return line.text if isinstance(line.seconds, Missing) else f"[{line.seconds:.6f}] {line.text}"


def _count(every: list[Line] | Missing, source: str) -> Parsed[int | Missing]:
    return Parsed(every if isinstance(every, Missing) else len(every), source, {})


def _first(every: list[Line] | Missing, source: str) -> Parsed[float | Missing]:
    return Parsed(every if isinstance(every, Missing) else every[0].seconds, source, {})
