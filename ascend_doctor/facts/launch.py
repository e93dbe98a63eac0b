"""A launch command: what is to run, on how many devices, with which flags and variables. Given, never found on a host.

Sources: vllm serve --help (https://docs.vllm.ai/en/latest/configuration/engine_args.html), sglang's server arguments
(https://docs.sglang.ai/advanced_features/server_arguments.html), torchrun (https://docs.pytorch.org/docs/stable/elastic/run.html),
env(1), and ATC's options (https://www.hiascend.com/document/detail/zh/canncommercial/850/devaids/atctool/atlasatc_16_0001.html).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Callable, TypeVar

from ascend_doctor.facts.demand import Wishes
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason
from ascend_doctor.host.redact import is_secret
from ascend_doctor.records import dataclass

T = TypeVar("T")

NOT_GIVEN = Missing(Reason.UNSUPPORTED, "no launch command was given")
NOT_WRITTEN = Missing(Reason.ABSENT, "the command does not say")
ELSEWHERE = Missing(Reason.NOT_COLLECTED, "the command takes its options from a file")
VLLM, SGLANG, TORCHRUN, MINDIE, ATC = "vllm", "sglang", "torchrun", "mindie", "atc"
MODULE, OTHER = "python-module", "other"
MODULES = {
    "vllm.entrypoints.openai.api_server": VLLM,
    "vllm.entrypoints.api_server": VLLM,
    "sglang.launch_server": SGLANG,
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launch": TORCHRUN,
}
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,200})=(.*)", re.DOTALL | re.ASCII)
_PYTHON = re.compile(r"python(\d(\.\d{1,2})?)?", re.ASCII)
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
    ATC: {"soc-version": "soc", "model": "model", "precision-mode": "dtype", "framework": "framework"},
}
"""Program -> option, with dashes -> what it says here."""
SWITCHES = frozenset((
    *("enable-expert-parallel", "ep", "enforce-eager", "headless", "trust-remote-code", "enable-prefix-caching"),
    *("no-enable-prefix-caching", "enable-chunked-prefill", "no-enable-chunked-prefill", "async-scheduling"),
    *("enable-auto-tool-choice", "data-parallel-hybrid-lb", "hlb", "data-parallel-external-lb", "elb"),
    *("no-enable-log-requests", "disable-log-requests", "disable-log-stats", "skip-tokenizer-init"),
    "enable-sleep-mode",
    *("allow-long-max-model-len", "enable-eplb", "enable-lora", "no-async-scheduling", "standalone"),
    "enable-dp-attention",
    *("disable-cuda-graph", "disable-radix-cache", "enable-multimodal", "disable-hybrid-kv-cache-manager"),
))  # fmt: skip
"""Options without a value: the word behind one may be the model."""


@dataclass(frozen=True)
class Launch:
    """``assigned`` and ``unset``: variables that the command itself sets and takes away; ``cleared``: env -i.

    ``words``: the command without what stands before it; ``numactl``: that part of the line, absent where there is
    none. Numbers of ranks are 1 where the command does not say; ``data_local``: those on this host.
    """

    program: str | Missing
    words: tuple[str, ...] | Missing
    assigned: dict[str, str] | Missing
    unset: tuple[str, ...] | Missing
    cleared: bool | Missing
    numactl: str | Missing
    interpreter: str | Missing
    model: str | Missing
    tensor_parallel: int | Missing
    pipeline_parallel: int | Missing
    data_parallel: int | Missing
    data_local: int | Missing
    context_parallel: int | Missing
    expert_parallel: int | Missing
    ranks: int | Missing
    nodes: int | Missing
    backend: str | Missing
    max_model_len: int | Missing
    batched_tokens: int | Missing
    dtype: str | Missing
    kv_cache_dtype: str | Missing
    quantization: str | Missing
    memory_share: float | Missing
    eager: bool | Missing
    headless: bool | Missing
    port: int | Missing
    soc_version: str | Missing
    flags: dict[str, str] | Missing


@dataclass(frozen=True)
class Front:
    """A command without what stands before it, and what that was."""

    words: tuple[str, ...]
    assigned: Mapping[str, str]
    unset: tuple[str, ...]
    cleared: bool
    numactl: str


def front(argv: Sequence[str]) -> Front:
    """Takes assignments, env, numactl and starters such as nohup off a command."""
    words, cleared, numactl = list(argv), False, ""
    assigned: dict[str, str] = {}
    unset: list[str] = []
    sets = True  # only a shell and env take assignments
    while words:
        found = _ASSIGNMENT.fullmatch(words[0]) if sets else None
        name = words[0].rpartition("/")[2]
        sets = bool(found) or name == "env"
        if found:
            assigned[found[1]] = found[2]
            words.pop(0)
        elif name == "env":
            words.pop(0)
            cleared |= _env_options(words, unset)
        elif name == "numactl":
            from ascend_doctor.facts.numactl import words as parts

            line = shlex.join(words)
            taken = parts(line)
            if isinstance(taken, Missing):
                break
            numactl, words = line, list(taken.command)
        elif name in STARTERS:
            words.pop(0)
            _skip_options(words, STARTERS[name])
        else:
            break
    return Front(tuple(words), assigned, tuple(unset), cleared, numactl)


STARTERS: Mapping[str, tuple[str, int]] = {
    "nohup": ("", 0),
    "setsid": ("", 0),
    "exec": ("", 0),
    "time": ("", 0),
    "nice": ("n", 0),
    "stdbuf": ("ioe", 0),
    "taskset": ("", 1),
    "timeout": ("ks", 1),
    "tini": ("", 0),
    "dumb-init": ("", 0),
}
"""Program -> the short options that take a value, and the words before the command."""


def _env_options(words: list[str], unset: list[str]) -> bool:
    """Takes the options of env off; whether it empties the environment."""
    cleared = False
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in ("-i", "-", "--ignore-environment"):
            cleared = True
        elif word in ("-u", "--unset", "-C", "--chdir") and words:
            value = words.pop(0)
            unset += [value] if word in ("-u", "--unset") else []
        elif word.startswith(("-u", "--unset=")):
            unset.append(word.partition("=")[2] or word[2:])
        elif word == "--":
            break
    return cleared


def _skip_options(words: list[str], form: tuple[str, int]) -> None:
    takes, before = form
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":
            break
        if len(word) == 2 and word[1] in takes and words:
            words.pop(0)
    del words[:before]


@dataclass(frozen=True)
class Program:
    """``rest``: the words behind the program's name, module or subcommand."""

    name: str
    interpreter: str
    rest: tuple[str, ...]


def program(words: Sequence[str]) -> Program:
    """Which program a command starts, by the names of files and modules."""
    if not words:
        return Program(OTHER, "", ())
    name, rest = words[0].rpartition("/")[2], tuple(words[1:])
    if _PYTHON.fullmatch(name):
        return _of_python(words[0], rest)
    if name == "vllm":
        return Program(VLLM, "", rest[1:]) if rest[:1] == ("serve",) else Program(OTHER, "", rest)
    if name == "sglang" and rest[:1] == ("serve",):
        return Program(SGLANG, "", rest[1:])
    known = {"torchrun": TORCHRUN, "mindieservice_daemon": MINDIE, "atc": ATC, "atc.bin": ATC}
    return Program(known.get(name, OTHER), "", rest)


def _of_python(interpreter: str, rest: tuple[str, ...]) -> Program:
    """``python3 -u -m MODULE``, ``python /opt/venv/bin/vllm serve``."""
    for number, word in enumerate(rest):
        if word == "-m":
            module, behind = "".join(rest[number + 1 : number + 2]), rest[number + 2 :]
            return Program(MODULES.get(module, MODULE), interpreter, behind)
        if word in ("-X", "-W"):
            continue
        if not word.startswith("-"):
            inner = program(rest[number:]) if not word.endswith(".py") else Program(OTHER, "", rest[number + 1 :])
            return Program(inner.name, interpreter, inner.rest)
    return Program(OTHER, interpreter, ())


@dataclass(frozen=True)
class Options:
    """``flags``: without dashes in front, with dashes inside; "" for a switch; the last of a name wins."""

    flags: Mapping[str, str]
    positional: tuple[str, ...]


def options(words: Sequence[str], script_follows: bool = False) -> Options:
    """Options in any form: ``--name value``, ``--name=value``, ``-tp 4``, ``--name_with_underscores``."""
    flags: dict[str, str] = {}
    positional: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            positional += waiting
            break
        if not word.startswith("-") or word == "-" or re.fullmatch(r"-\d+(\.\d+)?", word, re.ASCII):
            positional.append(word)
            if script_follows:
                break
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        values = waiting and not (waiting[0].startswith("-") and not re.fullmatch(r"-\d.*", waiting[0], re.ASCII))
        if word.startswith("-O") and word != "-O":
            value = name[1:]
        elif not equals and values and not (name in SWITCHES and not _is_number(waiting[0])):
            value = waiting.pop(0)
        flags[name] = value
    return Options(flags, tuple(positional))


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


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


class _Said:
    """The values of a program's options by what they say."""

    def __init__(self, name: str, found: Options) -> None:
        known = NAMES.get(name, {})
        self.flags = found.flags
        self._values = {known[flag]: value for flag, value in found.flags.items() if flag in known and value}
        self._absent = ELSEWHERE if name in (VLLM, SGLANG) and "config" in found.flags else NOT_WRITTEN

    def text(self, what: str) -> str | Missing:
        return self._values.get(what, self._absent)

    def read(self, what: str, parse: Callable[[str], T | Missing], default: T | None = None) -> T | Missing:
        value = self.text(what)
        if not isinstance(value, Missing):
            return parse(value)
        return value if default is None or value is ELSEWHERE else default

    def has(self, *names: str) -> bool | Missing:
        if any(name in self.flags for name in names):
            return True
        return self._absent if self._absent is ELSEWHERE else False


def collect(host: Host) -> Collected[Launch]:
    """Asks nothing: no host tells what somebody means to start."""
    return Area("launch").of(Launch(*[NOT_GIVEN] * 28))


def launch(argv: Sequence[str]) -> Collected[Launch]:
    """The facts of a command that was given."""
    area = Area("launch")
    argv = hidden(argv)
    area.take("", Parsed(None, "argument", {"": shlex.join(argv)[:400]}))
    before = front(argv)
    found = program(before.words)
    said = _Said(found.name, opts := options(found.rest, found.name == TORCHRUN))
    tensor, data = said.read("tensor", count, 1), said.read("data", count, 1)
    facts = Launch(
        program=found.name,
        words=before.words,
        assigned=dict(before.assigned),
        unset=before.unset,
        cleared=before.cleared,
        numactl=before.numactl or NOT_WRITTEN,
        interpreter=found.interpreter or NOT_WRITTEN,
        model=_model(found.name, said, opts),
        tensor_parallel=tensor,
        pipeline_parallel=said.read("pipeline", count, 1),
        data_parallel=data,
        data_local=data if "data-local" not in NAMES.get(found.name, {}).values() else _local(said, data),
        context_parallel=said.read("context", count, 1),
        expert_parallel=_expert(found.name, said, tensor, data),
        ranks=said.read("ranks", count, 1 if found.name == TORCHRUN else None),
        nodes=said.read("nodes", count, 1),
        backend=_backend(said),
        max_model_len=_length(said),
        batched_tokens=said.read("batched", count),
        dtype=said.text("dtype"),
        kv_cache_dtype=said.text("kv-cache-dtype"),
        quantization=said.text("quantization"),
        memory_share=said.read("share", share),
        eager=said.has("enforce-eager", "disable-cuda-graph"),
        headless=said.has("headless"),
        port=said.read("port", count, {VLLM: 8000, SGLANG: 30000}.get(found.name)),
        soc_version=said.text("soc"),
        flags=dict(opts.flags),
    )
    return area.of(facts)


def wishes(found: Launch, there: bool) -> Wishes | Missing | None:
    """What the sum of memory needs to know; None for a program that serves no model. ``there``: its folder is here."""
    if found.program not in (VLLM, SGLANG) or isinstance(found.model, Missing):
        return None
    wanted = (found.tensor_parallel, found.pipeline_parallel, found.data_parallel, found.expert_parallel, found.eager)
    asked = (found.dtype, found.quantization, found.kv_cache_dtype, found.max_model_len, found.batched_tokens)
    for part in (*wanted, *asked, found.memory_share):
        if isinstance(part, Missing) and part.reason is not Reason.ABSENT:
            return part
    quantization = _said(found.quantization)
    if quantization in BY_DESCRIPTION and (there or _FORMAT.search(found.model)):
        quantization = None
    dtype, fraction = _said(found.dtype), _said(found.memory_share)
    if found.program == SGLANG:
        fraction = None  # its share is of weights and cache alone, all else comes beside
    tp, pp, dp, ep, eager = wanted
    return Wishes(
        found.model, tp, pp, ep, dp,  # type: ignore[arg-type]
        quantization,
        None if dtype == "auto" else dtype,
        _said(found.kv_cache_dtype),
        _said(found.max_model_len),
        1,
        _said(found.batched_tokens),
        fraction or 0.9,
        "live",
        eager is True,
    )  # fmt: skip


BY_DESCRIPTION = ("ascend", "modelslim", "compressed-tensors")
"""Ways of quantisation whose format stands in the checkpoint."""
_FORMAT = re.compile(r"w\d{1,2}a\d{1,2}|fp8|mxfp", re.IGNORECASE | re.ASCII)


def _said(value: T | Missing) -> T | None:
    return None if isinstance(value, Missing) else value


def _model(name: str, said: _Said, opts: Options) -> str | Missing:
    """--model, or the first word that is no option, as ``vllm serve`` takes it."""
    named = said.text("model")
    if name == VLLM and isinstance(named, Missing) and opts.positional:
        return opts.positional[0]
    return named


def _local(said: _Said, data: int | Missing) -> int | Missing:
    return said.read("data-local", count, None) if not isinstance(said.text("data-local"), Missing) else data


def _expert(name: str, said: _Said, tensor: int | Missing, data: int | Missing) -> int | Missing:
    """vLLM spreads the experts over all ranks of TP and DP, or over none; sglang takes a number."""
    if name != VLLM:
        return said.read("expert", count, 1)
    wide = said.has("enable-expert-parallel", "ep")
    for part in (wide, tensor, data):
        if isinstance(part, Missing):
            return part
    return tensor * data if wide and not isinstance(tensor, Missing) and not isinstance(data, Missing) else 1


def _backend(said: _Said) -> str | Missing:
    """Ray, where it places the ranks of either kind."""
    found = [said.text("backend"), said.text("data-backend")]
    return "ray" if "ray" in found else found[0]


def _length(said: _Said) -> int | Missing:
    """-1 and ``auto`` leave it to the framework."""
    text = said.text("length")
    if isinstance(text, Missing) or text in ("-1", "auto"):
        return text if isinstance(text, Missing) else NOT_WRITTEN
    return count(text)


def hidden(argv: Sequence[str]) -> list[str]:
    """The words of a command without the values of keys and tokens."""
    shown: list[str] = []
    secret = False
    for word in argv:
        name, equals, value = word.partition("=")
        if secret and not word.startswith("-"):
            shown.append(word if _is_number(word) else "***")
        elif equals and is_secret(name.lstrip("-")) and not _is_number(value):
            shown.append(f"{name}=***")
        else:
            shown.append(word)
        secret = word.startswith("-") and not equals and is_secret(word.lstrip("-"))
    return shown
