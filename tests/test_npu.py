"""Tables and failures that no capture shows, the reports on health, and how a host is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_doctor.facts.npu import Npu, collect, npu_smi_info
from ascend_doctor.facts.npu_health import HealthText, health_text
from ascend_doctor.facts.npu_table import Chip
from ascend_doctor.host import Answer, Missing, Output, Reason

A2_TABLE = b"""\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.5.1                   Version: 25.5.1                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 91.2        46                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3398 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Alarm         | 90.0        44                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3399 / 65536         |
+===========================+===============+====================================================+
"""


def read(data: bytes) -> Npu:
    npu = npu_smi_info(data).value
    assert isinstance(npu, Npu)
    return npu


def chips(data: bytes) -> tuple[Chip, ...]:
    found = read(data).chips
    assert isinstance(found, tuple)
    return found


def test_a_column_that_is_new_stands_in_nobodys_way() -> None:
    text = A2_TABLE.replace(b"Temp(C)  ", b"Temp(C)  Fan(rpm)").replace(b"46     ", b"46  8200 ")
    text = text.replace(b"44     ", b"44  8100 ").replace(b"AICore(%)", b"AICore(%) AIVector(%)")
    text = text.replace(b"0           0    / 0  ", b"0   5         0    / 0  ")
    assert chips(text) == chips(A2_TABLE)


def test_a_cell_of_its_own_for_the_id_makes_the_950_layout() -> None:
    chip, other = chips(b"""
+--------+------------------+---------------+----------------------------------------------------------------------+
| npu-smi 25.6.rc1.b218                            Version: 25.6.rc1.b218                |
+--------+------------------+---------------+----------------------------------------------------------------------+
| NPU ID | Name             | Health        | Power(W)              Temp(C)                  Hugepages-Usage(page) |
|        |                  | Bus-Id        | NPU Util(%)           Memory-Usage(MB)         HBM-Usage(MB)         |
+========+==================+===============+======================================================================+
| 0      | Ascend950DT      | OK            | 398.6                 46                       0     / 0             |
|        |                  | NA            | 0                     0     / 0                4765  / 98304         |
+===========================+===============+======================================================================+
| 7      | Ascend950DT      | Critical      | 397.5                 61                       0     / 0             |
|        |                  | NA            | 42                    0     / 0                91000 / 98304         |
+===========================+===============+======================================================================+
""")
    assert (chip.npu_id, chip.name, chip.bus_id, chip.chip_id) == (
        0,
        "Ascend950DT",
        Missing(Reason.UNSUPPORTED, "NA"),
        Missing(Reason.UNSUPPORTED, "no such column"),
    )
    assert (other.npu_id, other.health, other.npu_util_percent, other.hbm_used_mb) == (7, "Critical", 42, 91000)


def test_a_table_of_one_line_a_chip_is_read_by_its_header() -> None:
    npu = read(
        b"""
npu-smi 25.6.1.b007
Version: 25.6.1.b007

| NPU ID | Name | Health | Power (W) | Temp (C) | NPU Util (%) | HBM Usage (MB) |
|---:|---|---|---:|---:|---:|---:|
| 0 | Ascend950DT | Warning | 410.3 | 36 | 0 | 48409 / 98304 |
| 6 | Ascend950DT | Critical | 426.9 | 41 | 3 | 15372 / 98304 |
"""
    )
    assert isinstance(npu.chips, tuple)
    assert [(c.npu_id, c.health, c.npu_util_percent, c.hbm_used_mb, c.temp_c) for c in npu.chips] == [
        (0, "Warning", 0, 48409, 36),
        (6, "Critical", 3, 15372, 41),
    ]
    assert npu.driver_version == "25.6.1.b007"


def test_versions_may_differ_be_glued_or_carry_a_remark() -> None:
    for words, tool, driver in (
        (b"npu-smi 22.0.0                   Version:22.0.2 ", "22.0.0", "22.0.2"),
        ("npu-smi 22.0.4（npu-smi工具版本）   Version: 22.0.4（npu驱动版本）".encode(), "22.0.4", "22.0.4"),
        (b"npu-smi 23.0.rc1.b070            Version: 23.0.rc1.b070", "23.0.rc1.b070", "23.0.rc1.b070"),
    ):
        npu = read(A2_TABLE.replace(b"npu-smi 25.5.1                   Version: 25.5.1  ", words))
        assert (npu.tool_version, npu.driver_version) == (tool, driver)


def test_a_table_without_its_line_of_versions_is_still_a_table() -> None:
    npu = read(b"\n".join(A2_TABLE.split(b"\n")[3:]))
    assert npu.chips == read(A2_TABLE).chips
    assert isinstance(npu.driver_version, Missing)


def test_memory_that_is_half_known_is_half_known() -> None:
    [chip] = chips(b"""
| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
| 0       310B4                 | OK              | 0.0          52                15    / 15            |
| 0       0                     | NA              | 0            NA / 7545                               |
""")
    assert (chip.memory_used_mb, chip.memory_total_mb) == (Missing(Reason.UNSUPPORTED, "NA"), 7545)


def test_a_chip_whose_second_line_was_not_printed_is_not_lost() -> None:
    """npu-smi leaves it out where the device does not answer for its ids."""
    lines = A2_TABLE.split(b"\n")
    del lines[10]
    first, second = chips(b"\n".join(lines))
    assert (second.npu_id, second.health, second.power_w) == (1, "Alarm", 90.0)
    assert isinstance(second.hbm_used_mb, Missing)
    assert second.hbm_used_mb.reason is Reason.FAILED
    assert first == chips(A2_TABLE)[0]


def test_left_out_lines_never_join_two_chips() -> None:
    lines = A2_TABLE.split(b"\n")
    assert isinstance(read(b"\n".join([*lines[:7], b"......", *lines[10:]])).chips, Missing)


def test_of_two_tables_the_last_counts() -> None:
    later = A2_TABLE.replace(b"Alarm", b"OK   ").replace(b"3398", b"9999")
    assert read(A2_TABLE + b"$ npu-smi info\n" + later) == read(later)


def test_of_two_tables_one_without_chips_does_not_count() -> None:
    assert read(A2_TABLE + A2_TABLE[:500]) == read(A2_TABLE)


def test_an_error_line_beside_a_table_is_no_error() -> None:
    line = b"dcmi module initialize failed. ret is -8005\n"
    assert read(A2_TABLE + line) == read(line + A2_TABLE) == read(A2_TABLE)


def test_a_header_without_chips_is_no_answer() -> None:
    npu = read(b"\n".join(A2_TABLE.split(b"\n")[:6]))
    assert (npu.status, npu.driver_version) == ("error", "25.5.1")
    assert isinstance(npu.chips, Missing)
    assert not isinstance(npu.error, Missing)
    assert npu.error.kind == "unreadable"


PROCESSES = b"""\
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 576489        | python -m vllm           | 60703                   |
+===========================+===============+====================================================+
| No running processes found in NPU 1                                                            |
+===========================+===============+====================================================+
"""


def processes(table: bytes) -> list[tuple[Any, ...]]:
    found = read(A2_TABLE + table).processes
    assert isinstance(found, tuple)
    return [(p.npu_id, p.chip_id, p.pid, p.name, p.memory_mb) for p in found]


def test_processes_are_read_by_their_header() -> None:
    assert processes(PROCESSES) == [(0, 0, 576489, "python -m vllm", 60703)]
    assert read(A2_TABLE + PROCESSES).idle_npus == (1,)


def test_memory_of_a_process_in_bytes_becomes_megabytes() -> None:
    in_bytes = PROCESSES.replace(b"memory(MB)", b"memory(B)").replace(b"60703 ", b"63651708928")
    assert processes(in_bytes) == [(0, 0, 576489, "python -m vllm", 60703)]


def test_a_process_in_a_container_has_two_ids() -> None:
    header = b"| NPU ID | Process id | Process name | Process memory(MB) |Process id in container|\n"
    rows = b"| 0 | 1001 | python | 256 | NA |\n| 0 | 1002 | python | 512 | 101 |\n"
    found = read(A2_TABLE + header + rows).processes
    assert isinstance(found, tuple)
    assert [p.container_pid for p in found] == [Missing(Reason.UNSUPPORTED, "NA"), 101]
    assert isinstance(found[0].chip_id, Missing)


@pytest.mark.parametrize(
    ("text", "kind", "dcmi", "tool", "library"),
    [
        (
            "DrvMngGetConsoleLogLevel failed. (ret=4)\ndcmi model initialized failed, because the device is used. "
            "ret is -8020\nnpu get board type failed. ret is -9005\n",
            "device_occupied",
            -8020,
            -9005,
            None,
        ),
        ("dcmi model initialization failed, because the device is used.", "device_occupied", None, None, None),
        ("npu get board type failed. ret is -9005\n", "dcmi_init_failed", None, -9005, None),
        ("dcmi module initialize failed. ret is -8008\n", "dcmi_init_failed", -8008, None, None),
        ("dcmi module initialize failed. ret is -8255\n", "dcmi_init_failed", -8255, None, None),
        ("DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\n", "dcmi_init_failed", None, None, None),
        ("There is no NPU card on this server.\n", "dcmi_init_failed", None, None, None),
        ("dcmi module initialize failed. ret is -8002\n", "no_permission", -8002, None, None),
        ("bash: /usr/local/bin/npu-smi: Permission denied\n", "no_permission", None, None, None),
        ("-bash: /usr/local/sbin/npu-smi: 权限不够\n", "no_permission", None, None, None),
        (
            "npu-smi: error while loading shared libraries: libascend_hal.so: cannot open shared object file: "
            "No such file or directory",
            "missing_library",
            None,
            None,
            "libascend_hal.so",
        ),
        ("libdcmi.so: cannot open shared object file", "missing_library", None, None, "libdcmi.so"),
        ("-bash: npu-smi: command not found", "command_not_found", None, None, None),
        ("sh: 1: npu-smi: not found", "command_not_found", None, None, None),
        ("zsh: command not found: npu-smi", "command_not_found", None, None, None),
        ("bash: npu-smi: 未找到命令", "command_not_found", None, None, None),
        ("bash：npu-smi：未找到命令", "command_not_found", None, None, None),
        ("env: ‘npu-smi’: No such file or directory", "command_not_found", None, None, None),
        ("bash: /usr/local/bin/npu-smi: Is a directory", "command_not_found", None, None, None),
        ('exec: "npu-smi": executable file not found in $PATH: unknown', "command_not_found", None, None, None),
        ("Command or option is not found.\nUsage: npu-smi <Command|-h|-v>", "unreadable", None, None, None),
        ("", "unreadable", None, None, None),
        ("\x00\x01\x02", "unreadable", None, None, None),
    ],
)
def test_each_failure_has_its_kind(text: str, kind: str, dcmi: object, tool: object, library: object) -> None:
    error = read(text.encode()).error
    assert not isinstance(error, Missing)
    known = [None if isinstance(v, Missing) else v for v in (error.dcmi_ret, error.npu_smi_ret, error.missing_library)]
    assert (error.kind, *known) == (kind, dcmi, tool, library)


def test_a_failure_leaves_nothing_that_could_be_taken_for_an_idle_host() -> None:
    npu = read(b"dcmi module initialize failed. ret is -8005\n")
    assert all(isinstance(part, Missing) for part in (npu.chips, npu.processes, npu.idle_npus, npu.health_reports))
    assert npu.process_table_present is False


def said(stdout: str, stderr: str = "") -> HealthText | Missing:
    return health_text(Output(0, stdout.encode(), stderr.encode())).value


def test_health_without_a_fault_has_no_codes() -> None:
    report = said("\tHealth Status                  : OK\n\tError Code                     : NA\n")
    assert isinstance(report, HealthText)
    assert (report.status, report.codes) == ("OK", ())


def test_health_that_was_squeezed_and_wrapped_reads_the_same() -> None:
    report = said(
        "Health Status    : Alarm\nError Code       : 80E3A203\n"
        "Error Information: node type=LPM, sensor type=Chip Hardware,\n"
        "                   event state=The function of obtaining the current is abnormal\n"
    )
    assert report == HealthText(
        "Alarm",
        ("80E3A203",),
        "node type=LPM, sensor type=Chip Hardware, event state=The function of obtaining the current is abnormal",
    )


@pytest.mark.parametrize("codes", ["80E3A203 80e18005", "0x80E3A203, 0x80E18005", "80E3A203\n      80E18005"])
def test_several_codes_are_several(codes: str) -> None:
    report = said(f"NPU ID : 0\nHealth : Critical\nError Code : {codes}\nError Information : NA\n")
    assert isinstance(report, HealthText)
    assert report.codes == ("80E3A203", "80E18005")


def test_a_refusal_is_unsupported_and_an_error_failed() -> None:
    refused, broken = said("This device does not support querying health.\n"), said("", "Error parameter of -t\n")
    assert refused == Missing(Reason.UNSUPPORTED, "This device does not support querying health.")
    assert broken == Missing(Reason.FAILED, "Error parameter of -t")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_report_or_missing(data: bytes) -> None:
    assert isinstance(health_text(Output(0, data, b"")).value, (HealthText, Missing))


class Answers:
    """A host that knows only these commands."""

    def __init__(self, answers: dict[tuple[str, ...], Output | Missing]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []

    def run(self, argv: Sequence[str], timeout: float = 10.0) -> Answer[Output]:
        self.asked.append(tuple(argv))
        value = self.answers.get(tuple(argv), Missing(Reason.NOT_COLLECTED))
        return Answer(f"command:{' '.join(argv)}", value)


def npu_of(answers: dict[tuple[str, ...], Output | Missing]) -> tuple[Npu, Answers]:
    host = Answers(answers)
    return collect(host).facts, host  # type: ignore[arg-type]


INFO = ("npu-smi", "info")
HEALTH_OF_1 = ("npu-smi", "info", "-t", "health", "-i", "1", "-c", "0")


def test_only_chips_that_are_not_ok_are_asked_for_their_codes() -> None:
    alarm = Output(0, b"Health Status : Alarm\nError Code : 80E18005\nError Information : NA\n", b"")
    npu, host = npu_of({INFO: Output(0, A2_TABLE, b""), HEALTH_OF_1: alarm})
    assert host.asked == [INFO, HEALTH_OF_1]
    assert isinstance(npu.health_reports, tuple)
    assert [(r.npu_id, r.status, r.codes) for r in npu.health_reports] == [(1, "Alarm", ("80E18005",))]


def test_a_chip_of_the_950_is_asked_for_by_its_npu_alone() -> None:
    table = b"""
| NPU ID | Name             | Health        | Power(W)    Temp(C)           Hugepages-Usage(page) |
|        |                  | Bus-Id        | NPU Util(%) Memory-Usage(MB)  HBM-Usage(MB)         |
| 3      | Ascend950PR      | Alarm         | 205.7       71                0     / 0             |
|        |                  | 0000:71:00.0  | 100         0    / 0          90633 / 114688        |
"""
    assert npu_of({INFO: Output(0, table, b"")})[1].asked[1:] == [("npu-smi", "info", "-t", "health", "-i", "3")]


def test_a_report_that_did_not_come_is_missing_with_its_reason() -> None:
    npu, _ = npu_of({INFO: Output(0, A2_TABLE, b""), HEALTH_OF_1: Missing(Reason.TIMEOUT, "10 s")})
    assert isinstance(npu.health_reports, tuple)
    assert npu.health_reports[0].codes == Missing(Reason.TIMEOUT, "10 s", "npu.health_reports[0].codes")


def test_the_table_may_stand_on_either_stream_with_any_exit_code() -> None:
    for output in (Output(0, A2_TABLE, b""), Output(172, b"", A2_TABLE), Output(1, A2_TABLE, b"noise\n")):
        assert npu_of({INFO: output})[0].chips == npu_of({INFO: Output(0, A2_TABLE, b"")})[0].chips


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (Reason.ABSENT, "command_not_found"),
        (Reason.TIMEOUT, "hang"),
        (Reason.DENIED, "no_permission"),
        (Reason.FAILED, "unreadable"),
    ],
)
def test_a_tool_that_could_not_be_asked_is_a_fact(reason: Reason, kind: str) -> None:
    npu, _ = npu_of({INFO: Missing(reason, "why")})
    assert npu.status == "error"
    assert not isinstance(npu.error, Missing)
    assert npu.error.kind == kind
    assert isinstance(npu.chips, Missing)
    assert npu.chips.reason is not Reason.ABSENT


def test_what_was_not_collected_says_nothing() -> None:
    npu, _ = npu_of({})
    assert all(getattr(npu, name).reason is Reason.NOT_COLLECTED for name in Npu.__dataclass_fields__)


def test_each_fact_keeps_where_it_came_from() -> None:
    host = Answers({INFO: Output(0, A2_TABLE + PROCESSES, b"")})
    provenance = collect(host).provenance  # type: ignore[arg-type]
    assert provenance["npu.chips[1]"] == ("command:npu-smi info", "\n".join(A2_TABLE.decode().split("\n")[9:11]))
    assert "Version: 25.5.1" in provenance["npu.driver_version"][1]
    assert provenance["npu.health_reports[0]"] == (f"command:{' '.join(HEALTH_OF_1)}", "not_collected")
