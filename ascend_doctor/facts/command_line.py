"""A command line taken apart: what stands before the command, which program it starts, and that program's options.

Sources: env(1), nohup(1), numactl(8), sudo(8), timeout(1); the entry points of vLLM, SGLang, torchrun, MindIE and ATC.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Callable

from ascend_doctor.facts.shell import SHELLS, Simple, commands, script_of
from ascend_doctor.host import Missing, Reason
from ascend_doctor.records import dataclass

VLLM, SGLANG, TORCHRUN, MINDIE, ATC = "vllm", "sglang", "torchrun", "mindie", "atc"
LLAMA = "llama.cpp"
MODULE, OTHER = "python-module", "other"
MODULES = {
    "vllm.entrypoints.openai.api_server": VLLM,
    "vllm.entrypoints.api_server": VLLM,
    "sglang.launch_server": SGLANG,
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launch": TORCHRUN,
}
VLLM_COMMAND = "vllm.entrypoints.cli.main"
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,200})=(.*)", re.DOTALL | re.ASCII)
_PYTHON = re.compile(r"python(\d(\.\d{1,2})?)?", re.ASCII)
DEEPEST = 4
"""Shells within shells."""
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
class Front:
    """A command without what stands before it, and what that was."""

    words: tuple[str, ...]
    assigned: Mapping[str, str]
    unset: tuple[str, ...]
    cleared: bool
    numactl: str


def no_file(path: str) -> Missing:
    return Missing(Reason.NOT_COLLECTED, f"{path} is not looked at")


Read = Callable[[str], "str | Missing"]
"""The text of a file that a command names: a script of a shell, a file of options."""


def front(argv: Sequence[str], read: Read = no_file) -> Front:
    """Takes off a command what stands before it; of a shell's script the first command that starts a known program."""
    return _in_shell(_front(argv), read, DEEPEST)


def _in_shell(before: Front, read: Read, depth: int) -> Front:
    name = before.words[0].rpartition("/")[2] if before.words else ""
    if depth == 0 or (name not in SHELLS and not name.endswith(".sh")):
        return before
    text, file = script_of(before.words[1:]) if name in SHELLS else (None, before.words[0])
    if text is None and file is not None:
        content = read(file)
        text = None if isinstance(content, Missing) else content
    for simple in commands(text or ""):
        inner = _in_shell(_front(simple.words), read, depth - 1)
        if program(inner.words).name != OTHER:
            return _joined(before, simple, inner)
    return before


def _joined(before: Front, simple: Simple, inner: Front) -> Front:
    """What the outer command, the script and the inner command set, in this order."""
    kept = {name: value for name, value in before.assigned.items() if name not in simple.unset}
    unset = tuple(n for n in (*before.unset, *simple.unset, *inner.unset) if n not in inner.assigned)
    return Front(
        inner.words,
        {**({} if inner.cleared else {**kept, **simple.exported}), **inner.assigned},
        unset,
        before.cleared or inner.cleared,
        inner.numactl or before.numactl,
    )


def _front(argv: Sequence[str]) -> Front:
    words, cleared, numactl = list(argv), False, ""
    assigned: dict[str, str] = {}
    unset: list[str] = []
    sets = True  # only a shell, env and sudo take assignments
    while words:
        found = _ASSIGNMENT.fullmatch(words[0]) if sets else None
        name = words[0].rpartition("/")[2]
        sets = bool(found) or name in ("env", "sudo")
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
        elif name in ("conda", "mamba", "micromamba") and words[1:2] == ["run"]:
            del words[:2]
            _skip_options(words, ("np", 0))
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
    "sudo": ("ugpCDRT", 0),
    "gosu": ("", 1),
    "su-exec": ("", 1),
    "ionice": ("cn", 0),
    "chrt": ("", 1),
    "unbuffer": ("", 0),
    "strace": ("oe", 0),
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
    known.update(dict.fromkeys(("llama-server", "llama-cli", "llama-bench"), LLAMA))
    return Program(known.get(name, OTHER), "", rest)


def _of_python(interpreter: str, rest: tuple[str, ...]) -> Program:
    """``python3 -u -m MODULE``, ``python /opt/venv/bin/vllm serve``."""
    for number, word in enumerate(rest):
        if word == "-m":
            module, behind = "".join(rest[number + 1 : number + 2]), rest[number + 2 :]
            if module == VLLM_COMMAND:
                return replace(program(("vllm", *behind)), interpreter=interpreter)
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
        elif not equals and values and not (name in SWITCHES and not is_number(waiting[0])):
            value = waiting.pop(0)
        flags[name] = value
    return Options(flags, tuple(positional))


def is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()
