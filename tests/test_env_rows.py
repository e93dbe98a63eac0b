from __future__ import annotations

from dataclasses import replace

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive import env as rows
from ascend_doctor.derive.env import Remark, fits, is_slip
from ascend_doctor.facts import env, npu
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.environment import load
from ascend_doctor.paths import data_folder

ENVIRONMENT = load([data_folder("rules")])


def judged(name: str, base: str = "a2-healthy", **values: str) -> dict[str, Remark]:
    """The rows of a row set on a host with these variables, by subject."""
    facts = env.collect(host(base, set={"env": values})).facts
    needs = {"env": facts, "npu": npu.collect(host(base)).facts, "environment": ENVIRONMENT}
    function = getattr(rows, name)
    found = function(*(needs[need] for need in function.__code__.co_varnames[: function.__code__.co_argcount]))
    return {row.subject: row for row in found}


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("HCCL_BUFFSIZE", "abc", "error"),
        ("HCCL_BUFFSIZE", "0", "error"),
        ("HCCL_BUFFSIZE", "200MB", "error"),
        ("HCCL_CONNECT_TIMEOUT", "7201", "error"),
        ("HCCL_RDMA_TC", "130", "error"),
        ("HCCL_RDMA_SL", "1000", "error"),
        ("HCCL_INTER_HCCS_DISABLE", "1", "error"),
        ("TASK_QUEUE_ENABLE", "true", "warning"),
        ("STREAMS_PER_DEVICE", "16", "warning"),
        ("CPU_AFFINITY_CONF", "1,npu0:0", "warning"),
        ("PYTORCH_NPU_ALLOC_CONF", "expandable_segments=True", "warning"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "60100-60000", "warning"),
        ("ASCEND_MODULE_LOG_LEVEL", "TBE:0", "warning"),
        ("MS_SCHED_HOST", "scheduler", "warning"),
    ],
)
def test_a_value_that_does_not_fit_is_said(name: str, value: str, severity: str) -> None:
    row = judged("judged_values", **{name: value})[f"env:{name}"]
    assert (row.wrong, row.severity) == (True, severity)
    assert row.expected["en"]
    assert row.expected["zh"]
    assert row.sources


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HCCL_BUFFSIZE", "200"),
        ("HCCL_BUFFSIZE", ""),
        ("HCCL_BUFFSIZE", " 200 "),
        ("HCCL_EXEC_TIMEOUT", "0.05"),
        ("HCCL_INTER_HCCS_DISABLE", "true"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "60000,60050-60100,60150-60160"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "auto"),
        ("HCCL_OP_RETRY_ENABLE", "L1:0, L2:1"),
        ("HCCL_DFS_CONFIG", "connection_fault_detection_time:30,cluster_heartbeat:on"),
        ("PYTORCH_NPU_ALLOC_CONF", "roundup_power2_divisions:[256:1,512:2,>:8],page_size:1g"),
        ("CPU_AFFINITY_CONF", "1,npu0:0-1,npu3:6-6,npu_affine:1"),
        ("ASCEND_VISIBLE_DEVICES", "Ascend910-1,Ascend910-3"),
        ("OMP_PROC_BIND", "FALSE"),
        ("MASTER_IP", "fe80::1%eth0"),
        ("LD_PRELOAD", "anything at all"),
    ],
)
def test_a_value_that_fits_is_not(name: str, value: str) -> None:
    assert list(judged("judged_values", **{name: value})) == ["host"]


def test_a_value_may_fit_one_chip_and_not_another() -> None:
    assert judged("judged_values", "a2-healthy", HCCL_RDMA_TIMEOUT="22")["env:HCCL_RDMA_TIMEOUT"].wrong is True
    assert judged("judged_values", "310p-healthy", HCCL_RDMA_TIMEOUT="22")["host"].wrong is False
    assert judged("judged_values", "a3-healthy", HCCL_OP_EXPANSION_MODE="HOST")["env:HCCL_OP_EXPANSION_MODE"].wrong


def test_without_the_chip_only_what_depends_on_it_is_unknown() -> None:
    found = judged("judged_values", "bare-linux", HCCL_RDMA_TIMEOUT="22", HCCL_RDMA_SL="9", HCCL_RDMA_TC="132")
    assert isinstance(found["env:HCCL_RDMA_TIMEOUT"].wrong, Missing)
    assert found["env:HCCL_RDMA_SL"].wrong is True
    assert "env:HCCL_RDMA_TC" not in found


def test_a_chip_that_was_not_seen_leaves_the_kind_open() -> None:
    facts = npu.collect(host("a2-healthy")).facts
    assert not isinstance(facts.chips, Missing)
    gap = replace(facts, chips=(*facts.chips[:3], Missing(Reason.NOT_COLLECTED, "", "npu.chips[3]")))  # type: ignore[arg-type]
    found = rows.judged_values({"HCCL_RDMA_TIMEOUT": "22"}, gap, ENVIRONMENT)
    assert isinstance(found[0].wrong, Missing)
    assert found[0].wrong.path == "npu.chips[3]"


def test_a_variable_for_other_chips_is_a_note() -> None:
    row = judged("chip_settings", "310p-healthy", INF_NAN_MODE_ENABLE="1")["env:INF_NAN_MODE_ENABLE"]
    assert (row.wrong, row.severity, row.instead) == (True, "info", "310p")
    assert list(judged("chip_settings", "a2-healthy", INF_NAN_MODE_ENABLE="1")) == ["host"]


@pytest.mark.parametrize(
    ("value", "wrong"), [("ascend910b1", True), ("Ascend310P3", False), ("ascend310p1", False), ("kirin", False)]
)
def test_a_soc_version_is_of_this_kind_of_chip(value: str, wrong: bool) -> None:
    assert ("env:SOC_VERSION" in judged("chip_settings", "310p-healthy", SOC_VERSION=value)) == wrong


def test_an_unknown_name_is_never_an_error() -> None:
    found = judged("unknown_names", ASCEND_RT_VISIBLE_DEVICE="0", HCCL_BUFFERSIZE="1", HCCL_WHOLLY_NEW="1")
    assert {row.name: row.severity for row in found.values()} == {
        "ASCEND_RT_VISIBLE_DEVICE": "warning",
        "HCCL_BUFFERSIZE": "info",
    }


@pytest.mark.parametrize(
    ("name", "known", "slip"),
    [
        ("HCCL_BUFF_SIZE", "HCCL_BUFFSIZE", True),
        ("HCCL_BUFFSZIE", "HCCL_BUFFSIZE", True),
        ("HCCL_BUFSIZE", "HCCL_BUFFSIZE", True),
        ("VLLM_ASCEND_ENABLE_FLASHCOMM3", "VLLM_ASCEND_ENABLE_FLASHCOMM1", False),
        ("HCCL_RDMA_TO", "HCCL_RDMA_TC", False),
        ("HCCL_BUFFERSIZE", "HCCL_BUFFSIZE", False),
    ],
)
def test_one_wrong_letter_is_a_slip_and_another_number_is_not(name: str, known: str, slip: bool) -> None:
    assert is_slip(name, known) is slip


def test_what_was_given_up_is_said_with_what_replaces_it() -> None:
    found = judged("obsolete_names", VLLM_ASCEND_ENABLE_FLASHCOMM1="1", VLLM_ASCEND_ENABLE_DBO="1", HCCL_BUFFSIZE="1")
    assert {row.name: row.instead for row in found.values()} == {
        "VLLM_ASCEND_ENABLE_FLASHCOMM1": "additional_config.enable_flashcomm1",
        "VLLM_ASCEND_ENABLE_DBO": "",
    }


@pytest.mark.parametrize(
    ("values", "subject"),
    [
        (
            {"HCCL_INTRA_PCIE_ENABLE": "1", "HCCL_INTRA_ROCE_ENABLE": "1"},
            "HCCL_INTRA_PCIE_ENABLE+HCCL_INTRA_ROCE_ENABLE",
        ),
        ({"HCCL_INTRA_PCIE_ENABLE": "0"}, "HCCL_INTRA_PCIE_ENABLE"),
        ({"HCCL_WHITELIST_DISABLE": "0"}, "HCCL_WHITELIST_DISABLE"),
        ({"ASCEND_LAUNCH_BLOCKING": "1", "TASK_QUEUE_ENABLE": "2"}, "ASCEND_LAUNCH_BLOCKING+TASK_QUEUE_ENABLE"),
        ({"ASCEND_LAUNCH_BLOCKING": "1"}, "ASCEND_LAUNCH_BLOCKING"),
        ({"ASCEND_GLOBAL_LOG_LEVEL": "0"}, "ASCEND_GLOBAL_LOG_LEVEL"),
    ],
)
def test_settings_that_do_not_go_together_are_said(values: dict[str, str], subject: str) -> None:
    assert judged("conflicts", **values)[f"env:{subject}"].wrong is True


def test_a_conflict_on_other_chips_is_none() -> None:
    assert list(judged("conflicts", "a3-healthy", HCCL_INTRA_PCIE_ENABLE="0")) == ["host"]


@pytest.mark.parametrize("name", ["judged_values", "chip_settings", "unknown_names", "obsolete_names", "conflicts"])
def test_a_variable_that_could_not_be_read_leaves_it_open(name: str) -> None:
    unseen = {"ASCEND_HOME_PATH": {"missing": "not_collected"}}
    wrong = judged(name, **unseen)["host"].wrong  # type: ignore[arg-type]
    assert isinstance(wrong, Missing)
    assert wrong.reason is Reason.NOT_COLLECTED


@given(st.sampled_from(sorted(ENVIRONMENT.names())), st.text(max_size=60))
def test_any_value_of_any_variable_fits_or_not(name: str, value: str) -> None:
    variable = ENVIRONMENT.of(name)
    assert variable is not None
    assert fits(variable.values, value) in (True, False)


@given(st.text(alphabet="ABCDE_1", min_size=1, max_size=30), st.text(alphabet="ABCDE_1", min_size=1, max_size=30))
def test_any_two_names_are_alike_or_not(name: str, known: str) -> None:
    assert is_slip(name, known) in (True, False)
    assert isinstance(ENVIRONMENT.near(name), str)
