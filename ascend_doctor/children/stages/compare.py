"""How far two results differ, in numbers: the golden first, in fp32, the other as it comes from the device."""

from __future__ import annotations

import torch
from torch import Tensor


def compared(golden: Tensor, other: Tensor) -> dict[str, object]:
    """``rel_l2``: worst and mean of the rows' |other - golden| / |golden|; ``cosine``: the worst row's."""
    ours = golden.detach().to("cpu").float()
    theirs = other.detach().to("cpu").float()
    if ours.shape != theirs.shape:
        return {"rel_l2": float("inf"), "shape": f"{tuple(theirs.shape)} for {tuple(ours.shape)}", "finite": False}
    rows, others = _rows(ours), _rows(theirs)
    bad = ~others.isfinite()
    relative = (others - rows).norm(dim=-1) / rows.norm(dim=-1).clamp_min(1e-20)
    cosine = torch.nn.functional.cosine_similarity(others.double(), rows.double(), dim=-1)
    return {
        "rel_l2": _worst(relative, high=True),
        "rel_l2_mean": float(relative.mean()),
        "cosine": _worst(cosine, high=False),
        "max_abs": float((others - rows).abs().max()),
        "finite": not bool(bad.any()),
        "not_finite": int(bad.sum()),
        "row": int((relative if not bad.any() else bad.float().amax(-1)).argmax()),
    }


def top1(golden: Tensor, other: Tensor) -> float:
    """The share of rows whose largest element is the same one."""
    return float((golden.argmax(-1).cpu() == other.argmax(-1).cpu()).float().mean())


def same(first: Tensor, second: Tensor) -> dict[str, object]:
    """Whether two runs gave the same bits, and how far they are apart."""
    ours, theirs = first.detach().cpu(), second.detach().cpu()
    apart = (ours.float() - theirs.float()).abs().max()
    return {"identical": bool(torch.equal(ours, theirs)), "max_abs": float(apart)}


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, tensor.shape[-1]) if tensor.dim() > 1 else tensor.reshape(1, -1)


def _worst(values: Tensor, high: bool) -> float:
    if bool(values.isnan().any()):
        return float("nan")
    return float(values.max() if high else values.min())
