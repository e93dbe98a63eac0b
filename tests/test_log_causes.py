"""The causal graph: who was first on a common time line, who waits for whom, and what may not be blamed."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from log_runs import CAPTURES, known, run_of, run_of_texts

from ascend_doctor.engine.run import Run, run_as_json
from ascend_doctor.logs import Place, Record
from ascend_doctor.logs.analysis import Wanted
from ascend_doctor.logs.boot import boot_fact
from ascend_doctor.logs.clocks import Evidence
from ascend_doctor.logs.codes import codes_in
from ascend_doctor.logs.events import Namer
from ascend_doctor.logs.incidents import template
from ascend_doctor.logs.waits import Process, WaitGraph, ranks_in

HEARTBEAT = (
    "[ascend] [ERROR] [drv_soft_fault] [heart_beat_judge 318] <kworker/5:1H:39365> Heartbeat lost! (device={0}; "
    "old_count=5104; new_count=5104; lost_count=4; total_lost_count=4; total_10s_count=0; total_15s_count 0)."
)
OOM = (
    "RuntimeError: NPU out of memory. Tried to allocate 5.03 GiB (NPU {0}; 60.96 GiB total capacity; "
    "49.47 GiB already allocated; 1.32 GiB free; 57.55 GiB reserved in total by PyTorch)"
)


def plog(level: str, module: str, pid: int, stamp: str, text: str) -> str:
    return f"[{level}] {module}({pid},python3):{stamp} {text}\n"


def waits_for(pid: int, stamp: str, own: int, remote: int, size: int = 4) -> str:
    group = "192.0.2.175%enp179s0f0_60000_0_1712529353144389"
    head = "[task_exception_handler.cc:45"
    return (
        plog(
            "ERROR",
            "HCCL",
            pid,
            stamp,
            f"{head}2][{pid}][TaskExceptionHandler][Callback]Task run failed, base information is "
            f"streamID:[3], taskID[77726298], taskType[Notify Wait], tag[AllReduce_{group}], index[3], "
            f"AlgType(level 0-1-2):[null-null-ring].",
        )
        + plog(
            "ERROR",
            "HCCL",
            pid,
            stamp,
            f"{head}4][{pid}][TaskExceptionHandler][Callback]Task run failed, para information is notify "
            f"id:[0x0000000000000050], stage:[ffffffff], remote rank:[{remote}].",
        )
        + plog(
            "ERROR",
            "HCCL",
            pid,
            stamp,
            f"{head}4][{pid}][TaskExceptionHandler][Callback]Task run failed, groupRank information is "
            f"group:[{group}], rankSize[{size}], rankId[{own}].",
        )
    )


def kernel_exception(pid: int, stamp: str, device: int, code: int = 507035) -> str:
    return plog(
        "ERROR",
        "RUNTIME",
        pid,
        stamp,
        f"[davinic_kernel_task.cc:1219]{pid} PreCheckTaskErr:[INIT][DEFAULT]Kernel task happen error, "
        f"retCode=0x31, [vector core exception].",
    ) + plog(
        "ERROR",
        "ASCENDCL",
        pid,
        stamp[:-3] + "999",
        f"[stream.cpp:161]{pid} aclrtSynchronizeStreamWithTimeout:synchronize stream failed, runtime result = {code}",
    )


def told(run: Run) -> Any:
    return json.loads(json.dumps(run_as_json(run)))


def line_of(document: Any) -> tuple[str, int]:
    root = document["root_cause"]
    return Path(root["file"]).name, root["line"]


def test_a_killed_process_explains_the_ranks_that_wait_for_it(tmp_path: Path) -> None:
    run = run_of_texts(
        tmp_path,
        {
            "messages": "Apr  8 02:20:30 node-a kernel: [34123.491542] Out of memory: Killed process 69398 "
            "(python3) total-vm:553312244kB, anon-rss:314514560kB, file-rss:74816kB, shmem-rss:12296kB, "
            "UID:0 pgtables:69068kB oom_score_adj:0\n",
            "rank0/plog-69395_20240408022001123.log": waits_for(69395, "2024-04-08-02:55:04.903.469", 0, 3),
            "rank1/plog-69396_20240408022001123.log": waits_for(69396, "2024-04-08-02:55:04.913.469", 1, 3),
        },
    )
    assert line_of(told(run)) == ("messages", 1)
    assert told(run)["log_verdict"] == "fault"
    waiting = [i for i in told(run)["incidents"] if "rank" in i["file"]]
    assert waiting
    assert all(i["caused_by"] is not None and i["role"] != "root" for i in waiting)


def test_a_rank_that_all_wait_for_and_that_says_nothing_is_named(tmp_path: Path) -> None:
    texts = {
        f"rank{r}/debug/plog/plog-{69395 + r}_20240408022001123.log": waits_for(
            69395 + r, f"2024-04-08-02:55:0{r}.903.469", r, 2
        )
        for r in (0, 1, 3)
    }
    document = told(run_of_texts(tmp_path, texts))
    assert document["log_verdict"] == "evidence-missing"
    assert document["suspects"] == {"ranks": [2], "silent": [2], "absent": []}
    assert document["root_cause"]["confidence"] == "low"
    assert any(note["kind"] == "log-fetch-ranks" and "2" in note["text"]["en"] for note in document["fetch"])


def test_pods_that_count_their_processes_alike_are_told_apart(tmp_path: Path) -> None:
    """Each rank runs as process 120 of its own container."""
    texts = {
        f"pod-{r}/ascend/log/debug/plog/plog-120_20240408022001123.log": waits_for(
            120, f"2024-04-08-02:55:0{r}.903.469", r, (r + 1) % 4
        )
        for r in (0, 1, 2)
    }
    texts["pod-3/ascend/log/debug/plog/plog-120_20240408022001123.log"] = kernel_exception(
        120, "2024-04-08-02:24:25.036.721", 3
    )
    document = told(run_of_texts(tmp_path, texts))
    assert "/pod-3/" in document["root_cause"]["file"]
    assert {i["file"].split("/pod-")[1][0] for i in document["incidents"] if i["caused_by"] is not None} >= {
        "0",
        "1",
        "2",
    }


def test_ranks_that_wait_for_each_other_are_told_as_a_ring(tmp_path: Path) -> None:
    texts = {
        f"rank{r}/plog-{69395 + r}_20240408022001123.log": waits_for(
            69395 + r, f"2024-04-08-02:55:0{r}.903.469", r, 1 - r, 2
        )
        for r in (0, 1)
    }
    document = told(run_of_texts(tmp_path, texts))
    assert document["log_verdict"] == "evidence-missing"
    assert [note["kind"] for note in document["notes"]] == ["log-ring"]


def test_of_two_ranks_that_fail_the_earlier_one_is_the_root(tmp_path: Path) -> None:
    texts = {
        "rank0/plog-100_20240408022001123.log": kernel_exception(100, "2024-04-08-02:24:29.000.100", 0),
        "rank5/plog-105_20240408022001123.log": kernel_exception(105, "2024-04-08-02:24:25.036.721", 5),
    }
    document = told(run_of_texts(tmp_path, texts))
    assert document["root_cause"]["rank"] == 5


def test_an_old_event_of_the_kernel_is_said_and_not_blamed(tmp_path: Path) -> None:
    document = told(
        run_of_texts(
            tmp_path,
            {
                "dmesg.txt": f"[Mon Apr  1 10:05:31 2024] {HEARTBEAT.format(3)}\n",
                "plog-100_20240408022001123.log": kernel_exception(100, "2024-04-08-02:24:25.036.721", 5),
            },
        )
    )
    assert line_of(document)[0].startswith("plog-100")
    assert [note["kind"] for note in document["notes"]] == ["log-outside"]
    assert [i["caused_by"] for i in document["incidents"] if "dmesg" in i["file"]] == [None]


def test_a_card_that_drops_beats_what_the_operator_says_of_it(tmp_path: Path) -> None:
    """The kernel prints it a little later than the application met it."""
    document = told(
        run_of_texts(
            tmp_path,
            {
                "dmesg.txt": "[Mon Apr  8 02:24:26 2024] pcieport 0000:80:00.0: PCIe Bus Error: "
                "severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)\n",
                "plog-100_20240408022001123.log": kernel_exception(100, "2024-04-08-02:24:25.036.721", 5),
            },
        )
    )
    assert line_of(document) == ("dmesg.txt", 1)


def test_a_kernel_log_without_a_clock_is_not_compared_in_silence(tmp_path: Path) -> None:
    document = told(
        run_of_texts(
            tmp_path,
            {
                "dmesg.txt": f"[ 8017.584409] {HEARTBEAT.format(5)}\n",
                "plog-100_20240408022001123.log": kernel_exception(100, "2024-04-08-02:24:25.036.721", 5),
            },
        )
    )
    assert "log-clock-unknown" in [note["kind"] for note in document["notes"]]
    assert document["root_cause"]["confidence"] == "medium"
    assert {clock["how"] for clock in document["clocks"]} == {"reference", "unknown"}


def test_a_device_in_another_zone_is_aligned_by_the_task_that_both_name(tmp_path: Path) -> None:
    slog = (
        "[ERROR] TSCH(-1,null):2023-06-10-05:16:11.401.684 71 (dieid:0,cpuid:0) hwts_plat.c:2026 "
        "int_process_hwts_timeout_exception: RTS_HWTS: hwts timeout exception, slot_id=15, stream_id=16, task_id=43\n"
    )
    host = plog(
        "ERROR",
        "RUNTIME",
        100,
        "2023-06-10-13:16:12.001.684",
        "[stars_engine.cc:1321]100 ProcLogicCqReport:Task run failed, device_id=0, stream_id=16, task_id=43, "
        "sqe_type=7(notify wait), errType=0x20(sq sw status error), sqSwStatus=0x105",
    )
    document = told(run_of_texts(tmp_path, {"device-0.log": slog, "plog-100_20230610131611123.log": host}))
    device = [clock for clock in document["clocks"] if clock["clock"] == "device"]
    assert [(clock["offset_seconds"], clock["how"]) for clock in device] == [(8 * 3600, "shared-ids")]


def test_the_watchdog_that_fires_first_is_no_root(tmp_path: Path) -> None:
    text = (
        "[rank8]:[E313 06:55:05.872863660 compiler_depend.ts:1790] [Rank1] checkHcclComms found HcclComms "
        "vector 0 got ERROR via HcclGetCommAsyncError\n"
        f"[rank3]: {OOM.format(3)}\n"
        "[rank3]: [ERROR] 2026-03-13-06:55:06 (PID:45464, Device:3, RankID:3) ERR99999 UNKNOWN applicaiton exception\n"
    )
    assert line_of(told(run_of_texts(tmp_path, {"train.log": text})))[1] == 2


def test_errors_that_nobody_knows_are_grouped_and_never_dropped(tmp_path: Path) -> None:
    lines = [
        plog("ERROR", "ZZZ", 7, f"2026-01-01-00:00:{s:02}.000.001", f"[zz.cc:{s}] frobnicator {s} lost at 0x{s:x}")
        for s in range(10, 40)
    ]
    document = told(run_of_texts(tmp_path, {"plog-7_20260101000000000.log": "".join(lines)}))
    assert (document["log_verdict"], document["root_cause"], document["gate"]["exit_code"]) == (
        "evidence-missing",
        None,
        3,
    )
    assert sum(i["count"] for i in document["incidents"]) == 30
    assert len(document["incidents"]) <= 2
    assert document["incidents"][0]["signature"] == "unknown"
    assert "logs.not-in-the-catalogue" in [finding["check"] for finding in document["findings"]]


def test_nothing_read_is_not_nothing_wrong(tmp_path: Path) -> None:
    document = told(run_of_texts(tmp_path, {}))
    assert (document["log_verdict"], document["gate"]["exit_code"], document["coverage"]) == ("no-logs", 3, [])


def test_a_log_without_errors_is_clean(tmp_path: Path) -> None:
    document = told(
        run_of_texts(
            tmp_path, {"server.log": "INFO 06-09 06:50:11 [loader.py:458] Loading weights took 233.21 seconds\n"}
        )
    )
    assert (document["log_verdict"], document["gate"]["exit_code"]) == ("clean", 0)
    assert document["coverage"][0]["lines"] == 1


def test_a_named_file_that_cannot_be_read_leaves_it_open(tmp_path: Path) -> None:
    run_of_texts(tmp_path, {"server.log": "INFO: all is well\n"})
    document = told(run_of([tmp_path / "server.log", tmp_path / "gone.log"]))
    assert (document["log_verdict"], document["gate"]["exit_code"]) == ("evidence-missing", 3)
    assert "log-unread" in [note["kind"] for note in document["notes"]]


def test_time_and_process_choose_what_is_judged(tmp_path: Path) -> None:
    texts = {
        "plog-100_20240408022001123.log": kernel_exception(100, "2024-04-08-02:24:25.036.721", 0),
        "plog-200_20240408022001123.log": kernel_exception(200, "2024-04-08-02:24:35.036.721", 1),
    }
    assert told(run_of_texts(tmp_path, texts))["root_cause"]["pid"] == 100
    assert told(run_of_texts(tmp_path, texts, Wanted(pid=200)))["root_cause"]["pid"] == 200
    late = told(run_of_texts(tmp_path, texts, Wanted(since=datetime(2024, 4, 8, 2, 24, 30))))
    assert late["root_cause"]["pid"] == 200
    assert "log-left-out" in [note["kind"] for note in late["notes"]]
    assert told(run_of_texts(tmp_path, texts, Wanted(until=datetime(2024, 4, 8))))["log_verdict"] == "clean"


def test_a_failed_attempt_long_before_is_not_what_ended_the_run(tmp_path: Path) -> None:
    probe = "ModuleNotFoundError: No module named 'optional_thing'"
    text = (
        f"ERROR 06-09 06:20:11 [importing.py:53] {probe}\n"
        "INFO 06-09 06:20:12 [importing.py:54] going on without it\n"
        f"(Worker pid=45464) ERROR 06-09 06:57:48 worker_base.py:581] {OOM.format(3)}\n"
        "[ERROR] 2025-06-09-06:57:54 (PID:45464, Device:3, RankID:3) ERR99999 UNKNOWN applicaiton exception\n"
    )
    assert line_of(told(run_of_texts(tmp_path, {"server.log": text})))[1] == 3


def test_the_same_bytes_give_the_same_answer(tmp_path: Path) -> None:
    texts = {
        f"rank{r}/plog-{100 + r}_20240408022001123.log": kernel_exception(100 + r, "2024-04-08-02:24:25.036.721", r)
        for r in range(4)
    }
    first, second = (told(run_of_texts(tmp_path, texts)) for _ in range(2))
    for one in (first, second):
        one["seconds"] = 0
    assert first == second


def test_a_block_has_its_own_process_and_stamp() -> None:
    record = Record(
        Place("x", 1, 0),
        "framework",
        "ERROR",
        "",
        None,
        "none",
        None,
        "",
        None,
        None,
        "RuntimeError: ACL stream synchronize failed, error code:507035",
        (
            "EZ9999: [PID: 838] 2025-09-04-09:50:11.954.378 The error from device(chipId:6, dieId:0), serial "
            "number is 8, there is an exception of aivec error, core id is 40, error code = 0",
            "        TraceBack (most recent call last):",
            "        AIV Kernel happen error, retCode=0x31.[FUNC:GetError][FILE:stream.cc][LINE:1183]",
        ),
        anchors=known().signatures.anchors(),
    )
    events = list(Namer(known().signatures, known().codes.of).events(record))
    assert (events[0].record.place.line, events[0].record.pid) == (1, None)
    assert {e.record.pid for e in events[1:]} == {838}
    assert {e.record.time for e in events[1:]} == {datetime(2025, 9, 4, 9, 50, 11, 954378)}
    assert 4 in [e.record.place.line for e in events]


def test_the_same_number_means_what_its_module_means() -> None:
    assert codes_in("StartRootNetwork failed, ret[7]", "HCCL") == ("hccl:7",)
    assert codes_in("StartRootNetwork failed, ret[7]", "GE") == ()
    assert codes_in("halMemCreate failed drvRetCode=17, ErrCode=507899, InnerCode=0x7020022") == (
        "drvRetCode:17",
        "507899",
        "0x7020022",
    )
    assert codes_in("Kernel task happen error, retCode=0x31, [vector core exception].") == ("retCode:0x31",)


def test_ranks_are_read_from_every_shape() -> None:
    table = ranks_in(
        "|  192.0.2.199(0)   |  16666  |   192.0.2.198(1)   |  3234403008  |  client  | time out |   DISABLE "
        " | LinkInfo"
    )
    assert table is not None
    assert (table.own, table.remote) == (1, (0,))
    crimer = ranks_in("local rank [192.0.2.1/4]: crimer rank [192.0.2.1/7] status[LOST] by informer rank [192.0.2.1/2]")
    assert crimer is not None
    assert crimer.accused == (7,)
    assert ranks_in("nothing of the kind") is None


def test_a_clock_file_places_the_boot() -> None:
    fact = boot_fact(
        "date: 2026-09-02 13:50:00 +0800\n/proc/uptime: 8311.00 99999.00\nTZ of containers: Asia/Shanghai\n"
    )
    assert fact is not None
    assert (fact.started, fact.zone) == (datetime(2026, 9, 2, 11, 31, 29), timedelta(hours=8))
    assert boot_fact("date: 2026-09-02 13:50:00") is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30))
def test_any_graph_of_waits_ends(edges: list[tuple[int, int]]) -> None:
    graph = WaitGraph()
    for own, remote in edges:
        graph.saw(Process("", own + 1, None), own)
        found = ranks_in(f"remote rank:[{remote}]")
        assert found is not None
        graph.told(Process("", own + 1, None), found, is_wait=True)
    ends = graph.waited_for()
    assert all(not graph.waits_of(end) for end, _ in ends)
    if graph.waiting():
        assert ends or graph.cycle()


@given(st.text(max_size=300))
def test_any_text_has_a_template_codes_and_ranks(text: str) -> None:
    assert isinstance(template(text), str)
    assert isinstance(codes_in(text, "HCCL"), tuple)
    ranks_in(text)
    boot_fact(text)


@settings(max_examples=30)
@given(st.lists(st.integers(-56, 56), min_size=1, max_size=5), st.integers(0, 20))
def test_any_offset_of_whole_quarters_is_found(quarters: list[int], noise: int) -> None:
    offset = timedelta(minutes=15 * quarters[0])
    evidence = Evidence()
    base = datetime(2026, 5, 5, 12)
    for n in range(5):
        time = base + timedelta(hours=n)
        for clock, file, at in (("host", "a", time), ("device", "b", time - offset + timedelta(seconds=noise))):
            record = Record(Place(file, n, 0), "plog", "ERROR", "", at, clock, 1, "", None, None, "")
            evidence.saw(record, [("task", n, n)])
    alignment = evidence.clocks(base).alignments[("device", "b")]
    assert (alignment.offset, alignment.how) == (offset, "shared-ids")


def test_a_process_in_another_zone_is_moved_to_the_clock_that_the_host_agrees_with(tmp_path: Path) -> None:
    """The container writes UTC, the launcher and the kernel write +08:00."""
    bundle = CAPTURES / "logs" / "bundle-three-layers-card-drop"
    texts = {str(f.relative_to(bundle)): f.read_text("utf-8") for f in bundle.rglob("*") if f.is_file()}
    name = next(name for name in texts if "plog" in name)
    texts[name] = texts[name].replace("2026-09-02-13:45", "2026-09-02-05:45")
    document = told(run_of_texts(tmp_path, texts))
    assert line_of(document)[0] == "dmesg.txt"
    assert [c["offset_seconds"] for c in document["clocks"] if "plog" in c["file"]] == [8 * 3600]
    assert all(i["caused_by"] is not None for i in document["incidents"] if "plog" in i["file"])
