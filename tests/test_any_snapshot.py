"""Whatever JSON stands in a snapshot: it is judged whole, or refused with a message that names the file."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hosts import FOLDER

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.host import Host
from ascend_doctor.host.members import SnapshotError
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.paths import data_folder

CHECKS = load_checks([data_folder("checks")])
AREAS = sorted({area for check in CHECKS for area in check.areas})
WHOLE = json.loads((FOLDER / "a2-container-healthy" / "snapshot.json").read_text(encoding="utf-8"))
ODD: tuple[Any, ...] = (None, True, -1, 0, 2**70, 1.5, "", "x" * 300, "\u202e\0", [], {}, ["a"], {"missing": "denied"})


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys."""
    found: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        found += [(value, key), *places(part)]
    return found


def opened(path: Path) -> tuple[Host | None, str]:
    """The snapshot, or why it is refused."""
    try:
        return open_snapshot(path), ""
    except SnapshotError as error:
        return None, str(error)


@pytest.mark.parametrize("seed", range(30))
def test_a_snapshot_with_odd_values_is_judged_whole_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    document = copy.deepcopy(WHOLE)
    for _ in range(chance.randint(1, 4)):
        container, key = chance.choice(places(document))
        container[key] = chance.choice(ODD)
    for name in ("files", "commands", "observations"):
        source = FOLDER / "a2-container-healthy" / name
        if source.is_dir():
            (tmp_path / name).mkdir()
            for file in source.rglob("*"):
                if file.is_file():
                    target = tmp_path / name / file.relative_to(source)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(file.read_bytes())
    (tmp_path / "snapshot.json").write_text(json.dumps(document))
    host, refused = opened(tmp_path)
    if host is None:
        assert "snapshot.json" in refused
        return
    situation = Situation(host, [data_folder("rules")], workers=1)
    situation.collect(AREAS)
    findings = judged(CHECKS, situation)
    assert not situation.broken
    assert {finding.check for finding in findings} == {check.id for check in CHECKS}
