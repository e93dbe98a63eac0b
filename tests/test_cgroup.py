from __future__ import annotations

from typing import Any

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.cgroup import Cgroup, bytes_allowed, collect, cpus_allowed, file_cache, groups
from ascend_doctor.host import Missing, Reason

ROOT = "/sys/fs/cgroup"


def facts(base: str, files: dict[str, Any], missing: dict[str, str] | None = None) -> Cgroup:
    return collect(host(base, set={"files": files, "missing": missing or {}})).facts


def test_docker_on_version_1_names_one_folder_for_each_controller() -> None:
    found = groups(b"12:memory:/docker/5f3a\n8:cpu,cpuacct:/docker/5f3a\n1:name=systemd:/docker/5f3a\n0::/\n")
    assert found["memory"].folders == (f"{ROOT}/memory/docker/5f3a", f"{ROOT}/memory/docker", f"{ROOT}/memory")
    assert found["cpu"].version == 1
    assert found[""].folders == (ROOT,)


def test_a_pod_on_version_2_is_below_its_slices() -> None:
    found = groups(b"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope\n")[""]
    assert found.version == 2
    assert found.folders[0] == f"{ROOT}/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope"
    assert found.folders[-1] == ROOT


def test_a_group_outside_the_namespace_is_spoken_for_by_the_root() -> None:
    assert groups(b"0::/../../system.slice/x.service\n")[""].folders == (ROOT,)


@pytest.mark.parametrize("text", [b"max\n", b"9223372036854771712\n", b"9223372036854710272\n"])
def test_no_limit_is_absent(text: bytes) -> None:
    assert bytes_allowed(text) == Missing(Reason.ABSENT, "no limit")


@pytest.mark.parametrize(("text", "cpus"), [(b"200000 100000\n", 2.0), (b"150000 100000\n", 1.5)])
def test_a_quota_is_a_number_of_cpus(text: bytes, cpus: float) -> None:
    assert cpus_allowed(text) == cpus


def test_the_file_cache_of_version_1_includes_the_groups_below() -> None:
    assert file_cache(b"inactive_file 1\nactive_file 2\ntotal_inactive_file 30\ntotal_active_file 40\n") == 70


def test_the_tightest_limit_on_the_way_up_counts() -> None:
    found = facts(
        "x86-healthy",
        {
            "/proc/self/cgroup": "0::/pod/container\n",
            f"{ROOT}/pod/memory.max": "8589934592\n",
            f"{ROOT}/pod/memory.current": "2147483648\n",
            f"{ROOT}/pod/memory.stat": "anon 1\ninactive_file 1073741824\nactive_file 0\n",
            f"{ROOT}/pod/container/memory.max": "max\n",
        },
    )
    assert (found.memory_limit_mib, found.memory_used_mib) == (8192, 1024)


def test_a_level_that_may_not_be_read_makes_the_limit_unknown() -> None:
    found = facts(
        "x86-healthy",
        {"/proc/self/cgroup": "0::/pod/container\n", f"{ROOT}/pod/container/memory.max": "8589934592\n"},
        {f"{ROOT}/pod/memory.max": "denied"},
    )
    assert isinstance(found.memory_limit_mib, Missing)
    assert found.memory_limit_mib.reason is Reason.DENIED


def test_a_container_on_version_1_has_its_limits_at_the_root_that_it_sees() -> None:
    found = collect(host("a2-container-confined")).facts
    assert (found.version, found.memory_limit_mib, found.memory_used_mib) == (1, 4096, 1024)
    assert (found.pids_limit, found.pids_used, found.cpus) == (2048, 37, 8.0)


def test_without_control_groups_nobody_can_say_that_there_is_no_limit() -> None:
    found = facts("x86-healthy", {}, {ROOT: "absent"})
    assert isinstance(found.memory_limit_mib, Missing)
    assert found.memory_limit_mib.reason is Reason.FAILED


def test_the_true_root_of_version_1_has_no_limit_of_processes() -> None:
    own = {"/proc/self/cgroup": "8:pids:/\n", f"{ROOT}/pids/cgroup.procs": "1\n"}
    assert facts("x86-healthy", own).pids_limit == Missing(Reason.ABSENT, "no limit", "cgroup.pids_limit")


def test_a_host_without_limits_says_so() -> None:
    for name in ("a2-healthy", "x86-healthy"):
        found = collect(host(name)).facts
        for value in (found.memory_limit_mib, found.pids_limit, found.cpus):
            assert isinstance(value, Missing)
            assert value.reason is Reason.ABSENT


@given(st.binary(max_size=300))
def test_any_bytes_give_groups_and_limits_or_missing(text: bytes) -> None:
    assert isinstance(groups(text), dict)
    assert isinstance(bytes_allowed(text), (int, float, Missing))
    assert isinstance(cpus_allowed(text), (float, Missing))
    assert isinstance(file_cache(text), (int, Missing))
