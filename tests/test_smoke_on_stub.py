"""The real torch-npu wheel over a stub CANN: the import and the opening of a device, and how each of them fails.

ASCEND_DOCTOR_TORCH_PYTHON names an interpreter with torch 2.13.0 and torch-npu 2.13.0. The stub computes nothing: the
first tensor fails, and what comes after it is not run.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from smoke_runs import CHECKS, ENV, RULES
from stub_cann import Stub, needs_gcc

from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.host import Extent
from ascend_doctor.host.live import LiveHost
from ascend_doctor.smoke.plan import Wishes, planned
from ascend_doctor.smoke.running import run

PYTHON = os.environ.get("ASCEND_DOCTOR_TORCH_PYTHON", "")
pytestmark = [
    pytest.mark.torch,
    needs_gcc,
    pytest.mark.skipif(
        not PYTHON, reason="ASCEND_DOCTOR_TORCH_PYTHON names no interpreter with torch and torch-npu 2.13.0"
    ),
]
AFTER_IMPORT = ("smoke.device", "smoke.operators", "smoke.layers", "smoke.forced", "smoke.memory")


@pytest.fixture(scope="module")
def cann(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Stub().build(tmp_path_factory.mktemp("stub") / "cann")


def smoked(monkeypatch: pytest.MonkeyPatch, cann: Path, **env: str) -> dict[str, Finding]:
    """Check -> its finding on the first NPU of the stub, which has two."""
    for name, value in {"STUB_CANN_DEVICES": "2", **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(cann))
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    host = LiveHost(ENV, python=PYTHON, extent=Extent(smoke=True))
    plan = planned(host, Wishes(device="npu:0", size="tiny", force=True), RULES)
    situation = Situation(host, RULES, given=(run(host, plan, lambda text: None),))
    found = {finding.check: finding for finding in judged(CHECKS, situation)}
    assert not situation.broken
    return found


def said(finding: Finding) -> str:
    return (finding.found or {}).get("en", "")


def test_the_device_opens_and_the_first_tensor_fails(monkeypatch: pytest.MonkeyPatch, cann: Path) -> None:
    found = smoked(monkeypatch, cann)
    assert {found[f"smoke.{stage}"].verdict for stage in ("libraries", "import", "device")} == {"pass"}
    assert any("name Ascend910B3" in evidence.text for evidence in found["smoke.device"].evidence)
    assert "AclrtGetSysParamOpt" in said(found["smoke.operators"])
    assert {found[check].verdict for check in AFTER_IMPORT[2:]} == {"skip"}


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"STUB_CANN_DEVICES": "0"}, "torch sees no npu:0: RuntimeError: device_count() is 0"),
        ({"STUB_CANN_RESULT_aclrtSetDevice": "507033"}, "the NPU cannot be opened (507033)"),
        ({"STUB_CANN_SOC": "Ascend999"}, "this torch_npu does not know the chip Ascend999"),
    ],
)
def test_a_device_that_does_not_open_is_told_with_its_code(
    env: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch, cann: Path
) -> None:
    found = smoked(monkeypatch, cann, **env)
    assert said(found["smoke.device"]).startswith(words)
    assert {found[check].verdict for check in AFTER_IMPORT[1:]} == {"skip"}


@pytest.mark.parametrize(("case", "words"), [("no-cann", "libhccl.so"), ("truncated", "SIGBUS")])
def test_an_import_that_fails_is_told_with_its_cause(
    case: str, words: str, monkeypatch: pytest.MonkeyPatch, cann: Path, tmp_path: Path
) -> None:
    """As the files foretell; what they cannot foretell is tried with the import probe."""
    folder = Path(shutil.copytree(cann, tmp_path / "cann"))
    if case == "no-cann":
        shutil.rmtree(folder)
    else:
        (folder / "libascendcl.so").write_bytes((folder / "libascendcl.so").read_bytes()[:4096])
    found = smoked(monkeypatch, folder)
    assert found["smoke.libraries"].verdict == "fail"
    assert found["smoke.import"].verdict == "fail"
    assert found["smoke.import"].because == "smoke.libraries"
    assert words in said(found["smoke.import"])
    assert {found[check].verdict for check in AFTER_IMPORT} == {"skip"}
