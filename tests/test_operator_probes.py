"""Operator probes: on the CPU within their gates, and each kind of fault is caught by the gate that is meant for it.

Fused operators are checked three ways: against formulas of their documentation (fused_operators.py), as calls against
the real torch_npu's schemas (with ASCEND_DOCTOR_TORCH_PYTHON, over a stub CANN), and with faults.
"""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")

from fused_operators import fake_npu  # noqa: E402
from stub_cann import Stub, needs_gcc  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from ascend_doctor.children.operators import fused, measuring, probes, streams  # noqa: E402
from ascend_doctor.children.operators.watching import fallbacks  # noqa: E402
from ascend_doctor.children.stages.protocol import Absent, Unsupported, plain  # noqa: E402
from ascend_doctor.derive.smoke_gates import failing, words  # noqa: E402
from ascend_doctor.facts.smoke import DeviceRun, Step  # noqa: E402
from ascend_doctor.knowledge.smoke_gates import load  # noqa: E402
from ascend_doctor.paths import data_folder  # noqa: E402

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parent.parent
GATES = load([data_folder("rules")])
CPU = SimpleNamespace(device=torch.device("cpu"), kind="cpu", npu=None)
PROBES = dict(probes("cpu"))
REAL_PYTHON = os.environ.get("ASCEND_DOCTOR_TORCH_PYTHON", "")


def step_of(name: str, measures: dict[str, Any], outcome: str = "passed") -> Step:
    return Step("operators", name, outcome, 0.1, 60.0, plain(measures), (), "", 0, "", "", 0, "", "", "", {})


def faults(name: str, measures: dict[str, Any], kind: str = "cpu", outcome: str = "passed") -> list[str]:
    """The gates that are not kept."""
    device = DeviceRun(f"{kind}:0", kind, "", "bf16", "", {}, 0, ())
    return [failure.id for failure in failing(step_of(name, measures, outcome), GATES, device)]


# On the CPU


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_is_within_its_gates_on_the_cpu(name: str) -> None:
    measures = PROBES[name](CPU)
    assert faults(name, measures) == []


@pytest.mark.parametrize("name", PROBES)
def test_a_gate_asks_for_what_a_probe_measures(name: str) -> None:
    """A probe whose numbers nobody asks for would always pass."""
    nonsense = dict.fromkeys(PROBES[name](CPU), "nan")
    assert any(fault != "operators.not-finite" for fault in faults(name, nonsense))


def unknown_words(name: str, measures: dict[str, Any], kind: str) -> set[str]:
    """Names in braces, in texts of the gates that ask for these measures, that nothing fills."""
    device = DeviceRun(f"{kind}:0", kind, "", "bf16", "", {}, 0, ())
    known = {*words(step_of(name, measures), device), "value", "limit"}
    used = set()
    for gate in GATES.gates:
        asked = gate.stage == "operators" and fnmatchcase(name, gate.step) and gate.measure in measures
        if asked and (not gate.kinds or kind in gate.kinds):
            told = gate.told
            for texts in (told.found, told.expected, told.why, *(one.text for one in told.remedy)):
                used |= {word for text in texts.values() for word in re.findall(r"\{([a-z_0-9]+)\}", text)}
    return used - known


@pytest.mark.parametrize("name", PROBES)
def test_texts_of_gates_name_only_what_the_probe_measures(name: str) -> None:
    assert unknown_words(name, PROBES[name](CPU), "cpu") == set()


def test_inputs_are_the_same_in_each_run() -> None:
    assert PROBES["matmul.bf16.k1008"](CPU) == PROBES["matmul.bf16.k1008"](CPU)


def test_a_device_without_bf16_is_not_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "npu", SimpleNamespace(is_bf16_supported=lambda: False), raising=False)
    names = [name for name, _ in probes("npu")]
    assert "matmul.fp16.k1008" in names
    assert [name for name in names if "bf16" in name] == []


@pytest.mark.parametrize("kind", ["cpu", "cuda", "npu"])
def test_each_probe_has_a_name_of_its_own(kind: str) -> None:
    names = [name for name, _ in probes(kind)]
    assert len(set(names)) == len(names)


def test_a_type_that_torch_does_not_have_on_the_cpu_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch 2.1 says so of every product in fp16."""
    text = "\"addmm_impl_cpu_\" not implemented for 'Half'"
    monkeypatch.setattr(torch, "matmul", failing_with(text))
    with pytest.raises(Unsupported, match="addmm_impl_cpu_"):
        PROBES["matmul.fp16.k1008"](CPU)


# Faults


def scaled(original: Callable[..., Any], factor: float) -> Callable[..., Any]:
    return lambda *arguments, **named: original(*arguments, **named) * factor


def first_call(original: Callable[..., Any], spoilt: Callable[[Any], Any]) -> Callable[..., Any]:
    """The first call alone is wrong: the device's, before the one of the golden result."""
    calls: list[int] = []

    def function(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        result = original(*arguments, **named)
        return spoilt(result) if len(calls) == 1 else result

    return function


@pytest.mark.parametrize(
    ("owner", "function", "name", "fault"),
    [
        (torch, "matmul", "matmul.bf16.k1008", "operators.wrong-bf16"),
        (torch, "matmul", "matmul.fp16.k7168", "operators.wrong-fp16"),
        (torch, "matmul", "matmul.fp32.k1024", "operators.wrong-fp32"),
        (torch, "bmm", "matmul.bf16.batched", "operators.wrong-bf16"),
        (functional, "linear", "matmul.bf16.linear", "operators.wrong-bf16"),
        (torch, "rsqrt", "rms_norm.bf16", "operators.wrong-bf16"),
        (torch, "stack", "rotary.bf16", "operators.wrong-bf16"),
        (torch.Tensor, "softmax", "sink_softmax.bf16", "operators.wrong-bf16"),
        (functional, "scaled_dot_product_attention", "sdpa.bf16.d64", "operators.wrong-bf16"),
    ],
)
def test_an_operator_that_is_one_percent_off_is_caught(
    monkeypatch: pytest.MonkeyPatch, owner: Any, function: str, name: str, fault: str
) -> None:
    monkeypatch.setattr(owner, function, scaled(getattr(owner, function), 1.01))
    assert fault in faults(name, PROBES[name](CPU))


def test_one_row_that_is_one_percent_off_is_caught_though_the_mean_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.matmul

    def matmul(a: Any, b: Any) -> Any:
        product = original(a, b)
        product[3] *= 1.01
        return product

    monkeypatch.setattr(torch, "matmul", matmul)
    measures = PROBES["matmul.bf16.k1024"](CPU)
    assert faults("matmul.bf16.k1024", measures) == ["operators.wrong-row-bf16"]


def test_a_nan_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rsqrt", scaled(torch.rsqrt, float("nan")))
    assert faults("rms_norm.fp16", PROBES["rms_norm.fp16"](CPU)) == ["operators.not-finite"]


def test_squares_in_fp16_overflow_and_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "float", lambda self: self)
    assert faults("rms_norm.fp16", PROBES["rms_norm.fp16"](CPU))


def test_a_transposed_rotary_pair_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.stack
    monkeypatch.setattr(torch, "stack", lambda parts, dim=0: original(tuple(parts)[::-1], dim=dim))
    assert "operators.wrong-bf16" in faults("rotary.bf16", PROBES["rotary.bf16"](CPU))


def test_an_inverse_rotation_of_another_pairing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = torch.stack, []

    def stack(parts: Any, dim: int = 0) -> Any:
        calls.append(1)
        return original(tuple(parts)[:: -1 if len(calls) == 2 else 1], dim=dim)

    monkeypatch.setattr(torch, "stack", stack)
    assert faults("rotary.bf16", PROBES["rotary.bf16"](CPU)) == ["operators.no-inverse"]


def test_a_sort_that_is_not_stable_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.sort

    def sort(x: Any, **named: Any) -> Any:
        if x.dtype is torch.float64:
            return original(x, **named)
        values, order = original(x.flip(-1), **named)
        return values, x.shape[-1] - 1 - order

    monkeypatch.setattr(torch, "sort", sort)
    assert "operators.sort-wrong" in faults("sort.stable", PROBES["sort.stable"](CPU))


@pytest.mark.parametrize("name", ["topk.fp32", "topk.bf16"])
def test_topk_that_gives_another_set_is_caught(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    original = torch.topk

    def topk(x: Any, k: int, dim: int = -1) -> Any:
        values, places = original(x, k + 1, dim=dim)
        return values[..., 1:], places[..., 1:]

    monkeypatch.setattr(torch, "topk", topk)
    assert faults(name, PROBES[name](CPU)) == ["operators.other-choice"]


def test_topk_whose_values_are_of_another_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.topk

    def topk(x: Any, k: int, dim: int = -1) -> Any:
        values, places = original(x, k, dim=dim)
        return values.flip(-1), places

    monkeypatch.setattr(torch, "topk", topk)
    assert faults("topk.fp32", PROBES["topk.fp32"](CPU)) == ["operators.topk-values"]


@pytest.mark.parametrize("name", ["index_add.fp32", "index_add.bf16"])
def test_index_add_that_drops_a_row_is_caught(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    original = torch.Tensor.index_add_
    monkeypatch.setattr(torch.Tensor, "index_add_", lambda self, dim, i, rows: original(self, dim, i[1:], rows[1:]))
    assert "operators.sum-wrong" in faults(name, PROBES[name](CPU))


def test_a_sum_that_differs_between_two_runs_is_told_as_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = torch.Tensor.index_add_, []

    def index_add(self: Any, dim: int, i: Any, rows: Any) -> Any:
        calls.append(1)
        order = torch.randperm(len(i), generator=torch.Generator().manual_seed(len(calls)))
        return original(self, dim, i[order], rows[order])

    monkeypatch.setattr(torch.Tensor, "index_add_", index_add)
    assert faults("index_add.fp32", PROBES["index_add.fp32"](CPU)) == ["operators.not-repeatable"]


def test_gather_of_a_neighbour_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = functional.embedding
    monkeypatch.setattr(functional, "embedding", lambda i, table: original((i + 1) % len(table), table))
    assert faults("gather.rows", PROBES["gather.rows"](CPU)) == ["operators.rows-wrong"]


def test_a_mask_with_a_hole_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.Tensor.scatter_
    monkeypatch.setattr(torch.Tensor, "scatter_", lambda self, dim, i, value: original(self, dim, i[:, 1:], value))
    assert faults("scatter.mask", PROBES["scatter.mask"](CPU)) == ["operators.mask-wrong"]


def test_an_int8_product_that_is_one_off_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch._int_mm

    def product(a: Any, b: Any) -> Any:
        found = original(a, b)
        found[5, 7] += 1
        return found

    monkeypatch.setattr(torch, "_int_mm", product)
    assert faults("int8.int32", PROBES["int8.int32"](CPU)) == ["operators.int8-wrong"]


def test_a_cache_row_that_was_not_to_be_written_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.Tensor.index_copy_

    def index_copy(self: Any, dim: int, i: Any, rows: Any) -> Any:
        self[:, 30] = 0
        return original(self, dim, i, rows)

    monkeypatch.setattr(torch.Tensor, "index_copy_", index_copy)
    assert "operators.cache-wrong" in faults("cache_update.bf16", PROBES["cache_update.bf16"](CPU))


def test_a_cache_that_moves_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.Tensor.index_copy_
    monkeypatch.setattr(
        torch.Tensor, "index_copy_", lambda self, dim, i, rows: original(self.set_(self.clone()), dim, i, rows)
    )
    assert faults("cache_update.bf16", PROBES["cache_update.bf16"](CPU)) == ["operators.cache-moved"]


def test_a_view_that_is_copied_as_its_base_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """clone() that goes through memory in order and takes no notice of strides."""
    original = torch.Tensor.clone

    def clone(self: Any) -> Any:
        if self.dim() == 2 and self.stride(0) == 1:
            self = self.as_strided(self.shape, (self.shape[1], 1), self.storage_offset())
        return original(self)

    monkeypatch.setattr(torch.Tensor, "clone", clone)
    assert faults("views.fp32", PROBES["views.fp32"](CPU)) == ["operators.view-wrong"]


def test_a_draw_of_what_was_ruled_out_and_another_distribution_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.multinomial
    monkeypatch.setattr(torch, "multinomial", lambda p, *a, **n: original(torch.ones_like(p), *a, **n))
    found = faults("sampling.multinomial", PROBES["sampling.multinomial"](CPU))
    assert found == ["operators.ruled-out-drawn", "operators.wrong-distribution"]


def test_greedy_that_takes_the_second_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "argmax", first_call(torch.Tensor.argmax, lambda found: (found + 1) % 1291))
    assert faults("sampling.greedy", PROBES["sampling.greedy"](CPU)) == ["operators.greedy-wrong"]


@pytest.mark.parametrize(("name", "function"), [("copies.small", "to"), ("copies.pageable", "copy_")])
def test_a_copy_that_flips_a_bit_is_caught(monkeypatch: pytest.MonkeyPatch, name: str, function: str) -> None:
    original, calls = getattr(torch.Tensor, function), []

    def flipped(self: Any, *arguments: Any, **named: Any) -> Any:
        found = original(self, *arguments, **named)
        if found.dtype in (torch.uint8, torch.int32) and (named.get("copy") or "non_blocking" in named):
            calls.append(1)
            found[len(calls) % len(found)] ^= 1
        return found

    monkeypatch.setattr(torch.Tensor, function, flipped)
    assert faults(name, PROBES[name](CPU)) == ["operators.copy-changed"]


# Streams: a device that runs each stream's work later, and waits for events or not


class Queued(TorchDispatchMode):
    """Work in place waits on the current stream's queue until a result is asked for; the second stream goes first."""

    def __init__(self, obeys: bool) -> None:
        super().__init__()
        self.obeys, self.current, self.queues = obeys, 0, defaultdict(list)
        self.reached: set[object] = set()
        self.running = False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function._schema.name
        if not self.running and name.endswith("_") and self.current:
            self.queues[self.current].append(lambda: function(*args, **(kwargs or {})))
            return args[0]
        if name in ("aten::ne", "aten::detach"):
            self.run()
        return function(*args, **(kwargs or {}))

    def run(self) -> None:
        """A stream goes on until it has to wait for what is not there yet."""
        self.running = True
        while any(self.queues.values()):
            for queue in sorted(self.queues, reverse=True):
                while self.queues[queue]:
                    if self.queues[queue][0]() == "waits":
                        break
                    self.queues[queue].pop(0)
        self.running = False

    def Event(self, enable_timing: bool = False) -> Any:
        event = SimpleNamespace()
        mark = object()

        def record(stream: Any) -> None:
            self.queues[stream.number].append(lambda: self.reached.add(mark))

        def wait(stream: Any) -> None:
            if self.obeys:
                self.queues[stream.number].append(lambda: None if mark in self.reached else "waits")

        event.record, event.wait = record, wait
        event.elapsed_time = lambda other: 1.5
        return event

    def Stream(self) -> Any:
        self.streams = getattr(self, "streams", 0) + 1
        return SimpleNamespace(number=self.streams)

    def current_stream(self) -> Any:
        return SimpleNamespace(number=0)

    def stream(self, stream: Any) -> Any:
        mode = self

        class On:
            def __enter__(self) -> None:
                mode.current = stream.number

            def __exit__(self, *_: Any) -> None:
                mode.current = 0

        return On()


@pytest.mark.parametrize(("obeys", "found"), [(True, []), (False, ["operators.out-of-order"])])
def test_streams_that_take_no_notice_of_events_are_caught(
    monkeypatch: pytest.MonkeyPatch, obeys: bool, found: list[str]
) -> None:
    device = Queued(obeys)
    monkeypatch.setattr(streams, "module", lambda context: device)
    with device:
        measures = streams.events(CPU)
    assert faults("streams.events", measures) == found


# Fused operators


def on_npu(npu: Any) -> Any:
    return SimpleNamespace(device=torch.device("cpu"), kind="npu", npu=npu)


FUSED = dict(fused.probes())


@pytest.mark.parametrize("name", FUSED)
def test_what_a_fused_operator_is_compared_with_agrees_with_its_documentation(name: str) -> None:
    measures = FUSED[name](on_npu(fake_npu()))
    assert faults(name, measures, "npu") == []
    assert unknown_words(name, {**measures, "fallback": "", "raised": ""}, "npu") == set()


def spoilt(operator: Callable[..., Any]) -> Callable[..., Any]:
    """Fractions 1 % off, and whole numbers moved by one place."""

    def wrong(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(wrong, value))
        if not isinstance(value, torch.Tensor):
            return value
        return value * 1.01 if value.is_floating_point() else (value + 1) % (value.max() + 1)

    def function(*arguments: Any, **named: Any) -> Any:
        result = operator(*arguments, **named)
        if result is arguments[0]:  # in place
            result[-1] += 1
            return result
        return wrong(result)

    return function


@pytest.mark.parametrize("name", FUSED)
def test_a_fused_operator_that_is_wrong_is_an_error(name: str) -> None:
    operator = name.partition(".")[0]
    npu = fake_npu(**{operator: spoilt(getattr(fake_npu(), operator))})
    found = faults(name, FUSED[name](on_npu(npu)), "npu")
    severities = {gate.told.id: gate.told.severity for gate in GATES.gates}
    assert "error" in {severities[fault] for fault in found}


def failing_with(text: str) -> Callable[..., Any]:
    def function(*arguments: Any, **named: Any) -> Any:
        raise RuntimeError(text)

    return function


def test_a_fused_operator_that_is_not_there_is_absent() -> None:
    with pytest.raises(Absent, match=r"torch_npu\.npu_rms_norm"):
        FUSED["npu_rms_norm.bf16"](on_npu(fake_npu(npu_rms_norm=None)))
    assert faults("npu_rms_norm.bf16", {}, "npu", "absent") == ["operators.fused-absent"]


@pytest.mark.parametrize(
    "text",
    [
        "call aclnnRmsNorm failed, detail:EZ9999: Inner Error! error code is 561103",
        "call aclnnRmsNorm failed, error code is 161002",
        "npu_moe_gating_top_k_softmax is no longer supported on Ascend950",
        "OPS feature not supported ERR01007",
    ],
)
def test_a_fused_operator_that_this_chip_does_not_take_is_unsupported(text: str) -> None:
    with pytest.raises(Unsupported):
        FUSED["npu_rms_norm.bf16"](on_npu(fake_npu(npu_rms_norm=failing_with(text))))


def test_a_fused_operator_that_fails_is_a_warning() -> None:
    npu = fake_npu(npu_rms_norm=failing_with("call aclnnRmsNorm failed, error code is 361001\n[ERROR] ..."))
    measures = FUSED["npu_rms_norm.bf16"](on_npu(npu))
    assert measures == {"raised": "RuntimeError: call aclnnRmsNorm failed, error code is 361001"}
    assert faults("npu_rms_norm.bf16", measures, "npu") == ["operators.fused-raises"]


def test_a_device_that_died_in_a_fused_operator_is_not_taken_for_unsupported() -> None:
    npu = fake_npu(npu_rms_norm=failing_with("AclrtSynchronizeDevice, error code is 507015: not supported"))
    with pytest.raises(RuntimeError, match="507015"):
        FUSED["npu_rms_norm.bf16"](on_npu(npu))


CALLS = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, torch_npu
from ascend_doctor.children.operators.fused import fused
from ascend_doctor.children.operators.measuring import DTYPES

def meta(value):
    if isinstance(value, torch.Tensor):
        return value.to("meta")
    return [meta(item) for item in value] if isinstance(value, list) else value

for operator in fused():
    for word in operator.dtypes:
        case = operator.case(DTYPES.get(word, torch.float32))
        arguments, named = [meta(a) for a in case.arguments], {k: meta(v) for k, v in case.named.items()}
        schema = getattr(torch.ops.npu, operator.name).default._schema
        names = [argument.name for argument in schema.arguments]
        wrong = [name for name in named if name not in names] + ["too many"] * (len(arguments) > len(names))
        if operator.name != "npu_fusion_attention":  # its implementation for meta asks for a device
            wrong += [t.shape for t in operator.results(torch_npu, case, arguments, named) if t.device.type != "meta"]
        print(operator.name, word, wrong or "ok")
"""


@needs_gcc
@pytest.mark.skipif(not REAL_PYTHON, reason="ASCEND_DOCTOR_TORCH_PYTHON names no interpreter with torch-npu")
def test_each_call_of_a_fused_operator_is_one_that_the_real_torch_npu_takes(tmp_path: Path) -> None:
    cann = Stub().build(tmp_path / "cann")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(cann), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment.pop("ASCEND_HOME_PATH", None)
    command = [REAL_PYTHON, "-c", textwrap.dedent(CALLS), str(ROOT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    told = [line for line in done.stdout.splitlines() if line.startswith(("npu_", "scatter_"))]
    assert len(told) == len(FUSED)
    assert [line for line in told if not line.endswith(" ok")] == []


# What runs on the CPU instead

GENERIC = (
    "[W610 18:26:03.055846726 VariableFallbackKernel.cpp:250] Warning: CAUTION: The operator "
    "'aten::bitwise_left_shift.Tensor_out' is not currently supported on the NPU backend and will fall back to run on "
    "the CPU. This may have performance implications. (function npu_cpu_fallback)\n"
)
OWN = (
    "Warning: CAUTION: The operator aten::unfold_backward is currently not supported on the NPU backend. Now this "
    "operator will fallback to run on the CPU and may have performance implications.\n"
)


def test_both_wordings_of_a_fallback_are_read() -> None:
    assert fallbacks(GENERIC + OWN + GENERIC) == ["aten::bitwise_left_shift.Tensor_out", "aten::unfold_backward"]


def test_a_probe_that_falls_back_is_a_warning_and_its_words_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def rms_norm(*arguments: Any, **named: Any) -> Any:
        os.write(2, GENERIC.encode())
        return fake_npu().npu_rms_norm(*arguments, **named)

    measures = dict(probes("npu"))["npu_rms_norm.bf16"](on_npu(fake_npu(npu_rms_norm=rms_norm)))
    assert measures["fallback"] == "aten::bitwise_left_shift.Tensor_out"
    assert faults("npu_rms_norm.bf16", measures, "npu") == ["operators.on-cpu"]
    assert capfd.readouterr().err == GENERIC


def test_a_probe_that_raises_gives_stderr_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    npu = fake_npu(npu_rms_norm=failing_with("error code is 507015"))
    with pytest.raises(RuntimeError):
        dict(probes("npu"))["npu_rms_norm.bf16"](on_npu(npu))
    os.write(2, b"afterwards")
    assert capfd.readouterr().err == "afterwards"


# Measuring


def test_a_result_of_another_shape_is_told() -> None:
    measures = measuring.distance(torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.float64))
    assert faults("matmul.fp32.k1024", measures) == ["operators.wrong-shape"]


def test_a_row_of_zeros_has_a_finite_distance() -> None:
    golden = torch.ones(4, 8)
    golden[2] = 0
    assert measuring.distance(golden, golden)["worst_row"] == 0
