"""Logs: files -> records -> events -> incidents. What each stage hands to the next is defined here.

sources finds what to read; reading gives lines of any encoding; records parses them; scanning finds the lines that
matter; events names them by signature or code; incidents groups them; causes says which one is the root.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ascend_doctor.records import dataclass

KINDS = ("plog", "slog", "kernel", "framework", "blackbox", "unknown")
"""Of a log, told from its content: plog also covers device logs of a process; framework is what a launcher prints."""

ROLES = ("root", "cascade", "detail", "symptom", "harmless", "unknown")
"""Of an event: names a cause; follows from another; explains another; shows that something is wrong but not what;
nothing to worry about; not in the catalogue."""

BOOT = datetime(1970, 1, 1)
"""Where records of the boot clock count from: ``time`` is BOOT + seconds since boot."""

NO_YEAR = 1904
"""Year of a ``time`` whose line names none (a leap year): clocks.py takes the year from the other records."""

LAYERS = ("hardware", "driver", "network", "runtime", "communication", "compiler", "operator", "framework")
"""Lowest first: of two that could be the root, the lower one is."""


@dataclass(frozen=True)
class Place:
    """A line of a file; ``line`` counts from 1; ``file`` names a member of an archive: ``bundle.tar.gz!plog/x.log``."""

    file: str
    line: int
    offset: int


@dataclass(frozen=True)
class Record:
    """One log record, with the lines that belong to it (``block``: tables, tracebacks, error-manager blocks).

    ``time``: as written, naive, in the clock named by ``clock``: host (the writer's local time), device, boot
    (seconds since boot, counted from BOOT), utc, none; None where the record has none. ``rank``, ``device`` and
    ``pid`` come from the record, its prefix or its file's name. ``text``: the whole first line without prefixes and
    colours, its own head ("[ERROR] HCCL(1,x):...") kept, so that signatures see what users paste. ``block``: the
    further lines, each without its prefix; ``block_lines``: their line numbers, empty where they simply follow
    (place.line + 1, + 2 ...); a literal \\n inside one line gives further lines of the same number. ``source``:
    what printed it ("stream.cc:161"), or "". ``utc_offset``: minutes, where the stamp itself says them.
    ``anchors``: those that stand in the line or its block. ``repeated``: how many records this one stands for: of a
    flood the first ones are given, then ever fewer.
    """

    place: Place
    kind: str
    level: str
    module: str
    time: datetime | None
    clock: str
    pid: int | None
    thread: str
    rank: int | None
    device: int | None
    text: str
    block: tuple[str, ...] = ()
    host: str = ""
    repeated: int = 1
    block_lines: tuple[int, ...] = ()
    source: str = ""
    utc_offset: int | None = None
    anchors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Event:
    """A record that a signature or a code names. ``signature``: its id, or ``code:507015``, or "" where unknown.

    ``values``: named groups of the signature's regex (remote_rank, stream, task, communicator, bus ...).
    """

    record: Record
    signature: str
    role: str
    severity: str
    layer: str
    codes: tuple[str, ...]
    values: Mapping[str, str]


@dataclass(frozen=True)
class Incident:
    """Events that are one thing, in DESIGN section 8's words. ``caused_by``: index of the incident it follows from.

    ``events``: the first and the last of ``count``. ``at`` and ``until``: their times on the common time line, None
    where that is not known; not ``dated``: the time is that of its neighbours. ``template``: of an error that nobody
    knows. ``why``: a word for what the causal graph says of it (causes.WHYS).
    """

    signature: str
    role: str
    severity: str
    layer: str
    events: tuple[Event, ...]
    codes: tuple[str, ...]
    caused_by: int | None = None
    count: int = 1
    at: datetime | None = None
    until: datetime | None = None
    dated: bool = True
    template: str = ""
    why: str = ""

    @property
    def first(self) -> Event:
        """Earliest in aligned time; of undated ones the first in its file."""
        return self.events[0]


@dataclass(frozen=True)
class Coverage:
    """What became of one file, or of ``files`` in a folder; ``skipped``: why not all was read, "" where all was."""

    path: str
    kind: str
    encoding: str
    bytes: int
    lines: int
    first: datetime | None
    last: datetime | None
    skipped: str
    files: int = 1
