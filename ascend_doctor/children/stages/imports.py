"""Whether torch, and on an NPU torch_npu, can be imported: by the process that goes on to use them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from .protocol import Steps


def run(plan: Mapping[str, Any], steps: Steps) -> bool:
    wanted = ("torch", "torch_npu") if plan["kind"] == "npu" else ("torch",)
    return all(imported(plan, steps, name) for name in wanted)


def imported(plan: Mapping[str, Any], steps: Steps, name: str) -> bool:
    def measure() -> Mapping[str, object]:
        module: Any = importlib.import_module(name)
        found: dict[str, object] = {
            "version": str(getattr(module, "__version__", "")),
            "file": str(getattr(module, "__file__", "")),
        }
        if name == "torch":
            module.set_num_threads(int(plan["threads"]))
            found.update(threads=module.get_num_threads(), python=sys.version.split()[0])
        return found

    stage, step = steps.again("import", name)
    return steps.run(stage, step, measure)
