"""Smoke runs on the CPU with a fault put in from outside: nothing in the product knows of faults.

A folder on PYTHONPATH holds a sitecustomize that waits until the child imports a module of the model, then changes it.
ASCEND_DOCTOR_TORCH_PLAIN_PYTHON names an interpreter with torch and without torch_npu; else our own, if it has torch.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, TypeVar

import pytest

from ascend_doctor.engine.checks import Check, load_checks
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.smoke import Smoke
from ascend_doctor.host import Collected, Extent
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.paths import data_folder
from ascend_doctor.smoke.plan import Wishes, planned
from ascend_doctor.smoke.running import run

PYTHON = os.environ.get("ASCEND_DOCTOR_TORCH_PLAIN_PYTHON", "") or (sys.executable if find_spec("torch") else "")
TORCH = [
    pytest.mark.torch,
    pytest.mark.skipif(
        not PYTHON, reason="ASCEND_DOCTOR_TORCH_PLAIN_PYTHON names no interpreter with torch, and this one has none"
    ),
]
"""For ``pytestmark``; ``needs_torch`` is the same for one test."""
F = TypeVar("F", bound=Callable[..., Any])


def needs_torch(test: F) -> F:
    for mark in TORCH:
        test = mark(test)
    return test


RULES = [data_folder("rules")]
CHECKS: tuple[Check, ...] = load_checks(
    [data_folder("checks"), data_folder("checks") / "on-request"], lambda name: name.startswith("smoke.")
)
ENV = KnownEnv(frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "ASCEND_HOME_PATH"}))
MODEL = "ascend_doctor_children.deepseek_v4"

SITECUSTOMIZE = '''
import importlib.util, sys

FAULTS = {faults!r}


class After:
    """Runs the fault in the module, once that is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name not in FAULTS:
            return None
        source = FAULTS.pop(name)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            exec(compile("import torch\\n" + source, "fault of " + name, "exec"), vars(module))

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, After())
'''


def with_faults(folder: Path, monkeypatch: pytest.MonkeyPatch, faults: Mapping[str, str]) -> None:
    """Module name -> source that is run in it after it was loaded, by every Python that is started from now on."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE.format(faults=dict(faults)), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))


def smoked(**wishes: Any) -> Collected[Smoke]:
    """The facts of a small run on the CPU."""
    host = LiveHost(ENV, python=PYTHON, extent=Extent(smoke=True))
    asked = Wishes(**{"device": "cpu", "size": "tiny", "seq": 136, "decode": 8, **wishes})
    return run(host, planned(host, asked, RULES), lambda text: None)


def findings(collected: Collected[Smoke]) -> list[Finding]:
    host = LiveHost(ENV, python=PYTHON, extent=Extent(smoke=True))
    situation = Situation(host, RULES, given=(collected,))
    found = judged(CHECKS, situation)
    assert not situation.broken
    return found


def failed(collected: Collected[Smoke]) -> dict[str, Finding]:
    """Check -> its finding, of those that failed and that no other explains."""
    return {f.check: f for f in findings(collected) if f.verdict == "fail" and not f.because}


def plain(collected: Collected[Smoke]) -> dict[str, str]:
    """Check -> verdict or severity."""
    return {f.check: str(f.severity) if f.verdict == "fail" else f.verdict for f in findings(collected)}


def document(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text)
    return loaded
