"""Which operators ran on the CPU instead: torch_npu says so on descriptor 2, from C++, once for each operator.

Two wordings, of Ascend/pytorch (VariableFallbackKernel.cpp) and of Ascend/op-plugin: "CAUTION: The operator
'aten::sort' is not currently supported on the NPU backend and will fall back to run on the CPU", and "CAUTION: The
operator aten::logit is currently not supported on the NPU backend. Now this operator will fallback to run on the CPU".
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Callable

import torch

from ..stages.protocol import Unsupported
from .measuring import Context, Measures

FILE = "stderr.operators"
"""In the working folder: what was written to descriptor 2 by a probe that did not come back is here."""
CAUTION = re.compile(r"CAUTION: The operator '?([\w.:]+)[^\n]*?fall ?back to run on the CPU")
DISABLED = re.compile(r"does not support operator '([\w.:]+)'[^\n]*fall back to CPU")
NOT_ON_CPU = "not implemented for '"
LIMIT = 1 << 20


def watched(probe: Callable[[Context], Measures]) -> Callable[[Context], Measures]:
    """The probe, with ``fallback`` among its measures on an npu: the operators that ran on the CPU, or nothing."""

    def run(context: Context) -> Measures:
        if context.kind == "cpu":
            with _one_thread(), _as_the_cpu_can():
                return probe(context)
        if context.kind != "npu":
            return probe(context)
        said: list[str] = []
        with _heard(said):
            measures = probe(context)
        return {**measures, "fallback": " ".join(fallbacks("".join(said)))}

    return run


def fallbacks(text: str) -> list[str]:
    """The operators that fell back, each once, in order."""
    return list(dict.fromkeys(CAUTION.findall(text) + DISABLED.findall(text)))


@contextlib.contextmanager
def _as_the_cpu_can() -> Iterator[None]:
    """An older torch has no product in fp16 on the CPU: there it is no fault."""
    try:
        yield
    except RuntimeError as error:
        if NOT_ON_CPU not in str(error):
            raise
        raise Unsupported(str(error).partition("\n")[0]) from error


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Small sizes are done sooner by one thread than threads are woken, many times so on a busy host."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def _heard(said: list[str]) -> Iterator[None]:
    """What is warned and written to descriptor 2 meanwhile; it is written on to where it belongs."""
    sys.stderr.flush()
    kept, file = os.dup(2), os.open(FILE, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 2)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield
        said += [f"{warning.message}\n" for warning in warned]
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.lseek(file, 0, os.SEEK_SET)
        written = os.read(file, LIMIT)
        os.ftruncate(file, 0)
        os.close(file)
        os.close(kept)
        said.append(written.decode("utf-8", "replace"))
        with contextlib.suppress(OSError):
            os.write(2, written)
