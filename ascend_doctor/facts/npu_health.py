"""What ``npu-smi info -t health`` says of one chip: its state and the codes of its faults.

Sources: https://github.com/hicann/driver, Ascend_950_npu-smi, querying-the-device-health-status.md;
https://github.com/Ascend/mind-cluster, docs/en/faultdiag, 03_collecting_logs.md. Pasted ones are squeezed and wrapped.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Missing, Output, Reason, Shown, decoded
from ascend_doctor.records import dataclass

INFORMATION_LIMIT = 2000
"""Characters."""

_KEYS = r"(?i)\s*(NPU ID|Chip ID|Health(?: Status)?|Error Code|Error Information)\s*:\s*(.*)"
_CODE = r"(?i)(?:0x)?([0-9a-f]{8,9})(?![0-9a-z])"


@dataclass(frozen=True)
class HealthReport:
    """``codes`` as printed, such as 80E3A203; empty where npu-smi names none (NA)."""

    npu_id: int
    chip_id: int | Missing
    status: str | Missing
    codes: tuple[str, ...] | Missing
    information: str | Missing


@dataclass(frozen=True)
class HealthText:
    """The report without the chip that it is about."""

    status: str | Missing
    codes: tuple[str, ...] | Missing
    information: str | Missing


def health_text(output: Output) -> Shown[HealthText]:
    """Reads either stream; a refusal or another text is Missing, with its first line as the detail."""
    text = f"{decoded(output.stdout)}\n{decoded(output.stderr)}"
    values = _values(text)
    if "health" not in values and "error code" not in values:
        line = next((line.strip() for line in text.split("\n") if line.strip()), "nothing was printed")
        refused = "not support" in line
        return Shown(Missing(Reason.UNSUPPORTED if refused else Reason.FAILED, line[:200]), {"": line[:200]})
    codes = values.get("error code")
    found = HealthText(
        status=_printed(values.get("health")),
        codes=Missing(Reason.FAILED, "no line with error codes") if codes is None else _codes(codes),
        information=_printed(values.get("error information")),
    )
    return Shown(found, {"": text.strip()[:INFORMATION_LIMIT]})


def _values(text: str) -> dict[str, str]:
    """Key -> value of the last report in the text; what has no key goes on with the value above."""
    values: dict[str, str] = {}
    key = ""
    for line in text.split("\n"):
        match = re.match(_KEYS, line)
        if match:
            key = match[1].lower().replace("health status", "health")
            values[key] = match[2].strip()
        elif not line.strip():
            key = ""
        elif key in ("error code", "error information"):
            values[key] = f"{values[key]} {line.strip()}".strip()[:INFORMATION_LIMIT]
    return values


def _codes(text: str) -> tuple[str, ...] | Missing:
    codes = tuple(dict.fromkeys(match[1].upper() for match in re.finditer(_CODE, text)))
    if codes or text.strip() in ("", "NA", "N/A", "-"):
        return codes
    return Missing(Reason.FAILED, f"not understood: {text[:40]}")


def _printed(text: str | None) -> str | Missing:
    if text is None:
        return Missing(Reason.FAILED, "no such line")
    return Missing(Reason.UNSUPPORTED, text or "blank") if text in ("", "NA", "N/A", "-") else text
