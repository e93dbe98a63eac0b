"""Heads of lines that frameworks, loggers and the error manager print; each is read by the function of its name."""

from __future__ import annotations

import re
from typing import Callable

from ascend_doctor.logs import kernel_heads as kernel
from ascend_doctor.logs import stamps
from ascend_doctor.logs.levels import level_of_text
from ascend_doctor.logs.line import Line, behind, level_of, set_time

_NPU_ERROR = re.compile(
    rf"\[(ERROR|WARNING|INFO|WARN)\] ({stamps.DATE}) "
    r"\(PID:(-?\d{1,10}), Device:(-?\d{1,6}), RankID:(-?\d{1,8})\) ?"
)
_MANAGER_FIRST = re.compile(
    r"(?:RecentErrMsg: |CANN error: )?(?:([A-Z]{1,2}[0-9A-Z][0-9]{4}): ?)?(?:\[PID: ?(\d{1,10})\] ?)?"
    r"(\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3}) ?(?:([\w/]{1,120})\(([A-Z]{1,2}[0-9A-Z][0-9]{4})\): )?"
)
_MANAGER_BARE = re.compile(r"(?:Error ?code: |CANN error: )?([A-Z]{1,2}[0-9A-Z][0-9]{4}): (?=\S)")
_STREAM = re.compile(r"DEVICE\[(\d{1,4})\] PID\[(\d{1,10})\]: ?")
_GLOG = re.compile(
    r"\[?([IWEF])(?:20\d\d)?(\d{1,2})(\d\d) (\d\d:\d\d:\d\d\.\d{1,9}) +(?:(\d{1,10}) )?([\w./-]{1,120}:\d{1,6})\] ?"
)
_GLOG_BARE = re.compile(r"\[?([IWEF]) ([\w./-]{1,120}\.\w{1,4}:\d{1,6})\] ?")
_VLLM = re.compile(
    r"(DEBUG|INFO|WARNING|ERROR|CRITICAL|EXCEPTION) (\d\d)-(\d\d) (\d\d:\d\d:\d\d)(?:[.,]\d{1,6})? "
    r"\[?([\w./-]{1,120}:\d{1,6})\] ?"
)
_MINDIE = re.compile(
    rf"\[({stamps.DATE}(?:\.\d{{1,9}})?\s?(?:[+-]\d\d:?\d\d|Z)?)\]((?:\s?\[[^\[\]\n]{{1,120}}\]){{1,10}})\s?(?::\s?)?"
)
_ATB = re.compile(
    rf"\[({stamps.DATE})\.(\d{{1,6}})\] \[(trace|debug|info|warn|warning|error|fatal|critical)\] "
    r"\[(\d{1,10})\] (?:\[([^\[\]\n]{1,120}:\d{1,6})\] )?"
)
_KLOG = re.compile(
    r"\[(DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\] {1,8}(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) "
    r"+(?:(\d{1,10}) +)?(?:([\w./-]{1,160}:\d{1,6}) +)?"
)
_INSTALLER = re.compile(
    rf"\[([A-Za-z][\w -]{{1,30}})\] \[({stamps.DATE}|\d{{8}}-\d\d:\d\d:\d\d)\] "
    r"\[(DEBUG|INFO|WARN|WARNING|ERROR)\]:? ?"
)
_LOGURU = re.compile(rf"({stamps.DATE}(?:\.\d{{1,9}})?) \| ([A-Z]{{4,8}}) *\| ([^|\n]{{1,160}}?) ?(?:\||-) ")
_PYTHON = re.compile(
    rf"\[?({stamps.DATE}(?:[.,]\d{{1,9}})?(?: ?(?:[+-]\d\d:?\d\d|Z))?)(?:,? ?[A-Z]{{2}}\d{{1,4}})*\]?[ ,:|-]{{0,3}}"
    r"(?:\[?([\w./:<>-]{1,120})\]? ?[|:-]? ){0,3}?"
    r"\[?(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\]?(?![\w(])[ :|-]{0,3}"
)
_DATED = re.compile(
    rf"\[?({stamps.DATE}(?:[.,]\d{{1,9}})?(?: ?(?:[+-]\d\d:?\d\d|Z))?)(?: [A-Z]{{2}}\d{{1,4}})*\]?[ :|,-]{{1,3}}"
)
_BARE_LEVEL = re.compile(r"\[?(CRITICAL|FATAL|ERROR|Error|error|WARNING|Warning|INFO)\]?(?::|\]| -) {0,8}")

_BLACKBOX = re.compile(
    rf"\[?({stamps.DATE}(?:\.\d{{1,6}})?)\]? ?(?=(?:system exception code|exception code|\[?device[- ]?\d).{{0,80}}0x)",
    re.I,
)


def _npu_error(line: Line, found: re.Match[str]) -> bool:
    level, stamp, pid, device, rank = found.groups()
    line.level, line.module = level, "torch_npu"
    set_time(line, stamp)
    line.pid = int(pid) if int(pid) >= 0 else line.pid
    line.device = int(device) if int(device) >= 0 else None
    line.rank = int(rank) if int(rank) >= 0 else None
    behind(line, found)
    return True


def _manager(line: Line, found: re.Match[str]) -> bool:
    _, pid, stamp, _, _ = found.groups()
    line.level, line.module = "ERROR", "error-manager"
    set_time(line, stamp)
    line.pid = int(pid) if pid else line.pid
    behind(line, found)
    return True


def _manager_bare(line: Line, found: re.Match[str]) -> bool:
    line.level, line.module = "ERROR", "error-manager"
    behind(line, found)
    return True


def _stream(line: Line, found: re.Match[str]) -> bool:
    line.level, line.module = "ERROR", "exception-stream"
    line.device, line.pid = int(found[1]), int(found[2])
    behind(line, found)
    return True


_GLOG_LEVEL = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "ERROR"}


def _glog(line: Line, found: re.Match[str]) -> bool:
    level, month, day, clock, thread, source = found.groups()
    line.level, line.source, line.thread = _GLOG_LEVEL[level], source, thread or ""
    line.time, line.clock = stamps.of_day(month, day, clock), "host"
    behind(line, found)
    return True


def _glog_bare(line: Line, found: re.Match[str]) -> bool:
    line.level, line.source = _GLOG_LEVEL[found[1]], found[2]
    behind(line, found)
    return True


def _vllm(line: Line, found: re.Match[str]) -> bool:
    level, month, day, clock, source = found.groups()
    line.level, line.source = level_of(level), source
    line.time, line.clock = stamps.of_day(month, day, clock), "host"
    behind(line, found)
    return True


_NUMBER = re.compile(r"\d{1,10}")
_SOURCE = re.compile(r"[\w./-]{1,120}:\d{1,6}")
_FIELD = re.compile(r"\[([^\[\]\n]{1,120})\]")


def _mindie(line: Line, found: re.Match[str]) -> bool:
    """Every bracket after the time is optional: with MINDIE_LOG_VERBOSE=false there is none but the level."""
    fields = _FIELD.findall(found[2])
    level = next((level_of(field) for field in fields if level_of(field)), "")
    if not level:
        return False
    numbers = [field for field in fields if _NUMBER.fullmatch(field)]
    words = [field for field in fields if not _NUMBER.fullmatch(field) and not level_of(field)]
    set_time(line, found[1])
    line.level, line.pid = level, int(numbers[0]) if numbers else line.pid
    line.thread = numbers[1] if len(numbers) > 1 else ""
    line.source = next((word for word in words if _SOURCE.fullmatch(word)), "")
    line.module = next((word for word in words if not _SOURCE.fullmatch(word)), "")
    behind(line, found)
    return True


def _atb(line: Line, found: re.Match[str]) -> bool:
    stamp, fraction, level, thread, source = found.groups()
    line.time, line.clock = stamps.of_unpadded(stamp, fraction), "host"
    line.level, line.thread, line.source, line.module = level_of(level), thread, source or "", "ATB"
    behind(line, found)
    return True


def _klog(line: Line, found: re.Match[str]) -> bool:
    level, stamp, _, source = found.groups()
    line.level, line.source = level_of(level), source or ""
    set_time(line, stamp)
    behind(line, found)
    return True


def _installer(line: Line, found: re.Match[str]) -> bool:
    """Of driver, firmware and CANN packages; CANN's stamps have no dashes in the date."""
    package, stamp, level = found.groups()
    line.level, line.module = level_of(level), package
    set_time(line, f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:]}" if stamp[:8].isdigit() else stamp)
    behind(line, found)
    return True


def _loguru(line: Line, found: re.Match[str]) -> bool:
    stamp, level, source = found.groups()
    if not level_of(level):
        return False
    line.level, line.source = level_of(level), source.strip()
    set_time(line, stamp)
    behind(line, found)
    return True


def _python(line: Line, found: re.Match[str]) -> bool:
    line.level, line.module = level_of(found[3]), found[2] or ""
    set_time(line, found[1])
    behind(line, found)
    return True


def _dated(line: Line, found: re.Match[str]) -> bool:
    set_time(line, found[1])
    behind(line, found)
    level_of_text(line)
    return True


def _bare_level(line: Line, found: re.Match[str]) -> bool:
    line.level = line.level or level_of(found[1])
    behind(line, found)
    return True


def _blackbox(line: Line, found: re.Match[str]) -> bool:
    line.kind, line.level = "blackbox", "ERROR"
    set_time(line, found[1])
    line.clock = "device"
    behind(line, found)
    return True


Shape = tuple[re.Pattern[str], Callable[[Line, re.Match[str]], bool]]

_BRACKET = (
    (_NPU_ERROR, _npu_error),
    (kernel.BOOT, kernel.boot),
    (_GLOG, _glog),
    (_GLOG_BARE, _glog_bare),
    (_ATB, _atb),
    (kernel.DRIVER_DATED, kernel.driver_dated),
    (_BLACKBOX, _blackbox),
    (_MINDIE, _mindie),
    (_KLOG, _klog),
    (_INSTALLER, _installer),
    (kernel.WORDED, kernel.worded),
    (_MANAGER_FIRST, _manager),
    (_PYTHON, _python),
    (_DATED, _dated),
    (_BARE_LEVEL, _bare_level),
)
_DIGIT = (
    (_LOGURU, _loguru),
    (_BLACKBOX, _blackbox),
    (_PYTHON, _python),
    (_MANAGER_FIRST, _manager),
    (_DATED, _dated),
    (kernel.KMSG, kernel.kmsg),
)
_LETTER = (
    (_VLLM, _vllm),
    (_STREAM, _stream),
    (_MANAGER_FIRST, _manager),
    (_MANAGER_BARE, _manager_bare),
    (_GLOG, _glog),
    (_GLOG_BARE, _glog_bare),
    (_BARE_LEVEL, _bare_level),
)
SHAPES = {"[": _BRACKET, " ": (), "\t": (), "<": ((kernel.BOOT, kernel.boot), (kernel.WORDED, kernel.worded)), "": ()}
SHAPES.update(dict.fromkeys("0123456789", _DIGIT))
OTHERS = _LETTER
