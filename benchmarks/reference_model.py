"""The reference model on the CPU: seconds and memory of each size, and that no more memory is taken than was predicted.

    python benchmarks/reference_model.py [SIZE...]    # an interpreter with torch; default: tiny and default

Each size and number format is a process of its own with one thread. Peak: what the process held at most, above what
torch alone takes; predicted: weights, caches, tables, and the larger of the largest drawn tensor and a pass.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEED, MIB = 7, 1 << 20
OVER_MIB = 128.0
"""What the allocator and the matrix library may keep beside it: oneDNN takes 100 MiB for bf16 and fp16."""


def child(name: str, dtype: str) -> None:
    """Prints the figures of one run as JSON."""
    import torch

    from ascend_doctor.children.deepseek_v4 import shapes
    from ascend_doctor.children.deepseek_v4.caches import Caches
    from ascend_doctor.children.deepseek_v4.model import Model
    from ascend_doctor.children.deepseek_v4.weights import seeded_weights, weights_digest
    from ascend_doctor.knowledge.smoke_sizes import load

    def timed(call):  # type: ignore[no-untyped-def]
        begun = time.perf_counter()
        made = call()
        return made, time.perf_counter() - begun

    torch.set_num_threads(1)
    torch.mm(torch.ones(512, 512), torch.ones(512, 512))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = load([ROOT / "rules"]).named(name)
    config, length = size.config, size.length
    weights, seeding = timed(lambda: seeded_weights(config, SEED, dtype))
    _, digesting = timed(lambda: weights_digest(weights))
    model, caches = Model(config, weights, length), Caches(config, 1, length, dtype)
    tokens = torch.randint(0, config.vocabulary, (1, length), generator=torch.Generator().manual_seed(SEED))
    prompts = [timed(lambda: model.forward(tokens[:, : size.sequence], caches, 0))[1] for _ in range(3)]
    steps = [
        timed(lambda at=at: model.forward(tokens[:, at : at + 1], caches, at))[1] for at in range(size.sequence, length)
    ]
    held = shapes.weight_bytes(config, dtype) + shapes.cache_bytes(config, 1, length, dtype)
    most = max(shapes.largest_draw(config), shapes.activation_bytes(config, 1, size.sequence, size.sequence, dtype))
    figures = {
        "seed_s": seeding,
        "digest_s": digesting,
        "first_prompt_s": prompts[0],
        "prompt_s": min(prompts),
        "step_ms": 1e3 * statistics.median(steps),
        "slowest_step_ms": 1e3 * max(steps),
        "predicted_mib": (held + shapes.table_bytes(config, length) + most) / MIB,
        "peak_mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }
    print(json.dumps(figures))


def main(names: list[str]) -> int:
    over = 0
    for name in names:
        for dtype in ("fp32", "bf16", "fp16"):
            command = [sys.executable, __file__, "--child", name, dtype]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            answer = subprocess.run(command, capture_output=True, env=environment, check=True).stdout
            figures = json.loads(answer)
            over += figures["peak_mib"] > figures["predicted_mib"] + OVER_MIB
            print(f"{name} {dtype}:", ", ".join(f"{word} {value:.3g}" for word, value in figures.items()))
    print("more memory than predicted" if over else "no more memory than predicted")
    return 1 if over else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:] or ["tiny", "default"]))
