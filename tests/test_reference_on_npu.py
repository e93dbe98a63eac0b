"""Every operator that the reference model uses has a kernel of torch_npu: none of them falls back to the CPU.

With ASCEND_DOCTOR_TORCH_PYTHON=/path/to/python, an interpreter that has torch 2.13.0 and torch-npu 2.13.0. No NPU is
needed: the model runs on the CPU, and torch is asked which kernels torch_npu brought.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest
from stub_cann import Stub, needs_gcc

from ascend_doctor.knowledge.smoke_sizes import load
from ascend_doctor.paths import data_folder

REAL_PYTHON = os.environ.get("ASCEND_DOCTOR_TORCH_PYTHON", "")
needs_torch_npu = pytest.mark.skipif(
    not REAL_PYTHON, reason="ASCEND_DOCTOR_TORCH_PYTHON names no interpreter with torch and torch-npu 2.13.0"
)
ROOT = Path(__file__).parent.parent

SCRIPT = """
import json, sys
import torch, torch_npu
from torch.utils._python_dispatch import TorchDispatchMode
from ascend_doctor.children.deepseek_v4.caches import Caches
from ascend_doctor.children.deepseek_v4.config import Config
from ascend_doctor.children.deepseek_v4.model import Model
from ascend_doctor.children.deepseek_v4.routing import Routing
from ascend_doctor.children.deepseek_v4.weights import seeded_weights

used = set()
class Used(TorchDispatchMode):
    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        used.add(operator.name())
        return operator(*args, **(kwargs or {}))

config = Config.of(json.loads(sys.argv[1]))
model, caches = Model(config, seeded_weights(config, 1, "bf16"), 200), Caches(config, 1, 200, "bf16")
tokens, recording = torch.zeros((1, 200), dtype=torch.int64), Routing.recording()
with Used():
    model.forward(tokens[:, :190], caches, 0, recording)
    model.forward(tokens[:, 190:191], caches, 190)
    caches.reset()
    model.forward(tokens[:, :190], caches, 0, Routing.replaying(recording.choices), last_only=True)
has = torch._C._dispatch_has_kernel_for_dispatch_key
made_of_others = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
print(json.dumps({name: "npu" if has(name, "PrivateUse1") else "others" if any(has(name, key) for key in made_of_others)
    else "none" for name in sorted(used)}))
"""
MADE_OF_OTHERS = {
    *("aten::_unsafe_view", "aten::alias", "aten::expand", "aten::select.int", "aten::slice.Tensor", "aten::t"),
    *("aten::split.Tensor", "aten::split_with_sizes", "aten::transpose.int"),  # views of the same memory
    *("aten::new_zeros", "aten::masked_fill.Scalar", "aten::scatter.value"),  # empty, masked_fill_, scatter_
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Operator -> npu, others (it is made of other operators), none."""
    stub = Stub().build(tmp_path_factory.mktemp("cann"))
    done = subprocess.run(
        [REAL_PYTHON, "-c", SCRIPT, json.dumps(asdict(load([data_folder("rules")]).named("tiny").config))],
        env={**os.environ, "LD_LIBRARY_PATH": str(stub), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@needs_gcc
@needs_torch_npu
def test_no_operator_of_the_model_falls_back_to_the_cpu(kernels: dict[str, str]) -> None:
    assert {name for name, kernel in kernels.items() if kernel != "npu"} <= MADE_OF_OTHERS


@needs_gcc
@needs_torch_npu
def test_the_operators_of_the_model_were_seen(kernels: dict[str, str]) -> None:
    assert {"aten::bmm", "aten::sort.stable", "aten::index_put_", "aten::copy_"} <= set(kernels)
