"""What npu-smi tells of each card and chip beyond its table: versions, ECC counters, clock, memory, processes.

Sources: https://github.com/hicann/driver (npu-smi; Ascend_950_npu-smi: querying-npu-details, -the-ecc-error-count,
-the-common-information, -device-statistics, -the-memory-usage-of-processes, -the-device-mapping-information);
tests/captures/npu-smi-details. Five starts a card, so it is asked only in depth. A 950 has no chips below the NPU and
refuses ``-c``; to others than root npu-smi does not tell the firmware.
"""

from __future__ import annotations

import re

from ascend_doctor.facts.npu import COMMAND, npu_smi_info
from ascend_doctor.facts.npu_blocks import (
    Block,
    card,
    chip,
    controller,
    number,
    refusal,
    text_of,
    whole_number,
    word,
)
from ascend_doctor.facts.npu_cells import is_count
from ascend_doctor.facts.npu_table import Chip
from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, Shown, keyed, parsed
from ascend_doctor.records import dataclass
from ascend_doctor.versions import FirmwareVersion, HdkVersion

NOT_ASKED = Missing(Reason.NOT_COLLECTED, "npu-smi is asked for details only in depth")
ROOT_ONLY = Missing(Reason.DENIED, "npu-smi tells it to root only")
MEMORIES = ("HBM", "DDR")
SHOWN_CHARACTERS = 1200


@dataclass(frozen=True)
class Board:
    """A card. ``compatible``: OK or NOK, what the driver says of this firmware; UNKNOWN where it cannot tell."""

    npu_id: int
    product: str | Missing
    soc_version: str | Missing
    chip_name: str | Missing
    driver: HdkVersion | Missing
    firmware: FirmwareVersion | Missing
    compatible: str | Missing
    chip_count: int | Missing


@dataclass(frozen=True)
class Ecc:
    """Errors since the last reset and of the whole life; pages taken out of use, and those that the next reset takes.

    Single-bit errors were corrected, double-bit ones could not be. Before 950 no waiting pages are told.
    """

    single: int | Missing
    double: int | Missing
    single_ever: int | Missing
    double_ever: int | Missing
    single_pages: int | Missing
    double_pages: int | Missing
    double_pages_waiting: int | Missing


@dataclass(frozen=True)
class ChipDetails:
    """``ecc`` by memory, HBM and DDR; ``clock_mhz`` of the AI Cores now, ``rated_mhz`` their most."""

    npu_id: int
    chip_id: int | Missing
    ecc: dict[str, Ecc] | Missing
    celsius: float | Missing
    board_celsius: float | Missing
    power_watts: float | Missing
    clock_mhz: int | Missing
    rated_mhz: int | Missing
    aicore_count: int | Missing
    aicore_percent: int | Missing
    hbm_mib: int | Missing
    ddr_mib: int | Missing
    hbm_bandwidth_percent: int | Missing


@dataclass(frozen=True)
class Mapped:
    """A row of ``npu-smi info -m``: ``logic_id`` is the device as a process sees it."""

    npu_id: int
    chip_id: int
    logic_id: int | Missing
    name: str


@dataclass(frozen=True)
class ProcessMemory:
    """A process that holds memory of a card; npu-smi's table shows eight of a chip at most."""

    npu_id: int
    pid: int
    name: str
    memory_mib: int


@dataclass(frozen=True)
class NpuDetails:
    """``asked``: whether npu-smi was asked in depth; ``card_count`` is of ``npu-smi info -l``."""

    asked: bool
    card_count: int | Missing
    mapping: tuple[Mapped, ...] | Missing
    boards: tuple[Board, ...] | Missing
    chips: tuple[ChipDetails, ...] | Missing
    processes: tuple[ProcessMemory, ...] | Missing


def card_count(text: str) -> int | Missing:
    """Total Count, as a 950 prints it, or Card Count."""
    whole = card(text)
    counts = [whole_number(whole, key) for key in ("total count", "card count")]
    return next((count for count in counts if isinstance(count, int)), counts[-1])


_COLUMNS = re.compile(r"NPU ID|Slot ID|Chip ID|Chip Logic ID|Chip Phy-ID|Chip Name")


def mapping(text: str) -> tuple[Mapped, ...] | Missing:
    """The chips of ``-m``, without the cards' controllers; a 950's NPU id is the logical one."""
    columns: list[str] = []
    found: list[Mapped] = []
    for line in text.split("\n"):
        named = _COLUMNS.findall(line)
        if "NPU ID" in named and "Chip Name" in named:
            columns = named
            continue
        values = dict(zip(columns, line.split(None, max(0, len(columns) - 1))))
        npu, number_, name = (values.get(column, "").strip() for column in ("NPU ID", "Chip ID", "Chip Name"))
        if not (is_count(npu) and is_count(number_) and name) or name.lower() == "mcu":
            continue
        logic = values.get("Chip Logic ID", npu)
        known = int(logic) if is_count(logic) else Missing(Reason.UNSUPPORTED, logic)
        found.append(Mapped(int(npu), int(number_), known, name))
    return tuple(found) if columns else refusal(text)


def board(npu_id: int, block: Block | Missing, is_root: bool) -> Board:
    """A 950's soc_version is made of two lines: Ascend950PR and 9579."""
    name, kind = word(block, "chip name"), word(block, "npu name")
    firmware, compatible = word(block, "firmware version"), word(block, "compatibility")
    if isinstance(compatible, str) and compatible.upper() == "NOT SUPPORT":
        compatible = Missing(Reason.UNSUPPORTED, compatible)
    unknown = [part for part in (name, kind) if isinstance(part, Missing)]
    return Board(
        npu_id=npu_id,
        product=word(block, "product name"),
        soc_version=unknown[0] if unknown else f"{name}_{kind}",
        chip_name=name,
        driver=word(block, "software version"),
        firmware=_told(firmware, is_root),
        compatible=_told(compatible, is_root),
        chip_count=whole_number(block, "chip count"),
    )


def _told(value: str | Missing, is_root: bool) -> str | Missing:
    hidden = isinstance(value, Missing) and value.reason is Reason.UNSUPPORTED and not is_root
    return ROOT_ONLY if hidden else value


def ecc(block: Block | Missing) -> dict[str, Ecc] | Missing:
    """By the memories that the chip has counters for."""
    if isinstance(block, Missing):
        return block
    memories = [name for name in MEMORIES if f"{name.lower()} double bit error count" in block]
    found = {name: _ecc(block, name.lower()) for name in memories}
    return found or Missing(Reason.FAILED, "npu-smi printed no error counts")


def _ecc(block: Block, memory: str) -> Ecc:
    def counted(what: str) -> int | Missing:
        return whole_number(block, f"{memory} {what}")

    return Ecc(
        single=counted("single bit error count"),
        double=counted("double bit error count"),
        single_ever=counted("single bit aggregate total err cnt"),
        double_ever=counted("double bit aggregate total err cnt"),
        single_pages=counted("single bit isolated pages count"),
        double_pages=counted("double bit isolated pages count"),
        double_pages_waiting=counted("double bit next-isolated pages count"),
    )


_PROCESS = re.compile(
    r"Process id\s*:\s*(\d{1,10})(?!\d)[^\n]*?(?:Process name\s*:\s*(\S[^\n]{0,80}?)\s+)?"
    r"Process memory\s*\(MB\)\s*:\s*(\d{1,9})(?!\d)",
    re.ASCII,
)


def processes(text: str, npu_id: int) -> tuple[ProcessMemory, ...] | Missing:
    """The lines of ``-t proc-mem``; a card without processes prints its id alone, or says that there are none."""
    found = tuple(ProcessMemory(npu_id, int(pid), name, int(mib)) for pid, name, mib in _PROCESS.findall(text))
    if found or re.search(r"\bno (?:running )?process", text, re.IGNORECASE):
        return found
    whole = card(text)
    if isinstance(whole, Missing):
        return whole
    return () if "npu id" in whole and set(whole) <= {"npu id", "chip id", "chip count"} else refusal(text)


def collect(host: Host) -> Collected[NpuDetails]:
    """Starts nothing but ``npu-smi info``, unless in depth: then five times for each card."""
    area = Area("npu_details")
    if not host.extent.deep:
        return area.of(NpuDetails(False, NOT_ASKED, NOT_ASKED, NOT_ASKED, NOT_ASKED, NOT_ASKED))
    chips = _chips(host)
    if isinstance(chips, Missing):
        return area.of(NpuDetails(False, chips, chips, chips, chips, chips))
    is_root = host.identity.uid == 0
    cards = tuple(dict.fromkeys(chip.npu_id for chip in chips))
    boards = tuple(_board(host, area, npu, f"boards[{n}]", is_root) for n, npu in enumerate(cards))
    counted: Parsed[int | Missing] = parsed(_asked(host, "-l"), card_count)
    mapped: Parsed[tuple[Mapped, ...] | Missing] = parsed(_asked(host, "-m"), mapping)
    return area.of(
        NpuDetails(
            asked=True,
            card_count=area.take("card_count", counted),
            mapping=area.take("mapping", mapped),
            boards=boards,
            chips=tuple(_chip(host, area, chip, keyed("chips", n)) for n, chip in enumerate(chips)),
            processes=_processes(host, area, chips),
        )
    )


def _chips(host: Host) -> tuple[Chip, ...] | Missing:
    """As npu-smi's table has them; the area npu says it where there is none."""
    output = host.run(COMMAND).value
    if isinstance(output, Missing):
        return Missing(Reason.NOT_COLLECTED, f"npu-smi info: {output.reason.value}")
    table = npu_smi_info(output.stdout + b"\n" + output.stderr).value
    if isinstance(table, Missing) or isinstance(table.chips, Missing):
        return Missing(Reason.NOT_COLLECTED, "npu-smi info shows no chips")
    return table.chips


def _asked(host: Host, *words: str) -> Answer[str]:
    answer = host.run((*COMMAND, *words))
    value = answer.value
    return Answer(answer.source, value if isinstance(value, Missing) else text_of(value), answer.seconds)


def _of_card(host: Host, what: str, npu: int) -> Answer[str]:
    return _asked(host, "-t", what, "-i", str(npu))


def _board(host: Host, area: Area, npu: int, path: str, is_root: bool) -> Board:
    block: Parsed[Block | Missing] = parsed(_of_card(host, "board", npu), lambda text: _shown(text, card(text)))
    return board(npu, area.take(path, block), is_root)


def _shown(text: str, block: Block | Missing) -> Shown[Block | Missing]:
    return Shown(block, {"": text.strip()[:SHOWN_CHARACTERS]})


def _chip(host: Host, area: Area, of: Chip, path: str) -> ChipDetails:
    def block(what: str, *parts: str) -> Block | Missing:
        answer = _of_card(host, what, of.npu_id)
        found: Parsed[Block | Missing] = parsed(answer, lambda text: _shown(text, chip(text, of.chip_id)))
        for part in parts:
            area.take(f"{path}{part}", found)
        return found.value

    common, errors = block("common", ""), block("ecc", ".ecc")
    usages = block("usages", ".hbm_mib", ".ddr_mib", ".hbm_bandwidth_percent")
    board_block: Parsed[Block | Missing] = parsed(_of_card(host, "common", of.npu_id), controller)
    return ChipDetails(
        npu_id=of.npu_id,
        chip_id=of.chip_id,
        ecc=ecc(errors),
        celsius=number(common, "temperature"),
        board_celsius=number(board_block.value, "temperature"),
        power_watts=number(common, "npu real-time power"),
        clock_mhz=whole_number(common, "aicore curfreq"),
        rated_mhz=whole_number(common, "aicore freq"),
        aicore_count=whole_number(common, "aicore count"),
        aicore_percent=whole_number(common, "aicore usage rate"),
        hbm_mib=whole_number(usages, "hbm capacity"),
        ddr_mib=whole_number(usages, "ddr capacity"),
        hbm_bandwidth_percent=whole_number(usages, "hbm bandwidth usage rate"),
    )


def _processes(host: Host, area: Area, chips: tuple[Chip, ...]) -> tuple[ProcessMemory, ...] | Missing:
    """Of all chips together; unknown as a whole where one did not answer."""
    answers = [_held(host, chip) for chip in chips]
    missing = next((answer for answer in answers if isinstance(answer.value, Missing)), None)
    if missing:
        return area.take("processes", missing)
    found = tuple(process for answer in answers if isinstance(answer.value, tuple) for process in answer.value)
    area.provenance["npu_details.processes"] = (answers[0].source, f"{len(found)} processes")
    return found


def _held(host: Host, of: Chip) -> Parsed[tuple[ProcessMemory, ...] | Missing]:
    words = ["-t", "proc-mem", "-i", str(of.npu_id)]
    words += ["-c", str(of.chip_id)] if isinstance(of.chip_id, int) else []
    return parsed(_asked(host, *words), lambda text: processes(text, of.npu_id))
