"""A launch command: what is to run, on how many devices, with which flags and variables. Given, never found on a host.

Sources: those of launch_options.py and command_line.py.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Callable, TypeVar

from ascend_doctor.facts.command_line import (
    SGLANG,
    TORCHRUN,
    VLLM,
    Options,
    Read,
    front,
    is_number,
    no_file,
    options,
    program,
)
from ascend_doctor.facts.demand import Wishes
from ascend_doctor.facts.launch_options import (
    NAMES,
    PORTS,
    count,
    in_file,
    local,
    no_json,
    port,
    ranks,
    share,
)
from ascend_doctor.facts.shell import open_to_the_shell
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason
from ascend_doctor.host.redact import is_secret, secrets
from ascend_doctor.records import dataclass

T = TypeVar("T")

NOT_GIVEN = Missing(Reason.UNSUPPORTED, "no launch command was given")
NOT_WRITTEN = Missing(Reason.ABSENT, "the command does not say")
ELSEWHERE = Missing(Reason.NOT_COLLECTED, "the command takes its options from a file that is not seen here")
FROM_SHELL = Missing(Reason.NOT_COLLECTED, "a shell fills it in when the command starts")


@dataclass(frozen=True)
class Launch:
    """``assigned`` and ``unset``: variables that the command itself sets and takes away; ``cleared``: env -i.

    ``words``: the command without what stands before it; ``numactl``: that part of the line, absent where there is
    none. Numbers of ranks are 1 where the command does not say; ``data_local``: those on this host.
    ``unreadable``: options with values that the program will refuse, as they are written; ``no_json``: those that have
    to be JSON and are not. ``config``: the file of settings that MindIE is pointed to.
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
    config: str | Missing
    flags: dict[str, str] | Missing
    unreadable: tuple[str, ...] | Missing
    no_json: tuple[str, ...] | Missing


class _Said:
    """The values of a program's options by what they say."""

    def __init__(self, name: str, flags: Mapping[str, str], elsewhere: bool) -> None:
        known = NAMES.get(name, {})
        self.flags = flags
        self.unreadable: list[str] = []
        self._values = {known[flag]: (flag, value) for flag, value in flags.items() if flag in known and value}
        self._absent = ELSEWHERE if elsewhere else NOT_WRITTEN

    def text(self, what: str) -> str | Missing:
        value = self._values[what][1] if what in self._values else self._absent
        return FROM_SHELL if isinstance(value, str) and open_to_the_shell(value) else value

    def read(self, what: str, parse: Callable[[str], T | Missing], default: T | None = None) -> T | Missing:
        value = self.text(what)
        if isinstance(value, Missing):
            return value if default is None or value is not NOT_WRITTEN else default
        found = parse(value)
        if isinstance(found, Missing):
            flag = self._values[what][0]
            self.unreadable.append(f"{'-' if len(flag) < 4 else '--'}{flag} {value[:60]}")
        return found

    def has(self, *names: str) -> bool | Missing:
        if any(name in self.flags for name in names):
            return True
        return self._absent if self._absent is ELSEWHERE else False


def collect(host: Host) -> Collected[Launch]:
    """Asks nothing: no host tells what somebody means to start."""
    return Area("launch").of(Launch(*[NOT_GIVEN] * len(Launch.__annotations__)))


def launch(argv: Sequence[str], read: Read = no_file) -> Collected[Launch]:
    """The facts of a command that was given. ``read``: the text of a script or a file of options that it names."""
    area = Area("launch")
    argv = [word.encode("utf-8", "replace").decode() for word in argv]
    area.take("", Parsed(None, "argument", {"": shown(argv)}))
    before = front(argv, read)
    words = tuple(hidden(before.words))
    found = program(words)
    opts = options(found.rest, found.name == TORCHRUN)
    flags, elsewhere = _with_file(found.name, opts, read)
    said = _Said(found.name, flags, elsewhere)
    unseen: tuple[str, ...] | Missing = ELSEWHERE if elsewhere else ()
    tensor, data = said.read("tensor", ranks, 1), said.read("data", ranks, 1)
    facts = Launch(
        program=found.name,
        words=words,
        assigned={name: "***" if is_secret(name) else value for name, value in before.assigned.items()},
        unset=before.unset,
        cleared=before.cleared,
        numactl=plain(before.numactl) or NOT_WRITTEN,
        interpreter=found.interpreter or NOT_WRITTEN,
        model=_model(found.name, said, opts),
        tensor_parallel=tensor,
        pipeline_parallel=said.read("pipeline", ranks, 1),
        data_parallel=data,
        data_local=data if "data-local" not in NAMES.get(found.name, {}).values() else _local(said, data),
        context_parallel=said.read("context", ranks, 1),
        expert_parallel=_expert(found.name, said, tensor, data),
        ranks=_processes(found.name, said),
        nodes=_nodes(said),
        backend=_backend(said),
        max_model_len=_length(said),
        batched_tokens=said.read("batched", count),
        dtype=said.text("dtype"),
        kv_cache_dtype=said.text("kv-cache-dtype"),
        quantization=said.text("quantization"),
        memory_share=said.read("share", share),
        eager=said.has("enforce-eager", "disable-cuda-graph"),
        headless=said.has("headless"),
        port=said.read("port", port, PORTS.get(found.name)),
        soc_version=said.text("soc"),
        config=said.text("config"),
        flags=dict(flags),
        unreadable=tuple(said.unreadable) or unseen,
        no_json=(tuple(no_json(flags)) if found.name == VLLM else ()) or unseen,
    )
    return area.of(facts)


def _with_file(name: str, opts: Options, read: Read) -> tuple[Mapping[str, str], bool]:
    """The options with those of ``--config FILE``, which the command line overrides; whether the file is not seen."""
    file = opts.flags.get("config") if name in (VLLM, SGLANG) else None
    if not file:
        return opts.flags, False
    content = read(file)
    there = None if isinstance(content, Missing) else in_file(content)
    return (opts.flags, True) if there is None else ({**there, **opts.flags}, False)


def _processes(name: str, said: _Said) -> int | Missing:
    """torchrun takes ``auto``, ``gpu``, ``npu`` and the like for as many as there are."""
    value = said.text("ranks")
    if isinstance(value, str) and value.isalpha():
        return Missing(Reason.FAILED, f"{value[:20]}: as many as there are")
    return said.read("ranks", ranks, 1 if name == TORCHRUN else None)


def _nodes(said: _Said) -> int | Missing:
    """torchrun takes ``1:4``, from one node to four."""
    value = said.text("nodes")
    if isinstance(value, str) and ":" in value:
        return NOT_WRITTEN
    return said.read("nodes", ranks, 1)


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
    return said.read("data-local", local, None) if not isinstance(said.text("data-local"), Missing) else data


def _expert(name: str, said: _Said, tensor: int | Missing, data: int | Missing) -> int | Missing:
    """vLLM spreads the experts over all ranks of TP and DP, or over none; sglang takes a number."""
    if name != VLLM:
        return said.read("expert", ranks, 1)
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
    return NOT_WRITTEN if text in ("-1", "auto") else said.read("length", count)


def shown(argv: Sequence[str]) -> str:
    """The line as a report may show it."""
    return plain(shlex.join(hidden(argv)))[:400]


def plain(text: str) -> str:
    """Without what stands behind the names of secrets."""
    return secrets(text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")


def hidden(argv: Sequence[str]) -> list[str]:
    """The words of a command without the values of keys and tokens."""
    shown: list[str] = []
    secret = False
    for word in argv:
        name, equals, value = word.partition("=")
        if secret and not word.startswith("-"):
            shown.append(word if is_number(word) else "***")
        elif equals and is_secret(name.lstrip("-")) and not is_number(value):
            shown.append(f"{name}=***")
        else:
            shown.append(word)
        secret = word.startswith("-") and not equals and is_secret(word.lstrip("-"))
    return shown
