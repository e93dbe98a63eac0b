"""Environment variables of the asking process, as far as the rules know them: name -> value.

A variable that is set to nothing is "", one that is not set is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from ascend_doctor.host import Area, Collected, Host, Missing, parsed

Env = Mapping[str, Union[str, Missing]]

NAMES = (
    "ASCEND_AICPU_PATH",
    "ASCEND_HOME_PATH",
    "ASCEND_MEM_SIZE",
    "ASCEND_OPP_PATH",
    "ASCEND_RT_VISIBLE_DEVICES",
    "ASCEND_TOOLKIT_HOME",
    "ASCEND_VISIBLE_DEVICES",
    "ATB_HOME_PATH",
    "HCCL_BUFFSIZE",
    "HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT",
    "GLOO_SOCKET_IFNAME",
    "HCCL_HOST_SOCKET_PORT_RANGE",
    "HCCL_IF_BASE_PORT",
    "HCCL_IF_IP",
    "HCCL_NPU_SOCKET_PORT_RANGE",
    "HCCL_SOCKET_IFNAME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "TP_SOCKET_IFNAME",
    "VLLM_HOST_IP",
)
"""Those that checks and rows name, so that one that is not set is known to be absent. All are in rules/environment."""


def collect(host: Host) -> Collected[dict[str, str | Missing]]:
    """Reads no file and starts nothing."""
    area = Area("env")
    set_names = host.env_names().value
    names = NAMES if isinstance(set_names, Missing) else sorted({*NAMES, *set_names})
    return area.of({name: area.take(name, parsed(host.env(name), str)) for name in names})
