"""One token after the other over caches that are written in place: against all positions at once, and once more."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from ..deepseek_v4.caches import Caches
from ..deepseek_v4.routing import Routing
from .bench import Bench, Measures
from .compare import compared, same
from .forced import forced


def run(bench: Bench) -> bool:
    for name in ("golden", "model", "caches"):
        bench.need(name, "forced")
    logits: list[Tensor] = []
    passed = bench.steps.run("decode", "cached", lambda: cached(bench, logits))
    return passed and bench.steps.run("decode", "repeated", lambda: repeated(bench, logits))


def decoded(bench: Bench) -> Tensor:
    """(steps, vocabulary), with the golden run's choices."""
    golden, model, caches = (bench.need(name, "forced") for name in ("golden", "model", "caches"))
    caches.reset()
    routing, tokens = Routing.replaying(golden.choices), bench.tokens.to(bench.device)
    model.forward(tokens[:, : bench.seq], caches, 0, routing, last_only=True)
    bench.synchronize()
    rows = []
    for position in range(bench.seq, bench.seq + bench.decode):
        begun = time.perf_counter()
        rows.append(model.forward(tokens[:, position : position + 1], caches, position, routing)[0, -1].clone())
        if bench.first_decode_ms is None:
            bench.synchronize()
            bench.first_decode_ms = 1000 * (time.perf_counter() - begun)
    bench.synchronize()
    return torch.stack(rows)


def cached(bench: Bench, logits: list[Tensor]) -> Measures:
    caches: Caches = bench.need("caches", "forced")
    before = caches.addresses()
    logits.append(decoded(bench))
    moved = [name for name, address in caches.addresses().items() if before.get(name) != address]
    kept = {name: tensor.clone() for name, tensor in caches.tensors().items()}
    at_once = forced(bench)
    name, row, apart = _worst_cache(kept, caches)
    return {
        **compared(at_once[bench.seq :], logits[0]),
        "moved": ", ".join(moved),
        "cache_rel_l2": apart,
        "cache": name,
        "cache_row": row,
        "steps": bench.decode,
    }


def repeated(bench: Bench, logits: list[Tensor]) -> Measures:
    first = logits[0] if logits else decoded(bench)
    return same(first, decoded(bench))


def _worst_cache(kept: dict[str, Tensor], caches: Caches) -> tuple[str, int, float]:
    """Of what both ways left in the caches: the tensor, its row, and how far that row is off."""
    worst = ("", 0, 0.0)
    for name, tensor in caches.tensors().items():
        if not name.endswith((".window", ".entries")) or not tensor.numel():
            continue
        ours, theirs = tensor[0].float().cpu(), kept[name][0].float().cpu()
        scale = ours.norm(dim=-1).mean().clamp_min(1e-20)
        apart = (theirs - ours).norm(dim=-1) / scale
        apart = torch.nan_to_num(apart, nan=float("inf"))
        if float(apart.max()) >= worst[2]:
            worst = (name, int(apart.argmax()), float(apart.max()))
    return worst
