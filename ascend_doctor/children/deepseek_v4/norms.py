"""Root mean square norm, computed in fp32 whatever goes through."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor


def rms_norm(x: Tensor, weight: Optional[Tensor], eps: float) -> Tensor:
    """Over the last dimension, in x's dtype; without a weight the norm alone."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (wide if weight is None else wide * weight).to(x.dtype)
