"""Failures that people reported, as a launch would meet them: each gets its finding before anything is started.

The figures are those of the reports (their addresses stand in the sources of the checks).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hosts import FOLDER, expectations, host
from test_launch import found_of, grave, judged, npu_table

from ascend_doctor.engine.asked import asked
from ascend_doctor.engine.checks import keeps, load_checks
from ascend_doctor.engine.run import judged as verdicts
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.tree import paths, without
from ascend_doctor.host import Missing, Reason
from ascend_doctor.host.delta import asked_of
from ascend_doctor.knowledge.environment import known_env
from ascend_doctor.paths import data_folder

KEPT_AS_HOSTS = {
    "bound-together": "binding.apart",  # two single-card services took the same cores
    "bound-nowhere": "binding.near-npu",  # decode of an 8B model, 0-191 allowed, varies from run to run
    "bound-memory-not": "binding.memory-near",  # CPU binding is active, memory stays on the far node
    "launch-binding-without-migratepages": "launch.cpu-binding",
    "launch-npus-held": "launch.shared-npus",  # prefill and decode on one host, port 16666
    "launch-built-for-a3": "launch.built-for",  # an image for other chips
    "launch-llama-on-910": "launch.chip",
    "launch-mindie-wrong": "mindie-config.options",  # --enable-reasoning
    "launch-mindie-vision": "mindie-config.vision-memory",
    "launch-description-renamed": "launch.description",
    "launch-quantised-undescribed": "launch.described",  # KeyError of q_proj
    "launch-float16-quantised": "launch.scales",
    "launch-weights-pointer": "launch.weight-files",  # HeaderTooLarge
    "310p-env-copied-from-a2": "env.settings-fit-chip",
    "310p-operators-of-910b": "compat.operators",
    "a2-hccl-port-taken": "network.hccl-ports-free",  # EJ0003
    "a2-hccl-port-over": "network.hccl-ports-free",
    "a2-rank-table-wrong": "rank-table.this-host",  # two pods on one host are two servers
    "a2-shm-9g": "disks.shared-memory",  # Ray's object store
}


@pytest.mark.parametrize(("name", "check"), KEPT_AS_HOSTS.items())
def test_a_case_that_is_a_host_expects_its_finding(name: str, check: str) -> None:
    asked = asked_of(FOLDER / name)
    assert asked or not name.startswith(("launch-", "bound-"))
    assert check in {entry["check"] for entry in expectations(name)}


WORDS = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "torch_dtype": "bfloat16"}
FIRST_GENERATION = {
    "env": {"ASCEND_MEM_SIZE": None},
    "files": {"/models/m/config.json": json.dumps(WORDS)},
    "commands": [{"argv": ["npu-smi", "info"], "rc": 0, "stdout": npu_table("910A")}],
}
LATENT = {"kv_lora_rank": 512, "num_attention_heads": 128, "architectures": ["DeepseekV3ForCausalLM"]}
DP4_TP8 = "HCCL_BUFFSIZE=1024 vllm serve vllm-ascend/DeepSeek-V3.1-W8A8 -tp 8 -dp 4 -dpl 1 --enable-expert-parallel"


@pytest.mark.parametrize(
    ("case", "name", "changes", "line", "check"),
    [
        ("el0004-hccl-buffer-2g", "a2-healthy", {},
         "HCCL_BUFFSIZE=1024 vllm serve DeepSeek-V3.1-W8A8 -tp 8 -dp 4 -dpl 1 --enable-expert-parallel"
         " --gpu-memory-utilization 0.95 --max-model-len 8192", "launch.buffers"),
        ("bf16-on-910a", "a2-healthy", FIRST_GENERATION, "vllm serve /models/m --tensor-parallel-size 8",
         "launch.number-type"),
        ("mla-heads-per-tp-graph-mode", "a3-healthy", {"files": {"/models/v2/config.json": json.dumps(LATENT)}},
         "vllm serve /models/v2 --tensor-parallel-size 16", "launch.latent-heads"),
        ("ray-dp-visible-devices-range", "a2-healthy", {},
         "ASCEND_RT_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 vllm serve M -tp 4 -dp 4", "launch.devices"),
        ("visible-devices-zero-assert", "a2-container-healthy", {}, "vllm serve M -tp 8", "launch.devices"),
        ("shm-15g-hccl-hang-large-ep", "a2-healthy",
         {"entries": [{"path": "/dev/shm", "statvfs": {"size": 15 << 30, "free": 15 << 30, "inodes_free": 100000}}]},
         DP4_TP8, "disks.shared-memory"),
        ("negative-kv-cache-32g-vnpu", "a2-32g-mem-size-28000", {"env": {"ASCEND_MEM_SIZE": None}},
         "vllm serve /models/Qwen3-14B/ --max-model-len 4096 --enforce-eager", "budget.fits"),
        ("hbm-occupied-at-start", "a2-hbm-held", {}, "vllm serve Qwen/Qwen3-8B", "budget.fits"),
    ],
)  # fmt: skip
def test_a_case_that_is_a_launch_gets_its_finding(
    case: str, name: str, changes: dict[str, Any], line: str, check: str
) -> None:
    _, run = judged(name, line, changes)
    assert found_of(run, check), case


VARIANTS = [
    "vllm serve Qwen/Qwen3-8B --tensor-parallel-size=16",
    "vllm serve Qwen/Qwen3-8B --tensor_parallel_size 16",
    "vllm serve Qwen/Qwen3-8B -tp=16",
    "vllm serve --tensor-parallel-size 16 Qwen/Qwen3-8B",
    "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B -tp 16",
    "python -u -m vllm.entrypoints.cli.main serve Qwen/Qwen3-8B -tp 16",
    "env HCCL_BUFFSIZE=200 nohup vllm serve Qwen/Qwen3-8B -tp 16",
    "numactl --cpunodebind=4 --membind=4 vllm serve Qwen/Qwen3-8B -tp 16",
    "bash -c 'export HCCL_BUFFSIZE=200 && exec vllm serve Qwen/Qwen3-8B -tp 16'",
    "sh -c 'cd /tmp; nohup vllm serve Qwen/Qwen3-8B -tp 16 > log 2>&1 &'",
    "bash /data/start.sh",
    "/data/start.sh",
    "vllm serve --config /data/serve.yaml",
    "vllm serve Qwen/Qwen3-8B --config=/data/serve.yaml",
    "sudo -E env A=1 vllm serve Qwen/Qwen3-8B -tp 16",
    "conda run --no-capture-output -n vllm vllm serve Qwen/Qwen3-8B -tp 16",
    "torchrun --nproc_per_node=16 train.py",
    "python -m torch.distributed.run --nproc-per-node 16 --master_port 29501 train.py",
    "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp-size 16",
    "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 8 --dp-size 2",
    "sglang serve --model-path Qwen/Qwen3-8B --tensor-parallel-size 16",
]
START = "#!/bin/bash\nset -e\nsource /usr/local/Ascend/ascend-toolkit/set_env.sh\nTP=16\n" \
    "vllm serve Qwen/Qwen3-8B \\\n  --tensor-parallel-size ${TP} \\\n  --port 8000\n"  # fmt: skip
SERVE = "model: Qwen/Qwen3-8B\ntensor-parallel-size: 16\n"


@pytest.mark.parametrize("line", VARIANTS)
def test_sixteen_ranks_on_eight_npus_are_found_however_the_line_is_written(line: str) -> None:
    changes = {"files": {"/data/start.sh": START, "/data/serve.yaml": SERVE}}
    code, run = judged("a2-healthy", line, changes)
    assert (code, grave(run).get("launch.devices")) == (1, "error")


ODD = [
    "''", "--", "vllm", "vllm serve", "vllm serve --", "vllm serve -- M", "vllm serve -tp", "vllm serve M -tp -1",
    "vllm serve M -tp 99999999999999999999", "vllm serve M -pp 65536 -tp 65536", "vllm serve M --port -1",
    "vllm serve M --max-model-len 999999999999", "vllm serve '' -tp 1", "vllm serve / -tp 1", "vllm serve ~ -tp 1",
    "vllm serve ../../../etc -tp 1", "vllm serve M --config ''", "vllm serve M --config /dev/null", "bash -c", "bash",
    "bash -c ''", "bash -c '\"'", "bash -c 'bash -c \"bash -c vllm\"'", "numactl", "numactl -N", "numactl -N 4",
    "numactl --cpunodebind vllm serve M", "env", "env -i", "env -u", "A=1", "nohup", "atc", "atc --", "atc --model",
    "atc --framework", "mindieservice_daemon --config-file", "torchrun", "torchrun --nproc_per_node",
    "python -m", "python", "python -m vllm.entrypoints.openai.api_server", "timeout", "sudo", "conda run",
    "vllm serve M --additional-config '[[[[[[[['", "vllm serve M --gpu-memory-utilization nan", "vllm serve M -tp ４",
    "vllm serve $'\\x00'", "vllm serve \udcff -tp 2", "sglang serve", "vllm serve M --cpu-offload-gb x",
]  # fmt: skip


@pytest.mark.parametrize("line", ODD)
def test_an_odd_line_is_judged_without_a_fault_of_ours(line: str) -> None:
    code, run = judged("a2-healthy", line)
    assert code in (0, 1, 3)
    assert not [f for f in run["findings"] for m in f.get("missing", []) if "fault of ascend-doctor" in str(m)]


NOT_MEANT = [
    "sleep 10",
    "python3 train.py --tp 16",
    "bash -c 'echo vllm serve'",
    "echo vllm serve M -tp 16",
    "vllm bench",
]


@pytest.mark.parametrize("line", NOT_MEANT)
def test_a_line_that_starts_no_known_service_has_no_finding(line: str) -> None:
    _, run = judged("a2-healthy", line)
    assert grave(run) == {}


@pytest.mark.parametrize(
    "name",
    ["launch-mindie-wrong", "launch-memory-offload", "launch-npus-held", "launch-quantised-undescribed",
     "launch-atc-bfloat16", "launch-named-offline", "a2-rank-table-devices-wrong", "launch-port-of-hccl"],
)  # fmt: skip
def test_a_fact_removed_from_a_launch_leads_only_to_unknown_or_skip(name: str) -> None:
    call = asked(host(name), asked_of(FOLDER / name), name, known_env([data_folder("rules")]))
    folders = [data_folder("checks"), data_folder("checks") / "on-request"]
    checks = load_checks(folders, lambda one: keeps(one, call.requested, call.passed_over))
    situation = Situation(call.host, [data_folder("rules")], workers=1, given=call.given)
    areas = sorted({area for check in checks for area in check.areas})
    situation.collect(areas)
    whole = {(f.check, f.subject): f.verdict for f in verdicts(checks, situation)}
    assert "fail" in whole.values()
    gone = Missing(Reason.NOT_COLLECTED, "removed by the test")
    for area in OWN:
        facts = situation.facts(area)
        if isinstance(facts, Missing):
            continue
        for path in [path for path in paths(facts, area) if not path.startswith(("demand.wishes.", "demand.tensors["))][
            :80
        ]:
            situation.replace_facts(area, without(facts, area, path, gone))
            for found in verdicts(checks, situation):
                before = whole.get((found.check, found.subject))
                assert found.verdict in ("unknown", "skip", before), f"{path} removed: {found.check} {found.verdict}"
        situation.replace_facts(area, facts)
    assert not situation.broken


OWN = (
    "launch",
    "checkpoint",
    "demand",
    "mindie_config",
    "model_place",
    "rank_table",
    "ports",
    "atc",
    "cgroup",
    "memory",
)
