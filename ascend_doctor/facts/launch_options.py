"""The options of the programs that start a service: what each says, and how its value is read.

Sources: vllm serve --help (https://docs.vllm.ai/en/latest/configuration/engine_args.html), sglang's server arguments
(https://docs.sglang.ai/advanced_features/server_arguments.html), torchrun (https://docs.pytorch.org/docs/stable/elastic/run.html),
and ATC's options (https://www.hiascend.com/document/detail/zh/canncommercial/850/devaids/atctool/atlasatc_16_0001.html).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from ascend_doctor.facts.command_line import ATC, MINDIE, SGLANG, TORCHRUN, VLLM, is_number
from ascend_doctor.facts.shell import open_to_the_shell
from ascend_doctor.host import Missing, Reason

MOST_RANKS = 1 << 16
_COUNT = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?([kKmMgGtT]?)", re.ASCII)
_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "K": 1 << 10,
    "M": 1 << 20,
    "G": 1 << 30,
    "T": 1 << 40,
}
"""As vLLM reads ``--max-model-len 32k`` (32000) and ``32K`` (32768)."""

COMMON = {
    "port": "port",
    "dtype": "dtype",
    "quantization": "quantization",
    "kv-cache-dtype": "kv-cache-dtype",
    "nnodes": "nodes",
}
NAMES: Mapping[str, Mapping[str, str]] = {
    VLLM: {
        **COMMON,
        "tensor-parallel-size": "tensor",
        "tp": "tensor",
        "pipeline-parallel-size": "pipeline",
        "pp": "pipeline",
        "data-parallel-size": "data",
        "dp": "data",
        "data-parallel-size-local": "data-local",
        "dpl": "data-local",
        "prefill-context-parallel-size": "context",
        "pcp": "context",
        "model": "model",
        "max-model-len": "length",
        "max-num-batched-tokens": "batched",
        "max-num-seqs": "sequences",
        "gpu-memory-utilization": "share",
        "q": "quantization",
        "n": "nodes",
        "distributed-executor-backend": "backend",
        "data-parallel-backend": "data-backend",
    },
    SGLANG: {
        **COMMON,
        "tp-size": "tensor",
        "tp": "tensor",
        "tensor-parallel-size": "tensor",
        "pp-size": "pipeline",
        "pp": "pipeline",
        "pipeline-parallel-size": "pipeline",
        "dp-size": "data",
        "dp": "data",
        "data-parallel-size": "data",
        "ep-size": "expert",
        "ep": "expert",
        "expert-parallel-size": "expert",
        "model-path": "model",
        "model": "model",
        "context-length": "length",
        "mem-fraction-static": "share",
    },
    TORCHRUN: {"nproc-per-node": "ranks", "nnodes": "nodes", "master-port": "port"},
    ATC: {"soc-version": "soc", "model": "model"},
    MINDIE: {"config-file": "config", "config": "config"},
}
"""Program -> option, with dashes -> what it says here."""
PORTS = {VLLM: 8000, SGLANG: 30000, TORCHRUN: 29500}
"""What each listens on where the command does not say."""
JSON_OPTIONS = frozenset((
    *("additional-config", "speculative-config", "kv-transfer-config", "hf-overrides", "rope-scaling"),
    *("rope-parameters", "override-generation-config", "default-chat-template-kwargs", "eplb-config"),
    *("compilation-config", "cc"),
))  # fmt: skip
"""Options of vLLM that are read as JSON, or as a number."""


def count(text: str) -> int | Missing:
    """``4``, ``32k``, ``32K``."""
    found = _COUNT.fullmatch(text.strip())
    if not found:
        return Missing(Reason.FAILED, f"{text[:60]!r} is no number")
    return int(float(f"{found[1]}.{found[2] or 0}") * _UNITS[found[3]])


def share(text: str) -> float | Missing:
    found = re.fullmatch(r"\d?(\.\d{1,6})?", text.strip(), re.ASCII)
    if not found or not text.strip() or not 0 < float(text) <= 1:
        return Missing(Reason.FAILED, f"{text[:60]!r} is no share between 0 and 1")
    return float(text)


def share_of_gib(text: str) -> float | Missing:
    """``--cpu-offload-gb 10`` and ``2.5``."""
    found = re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text.strip(), re.ASCII)
    return float(found[0]) if found else Missing(Reason.FAILED, f"{text[:60]!r} is no number of GiB")


def ranks(text: str) -> int | Missing:
    """A number of ranks: 1 or more, and no more than anybody has."""
    found = int(text) if is_number(text.strip()) and len(text) < 9 else 0
    return found if 0 < found <= MOST_RANKS else Missing(Reason.FAILED, f"{text[:60]!r} is no number of ranks")


def port(text: str) -> int | Missing:
    found = int(text) if is_number(text.strip()) and len(text) < 9 else 0
    return found if 0 < found < 1 << 16 else Missing(Reason.FAILED, f"{text[:60]!r} is no port")


def local(text: str) -> int | Missing:
    """0 is a node that only talks to clients."""
    return 0 if text.strip() == "0" else ranks(text)


def in_file(text: str) -> Mapping[str, str] | None:
    """Options as YAML has them: a switch that is true, lists and mappings as JSON; None for what is no mapping."""
    import yaml

    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    if not isinstance(found, Mapping):
        return None
    flags = {}
    for name, value in found.items():
        if value is False or value is None:
            continue
        words = "" if value is True else json.dumps(value) if isinstance(value, (list, dict)) else str(value)
        flags[str(name).replace("_", "-")] = words
    return flags


def no_json(flags: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(JSON_OPTIONS & flags.keys()):
        if flags[name] and not open_to_the_shell(flags[name]):
            try:
                json.loads(flags[name])
            except (ValueError, RecursionError):
                yield f"--{name} {flags[name][:80]}"
