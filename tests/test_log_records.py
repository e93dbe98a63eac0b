"""Lines of every shape become records that say when, who and where; what belongs together is one record."""

from __future__ import annotations

import io
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_doctor.logs import BOOT, NO_YEAR, Coverage, Record
from ascend_doctor.logs.files import Hint, LogFile
from ascend_doctor.logs.flood import Flood
from ascend_doctor.logs.grammar import Line, lines_of
from ascend_doctor.logs.records import Records
from ascend_doctor.logs.scanning import Anchors, scanner
from ascend_doctor.logs.sources import found

SCANNER = scanner(
    Anchors(("EI0006", "507015", "out of memory", "Out of memory", "Heartbeat lost", "remote rank")), fast=False
)
NO_HINT = Hint()
CAPTURES = Path(__file__).parent / "captures" / "logs"


def read(data: bytes | str, name: str = "x.log", hint: Hint = NO_HINT) -> tuple[list[Record], Coverage]:
    raw = data.encode() if isinstance(data, str) else data
    records = Records(LogFile(name, lambda: io.BytesIO(raw), hint), SCANNER)
    return list(records), records.coverage


def records_of(data: bytes | str) -> list[Record]:
    return read(data)[0]


def one(data: bytes | str) -> Record:
    (record,) = records_of(data)
    return record


def line(text: str) -> Line:
    (only,) = lines_of(text)
    return only


@pytest.mark.parametrize(
    ("text", "module", "thread", "body"),
    [
        ("[stars_engine.cc:1502]33843 ProcLogicCqReport:Task run failed", "RUNTIME", "33843", "ProcLogicCqReport:Task"),
        ("[op_base.cc:974][36818][Init][Comm]errNo", "HCCL", "36818", "[Init][Comm]errNo"),
        ("[op_base.cc:974] [36818][Init]errNo", "HCCL", "36818", "[Init]errNo"),
        ("[rs_socket.c:2930]tid:60570,rs_peer_get_ifnum : param error", "HCCP", "60570", "rs_peer_get_ifnum"),
        (
            "[tsdaemon.cpp:2070][RemoveResidualFile][tid:4717] RemoveResidualFile finish",
            "TDT",
            "4717",
            "RemoveResidual",
        ),
        ("[prof_atls_plugin.cpp:222] (tid:58) Module[45]", "PROFILING", "58", "Module[45]"),
        ("[cb_impl.cpp:79] >>> (tid:47062) MsprofCtrl", "PROFILING", "47062", "MsprofCtrl"),
        ("89317 RecordEventFunc:OpParamMaker.cpp:517", "APP", "89317", "RecordEventFunc"),
    ],
)
def test_each_module_of_cann_writes_its_thread_in_its_own_way(text: str, module: str, thread: str, body: str) -> None:
    got = line(f"[ERROR] {module}(60570,):2025-12-04-14:46:07.911.312 {text}")
    assert (got.kind, got.level, got.module, got.pid, got.thread) == ("plog", "ERROR", module, 60570, thread)
    assert got.time == datetime(2025, 12, 4, 14, 46, 7, 911312)
    assert got.body.startswith(body)


@pytest.mark.parametrize(
    ("text", "kind", "level", "pid", "time"),
    [
        (
            "[ERROR]HCCL(29526,python3.11):2025-10-23-17:30:40.098.973 [a.cc:9] [29526][P]x",
            "plog",
            "ERROR",
            29526,
            "10-23",
        ),
        (
            "[ERROR] TSCH(-1,null):2023-06-10-13:16:11.401.438 11 (dieid:0) hwts_plat.c:1931 f: x",
            "slog",
            "ERROR",
            None,
            "06-10",
        ),
        ("[ERROR] GE(12,3fa0,python):2022-01-02-03:04:05.006.007 [a.cc:9] F] x", "plog", "ERROR", 12, "01-02"),
        (
            "[rank0]:[W904 09:50:12.024496247 compiler_depend.ts:57] Warning: EZ9999",
            "framework",
            "WARNING",
            None,
            "09-04",
        ),
        ("(Worker_TP2 pid=2640) ERROR 09-02 13:45:09 [m.py:987] RuntimeError: x", "framework", "ERROR", 2640, "09-02"),
        ("[ERROR] 2025-11-03-10:22:01 (PID:749, Device:0, RankID:-1) ERR00100 PTA", "framework", "ERROR", 749, "11-03"),
        ("EI0006: [PID: 31001] 2025-04-08-18:07:20.444.436 Getting socket", "framework", "ERROR", 31001, "04-08"),
        (
            "[PID: 379] 2026-05-01-10:59:07.429.194 Device_Absent/Abnormal(EL0001): x",
            "framework",
            "ERROR",
            379,
            "05-01",
        ),
        ("[PID:29526]2025-10-23-17:30:40.098.984Config_Error(EI0001): x", "framework", "ERROR", 29526, "10-23"),
        (
            "[2025-12-15 15:19:22.681+08:00] [38] [452] [server] [ERROR] [h.cpp:1] : [MIE04] x",
            "framework",
            "ERROR",
            38,
            "12-15",
        ),
        ("[2025-12-15 15:19:22.681+0800][ERROR]x", "framework", "ERROR", None, "12-15"),
        ("[2025-05-13 02:25:58.64217] [error] [36815] [hccl_runner.cpp:132] x", "framework", "ERROR", None, "05-13"),
        ("[WARN]     2024/01/10 03:30:38.643330 17      a/b.go:190    x", "framework", "WARNING", None, "01-10"),
        ("svc-1  | 2025-11-19 11:14:59.028 | ERROR    | __main__:f:95 | x", "framework", "ERROR", None, "11-19"),
        ("2025-11-19 11:14:59,028 - root - ERROR - x", "framework", "ERROR", None, "11-19"),
        ("[2025-11-19 11:14:59 TP3] Scheduler hit an exception: x", "framework", "", None, "11-19"),
        (
            "2026-01-02T03:04:05.678901234Z stderr F ERROR 01-02 03:04:05 [a.py:1] x",
            "framework",
            "ERROR",
            None,
            "01-02",
        ),
        (
            "Aug  1 08:38:31 node-a kernel: [ 1197.5] [ascend] [ERROR] [drv_pcie] [f 1] <k:1:2> x",
            "kernel",
            "ERROR",
            1,
            "08-01",
        ),
        (
            "[Mon Aug 11 10:05:44 2025] [ascend] [devdrv] [ERROR] [f 57] <python3:7790:7790> x",
            "kernel",
            "ERROR",
            7790,
            "08-11",
        ),
        ("[四 3月 20 21:01:20 2025] python3 invoked oom-killer", "kernel", "", None, "03-20"),
        ("[2025-04-16-03:08:13.704312] [ascend] [drv_pcie] [INFO] [f 1] <a:1:1> x", "kernel", "INFO", 1, "04-16"),
        (
            "[2025-04-16-03:08:13] system exception code [0xB4060007]: ModuleName [TS]",
            "blackbox",
            "ERROR",
            None,
            "04-16",
        ),
        (
            '{"log":"[E313 06:55:06.5 a.ts:1] x\\n","stream":"stderr","time":"2025-03-13T06:55:06Z"}',
            "framework",
            "ERROR",
            None,
            "03-13",
        ),
        ('{"level":"error","ts":"2025-03-13T06:55:06+08:00","msg":"x","pid":7}', "framework", "ERROR", 7, "03-13"),
        (
            "run/plog/plog-7_1.log:12:[ERROR] GE(7,p):2025-03-01-00:00:00.000.001 [a.cc:1]1 f:x",
            "plog",
            "ERROR",
            7,
            "03-01",
        ),
        ("./a/worker.err-12-ValueError: x", "framework", "ERROR", None, None),
    ],
)
def test_a_line_says_its_kind_level_process_and_time(
    text: str, kind: str, level: str, pid: int | None, time: str | None
) -> None:
    got = line(text)
    assert (got.kind, got.level, got.pid) == (kind, level, pid)
    assert (got.time and f"{got.time:%m-%d}") == time


def test_a_boot_clock_counts_from_a_fixed_time() -> None:
    got = line("[ 8012.000005] pcieport 0000:80:00.0: PCIe Bus Error")
    assert got.clock == "boot"
    assert got.time is not None
    assert (got.time - BOOT).total_seconds() == 8012.000005


def test_a_stamp_without_a_year_has_none() -> None:
    time = line("ERROR 02-29 13:45:09 [m.py:987] x").time
    assert time is not None
    assert time.year == NO_YEAR


def test_the_fraction_of_atb_is_not_padded() -> None:
    got = line("[2025-05-13 02:25:58.64217] [error] [36815] [hccl_runner.cpp:132] x")
    assert got.time == datetime(2025, 5, 13, 2, 25, 58, 64217)


def test_a_zone_in_the_stamp_is_kept() -> None:
    assert line("[2025-12-15 15:19:22.681+08:00] [1] [2] [server] [ERROR] [h.cpp:1] : x").utc_offset == 480
    assert line("2026-01-02T03:04:05Z stderr F x").clock == "utc"


def test_device_and_rank_come_from_the_text_but_not_those_of_others() -> None:
    assert line("[ERROR] RUNTIME(1,p):2025-03-01-00:00:00.000.001 [a.cc:1]1 f:x, device_id=5, stream").device == 5
    assert line("[ERROR] HCCL(1,p):2025-03-01-00:00:00.000.001 [a.cc:1][1]remote rank:[7], rank[2]").rank == 2
    assert line("[ERROR] HCCL(1,p):2025-03-01-00:00:00.000.001 [a.cc:1][1]stage, remote rank[7].").rank is None


def test_two_records_glued_on_one_line_are_two() -> None:
    head = "HCCL(1,p):2025-03-01-00:00:00.000.001 [a.cc:1][1]"
    records = records_of(f"[ERROR] {head}ret[9][ERROR] {head}507015\n")
    assert [(record.place.line, record.anchors) for record in records] == [(1, ()), (1, ("507015",))]


def test_an_error_manager_block_is_one_record_with_its_line_numbers() -> None:
    record = one(
        "x\nEI0006: [PID: 7] 2025-04-08-18:07:20.444.436 Getting socket times out\n"
        "        Solution: 1. Check\n\n        TraceBack (most recent call last):\n        wait 507015\nnext\n"
    )
    assert record.place.line == 2
    assert record.block == (
        "        Solution: 1. Check",
        "",
        "        TraceBack (most recent call last):",
        "        wait 507015",
    )
    assert record.block_lines == ()
    assert record.anchors == ("507015", "EI0006")


def test_tracebacks_are_one_record_each_and_end_with_their_exception() -> None:
    first, second = records_of(
        "Traceback (most recent call last):\n  File 1\n    x()\nImportError: a\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  File 2\nImportError: b\nINFO: after\n"
    )
    assert (first.block[-1], second.block[-1]) == ("ImportError: a", "ImportError: b")
    assert (first.level, second.place.line) == ("ERROR", 8)


def test_tracebacks_of_two_processes_that_interleave_are_told_apart() -> None:
    head = "(Worker_TP{0} pid=1{0}) ERROR 09-02 13:45:09 [m.py:987] {1}\n"
    texts = ["Traceback (most recent call last):", "  File x", "RuntimeError: of {0}, 507015"]
    records = records_of("".join(head.format(n, text.format(n)) for text in texts for n in (0, 1)))
    assert [(r.pid, r.block[-1], r.block_lines) for r in records] == [
        (10, "RuntimeError: of 0, 507015", (3, 5)),
        (11, "RuntimeError: of 1, 507015", (4, 6)),
    ]


def test_a_table_of_hccl_is_one_record_of_its_thread() -> None:
    head = "[ERROR] HCCL(7,p):2026-03-18-10:33:52.113.646 [s.cc:623] [{}]{}\n"
    rows = [
        (1, "   ___LINK_ERROR_INFO___"),
        (1, "   |  comm error, device[1]"),
        (2, "other"),
        (1, "   | 192.0.2.1(0) | time out"),
    ]
    records = records_of("".join(head.format(*row) for row in rows))
    assert sorted((r.thread, len(r.block)) for r in records) == [("1", 2), ("2", 0)]


def test_what_the_firmware_dumps_belongs_to_its_record() -> None:
    record = one(
        "[ERROR] TSCH(-1,null):2023-06-10-13:16:11.401.438 11 (dieid:0,cpuid:0) hwts_plat.c:1931 f: x\n"
        "<exception_print>TIME:2023, device_id=0, exception_code=0xb4060007\n<exception_print>notify wait timeout\n"
    )
    assert record.clock == "device"
    assert len(record.block) == 2


def test_texts_that_json_joins_are_apart_on_one_line() -> None:
    text = (
        'svc | 2025-11-19 11:14:59.028 | ERROR    | a:b:95 | x: {"d":"y\\n[ERROR] 2025-11-19-11:14:58 '
        '(PID:356, Device:0, RankID:-1) ERR00100 PTA\\n[Error]: z"}'
    )
    records = records_of(text)
    assert {record.place.line for record in records} == {1}
    assert [record.pid for record in records][1] == 356


def test_ray_says_for_how_many_a_line_stands() -> None:
    assert one("(W pid=4, ip=192.0.2.1) RuntimeError: NPU out of memory [repeated 6x across cluster]").repeated == 6


def test_of_a_flood_the_first_and_the_last_are_given_and_all_are_counted() -> None:
    text = "[ERROR] HCCL(7,p):2025-03-01-00:00:00.{0:03}.001 [a.cc:1][1]EI0006 number {0}\n"
    records = records_of("".join(text.format(n % 1000) for n in range(5001)))
    assert len(records) < 80
    assert sum(record.repeated for record in records) == 5001
    assert records[0].place.line == 1
    assert records[-1].place.line == 5001


def test_a_flood_of_tracebacks_is_thinned_too() -> None:
    records = records_of("Traceback (most recent call last):\n  File x\nValueError: 507015\n" * 3000)
    assert len(records) < 80
    assert sum(record.repeated for record in records) == 3000


def test_a_spent_budget_still_shows_each_kind() -> None:
    flood = Flood(budget=0)
    text = "".join(f"[ERROR] HCCL(7,p):2025-03-01-00:00:00.000.001 [a.cc:{n}][1]EI0006\n" for n in range(100))
    file = LogFile("x", lambda: io.BytesIO(text.encode() * 50))
    records = list(Records(file, SCANNER, flood))
    assert {record.source for record in records} == {f"a.cc:{n}" for n in range(100)}
    assert sum(record.repeated for record in records) == 5000


def test_line_numbers_and_offsets_are_those_of_the_file() -> None:
    quiet = "[INFO] HCCL(7,p):2025-03-01-00:00:00.000.001 [a.cc:1][1]nothing to see\n"
    loud = "[ERROR] HCCL(7,p):2025-03-01-00:00:00.000.001 [a.cc:1][1]EI0006\n"
    data = (quiet * 9000 + loud) * 3
    for record, number in zip(records_of(data), (9001, 18002, 27003)):
        assert record.place.line == number
        assert data[record.place.offset :].startswith(loud)


def test_offsets_hold_where_colours_were_taken_out() -> None:
    data = "\x1b[32mok\x1b[0m\n\x1b[31mERROR 09-02 13:45:09 [m.py:987]\x1b[0m 507015\n"
    record = one(data)
    assert record.text == "ERROR 09-02 13:45:09 [m.py:987] 507015"
    assert data[record.place.offset :].startswith("\x1b[31mERROR")


def test_the_name_of_a_file_gives_process_device_and_rank_where_the_text_does_not() -> None:
    (record,), _ = read("out of memory\n", "x", Hint(pid=4, device=2, rank=1))
    assert (record.pid, record.device, record.rank) == (4, 2, 1)


def test_coverage_says_what_was_read() -> None:
    text = "[INFO] HCCL(7,p):2025-03-01-00:00:{:02}.000.001 [a.cc:1][1]x\n"
    _, coverage = read("".join(text.format(n) for n in range(60)) + "\0" * 40)
    assert (coverage.kind, coverage.lines, coverage.encoding) == ("plog", 61, "utf-8")
    assert coverage.first == datetime(2025, 3, 1, 0, 0, 0, 1)
    assert coverage.last == datetime(2025, 3, 1, 0, 0, 59, 1)
    assert "40 NUL" in coverage.skipped


def test_a_file_that_cannot_be_opened_is_said() -> None:
    def denied() -> io.BytesIO:
        raise PermissionError(13, "Permission denied")

    records = Records(LogFile("x", denied), SCANNER)
    assert list(records) == []
    assert "Permission denied" in records.coverage.skipped


@pytest.mark.parametrize("path", sorted(CAPTURES.rglob("*.log")), ids=lambda path: path.name)
def test_every_line_with_an_error_of_a_real_log_is_in_a_record(path: Path) -> None:
    covered: set[int] = set()
    for record in Records(next(iter(found([str(path)]))), SCANNER):
        numbers = record.block_lines or range(record.place.line + 1, record.place.line + 1 + len(record.block))
        covered |= {record.place.line, *numbers}
    for number, text in enumerate(path.read_bytes().split(b"\n"), 1):
        if b"[ERROR]" in text or b"507015" in text or b"EI0006" in text:
            assert number in covered, text[:80]


SHAPES = [
    "[ERROR] HCCL(7,p):2025-03-01-00:00:00.000.001 [a.cc:1][1]",
    "EI0006: [PID: 7] 2025-04-08-18:07:20.444.436 ",
    "Traceback (most recent call last):",
    "  File",
    "\n",
    "\n",
    "(W pid=1) ",
    "[rank1]: ",
    "ERROR 09-02 13:45:09 [m.py:987] ",
    '{"log": "',
    '"}',
    "\\n",
    "<exception_print>",
    "[ 8012.000005] ",
    "[ascend] [ERROR] [x]",
    "\x1b[31m",
    "[2025-12-15 15:19:22.681+08:00] [1] ",
    "| ",
    "DEVICE[0] PID[1]: ",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(SHAPES).map(str.encode), st.binary(max_size=12)), max_size=30).map(b"".join))
def test_any_bytes_give_records_within_the_file(data: bytes) -> None:
    records, coverage = read(data)
    for record in records:
        assert 1 <= record.place.line <= max(1, coverage.lines)
        assert 0 <= record.place.offset <= len(data)
        assert all(number <= coverage.lines for number in record.block_lines)


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 20000, "(" * 20000, "a" * 20000 + ":", "a.b" * 8000, "[a]" * 6000, " | " * 6000, "Error" * 4000),
        *("2025-01-01 00:00:00 " * 900, "[2025-12-15 15:19:22][" + "a" * 15000, '{"log":' * 3000, "x-1-" * 5000),
        *("[PID: " * 3000, "a/" * 9000 + "x.log:1:", "[ascend] [" + "a " * 9000, "rank" * 5000, "x:" * 9000),
    ],
)
def test_a_hostile_line_takes_no_time(text: str) -> None:
    from time import process_time

    begun = process_time()
    lines_of(text)
    assert process_time() - begun < 0.5
