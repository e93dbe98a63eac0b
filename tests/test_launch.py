"""A launch command: what it says, what is judged by it, and how it is started."""

from __future__ import annotations

import json
import shlex
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from hosts import FOLDER, host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.cli.preflight import command
from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.launching import command_of
from ascend_doctor.engine.launching import given as given_areas
from ascend_doctor.engine.run import judged as verdicts
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.checkpoint import checkpoint, config
from ascend_doctor.facts.command_line import front
from ascend_doctor.facts.launch import Launch, collect, launch
from ascend_doctor.facts.mindie_config import words
from ascend_doctor.facts.tree import paths, without
from ascend_doctor.host import Missing, Reason, Shown
from ascend_doctor.host.launched import LaunchedHost, interpreter_of
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.host.reasons import NOT_SET
from ascend_doctor.paths import data_folder

CHECKOUT = Path(__file__).parent.parent
SCHEMA = jsonschema.Draft202012Validator(json.loads((data_folder("reports") / "schema.json").read_text("utf-8")))


def said(line: str) -> Launch:
    return launch(shlex.split(line)).facts


# What a command says


def test_a_line_of_vllm_is_read_in_any_of_its_forms() -> None:
    long = said("vllm serve Qwen/Qwen3-32B --tensor-parallel-size 4 --max-model-len 32768 --dtype=bfloat16 --port 8113")
    short = said("vllm serve Qwen/Qwen3-32B -tp=4 --max_model_len=32K --dtype bfloat16 --port=8113")
    module = said(
        "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-32B -tp 4 --max-model-len 32768"
        " --dtype bfloat16 --port 8113"
    )
    for found in (long, short, module):
        assert (found.program, found.model, found.tensor_parallel) == ("vllm", "Qwen/Qwen3-32B", 4)
        assert (found.max_model_len, found.dtype, found.port) == (32768, "bfloat16", 8113)
    assert module.interpreter == "python3"


def test_what_stands_before_the_command_is_taken_off() -> None:
    found = said("A=1 nohup python3 -u /opt/venv/bin/vllm serve M --enforce-eager")
    assert (found.program, found.model, found.eager, found.assigned) == ("vllm", "M", True, {"A": "1"})
    assert isinstance(found.numactl, Missing)
    assert said("nohup A=1 vllm serve M").program == "other"  # only a shell and env take assignments
    found = said("A=1 env -u B C=3 numactl -N 0 --membind=0 vllm serve M")
    assert (found.assigned, found.unset) == ({"A": "1", "C": "3"}, ("B",))
    assert str(found.numactl).startswith("numactl -N 0 --membind=0 vllm")


@pytest.mark.parametrize(
    ("line", "program", "field", "value"),
    [
        ("torchrun --nproc_per_node=8 --nnodes 2 train.py --tensor-parallel-size 4", "torchrun", "ranks", 8),
        ("python -m torch.distributed.run --nproc-per-node 4 train.py", "torchrun", "ranks", 4),
        ("python3 -m sglang.launch_server --model-path /m --tp-size 8", "sglang", "tensor_parallel", 8),
        ("atc --model=m.onnx --framework=5 --soc_version=Ascend310P3", "atc", "soc_version", "Ascend310P3"),
        ("mindieservice_daemon", "mindie", "nodes", 1),
        ("python3 -m my.server", "python-module", "nodes", 1),
        ("sleep 10", "other", "nodes", 1),
        ("vllm bench serve --model M", "other", "nodes", 1),
        ("python -m vllm.entrypoints.cli.main serve M", "vllm", "model", "M"),
        ("conda run -n env --no-capture-output vllm serve M", "vllm", "model", "M"),
        ("sudo -E A=1 vllm serve M", "vllm", "assigned", {"A": "1"}),
        ("setsid taskset -c 0-23 vllm serve M", "vllm", "model", "M"),
        ("vllm serve --trust-remote-code M -dp 2 --data-parallel-size-local 1", "vllm", "data_local", 1),
        ("vllm serve -O3 M --enable-expert-parallel -tp 4 -dp 2", "vllm", "expert_parallel", 8),
        ('vllm serve M --speculative-config \'{"method": "mtp"}\' --seed -1', "vllm", "model", "M"),
    ],
)
def test_programs_are_told_apart(line: str, program: str, field: str, value: object) -> None:
    found = said(line)
    assert found.program == program
    assert getattr(found, field) == value


def test_options_that_stand_in_a_file_are_not_guessed() -> None:
    found = said("vllm serve M --config serve.yaml")
    assert isinstance(found.tensor_parallel, Missing)
    assert found.tensor_parallel.reason is Reason.NOT_COLLECTED


SCRIPT = """#!/bin/bash
# it's a comment
export HCCL_BUFFSIZE=512
MODEL=/models/x
source /usr/local/Ascend/ascend-toolkit/set_env.sh
nohup numactl -N 0 -m 0 vllm serve $MODEL --tensor-parallel-size $1 \\
  --max-model-len 4096 --additional-config '{"a": "b c"}' > log.txt 2>&1 &
"""
FILES = {
    "start.sh": SCRIPT,
    "serve.yaml": "model: /models/x\ntensor-parallel-size: 4\nmax_model_len: 4096\nenforce-eager: true\nport: 1\n",
    "list.yaml": "- 1\n",
    "broken.yaml": "a: [\n",
}


def from_files(line: str) -> Launch:
    return launch(shlex.split(line), lambda path: FILES.get(path, Missing(Reason.ABSENT))).facts


@pytest.mark.parametrize(
    "line", [f"bash -c {shlex.quote(SCRIPT)}", f"sh -ec {shlex.quote(SCRIPT)} x", "bash start.sh 8"]
)
def test_the_service_that_a_script_starts_is_what_is_judged(line: str) -> None:
    found = from_files(line)
    assert (found.program, found.model, found.max_model_len) == ("vllm", "/models/x", 4096)
    assert found.assigned == {"HCCL_BUFFSIZE": "512"}
    assert str(found.numactl).startswith("numactl -N 0 -m 0 vllm")
    assert found.flags["additional-config"] == '{"a": "b c"}'  # type: ignore[index]


def test_what_only_a_shell_can_fill_in_is_not_guessed() -> None:
    found = from_files("bash start.sh 8")
    assert isinstance(found.tensor_parallel, Missing)
    assert found.tensor_parallel.reason is Reason.NOT_COLLECTED
    assert found.unreadable == ()


def test_options_of_a_file_count_where_the_line_says_nothing() -> None:
    found = from_files("vllm serve --config serve.yaml --port 8001")
    assert (found.model, found.tensor_parallel, found.max_model_len) == ("/models/x", 4, 4096)
    assert (found.eager, found.port) == (True, 8001)


@pytest.mark.parametrize("file", ["list.yaml", "broken.yaml", "gone.yaml"])
def test_a_file_of_options_that_cannot_be_read_leaves_them_open(file: str) -> None:
    found = from_files(f"vllm serve M --config {file}")
    assert isinstance(found.tensor_parallel, Missing)
    assert found.model == "M"


@pytest.mark.parametrize(
    ("line", "unreadable"),
    [
        ("vllm serve M -tp 0", ("-tp 0",)),
        ("vllm serve M --tensor-parallel-size four", ("--tensor-parallel-size four",)),
        ("vllm serve M --gpu-memory-utilization 90", ("--gpu-memory-utilization 90",)),
        ("vllm serve M --max-model-len 32k --port 8000 -dp 2 -dpl 0", ()),
        ("vllm serve M --max-model-len auto", ()),
        ("vllm serve M --max-model-len long", ("--max-model-len long",)),
        ("vllm serve M --port 80000", ("--port 80000",)),
        ("vllm serve M -tp $TP --port ${PORT:-8000}", ()),
        ("torchrun --nproc_per_node=gpu --nnodes=1:4 t.py", ()),
        ("torchrun --nproc_per_node=many8 t.py", ("--nproc-per-node many8",)),
    ],
)
def test_a_value_that_the_program_refuses_is_told_as_it_is_written(line: str, unreadable: tuple[str, ...]) -> None:
    assert said(line).unreadable == unreadable


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("""vllm serve M --additional-config '{"a": {"b": true}}' -O3 --compilation-config 3""", 0),
        ("""vllm serve M --speculative-config '{"method": "mtp", "num_speculative_tokens": 3}'""", 0),
        ("vllm serve M --additional-config {a: true}", 1),
        ("""vllm serve M --additional-config "{'a': True}" --kv-transfer-config '{"x":1}'""", 1),
        ("""vllm serve M --compilation-config '{"cudagraph_mode": FULL}'""", 1),
        ("vllm serve M --additional-config $CONFIG", 0),
        ("sglang serve --model-path M --additional-config x", 0),
    ],
)
def test_json_that_lost_its_quotes_is_seen(line: str, wrong: int) -> None:
    assert len(said(line).no_json) == wrong  # type: ignore[arg-type]


def test_options_that_nobody_knows_are_kept() -> None:
    assert said("vllm serve M --brand-new-option 7").flags == {"brand-new-option": "7"}


def test_secrets_of_a_command_are_not_among_its_facts() -> None:
    collected = launch(shlex.split("HF_TOKEN=hush vllm serve M --api-key hush --max-num-batched-tokens 4096"))
    assert "hush" not in repr(collected)
    assert collected.facts.batched_tokens == 4096
    assert "hush" not in repr(launch(["bash", "-c", "export HF_TOKEN=hush; vllm serve M --api-key hush"]))


def test_without_a_command_nothing_is_said() -> None:
    facts = collect(LiveHost(KnownEnv())).facts
    assert all(value.reason is Reason.UNSUPPORTED for value in vars(facts).values())


@given(
    st.lists(st.one_of(st.text(max_size=20), st.sampled_from(["env", "numactl", "vllm", "serve", "-tp", "--", "A=1"])))
)
def test_any_words_are_a_command(words: list[str]) -> None:
    facts = launch(words).facts
    assert isinstance(facts.program, str)
    assert len(front(words).words) <= len(words)


@given(st.binary(max_size=200))
def test_any_bytes_of_a_config_are_read_or_missing(data: bytes) -> None:
    assert isinstance(config(data), (Missing, Shown))


def test_a_host_has_the_variables_of_the_command() -> None:
    here = host("a2-healthy", {"env": {"HCCL_BUFFSIZE": "200", "TASK_QUEUE_ENABLE": "1"}})
    changed = LaunchedHost(here, {"HCCL_BUFFSIZE": "512"}, ["TASK_QUEUE_ENABLE"])
    assert changed.env("HCCL_BUFFSIZE").value == "512"
    assert changed.env("TASK_QUEUE_ENABLE").value == NOT_SET
    names = changed.env_names().value
    assert "HCCL_BUFFSIZE" in names  # type: ignore[operator]
    assert "TASK_QUEUE_ENABLE" not in names  # type: ignore[operator]
    assert LaunchedHost(here, {"A": "1"}, cleared=True).env_names().value == ("A",)


def test_the_python_of_a_command_is_told_by_its_first_line(tmp_path: Path) -> None:
    script, other = tmp_path / "vllm", tmp_path / "sh-script"
    script.write_text("#!/opt/venv/bin/python3\n")
    other.write_text("#!/bin/sh\n")
    for file in (script, other):
        file.chmod(0o755)
    environ = {"PATH": str(tmp_path)}
    assert interpreter_of("vllm", environ) == "/opt/venv/bin/python3"
    assert interpreter_of("sh-script", environ) is None
    assert interpreter_of("no-such", environ) is None


# What is judged


AREAS = (
    "launch.*",
    "mindie-config.*",
    "budget.*",
    "numactl.*",
    "memory.*",
    "env.*",
    "disks.*",
    "ascend.present",
    "npu.answers",
)


def judged(name: str, line: str, changes: dict[str, Any] | None = None, *more: str) -> tuple[int, dict[str, Any]]:
    """``preflight -- LINE`` on a test host."""
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr("ascend_doctor.cli.preflight.chosen_host", lambda *_: host(name, changes))
        only = [word for area in AREAS for word in ("--only", area)]
        arguments = ["--snapshot", "x", "--format", "json", *only, *more, "--", *shlex.split(line)]
        done = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert done.exception is None, done.exception
    run: dict[str, Any] = json.loads(done.output)
    SCHEMA.validate(run)
    return int(done.return_value), run


def grave(run: dict[str, Any]) -> dict[str, str]:
    """Errors and warnings that nothing else explains."""
    return {
        f["check"]: f["severity"]
        for f in run["findings"]
        if f["verdict"] == "fail" and f["severity"] != "info" and not f["because"]
    }


def found_of(run: dict[str, Any], check: str) -> str:
    return str(next(f["found"]["en"] for f in run["findings"] if f["check"] == check and f["verdict"] == "fail"))


V31 = (
    "--quantization ascend --seed 1024 --served-model-name deepseek_v3 --enable-expert-parallel --max-num-seqs 16"
    " --max-model-len 16384 --max-num-batched-tokens 4096 --trust-remote-code --no-enable-prefix-caching"
    ' --gpu-memory-utilization 0.92 --speculative-config \'{"num_speculative_tokens": 3, "method": "mtp"}\''
    ' --compilation-config \'{"cudagraph_mode": "FULL_DECODE_ONLY"}\''
)
HEALTHY = [
    ("a3-healthy", f"vllm serve DeepSeek-V3.1-w8a8-mtp-QuaRot --port 8015 -dp 4 -tp 4 {V31}"),
    ("a2-healthy", f"HCCL_BUFFSIZE=200 vllm serve DeepSeek-V3.1-w8a8 --port 8004 -dp 4 -dpl 2 -tp 4 {V31}"),
    (
        "a2-healthy",
        f"HCCL_BUFFSIZE=200 vllm serve DeepSeek-V3.1-w8a8 --headless --port 8004 --data-parallel-size 4"
        f" --data-parallel-size-local 2 --data-parallel-start-rank 2 --tensor-parallel-size 4 {V31}",
    ),
    (
        "310p-healthy",
        "vllm serve Eco-Tech/Qwen3-8B-w8a8s-310 --host 127.0.0.1 --port 8080 --tensor-parallel-size 1"
        " --gpu_memory_utilization 0.90 --served_model_name qwen --dtype float16 --quantization ascend"
        " --max-model-len 16384",
    ),
    (
        "a3-healthy",
        "VLLM_USE_V1=1 ASCEND_RT_VISIBLE_DEVICES=0,1,2,3 TASK_QUEUE_ENABLE=1 HCCL_OP_EXPANSION_MODE=AIV"
        " vllm serve Qwen3-32B-W8A8 --served-model-name qwen3 --trust-remote-code --async-scheduling"
        " --quantization ascend --distributed-executor-backend mp --tensor-parallel-size 4 --max-model-len 5500"
        " --max-num-batched-tokens 40960 --port 8113 --block-size 128 --gpu-memory-utilization 0.9",
    ),
    (
        "a2-healthy",
        "HCCL_BUFFSIZE=512 HCCL_OP_EXPANSION_MODE=AIV vllm serve vllm-ascend/Qwen3-235B-A22B-w8a8 --port 8000"
        " --tensor-parallel-size 8 --data-parallel-size 1 --quantization ascend --max-num-seqs 4"
        " --max-model-len 133000 --max-num-batched-tokens 8096 --enable-expert-parallel --trust-remote-code"
        " --gpu-memory-utilization 0.95 --async-scheduling --rope_scaling"
        ' \'{"rope_type":"yarn","factor":4,"original_max_position_embeddings":32768}\'',
    ),
    (
        "a2-healthy",
        "HCCL_BUFFSIZE=1024 TASK_QUEUE_ENABLE=1 vllm serve vllm-ascend/Qwen3-235B-A22B --port 8000"
        " --data-parallel-size 2 --api-server-count 2 --data-parallel-size-local 1 --data-parallel-rpc-port 13389"
        " --tensor-parallel-size 8 --enable-expert-parallel --max-num-seqs 16 --max-model-len 32768"
        " --max-num-batched-tokens 4096 --trust-remote-code --async-scheduling --gpu-memory-utilization 0.9",
    ),
    ("a2-healthy", "vllm serve Qwen/Qwen3-30B-A3B --tensor-parallel-size 4 --enable_expert_parallel"),
    (
        "a2-healthy",
        "OMP_NUM_THREADS=10 HCCL_BUFFSIZE=1024 VLLM_ASCEND_ENABLE_FLASHCOMM1=1 TASK_QUEUE_ENABLE=1"
        " vllm serve DeepSeek-V4-Flash-w8a8-mtp --max-model-len 133120 --max-num-batched-tokens 8192"
        " --gpu-memory-utilization 0.9 --max-num-seqs 32 --data-parallel-size 1 --tensor-parallel-size 8"
        " --enable-expert-parallel --tokenizer-mode deepseek_v4 --safetensors-load-strategy prefetch"
        " --no-enable-prefix-caching --quantization ascend --port 8900 --block-size 128 --async-scheduling",
    ),
    (
        "a3-healthy",
        "OMP_NUM_THREADS=10 HCCL_BUFFSIZE=1024 vllm serve DeepSeek-V4-Flash-w8a8-mtp --max-model-len 1048576"
        " --max-num-batched-tokens 10240 --gpu-memory-utilization 0.9 --api-server-count 1 --max-num-seqs 64"
        " --data-parallel-size 4 --tensor-parallel-size 4 --enable-expert-parallel --quantization ascend --port 8900",
    ),
    ("a3-healthy", f"vllm serve vllm-ascend/DeepSeek-R1-W8A8 --port 8000 -dp 4 -tp 4 {V31}"),
    ("a2-healthy", "vllm serve Qwen/Qwen2.5-7B-Instruct --max_model_len 26240"),
    (
        "a2-healthy",
        "VLLM_USE_MODELSCOPE=true PYTORCH_NPU_ALLOC_CONF=max_split_size_mb:256 vllm serve Qwen/Qwen3-8B"
        ' --additional-config \'{"enable_cpu_binding": true, "ascend_scheduler_config": {"enabled": false}}\''
        ' --compilation-config \'{"cudagraph_capture_sizes": [1, 2, 4, 8], "cudagraph_mode": "FULL_DECODE_ONLY"}\'',
    ),
    (
        "a2-healthy",
        "bash -c 'export HCCL_IF_IP=192.0.2.17; export GLOO_SOCKET_IFNAME=eth0; export HCCL_BUFFSIZE=256;"
        " vllm serve Qwen/Qwen3-30B-A3B --host 0.0.0.0 --port 7100 --tensor-parallel-size 4 --enforce-eager"
        ' --kv-transfer-config "{\\"kv_connector\\": \\"MooncakeConnectorV1\\", \\"kv_role\\": \\"kv_producer\\"}"\'',
    ),
    (
        "a3-healthy",
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp-size 4 --device npu"
        " --attention-backend ascend --mem-fraction-static 0.8 --host 0.0.0.0 --port 30000 --trust-remote-code",
    ),
    (
        "a2-healthy",
        "numactl --cpunodebind=4,6 --membind=4,6 python -m vllm.entrypoints.openai.api_server"
        " --model Qwen/Qwen3-8B -tp 2 --max-num-seqs 32 --served-model-name qwen3",
    ),
    (
        "310p-healthy",
        "atc --model=resnet50.onnx --framework=5 --output=resnet50 --input_format=NCHW"
        " --input_shape=actual_input_1:1,3,224,224 --soc_version=Ascend310P3 --log=error",
    ),
]
"""Lines of vllm-ascend's tutorials (DeepSeek-V3.1, R1, V4-Flash, Qwen3, Atlas 300I), models by name; SGLang and ATC."""


@pytest.mark.parametrize(("name", "line"), HEALTHY)
def test_a_launch_of_the_tutorials_has_no_finding(name: str, line: str) -> None:
    code, run = judged(name, line)
    assert grave(run) == {}
    assert code in (0, 3)


WITH_32_GIB = "a2-32g-mem-size-28000"


def npu_table(name: str) -> str:
    answer = host(WITH_32_GIB).run(["npu-smi", "info"])
    assert not isinstance(answer.value, Missing)
    return answer.value.stdout.decode().replace("910B4", f"{name:5}")


@pytest.mark.parametrize(
    ("case", "name", "changes", "line", "check", "severity"),
    [
        ("negative-kv-cache-32g-vnpu", WITH_32_GIB, {"env": {"ASCEND_MEM_SIZE": None}},
         "vllm serve /models/Qwen3-14B/ --max-model-len 4096 --enforce-eager", "budget.fits", "error"),
        ("hbm-occupied-at-start", "a2-hbm-held", {}, "vllm serve Qwen/Qwen3-8B", "budget.fits", "error"),
        ("w8a8-float16-scale-dtype", "a2-healthy", {},
         "vllm serve Qwen3-32B-W8A8 -tp 4 --quantization ascend --dtype float16", "launch.scales", "warning"),
        ("soc-version-910b1-build-on-310p3", "310p-healthy", {}, "atc --soc_version=Ascend910B1 --framework=5",
         "launch.soc-version", "warning"),
        ("visible-devices-zero-assert", "a2-healthy", {}, "ASCEND_RT_VISIBLE_DEVICES=0,1 vllm serve M -tp 8",
         "launch.devices", "error"),
        ("ray-dp-visible-devices-range", "a2-healthy", {}, "vllm serve M -tp 4 -dp 4", "launch.devices", "error"),
        ("mem-size", WITH_32_GIB, {}, "vllm serve Qwen/Qwen3-8B", "launch.ascend-mem-size", "error"),
        ("mem-size", WITH_32_GIB, {"env": {"ASCEND_MEM_SIZE": None}}, "ASCEND_MEM_SIZE=28000 vllm serve Qwen/Qwen3-8B",
         "launch.ascend-mem-size", "error"),
        ("guide", "a2-healthy", {},
         "numactl --cpunodebind=4,6 --membind=4,6 --physcpubind=96-143 vllm serve Qwen/Qwen3-8B",
         "numactl.one-cpu-bind", "error"),
        ("port", "a2-healthy", {}, "vllm serve Qwen/Qwen3-8B --port 22", "launch.port", "error"),
        ("heads", "a2-healthy", {}, "vllm serve Qwen/Qwen3-8B -tp 6", "budget.even", "error"),
        ("context", "a2-healthy", {}, "vllm serve Qwen/Qwen3-8B --max-model-len 100000", "budget.context", "error"),
    ],
)  # fmt: skip
def test_a_case_gets_its_finding(
    case: str, name: str, changes: dict[str, Any], line: str, check: str, severity: str
) -> None:
    code, run = judged(name, line, changes)
    assert grave(run).get(check) == severity, grave(run)
    assert code == 1 or severity == "warning"


def test_both_numbers_of_ascend_mem_size_are_told() -> None:
    _, run = judged(WITH_32_GIB, "vllm serve Qwen/Qwen3-8B")
    assert "28000" in found_of(run, "launch.ascend-mem-size")
    assert "32768" in found_of(run, "launch.ascend-mem-size")
    assert "memory.ascend-mem-size" not in {f["check"] for f in run["findings"]}


def test_bfloat16_is_told_where_the_chip_has_none() -> None:
    words = {"architectures": ["Qwen3ForCausalLM"], "torch_dtype": "bfloat16"}
    changes = {
        "env": {"ASCEND_MEM_SIZE": None},
        "files": {"/models/m/config.json": json.dumps(words)},
        "commands": [{"argv": ["npu-smi", "info"], "rc": 0, "stdout": npu_table("910A")}],
    }
    _, run = judged("a2-healthy", "vllm serve /models/m --tensor-parallel-size 8", changes)
    assert grave(run)["launch.number-type"] == "error"
    _, run = judged("a2-healthy", "vllm serve /models/m --dtype half --tensor-parallel-size 8", changes)
    assert "launch.number-type" not in grave(run)


def test_a_model_with_latent_attention_and_few_heads_gets_a_note() -> None:
    words = {"architectures": ["DeepseekV2ForCausalLM"], "kv_lora_rank": 512, "num_attention_heads": 16}
    changes = {"files": {"/models/lite/config.json": json.dumps(words)}}
    _, run = judged("a2-healthy", "vllm serve /models/lite -tp 2", changes)
    assert "8 on each rank" in found_of(run, "launch.latent-heads")
    _, run = judged("a2-healthy", "vllm serve /models/lite -tp 2 --enforce-eager", changes)
    assert not [f for f in run["findings"] if f["check"] == "launch.latent-heads" and f["verdict"] == "fail"]


def test_buffers_that_may_not_fit_beside_the_share_get_a_note() -> None:
    line = "vllm serve Qwen3-235B-A22B-W8A8 -tp 8 --enable-expert-parallel --gpu-memory-utilization 0.95"
    _, run = judged("a2-healthy", f"HCCL_BUFFSIZE=2048 {line} --max-model-len 32768")
    assert "3 communicators x 2 x 2048 MiB" in found_of(run, "launch.buffers")
    _, run = judged("a2-healthy", f"HCCL_BUFFSIZE=512 {line} --max-model-len 32768")
    assert not [f for f in run["findings"] if f["check"] == "launch.buffers" and f["verdict"] == "fail"]


def test_a_description_under_another_name_is_found() -> None:
    changes = {"files": {f"/models/q/{n}": "{}" for n in ("config.json", "quant_model_description_w8a8.json")}}
    code, run = judged("a2-healthy", "vllm serve /models/q --quantization ascend", changes)
    assert code == 1
    assert "quant_model_description_w8a8.json" in found_of(run, "launch.description")


def test_a_folder_that_is_not_there_is_found() -> None:
    code, run = judged("a2-healthy", "vllm serve /models/nowhere")
    assert (code, grave(run)["launch.model-folder"]) == (1, "error")


def test_where_nothing_ascend_is_there_is_one_error() -> None:
    _, run = judged("bare-linux", "vllm serve Qwen/Qwen3-8B -tp 8")
    assert grave(run) == {"ascend.present": "error"}


def mindie(
    devices: list[int], ranks: int, longest: tuple[int, int, int], memory: int, **vision: object
) -> dict[str, Any]:
    """Changes of a host: MindIE's config.json, and that of a model."""
    document = {
        "ServerConfig": {"port": 1025},
        "BackendConfig": {
            "npuDeviceIds": [devices],
            "ModelDeployConfig": {
                "maxSeqLen": longest[0],
                "maxInputTokenLen": longest[1],
                "ModelConfig": [{"worldSize": ranks, "npuMemSize": memory, "modelWeightPath": "/models/m"}],
            },
            "ScheduleConfig": {"maxPrefillTokens": longest[2]},
        },
    }
    place = "/usr/local/Ascend/mindie/latest/mindie-service/conf/config.json"
    return {"files": {place: json.dumps(document), "/models/m/config.json": json.dumps(vision)}}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (mindie([0, 1, 2, 3], 4, (2560, 2048, 8192), -1), {}),
        (mindie([0, 1], 2, (8192, 8192, 8192), 8, vision_config={}), {}),
        (mindie([0, 1, 2, 3], 8, (2560, 2048, 8192), -1), {"mindie-config.devices": "error"}),
        (mindie([7, 8], 2, (2560, 2048, 8192), -1), {"mindie-config.devices": "error"}),
        (mindie([0], 1, (2048, 2560, 8192), -1), {"mindie-config.lengths": "warning"}),
        (mindie([0], 1, (16384, 8192, 4096), -1), {"mindie-config.lengths": "warning"}),
        (mindie([0], 1, (8192, 8192, 8192), -1, vision_config={}), {"mindie-config.vision-memory": "warning"}),
    ],
)
def test_the_numbers_of_mindies_config_agree_or_it_is_said(changes: dict[str, Any], found: dict[str, str]) -> None:
    _, run = judged("a2-healthy", "mindieservice_daemon", changes)
    assert grave(run) == found


@given(st.binary(max_size=200))
def test_any_bytes_of_mindies_config_are_read_or_missing(data: bytes) -> None:
    assert isinstance(words(data), (Missing, Shown))


LAWFUL = [
    ("a2-healthy", "ASCEND_MEM_SIZE=28000 vllm serve /models/q --quantization ascend --dtype float16 -tp 16 --port 22"),
    ("310p-healthy", "atc --soc_version=Ascend910B1"),
    ("310p-healthy", "vllm serve /models/q -tp 2"),
    ("a2-healthy", "mindieservice_daemon"),
]


@pytest.mark.parametrize(("name", "line"), LAWFUL)
def test_a_fact_removed_leads_only_to_unknown_or_skip(name: str, line: str) -> None:
    words = {"torch_dtype": "bfloat16", "kv_lora_rank": 512, "num_attention_heads": 16, "transformers_version": "9.0.0"}
    changes = mindie([0, 9], 4, (2048, 2560, 1024), -1, vision_config={})
    changes["files"].update({"/models/q/config.json": json.dumps(words), "/models/q/model.safetensors": "x"})
    here, asked = host(name, changes), command_of(shlex.split(line))
    assert asked is not None
    folders = [data_folder("checks"), data_folder("checks") / "on-request"]
    checks = load_checks(folders, lambda one: one.startswith(("launch.", "mindie-config.")))
    situation = Situation(here, [data_folder("rules")], given=given_areas(here, asked))
    areas = sorted({area for check in checks for area in check.areas})
    situation.collect(areas)
    whole = {(f.check, f.subject): f.verdict for f in verdicts(checks, situation)}
    assert "fail" in whole.values()
    gone = Missing(Reason.NOT_COLLECTED, "removed by the test")
    for area in ("launch", "checkpoint", "mindie_config", "ports"):
        facts = situation.facts(area)
        for path in list(paths(facts, area)):
            situation.replace_facts(area, without(facts, area, path, gone))
            for found in verdicts(checks, situation):
                before = whole.get((found.check, found.subject))
                assert found.verdict in ("unknown", "skip", before), f"{path} removed: {found.check} {found.verdict}"
            situation.replace_facts(area, facts)
    assert not situation.broken


# The folder of a model


def shard(data: int, wanted: int) -> bytes:
    text = json.dumps({"w": {"dtype": "BF16", "shape": [wanted // 2], "data_offsets": [0, wanted]}}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(data)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4976698672\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (shard(64, 64), ""),
        (shard(63, 64), "cut"),
        (shard(64, 64)[:20], "cut"),
        (b"", "cut"),
        (POINTER, "pointer"),
        (b"PK\x03\x04 something else altogether", "broken"),
        (None, "missing"),
    ],
)
def test_a_weight_file_is_whole_or_it_is_said_why_not(tmp_path: Path, content: bytes | None, problem: str) -> None:
    names = ["model-1.safetensors", "model-2.safetensors"]
    (tmp_path / names[0]).write_bytes(shard(32, 32))
    if content is not None:
        (tmp_path / names[1]).write_bytes(content)
    index = {"weight_map": {"a": names[0], "b": names[1]}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (area,) = checkpoint(LiveHost(KnownEnv()), str(tmp_path), None)
    assert [one.problem for one in area.facts.shards] == ["", problem]


def doctor(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ascend_doctor", *arguments]


def test_bad_weight_files_are_told_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model-00003-of-00005.safetensors").write_bytes(POINTER)
    done = subprocess.run(
        doctor("preflight", "--only", "launch.*", "--format", "json", "--", "vllm", "serve", "."),
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "model-00003-of-00005.safetensors" in found_of(json.loads(done.stdout), "launch.weight-files")


# --exec


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(doctor("preflight", *arguments), cwd=CHECKOUT, capture_output=True, text=True, check=False)


PASSES = ("--exec", "--only", "kernel-log.*", "--fail-on", "never")


def test_the_command_takes_the_place_of_the_gate() -> None:
    done = started(*PASSES, "--", "GREETING=hello", "sh", "-c", "echo $GREETING; exit 7")
    assert (done.returncode, done.stdout) == (7, "hello\n")
    assert done.stderr


def test_a_gate_that_fails_starts_nothing() -> None:
    done = started("--exec", "--only", "ascend.present", "--", "sh", "-c", "echo started")
    if done.returncode == 1:  # nothing Ascend here
        assert done.stdout == ""


def test_signals_reach_the_command() -> None:
    with subprocess.Popen(
        doctor("preflight", *PASSES, "--quiet", "--", "sh", "-c", "echo up; exec sleep 60"),
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


def test_a_broken_pipe_ends_the_command_as_it_would_alone() -> None:
    script = "trap 'exit 9' USR1; grep SigIgn /proc/self/status"
    done = started(*PASSES, "--", "sh", "-c", script)
    ignored = int(done.stdout.split()[1], 16)
    assert not ignored & 1 << (signal.SIGPIPE - 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--exec"],
        ["--exec", "--snapshot", str(FOLDER / "a2-healthy"), "--", "true"],
        [*PASSES, "--", "no-such-program-anywhere"],
        [*PASSES, "--", "A=1"],
    ],
)
def test_what_cannot_be_started_is_a_bad_call(arguments: list[str]) -> None:
    done = started(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--exec" in done.stderr
