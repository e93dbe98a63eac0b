"""Sampling: the drawn tokens follow the probabilities, and one that was ruled out is never drawn."""

from __future__ import annotations

import torch

from .measuring import Context, Inputs, Measures, Probe, differing

TOKENS = 24
RULED_OUT = 8
DRAWS = 20000


def probes() -> list[Probe]:
    return [("sampling.multinomial", multinomial), ("sampling.greedy", greedy)]


def multinomial(context: Context) -> Measures:
    """``chi_square``: of the counts against what was to be expected, with ``degrees`` of freedom."""
    logits = Inputs(15).normal(TOKENS)
    logits[:RULED_OUT] = float("-inf")
    wanted = logits.double().softmax(-1)[RULED_OUT:] * DRAWS
    generator = torch.Generator(context.device).manual_seed(15)
    chances = logits.to(context.device).softmax(-1)
    drawn = torch.multinomial(chances, DRAWS, replacement=True, generator=generator).cpu().long()
    counts = torch.bincount(drawn.clamp(0, TOKENS - 1), minlength=TOKENS).double()
    return {
        "impossible": int(((drawn < RULED_OUT) | (drawn >= TOKENS)).sum()),
        "chi_square": float(((counts[RULED_OUT:] - wanted) ** 2 / wanted).sum()),
        "degrees": TOKENS - RULED_OUT - 1,
        "draws": DRAWS,
    }


def greedy(context: Context) -> Measures:
    """The largest logit of a vocabulary, which stands once in each row."""
    inputs = Inputs(16)
    logits = torch.stack([inputs.shuffled(1291) for _ in range(16)]).float()
    found = logits.to(context.device).argmax(-1)
    return {"differing": differing(found.long(), logits.argmax(-1)), "of": 16}
