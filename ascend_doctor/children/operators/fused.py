"""Fused operators of torch_npu beside what they stand for. How one is called and what it gives: torch_npu 2.13.0,
its schemas and _op_plugin_docs.py, and Ascend/op-plugin (test/test_custom_ops). Only on an npu.

None is needed by every deployment: one that is not there, or that this chip does not take, is told as such.
"""

from __future__ import annotations

import re
from typing import Any, Callable

import torch

from ..stages.protocol import DEAD_CONTEXT, Absent, Unsupported
from . import fused_attention, fused_experts, fused_layers, fused_quantised
from .fusing import Fused
from .measuring import DTYPES, Context, Measures, Probe

REFUSED = re.compile(
    r"\b16100[12]\b|\b561\d{3}\b|ERR\d\d007|(?i:not support|no longer support|unsupport|not implemented|no kernel)"
)
"""aclnn return codes: 161001 and 161002 refuse the arguments, 561xxx find no kernel; else words to that effect."""


def fused() -> list[Fused]:
    return [*fused_layers.fused(), *fused_experts.fused(), *fused_attention.fused(), *fused_quantised.fused()]


def probes() -> list[Probe]:
    return [
        (f"{operator.name}.{word}" if word else operator.name, _probe(operator, word))
        for operator in fused()
        for word in operator.dtypes
    ]


def _probe(operator: Fused, word: str) -> Callable[[Context], Measures]:
    dtype = DTYPES.get(word, torch.float32)

    def probe(context: Context) -> Measures:
        if not hasattr(context.npu, operator.name):
            raise Absent(f"torch_npu.{operator.name}")
        case = operator.case(dtype)
        arguments = [_there(argument, context) for argument in case.arguments]
        named = {name: _there(value, context) for name, value in case.named.items()}
        try:
            results = operator.results(context.npu, case, arguments, named)
            on_host = [tensor.detach().cpu() for tensor in results]
        except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
            if DEAD_CONTEXT.search(str(error)):
                raise
            if REFUSED.search(str(error)):
                raise Unsupported(f"torch_npu.{operator.name}: {error}") from error
            return {"raised": f"{type(error).__name__}: {error}".strip().partition("\n")[0]}
        return case.compared(on_host)

    return probe


def _there(value: Any, context: Context) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(context.device)
    return [_there(item, context) for item in value] if isinstance(value, list) else value
