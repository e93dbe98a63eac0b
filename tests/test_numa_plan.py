"""``numa plan`` and ``numa check``: CPUs and memory for each NPU, and whether a running service has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable

import jsonschema
import pytest
from click.testing import CliRunner
from hosts import FOLDER, host
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_doctor.cli.numa import command
from ascend_doctor.derive import row_set
from ascend_doctor.derive.cpu_lists import siblings_together
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.numa import cpu_set
from ascend_doctor.facts.placement import placement
from ascend_doctor.facts.processes import last_cpu, migrations, numa_maps, of_process, parent_of, status
from ascend_doctor.host import Missing
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.paths import data_folder

HEALTHY = ["a2-healthy", "a3-healthy", "310p-healthy", "950-healthy", "x86-healthy"]

SCHEMA = jsonschema.Draft202012Validator(json.loads((data_folder("reports") / "schema.json").read_text("utf-8")))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The verb runs on a test host, which may be a delta."""

    def use(name: str, changes: dict[str, Any] | None = None) -> None:
        monkeypatch.setattr("ascend_doctor.cli.numa.chosen_host", lambda *_: host(name, changes))

    return use


def numa(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(command, [*arguments, "--format", "json"], standalone_mode=False)
    assert done.exception is None, done.exception
    run: dict[str, Any] = json.loads(done.output)
    SCHEMA.validate(run)
    assert run["kind"] == "numa"
    return int(done.return_value), run


def cpus(text: str) -> frozenset[int]:
    found = cpu_set(text)
    assert not isinstance(found, Missing)
    return found


def failed(run: dict[str, Any]) -> dict[str, str]:
    return {f["check"]: f["severity"] for f in run["findings"] if f["verdict"] == "fail"}


# Plans


def test_npus_of_nodes_4_and_6_get_the_cpus_of_these_and_of_no_other(here: Callable[..., None]) -> None:
    here("a2-healthy")
    code, run = numa("plan", "--devices", "0,2,4,6")
    plan = run["numa"]
    assert code == 0
    assert plan["services"][0]["cpus"] == "96-119,144-167"
    assert plan["services"][0]["command"] == "numactl --cpunodebind=4,6 --membind=4,6 COMMAND"
    given_out = frozenset().union(*(cpus(worker["cpus"]) for worker in plan["workers"]))
    assert given_out == cpus("96-119,144-167")
    assert not given_out & cpus("120-143")


def test_the_plans_of_two_services_on_one_node_have_no_cpu_in_common(here: Callable[..., None]) -> None:
    """vllm-ascend issue 8600: two single-card services took the same cores."""
    here("a2-healthy")
    first, second = (numa("plan", "--devices", device)[1]["numa"]["workers"][0] for device in ("0", "2"))
    assert first["nodes"] == second["nodes"] == "6"
    assert not cpus(first["cpus"]) & cpus(second["cpus"])


def test_each_worker_gets_as_many_cpus_as_were_asked_for(here: Callable[..., None]) -> None:
    here("a2-healthy")
    code, run = numa("plan", "--devices", "0,2", "--per-worker", "10")
    assert (code, [worker["cpus"] for worker in run["numa"]["workers"]]) == (0, ["144-153", "154-163"])


def test_more_cpus_than_a_node_has_are_an_error(here: Callable[..., None]) -> None:
    here("a2-healthy")
    code, run = numa("plan", "--devices", "0,2", "--per-worker", "20")
    assert (code, [worker["cpus"] for worker in run["numa"]["workers"]]) == (1, ["144-163", ""])
    assert failed(run) == {"placement.cpus": "error"}


def test_a_device_that_is_not_here_is_an_error(here: Callable[..., None]) -> None:
    here("a2-healthy")
    code, run = numa("plan", "--devices", "0,8")
    assert code == 1
    assert next(f for f in run["findings"] if f["subject"] == "device:8")["verdict"] == "fail"


def test_a_node_that_is_short_gets_no_membind_and_other_cards_are_named(here: Callable[..., None]) -> None:
    here("a2-node-full")
    situation = Situation(host("a2-node-full"), [data_folder("rules")])
    devices = situation.rows("numa_plan.devices")
    assert isinstance(devices, tuple)
    poorest = min(devices, key=lambda device: device.free_mib)
    code, run = numa("plan", "--devices", str(poorest.device))
    assert (code, failed(run)) == (0, {"placement.memory": "warning"})
    assert "--membind" not in run["numa"]["services"][0]["command"]
    assert run["numa"]["nodes"][0]["rather"]


def test_hardware_threads_of_a_core_stay_together(here: Callable[..., None]) -> None:
    lists = {0: "0-22,48-70\n", 1: "24-46,72-94\n"}
    here("x86-healthy", {"files": {f"/sys/devices/system/node/node{n}/cpulist": text for n, text in lists.items()}})
    code, run = numa("plan")
    assert code == 0
    shares = [cpus(worker["cpus"]) for worker in run["numa"]["workers"]]
    assert shares[0] == cpus("0-4,48-52")
    assert all((core in share) == (core + 48 in share) for share in shares for core in range(48))


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_host_has_a_plan_for_all_of_its_devices(here: Callable[..., None], name: str) -> None:
    here(name)
    code, run = numa("plan")
    workers = run["numa"]["workers"]
    assert code == 0
    assert workers
    assert all(worker["command"].startswith("numactl --physcpubind=") for worker in workers)
    assert all(worker["command"].count("bind=") <= 2 for worker in workers)


def test_a_host_whose_nodes_nobody_knows_gets_no_plan(here: Callable[..., None]) -> None:
    here("a2-topo-hangs")
    code, run = numa("plan", "--devices", "0-3")
    assert (code, run["verdict"]) == (3, "undecided")


def test_isolated_cpus_are_left_alone(here: Callable[..., None]) -> None:
    here("a2-healthy", {"files": {"/sys/devices/system/cpu/isolated": "144-149\n"}})
    _, run = numa("plan", "--devices", "0,2")
    assert run["numa"]["services"][0]["command"].startswith("numactl --physcpubind=150-167 ")


def test_this_machine_gets_a_sensible_plan() -> None:
    code, run = numa("plan")
    nodes = sum(name[4:].isdigit() for name in os.listdir("/sys/devices/system/node") if name.startswith("node"))
    if nodes != 1:
        pytest.skip("this machine has several nodes")
    assert code in (0, 3)
    assert run["numa"]["services"][0]["one_node"]
    assert run["numa"]["services"][0]["command"] == ""
    assert cpus(run["numa"]["services"][0]["cpus"]) <= frozenset(range(os.cpu_count() or 1))


@pytest.mark.parametrize("text", ["", "x", "3-0", "0-99999"])
def test_what_is_no_list_of_devices_is_a_bad_call(text: str) -> None:
    done = CliRunner().invoke(command, ["plan", "--devices", text], standalone_mode=False)
    assert getattr(done.exception, "exit_code", None) == 2


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("arguments", [["show"], ["plan"], ["check"], ["lint", "numactl -N0 x"]], ids=" ".join)
def test_each_table_is_printed_in_both_languages(arguments: list[str], language: str) -> None:
    snapshot = str(FOLDER / "a2-healthy")
    done = CliRunner().invoke(command, [*arguments, "--snapshot", snapshot, "--lang", language], standalone_mode=False)
    assert done.exception is None
    assert done.output.strip()
    assert "numa_" not in done.output


def test_numa_alone_shows_each_device_with_its_node() -> None:
    done = CliRunner().invoke(
        command, ["--snapshot", str(FOLDER / "a2-healthy"), "--lang", "en"], standalone_mode=False
    )
    rows = [text.split() for text in done.output.splitlines()[1:9]]
    assert [(row[0], row[2], row[-1]) for row in rows][:2] == [("0", "6", "144-167"), ("1", "0", "0-23")]


SITUATIONS = {name: Situation(host(name), [data_folder("rules")], workers=1) for name in HEALTHY}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(HEALTHY), st.sets(st.integers(0, 17), min_size=1), st.none() | st.integers(1, 30))
def test_no_plan_gives_a_cpu_twice_or_one_that_is_far(name: str, chosen: set[int], each: int | None) -> None:
    situation = SITUATIONS[name]
    found = row_set("numa_plan.workers")
    assert found is not None
    asked = placement(tuple(sorted(chosen)), each).facts
    needs = [asked if need == "placement" else situation.need(need) for need in found.needs]
    workers = found.function(*needs)
    devices = situation.rows("numa_plan.devices")
    assert isinstance(devices, tuple)
    seen: set[int] = set()
    for worker in workers:
        if not worker.here or isinstance(worker.cpus, Missing):
            continue
        own = cpus(worker.cpus)
        assert not own & seen
        assert own <= cpus(devices[worker.device].cpus)
        assert each is None or len(own) in (0, each)
        seen |= own


@given(st.frozensets(st.integers(0, 400)))
def test_an_order_of_cpus_loses_none(found: frozenset[int]) -> None:
    assert sorted(siblings_together(found)) == sorted(found)


# Running services

STATUS = "Name:\t{name}\nThreads:\t{threads}\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t0-7\n"


def service(*workers: tuple[int, str, dict[int, int], str]) -> dict[str, Any]:
    """Files of processes below 100: (pid, CPUs, node -> MiB, policy)."""
    files: dict[str, str] = {}
    for pid, mask, memory, policy in ((100, "0-191", {0: 500}, "default"), *workers):
        at, parent = f"/proc/{pid}", 1 if pid == 100 else 100
        pages = " ".join(f"N{node}={mib * 256}" for node, mib in memory.items())
        said = STATUS.format(name=f"VLLM::Worker {pid}", threads=1, cpus=mask)
        stat = f"{pid} (VLLM::Worker (x)) S {parent} " + "0 " * 34 + "7 0 0\n"
        for name, text in (("status", said), ("stat", stat)):
            files[f"{at}/{name}"] = files[f"{at}/task/{pid}/{name}"] = text
        files[f"{at}/task/{pid}/sched"] = "worker (1, #threads: 1)\nse.nr_migrations     :     12\n"
        files[f"{at}/numa_maps"] = f"7f0000000000 {policy} anon=1 {pages} kernelpagesize_kB=4\n"
    return {
        "files": files,
        "commands": [{"argv": ["npu-smi", "info"], "rc": 0, "stdout": table(*(w[0] for w in workers))}],
    }


def table(*pids: int) -> str:
    """The healthy table; the n-th process is on NPU n."""
    text = (FOLDER / "a2-healthy/commands/npu-smi-info.out").read_text()
    for npu, pid in enumerate(pids):
        free = f"| No running processes found in NPU {npu}"
        row = f"| {npu:<7} 0                 | {pid:<13} | {'python3':<24} | {57010:<23} |"
        text = "\n".join(row if line.startswith(free + " ") else line for line in text.split("\n"))
    return text


def checked(here: Callable[..., None], *workers: tuple[int, str, dict[int, int], str]) -> tuple[int, dict[str, Any]]:
    here("a2-healthy", service(*workers))
    return numa("check", "--pid", "100")


def test_a_service_that_is_bound_well_has_no_finding(here: Callable[..., None]) -> None:
    code, run = checked(here, (101, "144-155", {6: 9000}, "bind:6"), (102, "0-11", {0: 9000}, "default"))
    assert (code, failed(run)) == (0, {})
    assert [worker["npus"] for worker in run["numa"]["workers"]] == ["", "0", "1"]
    assert run["numa"]["workers"][1]["migrations"] == 12


def test_a_worker_on_the_node_of_another_npu_is_found(here: Callable[..., None]) -> None:
    code, run = checked(here, (101, "120-143", {5: 9000}, "default"))
    assert (code, failed(run)) == (0, {"binding.near-npu": "warning", "binding.memory-near": "warning"})
    found = next(f for f in run["findings"] if f["check"] == "binding.near-npu" and f["verdict"] == "fail")
    assert (found["subject"], found["expected"]["en"]) == ("pid:101", "CPUs out of 144-167")


def test_a_worker_that_nobody_bound_is_found(here: Callable[..., None]) -> None:
    """vllm-ascend issue 6966."""
    _, run = checked(here, (101, "0-191", {6: 9000}, "default"))
    found = next(f for f in run["findings"] if f["check"] == "binding.near-npu" and f["verdict"] == "fail")
    assert "not bound" in found["found"]["en"]


def test_cpus_that_are_bound_while_memory_is_not_are_found(here: Callable[..., None]) -> None:
    """vllm-ascend pull request 7870: 48 GB stayed on the far node."""
    _, run = checked(here, (101, "144-155", {0: 102, 1: 48211, 6: 88}, "default"))
    found = next(f for f in run["findings"] if f["check"] == "binding.memory-near" and f["verdict"] == "fail")
    assert "the memory is not" in found["found"]["en"]
    assert failed(run) == {"binding.memory-near": "warning"}


def test_two_binds_that_contradict_each_other_are_found(here: Callable[..., None]) -> None:
    """The public guide's line as it runs: CPUs of nodes 4 and 5, memory on 4 and 6."""
    _, run = checked(here, (101, "96-143", {4: 9000}, "bind:4,6"))
    found = next(f for f in run["findings"] if f["check"] == "binding.memory-near" and f["verdict"] == "fail")
    assert "node 6" in found["found"]["en"]
    assert "two CPU options" in found["why"]["en"]


def test_two_workers_on_the_same_cpus_are_found(here: Callable[..., None]) -> None:
    """vllm-ascend issue 8600; NPU 0 and NPU 2 are of one node."""
    here(
        "a2-healthy",
        service(
            (101, "144-167", {6: 90}, "default"),
            (102, "0-23", {0: 90}, "default"),
            (103, "144-167", {6: 90}, "default"),
        ),
    )
    _, run = numa("check", "--pid", "100", "--fail-on", "info")
    assert failed(run) == {"binding.apart": "info"}


def test_threads_that_were_left_elsewhere_are_found(here: Callable[..., None]) -> None:
    changes = service((101, "144-155", {6: 9000}, "bind:6"))
    for name, text in (("status", STATUS.format(name="acl", threads=2, cpus="24-47")), ("stat", "201 (acl) S 100 0\n")):
        changes["files"][f"/proc/101/task/201/{name}"] = text
    here("a2-healthy", changes)
    _, run = numa("check", "--pid", "100")
    found = next(f for f in run["findings"] if f["check"] == "binding.near-npu" and f["verdict"] == "fail")
    assert "24-47" in found["found"]["en"]


def test_pages_that_may_not_be_seen_leave_the_memory_open(here: Callable[..., None]) -> None:
    changes = service((101, "144-155", {6: 9000}, "default"))
    del changes["files"]["/proc/101/numa_maps"]
    here("a2-healthy", {**changes, "missing": {"/proc/101/numa_maps": "denied"}})
    _, run = numa("check", "--pid", "100")
    unknown = {(f["check"], f["subject"]) for f in run["findings"] if f["verdict"] == "unknown"}
    assert unknown == {("binding.memory-near", "pid:101")}


def test_a_process_that_is_not_there_is_a_bad_call() -> None:
    done = CliRunner().invoke(command, ["check", "--pid", "999999999"], standalone_mode=False)
    assert getattr(done.exception, "exit_code", None) == 2


CHILD = """
import os, sys, threading, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(60)
"""


@pytest.fixture
def wrongly_bound() -> Iterator[tuple[int, int]]:
    """A process that runs on one CPU of this machine, and its child."""
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        yield process.pid, child
        os.kill(child, 9)
        process.kill()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one CPU cannot be the wrong one")
def test_a_real_process_with_a_wrong_mask_is_found(wrongly_bound: tuple[int, int]) -> None:
    parent, child = wrongly_bound
    time.sleep(0.05)
    code, run = numa("check", "--pid", str(parent), "--fail-on", "warning")
    assert code == 1
    subjects = {f["subject"] for f in run["findings"] if f["check"] == "binding.enough-cpus" and f["verdict"] == "fail"}
    assert subjects == {f"pid:{parent}", f"pid:{child}"}
    seen = {worker["pid"]: worker for worker in run["numa"]["workers"]}
    assert seen[child]["cpus"] == str(min(os.sched_getaffinity(0)))
    assert seen[parent]["memory"]


def test_this_very_process_is_read_as_the_kernel_has_it() -> None:
    found = of_process(LiveHost(KnownEnv(frozenset(), ())), os.getpid()).facts
    assert not isinstance(found.running, Missing)
    own = found.running[os.getpid()]
    assert cpus(str(own.cpus)) == frozenset(os.sched_getaffinity(0))
    assert own.parent == os.getppid()
    assert isinstance(own.memory_mib, dict)
    assert sum(own.memory_mib.values()) > 1


def test_pages_count_by_their_size() -> None:
    text = b"7f00 bind:4,6 anon=3 N4=2 N6=1 kernelpagesize_kB=2048\n"
    text += b"7f10 default file=/x mapped=256 N0=256 kernelpagesize_kB=4\n"
    found = numa_maps(text).value
    assert not isinstance(found, Missing)
    assert found.mib_on == {0: 1.0, 4: 4.0, 6: 2.0}
    assert found.policies == ("bind:4,6", "default")


@given(st.binary(max_size=300))
def test_any_bytes_give_values_or_missing(data: bytes) -> None:
    assert status(data).value is not None
    assert numa_maps(data).value is not None
    assert isinstance(parent_of(data), (int, Missing))
    assert isinstance(last_cpu(data), (int, Missing))
    assert isinstance(migrations(data), (int, Missing))
