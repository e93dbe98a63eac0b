"""Records -> events: what the signatures and the codes know of each line of a record.

A block is read line by line: the deepest line of a TraceBack names the cause while its head is a wrapper. An
error-manager head brings its own pid and stamp, which hold for the lines below it: such blocks are printed at exit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Callable, Protocol

from ascend_doctor.logs import Event, Place, Record
from ascend_doctor.logs.codes import codes_in

UNKNOWN_LAYER = "framework"
MODULE_LAYERS = {
    "driver": ("KERNEL", "DRV", "DEVMM", "HDC", "BBOX", "TSCH", "TS", "IMP", "ASCEND"),
    "network": ("HCCP", "ROCE"),
    "runtime": ("RUNTIME", "TDT", "AICPU", "TSDUMP"),
    "communication": ("HCCL",),
    "compiler": ("GE", "FE", "TBE", "TEFUSION", "TUNE"),
    "operator": ("ASCENDCL", "OP", "ATB"),
}
_LAYER_OF_MODULE = {module: layer for layer, modules in MODULE_LAYERS.items() for module in modules}
_CODE_ROLES = {"root": 0, "symptom": 1, "unknown": 2, "cascade": 3, "detail": 4, "harmless": 5}
_FOLLOWS = ("cascade", "detail", "harmless")
_INNER_TEXT = re.compile(r"\[PID: ?\d{1,10}\][^\n]{0,200}?\[FUNC:\w")
_QUIET = ("WARNING", "INFO", "DEBUG")
_CPP = re.compile(r"\.(?:cpp|cc|ts|h):\d|^$")
_ERRORS = ("ERROR", "CRITICAL", "FATAL")

_STAMPED = re.compile(
    r"\[PID: ?(?P<pid>\d{1,10})\]\s?(?P<stamp>\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}(?:\.\d{3})?)"
    r"|[EW][A-Z1-9]\d{4}: (?P<old>\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}(?:\.\d{3})?)",
    re.ASCII,
)
_DEVICE = re.compile(
    r"\b(?:device_?id|dev_?id|deviceId|devId|chipId|udevid|logicDevId|device|Device)\W{0,2}[=:\[( ]\s?(\d{1,4})\b"
    r"|\(NPU (\d{1,4});|\bDEVICE\[(\d{1,4})\]|(?:open|Open) device (\d{1,4})\b",
    re.ASCII,
)
_TASK = re.compile(r"\bstream_?[iI][dD]\W{1,2}(\d{1,10}).{0,80}?\btask_?[iI][dD]\W{1,2}(\d{1,12})", re.ASCII)
TRACEBACK = "Traceback (most recent call last)"
_EXCEPTION = re.compile(
    r"[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit|Warning)?: |[\w.]{1,200}(?:Error|Exception)$"
)
_FRAME = re.compile(r'File "[^"]{1,400}", line \d+|^\s*(?:raise|return|self\.|[\^~ ]+$)')
_RANK_IN_PATH = re.compile(r"(?:^|[/_.-])(?:rank|worker)[_-]?(\d{1,5})(?=[/_.-]|$)", re.ASCII | re.IGNORECASE)


class KnownSignature(Protocol):
    """What is used of a signature."""

    id: str
    role: str
    severity: str
    layer: str
    codes: tuple[str, ...]


class KnownSignatures(Protocol):
    def matching(
        self, line: str, kind: str = ..., anchors: Sequence[str] | None = ...
    ) -> list[tuple[Any, re.Match[str]]]: ...


class Namer:
    """Names what records say, by the anchors that were found in them. ``code_of``: what is known of a code, or None."""

    def __init__(self, signatures: KnownSignatures, code_of: Callable[[str], Any]) -> None:
        self._signatures, self._code_of = signatures, code_of
        self._codes: dict[str, Any] = {}
        self._ranks: dict[str, int | None] = {}

    def events(self, record: Record) -> Iterator[Event]:
        """One event for each line that is known; an error of which no line is known is one event without a name."""
        named: list[Event] = []
        head = record
        if record.rank is None and (rank := self._rank(record.place.file)) is not None:
            head = replace(record, rank=rank)
        for line in lines_of(head):
            event = self._named(line)
            if event:
                named.append(event)
                yield event
        if is_error(record) and (not named or (TRACEBACK in record.text and all(e.role in _FOLLOWS for e in named))):
            known = {event.record.place.line for event in named}
            yield from (event for event in _unnamed(head) if event.record.place.line not in known)

    def _rank(self, file: str) -> int | None:
        if file not in self._ranks:
            self._ranks[file] = rank_of_path(file)
        return self._ranks[file]

    def _named(self, line: Record) -> Event | None:
        text = line.text
        codes = codes_in(text, line.module)
        anchors = [anchor for anchor in line.anchors if anchor in text]
        matches = self._signatures.matching(text, line.kind, anchors) if anchors else ()
        if matches:
            signature, match = matches[0]
            wraps = signature.role in ("cascade", "detail") and not set(codes) & set(signature.codes)
            coded = self._coded(line, codes) if wraps and codes else None
            if coded is not None and coded.role == "root" and ":" not in coded.signature.removeprefix("code:"):
                return coded  # a number of the callers' own space says more than the line that hands it on
            role, severity = signature.role, signature.severity
            if role == "root" and signature.layer == "framework" and _only_warned(line):
                role, severity = "detail", "warning"
            values = {name: value for name, value in match.groupdict().items() if value}
            for _, other in matches[1:]:
                values = {**{name: value for name, value in other.groupdict().items() if value}, **values}
            return self._event(line, signature.id, role, severity, signature.layer, codes, values)
        return self._coded(line, codes) if codes else None

    def _coded(self, line: Record, codes: tuple[str, ...]) -> Event | None:
        """The event of the code that says most."""
        found = [(code, entry) for code in codes if (entry := self._code(code)) is not None]
        if not found:
            return None
        code, entry = min(found, key=lambda pair: _CODE_ROLES.get(_role(pair[1]), 2))
        layer = getattr(entry, "layer", "") or _LAYER_OF_MODULE.get(line.module, UNKNOWN_LAYER)
        role = _role(entry)
        if role == "detail" and _INNER_TEXT.search(line.text):
            role = "symptom"  # not the banner of an inner error, but what it says
        return self._event(line, f"code:{code}", role, getattr(entry, "severity", "error"), layer, codes, {})

    def _code(self, code: str) -> Any:
        if code not in self._codes:
            self._codes[code] = self._code_of(code)
        return self._codes[code]

    def _event(
        self,
        line: Record,
        name: str,
        role: str,
        severity: str,
        layer: str,
        codes: tuple[str, ...],
        values: Mapping[str, str],
    ) -> Event:
        task = _TASK.search(line.text)
        extra = {"stream": task[1], "task": task[2]} if task else {}
        device, rank, pid = _number(values, "device"), _number(values, "rank"), _number(values, "pid")
        if device is None and line.device is None:
            device = _device_in(line.text)
        if device is not None or rank is not None or (pid is not None and line.pid is None):
            line = replace(
                line,
                device=device if device is not None else line.device,
                rank=rank if rank is not None else line.rank,
                pid=line.pid if line.pid is not None else pid,
            )
        return Event(line, name, role, severity, layer, codes, {**extra, **values})


def _only_warned(line: Record) -> bool:
    """Whether a Python logger said it in passing; torch_npu prints errors of CANN as warnings of its C++ sources."""
    return line.kind == "framework" and line.level in _QUIET and _CPP.search(line.source) is None


def _role(entry: Any) -> str:
    """A code that the compiler or an operator has for users names what is wrong; an inner error's head does not."""
    if getattr(entry, "family", "") != "manager" or entry.role != "symptom" or entry.severity != "error":
        return str(entry.role)
    if entry.name.startswith("Inner_Error"):
        return "detail"
    return "root" if entry.layer in ("compiler", "operator") else "symptom"


def is_error(record: Record) -> bool:
    """Whether its writer called it an error."""
    return record.level in _ERRORS or (TRACEBACK in record.text and record.level not in _QUIET)


def lines_of(record: Record) -> Iterator[Record]:
    """Each line of a record as a record of its own, with the pid and the stamp of the block that it stands in."""
    line = _restamped(replace(record, block=(), block_lines=()) if record.block else record)
    yield line
    numbers = record.block_lines or range(record.place.line + 1, record.place.line + 1 + len(record.block))
    for number, text in zip(numbers, record.block):
        if text.strip():
            line = _restamped(replace(line, text=text, place=Place(record.place.file, number, record.place.offset)))
            yield line


def _restamped(line: Record) -> Record:
    if "PID" not in line.text and not (len(line.text) > 8 and line.text[6:7] == ":"):
        return line
    match = _STAMPED.search(line.text)
    if not match or line.module:
        return line
    time = _stamp(match["stamp"] or match["old"])
    pid = int(match["pid"]) if match["pid"] else line.pid
    return line if time is None else replace(line, time=time, clock="host", pid=pid)


def _stamp(text: str) -> datetime | None:
    try:
        date, clock = text[:10], text[11:]
        micros = (clock[9:].replace(".", "") + "000000")[:6]
        return datetime.fromisoformat(f"{date}T{clock[:8]}.{micros}")
    except ValueError:
        return None


def _device_in(text: str) -> int | None:
    match = _DEVICE.search(text)
    return next((int(part) for part in match.groups() if part), None) if match else None


def _number(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def rank_of_path(path: str) -> int | None:
    """``rank3/debug/plog/...``: bundles keep the logs of a rank in a folder of its name."""
    found = _RANK_IN_PATH.findall(path)
    return int(found[-1]) if found else None


def _unnamed(record: Record) -> Iterator[Event]:
    """Of a traceback its first exception: what is raised while it is handled comes later."""
    lines = list(lines_of(record))
    if TRACEBACK in record.text and len(lines) > 1:
        lines = [line for line in lines[1:] if _EXCEPTION.match(line.text)] or lines[-1:]
    elif record.kind == "framework" and _FRAME.search(record.text):
        return
    if lines:
        layer = _LAYER_OF_MODULE.get(record.module, UNKNOWN_LAYER)
        yield Event(lines[0], "", "unknown", "error", layer, codes_in(lines[0].text, record.module), {})
