"""The sum of a checkpoint of 200 shards, and the lint of a launch: what they cost beyond a preflight.

``python benchmarks/memory.py``: in bare interpreters; exit code 1 where a figure is over its limit. Runs alternate, so
that a machine whose speed drifts slows all of them; medians are compared.
"""

from __future__ import annotations

import json
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROUNDS = 15
SHARDS = 200
LAYERS, EXPERTS = 61, 256
LIMIT = 15.0
BARE, PREFLIGHT = "bare python -c pass", "preflight"
SNAPSHOT = Path(__file__).parent.parent / "tests" / "hosts" / "a2-healthy"
CONFIG = {
    "model_type": "deepseek_v3", "num_hidden_layers": LAYERS, "hidden_size": 7168, "vocab_size": 129280,
    "num_attention_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "intermediate_size": 18432,
    "max_position_embeddings": 163840,
}  # fmt: skip


def checkpoint(folder: Path) -> None:
    """Headers like those of a model of 671e9 parameters; the data are holes."""
    names = ["model.embed_tokens.weight", "lm_head.weight"]
    for layer in range(LAYERS):
        names += [f"model.layers.{layer}.self_attn.{part}.weight" for part in ("q_a_proj", "q_b_proj", "o_proj")]
        if layer >= 3:
            experts = range(EXPERTS)
            parts = ("gate_proj", "up_proj", "down_proj")
            names += [f"model.layers.{layer}.mlp.experts.{e}.{part}.weight" for e in experts for part in parts]
    weight_map: dict[str, str] = {}
    for number in range(SHARDS):
        file = f"model-{number + 1:05d}-of-{SHARDS:05d}.safetensors"
        part = names[number * len(names) // SHARDS : (number + 1) * len(names) // SHARDS]
        text = json.dumps(
            {
                name: {"dtype": "F8_E4M3", "shape": [2048, 7168], "data_offsets": [at * 14680064, (at + 1) * 14680064]}
                for at, name in enumerate(part)
            }
        ).encode()
        (folder / file).write_bytes(struct.pack("<Q", len(text)) + text)
        weight_map.update(dict.fromkeys(part, file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "config.json").write_text(json.dumps(CONFIG))


def commands(folder: Path) -> Mapping[str, list[str]]:
    doctor = [sys.executable, "-m", "ascend_doctor"]
    memory = [*doctor, "memory", "--card", "64GB", "--tp", "16", "--ep", "16", "--format", "json", "--model"]
    line = "numactl --cpunodebind=4,6 --membind=4,6 --physcpubind=96-143 vllm serve x"
    return {
        BARE: [sys.executable, "-c", "pass"],
        PREFLIGHT: [*doctor, "preflight", "--snapshot", str(SNAPSHOT), "--format", "json"],
        f"memory of {SHARDS} shards": [*memory, str(folder)],
        "memory by name": [*memory, "DeepSeek-V4-Pro"],
        "numa lint": [*doctor, "numa", "lint", "--snapshot", str(SNAPSHOT), "--format", "json", line],
        "lint of a launch": [
            *doctor,
            "preflight",
            "--snapshot",
            str(SNAPSHOT),
            "--format",
            "json",
            "--",
            *line.split()[:4],
            "vllm",
            "serve",
            "Qwen/Qwen3-8B",
            "--tensor-parallel-size",
            "2",
            "--max-model-len",
            "32768",
        ],
        "numa plan": [*doctor, "numa", "plan", "--snapshot", str(SNAPSHOT), "--format", "json"],
    }


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoint(folder)
        chosen = commands(folder)
        times: dict[str, list[float]] = {label: [] for label in chosen}
        for number in range(ROUNDS + 1):
            for label, command in chosen.items():
                begun = time.perf_counter()
                subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
                if number:  # the first round warms the caches
                    times[label].append(time.perf_counter() - begun)
    unit, whole = (statistics.median(times[label]) for label in (BARE, PREFLIGHT))
    wrong = 0
    for label, measured in times.items():
        seconds = statistics.median(measured)
        beyond = (seconds - whole) / unit
        line = f"{label:24} {seconds * 1000:7.1f} ms  {seconds / unit:6.2f} times bare"
        if label not in (BARE, PREFLIGHT):
            over = beyond > LIMIT
            wrong |= over
            line += f", {beyond:.2f} beyond preflight (limit {LIMIT:g}){'  OVER' if over else ''}"
        print(line)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
