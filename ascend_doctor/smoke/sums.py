"""The memory that a smoke run takes, part by part, before it is started: on the device, and on the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from ascend_doctor.children.deepseek_v4.config import Config
from ascend_doctor.children.deepseek_v4.shapes import (
    activation_bytes,
    cache_bytes,
    largest_draw,
    table_bytes,
    weight_bytes,
)
from ascend_doctor.knowledge.limits import Limits

DTYPES = ("bf16", "fp16", "fp32")
WARMUP, TIMED, ITERATIONS = 5, 50, 12
"""Tokens before those that are timed, tokens that are timed, and iterations over which memory must not grow."""
MIB, GIB = 1 << 20, 1 << 30


def length_of(seq: int, decode: int) -> int:
    """Positions that the caches have."""
    return seq + max(decode, WARMUP + TIMED)


def device_sum(config: Config, seq: int, decode: int, dtype: str, limits: Limits) -> dict[str, int]:
    """Part -> bytes on an NPU. Weights, caches and tables are exact, activations a bound, the runtime an estimate."""
    length = length_of(seq, decode)
    return {
        "weights": weight_bytes(config, dtype),
        "caches": cache_bytes(config, 1, length, dtype),
        "tables": table_bytes(config, length),
        "activations": activation_bytes(config, 1, seq + decode, length, dtype),
        "runtime": int(limits["memory.runtime_reserve_mib"]) * MIB,
    }


def host_sum(config: Config, seq: int, decode: int, dtype: str, limits: Limits) -> dict[str, int]:
    """Part -> bytes of the host: the weights as they are drawn, once more in fp32, and the golden run over them."""
    length = length_of(seq, decode)
    return {
        "weights": weight_bytes(config, dtype),
        "golden_weights": weight_bytes(config, "fp32"),
        "caches": cache_bytes(config, 1, length, dtype) + cache_bytes(config, 1, length, "fp32"),
        "tables": 2 * table_bytes(config, length),
        "activations": max(largest_draw(config), activation_bytes(config, 1, seq + decode, length, "fp32")),
        "runtime": int(limits["smoke.torch_mib"]) * MIB,
    }


def predicted(config: Config, seq: int, decode: int) -> dict[str, dict[str, int]]:
    """What the child compares its tensors with, in whatever dtype the device has."""
    length = length_of(seq, decode)
    return {
        "weights": {dtype: weight_bytes(config, dtype) for dtype in DTYPES},
        "caches": {dtype: cache_bytes(config, 1, length, dtype) for dtype in DTYPES},
    }


def fp32_gib(config: Config) -> float:
    return weight_bytes(config, "fp32") / GIB


def as_json(config: Config) -> dict[str, object]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(config).items()}


def told(parts: Mapping[str, int]) -> str:
    """``weights 452 + caches 5 + ... = 1890 MiB``."""
    sizes = " + ".join(f"{name.replace('_', ' ')} {-(-size // MIB)}" for name, size in parts.items())
    return f"{sizes} = {-(-sum(parts.values()) // MIB)} MiB"
