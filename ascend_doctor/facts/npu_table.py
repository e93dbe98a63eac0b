"""The table that ``npu-smi info`` prints, in every layout that is known, live or pasted.

Sources: npu_info_print.c of Huawei's open driver (https://github.com/hicann/driver); tests/captures/npu-smi.
Widths changed five times, so cells are told by their bars and columns by the words of the header. A row that was cut
has too few bars and is left out. Of several tables in one text the last one with chips counts: it is the newest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from ascend_doctor.facts.npu_cells import (
    NO_COLUMN,
    NOTHING,
    assigned,
    count,
    decimal,
    is_count,
    labels_of,
    nothing,
    unread,
    whole,
)
from ascend_doctor.host import Missing, Reason
from ascend_doctor.records import dataclass

LINE_LIMIT = 1000
"""Characters: a longer line is no row."""

NO_VERSIONS = Missing(Reason.FAILED, "the text has no line with versions")
NO_SECOND_LINE = Missing(Reason.FAILED, "npu-smi printed no second line for this chip")


@dataclass(frozen=True)
class Chip:
    """One chip; ``npu_id`` is the card as npu-smi numbers it (0, 5 or 32800), no index of a list."""

    npu_id: int
    chip_id: int | Missing
    phy_id: int | Missing
    logic_id: int | Missing
    name: str | Missing
    health: str | Missing
    power_w: float | Missing
    temp_c: float | Missing
    hugepages_used: int | Missing
    hugepages_total: int | Missing
    bus_id: str | Missing
    aicore_percent: int | Missing
    npu_util_percent: int | Missing
    memory_used_mb: int | Missing
    memory_total_mb: int | Missing
    hbm_used_mb: int | Missing
    hbm_total_mb: int | Missing


@dataclass(frozen=True)
class Process:
    """A process that holds memory of a chip; ``name`` is empty where npu-smi cannot see the host's /proc."""

    npu_id: int
    chip_id: int | Missing
    pid: int
    name: str
    memory_mb: int | Missing
    container_pid: int | Missing


@dataclass
class Table:
    """What one table says; ``texts``: sub-path -> the lines that show it."""

    tool_version: str | Missing = NO_VERSIONS
    driver_version: str | Missing = NO_VERSIONS
    chips: list[Chip] = field(default_factory=list)
    process_table_present: bool = False
    processes: list[Process] = field(default_factory=list)
    idle_npus: list[int] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


_PLAIN = str.maketrans({"│": "|", "┃": "|", "｜": "|", "：": ":", "／": "/", "\xa0": " ", "\u3000": " ", "\t": " "})
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_RULE = re.compile(r"[+|][-=]{5,}")
_TOOL = re.compile(r"npu-smi\s+(?!info(?!\S))([^\s|(（]+)")
_VERSION = re.compile(r"\s*([^\s|(（]+)(?=[\s|(（])")
_IDLE = re.compile(r"No running processes found in NPU\s+(\d{1,9})(?=[\s|])", re.IGNORECASE)


def table(text: str) -> Table | None:
    """The last table with chips in a text, else the last without; None where there is no table."""
    reader = _Reader()
    for match in _LINE.finditer(text.translate(_PLAIN).replace("&nbsp;", " ")):
        if len(match[0]) <= LINE_LIMIT:
            reader.line(match[0])
    found = [t for t in (*reader.done, reader.table) if t]
    return next((t for t in reversed(found) if t.chips), found[-1] if found else None)


class _Reader:
    """Goes through the lines once; ``first`` is the first line of a chip that waits for its second."""

    def __init__(self) -> None:
        self.done: list[Table | None] = []
        self.table: Table | None = None
        self.headers: list[list[tuple[str, ...]]] = []
        self.columns: list[str] = []
        self.megabytes = (1, 1)
        self.first: tuple[dict[str, str], str] | None = None
        self.tool_line: str | None = None

    def line(self, line: str) -> None:
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if self._versions(line):
            return
        if idle := _IDLE.search(line):
            if self.table:
                self.table.idle_npus.append(int(idle[1]))
                self.table.texts["idle_npus"] = f"{self.table.texts.get('idle_npus', '')}\n{line.strip()}".strip()
        elif _RULE.search(line):
            self._one_line_chip()
        elif not cells:
            self.first = None if "..." in line or "…" in line else self.first
        elif any(cell.lower().startswith("process id") for cell in cells):
            self._process_header(cells, line)
        elif self._header(cells):
            return
        elif self.table and self.columns:
            self._process(cells, line)
        elif self.table and self.headers:
            self._chip_row(cells, line)

    def _versions(self, line: str) -> bool:
        before, word, after = line.partition("Version:")
        tool = _TOOL.search(before)
        if not word:
            self.tool_line = tool[1] if tool and tool[0] == line.strip() else None
            return False
        named = tool[1] if tool else self.tool_line
        if named is None:
            return False
        driver = _VERSION.match(after)
        self._begin()
        if self.table and driver:
            self.table.tool_version, self.table.driver_version = named, driver[1]
            self.table.texts["tool_version"] = self.table.texts["driver_version"] = line.strip()
        return True

    def _begin(self) -> None:
        self.done.append(self.table)
        self.table, self.headers, self.columns, self.first = Table(), [], [], None

    def _header(self, cells: list[str]) -> bool:
        labels = [labels_of(cell) for cell in cells]
        flat = [label for cell in labels for label in cell]
        if "npu_id" in flat and "health" in flat:
            if self.table is None or self.headers:
                self._begin()
            self.headers = [labels]
            return True
        if len(self.headers) == 1 and self.table and not self.table.chips and "bus_id" in flat:
            self.headers.append(labels)
            return True
        return False

    def _chip_row(self, cells: list[str], line: str) -> None:
        first_header, *second_header = self.headers
        if self.first and second_header and (second := _second_line(second_header[0], cells)):
            self._add({**self.first[0], **second}, f"{self.first[1]}\n{line.rstrip()}")
            return
        values = _first_line(first_header, cells)
        if values and second_header:
            self._one_line_chip()
            self.first = (values, line.rstrip())
        elif values:
            self._add(values, line.rstrip())

    def _one_line_chip(self) -> None:
        """A chip whose first line stands alone: npu-smi leaves the second out where the device does not answer."""
        if self.first:
            self._add(*self.first)

    def _add(self, values: Mapping[str, str], text: str) -> None:
        if self.table:
            known = frozenset(label for header in self.headers for cell in header for label in cell)
            self.table.texts[f"chips[{len(self.table.chips)}]"] = text
            self.table.chips.append(_chip(values, known))
        self.first = None

    def _process_header(self, cells: list[str], line: str) -> None:
        if self.table is None:
            self._begin()
        self._one_line_chip()
        if self.table:
            self.table.process_table_present = True
            self.table.texts["process_table_present"] = line.strip()
        self.columns = [_process_column(cell) for cell in cells]
        unit = re.search(r"memory ?\(([KG]?)B\)", line, re.IGNORECASE)
        self.megabytes = {"": (1, 1 << 20), "K": (1, 1 << 10), "G": (1 << 10, 1)}[unit[1].upper()] if unit else (1, 1)

    def _process(self, cells: list[str], line: str) -> None:
        if len(cells) != len(self.columns) or not self.table:
            return
        values = dict(zip(self.columns, cells))
        ids = values.get("npu", "").split()
        if not ids or not all(map(is_count, (*ids, values.get("pid", "")))):
            return
        memory = count(values.get("memory"))
        times, parts = self.megabytes
        self.table.texts[f"processes[{len(self.table.processes)}]"] = line.strip()
        self.table.processes.append(
            Process(
                npu_id=int(ids[0]),
                chip_id=int(ids[1]) if len(ids) > 1 else NO_COLUMN,
                pid=int(values["pid"]),
                name=values.get("name", ""),
                memory_mb=memory if isinstance(memory, Missing) else memory * times // parts,
                container_pid=count(values.get("container_pid")),
            )
        )


def _process_column(cell: str) -> str:
    words = cell.lower()
    if words.startswith("npu"):
        return "npu"
    for word, column in (("container", "container_pid"), ("memory", "memory"), ("name", "name"), ("process id", "pid")):
        if word in words:
            return column
    return words


def _first_line(header: Sequence[tuple[str, ...]], cells: Sequence[str]) -> dict[str, str] | None:
    """The values of a chip's first line; None for what is none: cut, a second line, a process."""
    values = assigned(header, cells)
    if not values or not is_count(values.get("npu_id", "")) or re.search(r"[:\d]", values.get("health", ":")):
        return None
    wanted = {"power_w", "temp_c"} & {label for cell in header for label in cell}
    return values if all(label in values for label in wanted) else None


def _second_line(header: Sequence[tuple[str, ...]], cells: Sequence[str]) -> dict[str, str] | None:
    """The values of a chip's second line; None for what is none."""
    values = assigned(header, cells)
    if not values or ("chip_id" in values and not is_count(values["chip_id"])):
        return None
    bus = values.get("bus_id", "")
    return values if bus in NOTHING or ":" in bus else None


def _chip(values: Mapping[str, str], known: frozenset[str]) -> Chip:
    """``known``: the columns that the table has."""

    def printed(label: str) -> str | Missing:
        if label not in known:
            return NO_COLUMN
        text = values.get(label, NO_SECOND_LINE)
        return text if isinstance(text, Missing) or text not in NOTHING else nothing(text)

    def number(label: str) -> int | Missing:
        text = printed(label)
        return text if isinstance(text, Missing) else count(text)

    def pair(label: str) -> tuple[int | Missing, int | Missing]:
        text = printed(label)
        if isinstance(text, Missing):
            return text, text
        used, bar, total = text.partition("/")
        return (count(used.strip()), count(total.strip())) if bar else (unread(text), unread(text))

    power, temperature = printed("power_w"), printed("temp_c")
    hugepages, memory, hbm = pair("hugepages"), pair("memory"), pair("hbm")
    return Chip(
        npu_id=int(values["npu_id"]),
        chip_id=number("chip_id"),
        phy_id=number("phy_id"),
        logic_id=number("logic_id"),
        name=printed("name"),
        health=printed("health"),
        power_w=decimal(power),
        temp_c=whole(decimal(temperature)),
        hugepages_used=hugepages[0],
        hugepages_total=hugepages[1],
        bus_id=printed("bus_id"),
        aicore_percent=number("aicore_percent"),
        npu_util_percent=number("npu_util_percent"),
        memory_used_mb=memory[0],
        memory_total_mb=memory[1],
        hbm_used_mb=hbm[0],
        hbm_total_mb=hbm[1],
    )
