"""What ``npu-smi`` prints in place of its table, as one word and the numbers in it.

Sources: npu_smi.c of Huawei's open driver (https://github.com/hicann/driver) prints the lines about DCMI; its
return-codes.md names the codes; the other lines are the loader's and the shells'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ascend_doctor.host import Missing, Reason
from ascend_doctor.records import dataclass

RESOURCE_OCCUPIED = -8020
NO_PERMISSION = (-8002, -9002)
KIND_OF_REASON: Mapping[Reason, str] = {
    Reason.ABSENT: "command_not_found",
    Reason.TIMEOUT: "hang",
    Reason.DENIED: "no_permission",
    Reason.FAILED: "unreadable",
}
"""Why npu-smi could not be asked -> the kind of failure; other reasons say nothing about the host."""

NOT_PRINTED = Missing(Reason.ABSENT, "not printed")

# compiled when a text without a table comes: most hosts print none
_RETURN = r"(?i)\bret(?:urn)?(?: code)? ?(?:is|=|:)? ?(-[89]\d{3})(?!\d)"
_LIBRARY = (
    r"error while loading shared libraries: ?([^:\s]{1,200})|(\blib[\w+-]{1,80}\.so[\w.]{0,20}): cannot open shared"
)
_NOT_FOUND = (
    r"(?i)npu-smi\S{0,3}[ :]{0,2}(?:command )?not found|command not found: ?\S{0,80}npu-smi"
    r"|npu-smi\S{0,3} ?: ?(?:No such file or directory|Is a directory)"
    r"|npu-smi\S{0,3} ?[:：] ?(?:未找到命令|找不到命令|没有那个文件或目录|是一个目录)"
    r"|exec\w{0,8}: \S{0,80}npu-smi\S{0,3}: executable file not found"
)
_DENIED = r"(?i)permission denied|operation not permitted|权限不够|不允许的操作"
_DCMI = r"(?i)\bdcmi\b[^\n]{0,80}\bfail|npu get board type failed|DrvMngGetConsoleLogLevel failed|There is no NPU card"


@dataclass(frozen=True)
class Failure:
    """``kind``: device_occupied, dcmi_init_failed, missing_library, command_not_found, hang, no_permission, unreadable.

    ``dcmi_ret`` is a code of the driver's management library (-8000 and below), ``npu_smi_ret`` the tool's own (-9000).
    """

    kind: str
    dcmi_ret: int | Missing
    npu_smi_ret: int | Missing
    missing_library: str | Missing
    driver_log_warning: bool


def failure(text: str) -> Failure:
    """What a text without a table says."""
    codes = [int(match[1]) for match in re.finditer(_RETURN, text)]
    dcmi = next((code for code in codes if code > -9000), NOT_PRINTED)
    tool = next((code for code in codes if code <= -9000), NOT_PRINTED)
    library = re.search(_LIBRARY, text)
    return Failure(
        kind=_kind(text, codes, bool(library)),
        dcmi_ret=dcmi,
        npu_smi_ret=tool,
        missing_library=(library[1] or library[2]) if library else NOT_PRINTED,
        driver_log_warning="DrvMngGetConsoleLogLevel" in text,
    )


def failure_without_text(reason: Reason) -> Failure | None:
    """What it means that npu-smi could not be asked; None where that says nothing about the host."""
    kind = KIND_OF_REASON.get(reason)
    return Failure(kind, NOT_PRINTED, NOT_PRINTED, NOT_PRINTED, False) if kind else None


def _kind(text: str, codes: list[int], library: bool) -> str:
    if RESOURCE_OCCUPIED in codes or "because the device is used" in text:
        return "device_occupied"
    if library:
        return "missing_library"
    if any(code in NO_PERMISSION for code in codes):
        return "no_permission"
    if codes:
        return "dcmi_init_failed"
    if re.search(_NOT_FOUND, text):
        return "command_not_found"
    if re.search(_DENIED, text):
        return "no_permission"
    return "dcmi_init_failed" if re.search(_DCMI, text) else "unreadable"
