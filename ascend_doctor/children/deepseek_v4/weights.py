"""Weights from a seed: the same numbers on every device, since none of them is drawn there.

One tensor after the other is drawn in fp32 on the CPU, rounded, and moved: the most that is held is the weights and the
largest tensor in fp32. torch does not promise the same numbers in another version; within one run they are the same.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping
from typing import Optional, Union

import torch
from torch import Tensor

from .config import Config
from .shapes import AROUND_ONE, TABLE, Parameter, parameter_shapes

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

Weights = Mapping[str, Tensor]
"""Parameter name -> tensor, as shapes.parameter_shapes names them."""


def seeded_weights(
    config: Config,
    seed: int,
    dtype: str,
    device: Union[str, torch.device] = "cpu",
    rounded_to: Optional[str] = None,
) -> dict[str, Tensor]:
    """``rounded_to``: fp32 weights that have just the numbers of a narrower dtype, for the golden run."""
    generator = torch.Generator("cpu").manual_seed(seed)
    weights = {}
    for name, parameter in parameter_shapes(config).items():
        tensor = _drawn(parameter, config.experts, generator)
        if tensor.is_floating_point() and not parameter.wide:
            tensor = tensor.to(DTYPES[rounded_to or dtype]).to(DTYPES[dtype])
        weights[name] = tensor.to(device)
    return weights


def _drawn(parameter: Parameter, experts: int, generator: torch.Generator) -> Tensor:
    if parameter.filled == TABLE:  # each token its own experts, none twice
        tokens, count = parameter.shape
        order = torch.sort(torch.rand((tokens, experts), generator=generator), dim=-1, stable=True).indices
        return order[:, :count].contiguous()
    tensor = torch.empty(parameter.shape, dtype=torch.float32)
    return tensor.normal_(float(parameter.filled == AROUND_ONE), parameter.scale, generator=generator)


def moved(weights: Weights, device: Union[str, torch.device]) -> dict[str, Tensor]:
    return {name: tensor.to(device) for name, tensor in weights.items()}


def widened(weights: Weights) -> dict[str, Tensor]:
    """The same numbers in fp32, for the golden run."""
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in weights.items()}


def part(weights: Weights, prefix: str) -> dict[str, Tensor]:
    """Those below a prefix, without it."""
    return {name[len(prefix) :]: tensor for name, tensor in weights.items() if name.startswith(prefix)}


def tensor_bytes(weights: Weights) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in weights.values())


def weights_digest(weights: Weights) -> str:
    """SHA-256 over names, shapes and bytes; equal for equal weights on any device, and so proves a copy."""
    digest = hashlib.sha256()
    for name, tensor in weights.items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        here = tensor.detach().to("cpu").contiguous()
        size = here.numel() * here.element_size()
        digest.update((ctypes.c_char * size).from_address(here.data_ptr()))
    return digest.hexdigest()
