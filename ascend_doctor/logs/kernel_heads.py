"""Heads of kernel lines: dmesg, /dev/kmsg, syslog, and what Huawei's driver writes behind them (dmc_log.h)."""

from __future__ import annotations

import re

from ascend_doctor.logs import stamps
from ascend_doctor.logs.line import Line, behind, level_of, set_time

BOOT = re.compile(r"(?:<\d{1,3}>)?\[\s{0,12}(\d{1,12}\.\d{1,9})\](?:\[[^\]\n]{1,20}\])? ?")
WORDED = re.compile(r"(?:<\d{1,3}>)?\[([^\]\n]{0,12}(?:[A-Z][a-z]{2}|\d{1,2}月) {1,3}\d{1,2} \d\d:\d\d:\d\d \d{4})\] ?")
KMSG = re.compile(r"\d{1,4},\d{1,12},(\d{1,18}),[^;\n]{0,40};")
DRIVER_DATED = re.compile(rf"\[({stamps.DATE}(?:\.\d{{1,6}})?)\] (?=\[ascend\])")
_DRIVER = re.compile(
    r"(?:\S{1,60} [0-9a-f:.]{7,12}: )?\[ascend\] ?((?:\[[\w -]{1,80}\] ?){1,4})"
    r"(?:<([^<>\n]{0,60}?):(-?\d{1,10})[,:]?(-?\d{1,10})?>)?"
)
_KERNEL_LEVEL = re.compile(r"\[(ERROR|WARN|WARNING|INFO|EVENT|DEBUG)\]")
_MODULE = re.compile(r"\[(\w{1,40})\]")


def boot(line: Line, found: re.Match[str]) -> bool:
    line.time, line.clock, line.kind = stamps.of_boot(found[1]), "boot", "kernel"
    behind(line, found)
    driver(line)
    return True


def kmsg(line: Line, found: re.Match[str]) -> bool:
    line.time, line.clock, line.kind = stamps.of_boot(str(int(found[1]) / 1e6)), "boot", "kernel"
    behind(line, found)
    driver(line)
    return True


def worded(line: Line, found: re.Match[str]) -> bool:
    line.time, line.clock, line.kind = stamps.of_words(found[1]), "host", "kernel"
    behind(line, found)
    driver(line)
    return True


def driver_dated(line: Line, found: re.Match[str]) -> bool:
    line.kind = "kernel"
    set_time(line, found[1])
    behind(line, found)
    driver(line)
    return True


def kernel(line: Line) -> Line:
    """A line of which syslog says that the kernel printed it: its time is syslog's, which needs no boot clock."""
    line.kind, line.headed = "kernel", True
    stamp = BOOT.match(line.body)
    if stamp:
        behind(line, stamp)
    driver(line)
    return line


def driver(line: Line) -> None:
    """The fields of Huawei's driver: level and module in either order, then the process."""
    found = _DRIVER.match(line.body)
    if not found:
        return
    level = _KERNEL_LEVEL.search(found[1])
    line.level = level_of(level[1]) if level else line.level or "INFO"
    line.module = next((word for word in _MODULE.findall(found[1]) if not level_of(word)), "ascend")
    if found[3] and int(found[3]) > 0:
        line.pid = int(found[3])
