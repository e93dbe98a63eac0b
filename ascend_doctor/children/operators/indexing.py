"""Rows taken and rows added: embedding, gather, index_add, scatter, where. Whole numbers, so that each bit counts."""

from __future__ import annotations

import torch
from torch.nn import functional

from .measuring import Context, Inputs, Measures, Probe, differing, moved, repeatable, sized


def probes() -> list[Probe]:
    return [
        ("gather.rows", gather),
        ("index_add.fp32", lambda context: index_add(context, torch.float32)),
        ("index_add.bf16", lambda context: index_add(context, torch.bfloat16)),
        ("scatter.mask", scatter),
    ]


def gather(context: Context) -> Measures:
    """Rows of a table by token, and elements of each row by expert."""
    inputs = Inputs(8)
    rows, width = sized(context, 300, 8192), sized(context, 65, 1024)
    table, tokens = inputs.normal(rows, width), inputs.whole(0, rows, 4, 33)
    chosen = inputs.whole(0, width, rows, 6)
    t, i, c = moved((table, tokens, chosen), context)
    wrong = differing(functional.embedding(i, t), table[tokens])
    wrong += differing(t.index_select(0, i.flatten()), table[tokens.flatten()])
    wrong += differing(t.gather(-1, c), table.gather(-1, chosen))
    return {"differing": wrong, "of": 2 * tokens.numel() * width + chosen.numel()}


def index_add(context: Context, dtype: torch.dtype) -> Measures:
    """Six rows for each token, as experts bring them back; small whole numbers have the same sum in any order.

    ``repeatable``: of fractions, whose sum depends on the order.
    """
    inputs = Inputs(9)
    tokens, width = sized(context, 50, 512), sized(context, 64, 1024)
    rows = inputs.whole(-3, 4, tokens * 6, width, dtype=dtype)
    index = inputs.shuffled(tokens * 6) % tokens
    golden = torch.zeros(tokens, width, dtype=torch.float64)
    for place, row in zip(index.tolist(), rows.double()):
        golden[place] += row
    r, i = moved((rows, index), context)

    def added(what: torch.Tensor) -> torch.Tensor:
        return torch.zeros(tokens, width, dtype=dtype, device=context.device).index_add_(0, i, what)

    fractions = inputs.normal(tokens * 6, width, dtype=dtype).to(context.device)
    wrong = differing(added(r), golden.to(dtype))
    return {"differing": wrong, "of": golden.numel(), "repeatable": repeatable(lambda: added(fractions))}


def scatter(context: Context) -> Measures:
    """A mask from chosen indices, what it hides, how many are left, and where each expert's rows begin."""
    inputs = Inputs(10)
    rows, width = 12, sized(context, 200, 4096)
    x = inputs.normal(rows, width)
    chosen = torch.stack([inputs.shuffled(width)[: width // 4] for _ in range(rows)])
    ours, c = moved((x, chosen), context)
    mask = torch.zeros(rows, width, dtype=torch.bool, device=context.device).scatter_(-1, c, True)
    hidden = ours.masked_fill(~mask, 0.0)
    golden = torch.zeros_like(x)
    for row in range(rows):
        golden[row, chosen[row]] = x[row, chosen[row]]
    begins = mask.sum(0).cumsum(0)
    wanted = (golden != 0).sum(0).cumsum(0)
    wrong = differing(hidden, golden) + differing(torch.where(mask, ours, ours * 0), golden)
    wrong += differing(begins.long(), wanted)
    return {"differing": wrong, "of": 2 * x.numel() + width}
