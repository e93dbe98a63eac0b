"""One physical line -> what it says about itself: level, module, time, process, device.

Sources: CANN log reference (hicann/runtime docs/zh/log_ref), driver dmc_log.h, MindIE and torch_npu sources; the shapes
are listed in the order in which they are tried. Nothing here knows what a text means.
"""

from __future__ import annotations

import re

from ascend_doctor.logs import stamps
from ascend_doctor.logs.heads import OTHERS, SHAPES
from ascend_doctor.logs.kernel_heads import driver, kernel
from ascend_doctor.logs.levels import level_of_text
from ascend_doctor.logs.line import NOBODY, Line, level_of
from ascend_doctor.logs.prefixes import Wrapping, unwrapped

__all__ = ["NOBODY", "Line", "lines_of"]

_LEVELS = "DEBUG|INFO|WARNING|ERROR|EVENT|TRACE"
PLOG = re.compile(
    rf"\[({_LEVELS})\]\s{{0,8}}([A-Z][A-Z0-9_]{{0,31}})\((-?\d{{1,10}}),\s?([^)\n]{{0,80}})\):\s?"
    r"(\d{4}-\d\d-\d\d[- ]\d\d:\d\d:\d\d(?:\.\d{1,6}){1,2})\s?(?:\[([^\]:\n]{1,120}:\d{1,6})\]\s?)?"
)
_THREAD = re.compile(
    r"(?:\[(\d{1,10})\]|(?:>{1,3} ?)?\(?tid:(\d{1,10})[,)]|(?:\[[^\]\n]{1,80}\])?\[tid:(\d{1,10})\]"
    r"|(\d{1,10}) (?=\w{1,80}:)"
    r"|(\d{1,10}) )"
)
_FIRMWARE = ("TSCH", "IMP")
_UPTIME = re.compile(r"\[\s{0,8}(\d{1,10}\.\d{1,9})\] ?")

_INNER = re.compile(r"\[PID: ?(\d{1,10})\] ?(\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3})")

_DEVICE = re.compile(
    r"(?:\b(?:device[ _]?id|dev[_ ]?id|udevid|device|logicid)|\(NPU)[=:(\[ ]{1,2}(\d{1,3})\b(?!\.)",
    re.I,
)
_LOCAL_RANK = re.compile(
    r"(?<!remote )(?<!peer )(?<!dst )(?<!dest )(?<!crimer )(?<!informer )"
    r"\b(?:local ?rank|rankId|rank)[\[: =]{1,3}(?:[\d.]{7,15}/)?(\d{1,6})\b(?!\.\d)"
)


def lines_of(text: str) -> list[Line]:
    """The records that stand on one physical line, first to last; texts that a JSON string joins are apart."""
    wrapping = Wrapping()
    if text[:1] == "[" and PLOG.match(text):
        return [_finished(line, wrapping) for line in _plogs(text)]
    inner = unwrapped(text, wrapping)
    parts = inner.replace("\\n", "\n").split("\n") if "\n" in inner or _joined(inner) else [inner]
    found: list[Line] = []
    for part in parts:
        found.extend(_parts(part, wrapping))
    return [_finished(line, wrapping) for line in found]


def _joined(text: str) -> bool:
    """Whether a text holds others behind a literal backslash-n, as JSON writes them."""
    return "\\n[ERROR]" in text or "\\n  File " in text or text.count("\\n") > 1


def _parts(text: str, wrapping: Wrapping) -> list[Line]:
    plogs = _plogs(text)
    if plogs:
        start = text.find(plogs[0].text) if plogs[0].text else 0
        before = text[:start].rstrip()
        if before and before[-1:] not in "]" and len(before) > 30:
            return [_single(before, wrapping), *plogs]
        return plogs
    return [_single(text, wrapping)]


def _plogs(text: str) -> list[Line]:
    """CANN records: a crash glues two on one line, so each head begins another."""
    heads = list(PLOG.finditer(text)) if text.find("]", 1) > 0 else []
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [_plog(text[head.start() : end].rstrip(), head) for head, end in zip(heads, ends)]


def _plog(text: str, head: re.Match[str]) -> Line:
    line = Line(text)
    level, module, pid, _, stamp, source = head.groups()
    line.level, line.module, line.pid = level, module, int(pid)
    line.time, line.clock, line.source = stamps.of_date(stamp), "host", source or ""
    line.kind, line.headed = "plog", True
    line.body = text[head.end() - head.start() :]
    if module in _FIRMWARE or line.pid < 0:
        line.kind, line.clock, line.pid = "slog", "device", None
        return line
    if module == "KERNEL":
        line.kind, line.clock, line.pid = "kernel", "device", None
        line.body = _UPTIME.sub("", line.body, count=1)
        driver(line)
        return line
    thread = _THREAD.match(line.body)
    if thread:
        line.thread = thread[thread.lastindex or 0]
        line.body = line.body[thread.end() :].lstrip()
    return line


def _single(text: str, wrapping: Wrapping) -> Line:
    line = Line(text)
    if wrapping.kernel:
        return kernel(line)
    for _ in range(3):  # a logger's head may be followed by that of the record which it quotes
        if not _headed(line):
            break
    if not line.headed:
        level_of_text(line)
    return line


def _headed(line: Line) -> bool:
    """Takes one head off the body. Heads are told by their first character, as most lines have none."""
    body = line.body
    first = body[:1]
    for shape, read in SHAPES.get(first, OTHERS):
        found = shape.match(body)
        if found and found.end() and read(line, found):
            line.headed = True
            line.kind = line.kind or "framework"
            line.text = body
            return True
    return False


def _finished(line: Line, wrapping: Wrapping) -> Line:
    """Adds what the prefixes say, and the device and rank that the text itself tells."""
    if line.pid is None:
        line.pid = wrapping.pid
    if line.rank is None:
        line.rank = wrapping.rank
    if line.time is None and wrapping.time is not None:
        line.time, line.clock, line.utc_offset = wrapping.time, wrapping.clock, wrapping.utc_offset
    line.level = line.level or level_of(wrapping.level)
    line.host, line.repeated = wrapping.host, wrapping.repeated
    line.actor = (wrapping.pid, wrapping.rank, wrapping.host)
    line.kind = line.kind or "framework"
    if "[PID: " in line.body and line.pid is None:
        inner = _INNER.search(line.body)
        if inner:
            line.pid, line.time, line.clock = int(inner[1]), stamps.of_date(inner[2]), "host"
    if line.device is None:
        found = _DEVICE.search(line.body)
        line.device = int(found[1]) if found else None
    if (
        line.rank is None and "rank" in line.body and line.module != "KERNEL" and line.kind != "kernel"
    ):  # DIMMs have ranks
        found = _LOCAL_RANK.search(line.body)
        line.rank = int(found[1]) if found else None
    return line
