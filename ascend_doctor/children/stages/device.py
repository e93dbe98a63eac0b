"""The device: whether there is one, whether it can be opened, what it is, and how much memory it has."""

from __future__ import annotations

import os
import platform
import re
from typing import Callable

import torch

from .bench import Bench, Measures
from .protocol import Refused


def run(bench: Bench) -> bool:
    steps: tuple[tuple[str, Callable[[Bench], Measures]], ...]
    steps = (("count", _count), ("set", _set), ("properties", _properties), ("memory", _memory))
    if bench.kind == "cpu":
        steps = (("properties", _processor), ("memory", _host_memory))
    for name, function in steps:
        stage, step = bench.steps.again("device", name)
        if not bench.steps.run(stage, step, lambda function=function: function(bench)):  # type: ignore[misc]
            return False
    return True


def _count(bench: Bench) -> Measures:
    """Both are asked: the one counts what the driver shows, the other whether it can be used."""
    count, available = int(bench.backend.device_count()), bool(bench.backend.is_available())
    if count <= int(bench.plan["index"]):
        raise RuntimeError(f"device_count() is {count}, is_available() is {available}: there is no {bench.device}")
    return {"device_count": count, "is_available": available}


def _set(bench: Bench) -> Measures:
    bench.backend.set_device(bench.device)
    return {"current": int(bench.backend.current_device())}


def _properties(bench: Bench) -> Measures:
    found = bench.backend.get_device_properties(bench.device)
    names = ("total_memory", "cube_core_num", "vector_core_num", "L2_cache_size", "multi_processor_count")
    measures: dict[str, object] = {"name": str(bench.backend.get_device_name(bench.device))}
    measures.update({name: int(getattr(found, name)) for name in names if hasattr(found, name)})
    _choose_dtype(bench, _has_bf16(bench))
    return {**measures, "dtype": bench.dtype}


def _has_bf16(bench: Bench) -> bool:
    asked = getattr(bench.backend, "is_bf16_supported", None)
    return bool(asked()) if asked else True


def _choose_dtype(bench: Bench, bf16: bool) -> None:
    if bench.dtype == "auto":
        bench.dtype = "bf16" if bf16 else "fp16"


def _memory(bench: Bench) -> Measures:
    free, total = (int(value) for value in bench.backend.mem_get_info(bench.device))
    need = int(bench.plan["need_bytes"])
    if free < need and not bench.plan["force"]:
        raise Refused(f"{free >> 20} MiB of {total >> 20} MiB are free, {need >> 20} MiB are needed")
    return {"free": free, "total": total, "need": need}


def _processor(bench: Bench) -> Measures:
    _choose_dtype(bench, True)
    return {
        "name": _processor_name() or platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "dtype": bench.dtype,
    }


def _processor_name() -> str:
    """x86 names it in /proc/cpuinfo; aarch64 gives numbers alone."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            found = re.search(r"^model name\s*:\s*(.+)$", stream.read(1 << 16), re.MULTILINE)
    except OSError:
        return ""
    return found[1].strip() if found else ""


def _host_memory(bench: Bench) -> Measures:
    with open("/proc/meminfo", encoding="ascii", errors="replace") as stream:
        kib = dict(re.findall(r"^(\w+):\s+(\d+)", stream.read(), re.MULTILINE))
    return {
        "free": int(kib.get("MemAvailable", 0)) << 10,
        "total": int(kib.get("MemTotal", 0)) << 10,
        "need": int(bench.plan["need_bytes"]),
    }
