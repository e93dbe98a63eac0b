"""Runs the stages of a plan in their order; after one that failed, none that needs it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

from .protocol import Steps, Unprepared

STAGES = {
    "import": "imports",
    "device": "device",
    "operators": "probes",
    "layers": "layers",
    "forced": "forced",
    "free": "free",
    "decode": "decode",
    "latency": "latency",
    "memory": "memory",
}
"""Stage -> its module. They are imported when they are reached: most of them import torch."""


def run(plan: Mapping[str, Any], descriptor: int) -> None:
    """``stages``: [{"id", "needs", "seconds"}] in their order; ``done`` and ``broken``: by earlier children."""
    os.environ.setdefault("OMP_NUM_THREADS", str(plan["threads"]))
    seconds = {stage["id"]: float(stage["seconds"]) for stage in plan["stages"]}
    steps = Steps(descriptor, seconds, plan["done"], cpu=plan["kind"] == "cpu")
    broken = set(plan["broken"])
    bench: Any = None
    for stage in plan["stages"]:
        name = stage["id"]
        if name in broken or broken & set(stage["needs"]):
            broken.add(name)
            continue
        module = importlib.import_module(f".{STAGES[name]}", __package__)
        if name == "import":
            passed = module.run(plan, steps)
        else:
            if bench is None:
                bench = importlib.import_module(".bench", __package__).Bench(plan, steps)
            try:
                passed = module.run(bench)
            except Unprepared:
                passed = False
        if not passed:
            broken.add(name)
        steps.tell(stage=name, event="left", passed=bool(passed))
    steps.tell(event="done")
