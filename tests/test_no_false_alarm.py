"""Every public capture of healthy cards, with all checks on and nothing else known: no error, no warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.paths import data_folder

CHECKS = load_checks([data_folder("checks")])
AREAS = sorted({area for check in CHECKS for area in check.areas})
FOLDER = Path(__file__).parent / "captures"
CAPTURES = sorted(path for folder in ("npu-smi", "npu-smi-later") for path in (FOLDER / folder).glob("*.txt"))


def healthy(capture: Path) -> bool:
    """Whether all its chips are OK, as the file beside it says."""
    chips = json.loads(capture.with_suffix(".expected.json").read_text(encoding="utf-8")).get("chips")
    return bool(chips) and all(chip["health"] == "OK" for chip in chips)


@pytest.mark.parametrize("capture", [c for c in CAPTURES if healthy(c)], ids=lambda path: path.stem)
def test_a_healthy_capture_alone_gives_no_error_and_no_warning(capture: Path, tmp_path: Path) -> None:
    document = {
        "schema": "ascend-doctor/snapshot/1",
        "taken_at": "2026-11-30T09:00:00Z",
        "complete": False,
        "identity": {"hostname": "node-a", "arch": "aarch64", "kernel": "5.10.0", "uid": 0, "gids": [0]},
        "commands": [{"argv": ["npu-smi", "info"], "rc": 0, "stdout": "commands/000.out"}],
    }
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "000.out").write_bytes(capture.read_bytes())
    (tmp_path / "snapshot.json").write_text(json.dumps(document))
    situation = Situation(open_snapshot(tmp_path), [data_folder("rules")], workers=1)
    situation.collect(AREAS)
    findings = judged(CHECKS, situation)
    assert not situation.broken
    assert not [f for f in findings if f.verdict == "fail" and f.severity != "info"]
    assert any(f.check == "npu.health" and f.verdict == "pass" for f in findings)
