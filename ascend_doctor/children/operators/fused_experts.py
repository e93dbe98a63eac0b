"""Fused operators of a mixture of experts: gating, routing there and back, grouped products."""

from __future__ import annotations

from typing import Any, Callable

import torch

from .fusing import HALF, Call, Case, Fused, near
from .measuring import Inputs, Measures, differing, distance

TOKENS, EXPERTS, CHOSEN, WIDTH = 24, 16, 4, 256


def fused() -> list[Fused]:
    return [
        Fused("npu_moe_gating_top_k", ("fp32",), gating_top_k),
        Fused("npu_moe_gating_top_k_softmax", ("fp32",), gating_softmax),
        Fused("npu_moe_init_routing_v2", HALF, init_routing),
        Fused("npu_moe_token_permute", ("bf16",), token_permute),
        Fused("npu_grouped_matmul", HALF, grouped_matmul),
    ]


def choices(inputs: Inputs) -> torch.Tensor:
    """The experts of each token, all different."""
    return torch.stack([inputs.shuffled(EXPERTS)[:CHOSEN] for _ in range(TOKENS)])


def gating_top_k(dtype: torch.dtype) -> Case:
    """By sigmoid, with a bias that counts for the choice alone, in eight groups of which four are taken."""
    inputs, experts, groups = Inputs(40), 256, 8
    scores = torch.stack([inputs.shuffled(experts) for _ in range(TOKENS)]).to(dtype) / 64 - 2
    bias = (inputs.shuffled(experts).to(dtype) / experts - 0.5) / 256
    chances = scores.double().sigmoid()
    biased = (chances + bias.double()).reshape(TOKENS, groups, -1)
    best = biased.topk(2, dim=-1).values.sum(-1).topk(4, dim=-1).indices
    left = torch.full_like(biased, float("-inf"))
    for token in range(TOKENS):
        left[token, best[token]] = biased[token, best[token]]
    wanted = left.flatten(1).topk(6, dim=-1).indices
    weights = chances.gather(-1, wanted)
    golden = weights / weights.sum(-1, keepdim=True) * 2.5
    options = {"bias": bias, "k_group": 4, "group_count": groups, "group_select_mode": 1, "renorm": 0, "norm_type": 1}
    options.update(out_flag=False, routed_scaling_factor=2.5, eps=1e-20)
    return Case([scores, 6], _weights_and_experts(golden, wanted), options, _two("npu_moe_gating_top_k"))


def gating_softmax(dtype: torch.dtype) -> Case:
    inputs = Inputs(41)
    scores = torch.stack([inputs.shuffled(EXPERTS) for _ in range(TOKENS)]).to(dtype) / 4
    golden, wanted = scores.double().softmax(-1).topk(CHOSEN, dim=-1)
    return Case(
        [scores],
        _weights_and_experts(golden, wanted),
        {"finished": None, "k": CHOSEN},
        _two("npu_moe_gating_top_k_softmax"),
    )


def _two(name: str) -> Call:
    def called(npu: Any, arguments: list[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        return list(getattr(npu, name)(*arguments, **named)[:2])

    return called


def _weights_and_experts(golden: torch.Tensor, wanted: torch.Tensor) -> Callable[[list[torch.Tensor]], Measures]:
    """Sets of experts, and the weight of each."""

    def compared(results: list[torch.Tensor]) -> Measures:
        weights, experts = results[0].double(), results[1].long()
        if experts.shape != wanted.shape:
            return {"overlap": 0.0}
        pairs = zip(experts.tolist(), wanted.tolist())
        overlap = min(len(set(ours) & set(theirs)) / wanted.shape[1] for ours, theirs in pairs)
        ours, theirs = experts.argsort(-1), wanted.argsort(-1)
        return {"overlap": overlap, **distance(weights.gather(-1, ours), golden.gather(-1, theirs))}

    return compared


def init_routing(dtype: torch.dtype) -> Case:
    """The rows of each token, expert after expert, and how many each expert got."""
    inputs = Inputs(42)
    rows, experts = inputs.normal(TOKENS, WIDTH, dtype=dtype), choices(inputs)
    order = experts.flatten().argsort(stable=True)
    golden, counts = rows[order // CHOSEN], torch.bincount(experts.flatten(), minlength=EXPERTS)
    options = {"active_num": TOKENS * CHOSEN, "expert_capacity": -1, "expert_num": EXPERTS, "drop_pad_mode": 0}
    options.update(expert_tokens_num_type=1, expert_tokens_num_flag=True, quant_mode=-1, row_idx_type=0)

    def called(npu: Any, arguments: list[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        expanded, _, count, _ = npu.npu_moe_init_routing_v2(*arguments, **named)
        return [expanded, count]

    def compared(results: list[torch.Tensor]) -> Measures:
        wrong = differing(results[0], golden) + differing(results[1].long(), counts)
        return {"differing": wrong, "of": golden.numel() + EXPERTS}

    return Case([rows, experts.int()], compared, {**options, "active_expert_range": [0, EXPERTS]}, called)


def token_permute(dtype: torch.dtype) -> Case:
    """There, and back with npu_moe_token_unpermute, which gets what this one gave."""
    inputs = Inputs(43)
    rows, experts = inputs.normal(TOKENS, WIDTH, dtype=dtype), choices(inputs)
    order = experts.flatten().argsort(stable=True)
    golden = rows[order // CHOSEN]
    parts = torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=dtype).expand(TOKENS, CHOSEN).contiguous()

    def called(npu: Any, arguments: list[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        permuted, places = npu.npu_moe_token_permute(*arguments[:2], **named)
        return [permuted, npu.npu_moe_token_unpermute(permuted, places, probs=arguments[2])]

    def compared(results: list[torch.Tensor]) -> Measures:
        return {"differing": differing(results[0], golden), "of": golden.numel(), **distance(results[1], rows)}

    return Case([rows, experts, parts], compared, {"num_out_tokens": TOKENS * CHOSEN}, called)


def grouped_matmul(dtype: torch.dtype) -> Case:
    """One product for each expert over its rows, one of them without any."""
    inputs = Inputs(44)
    counts = torch.tensor([5, 0, 17, 2])
    rows = inputs.normal(int(counts.sum()), WIDTH, dtype=dtype)
    weights = inputs.normal(len(counts), WIDTH, 96, dtype=dtype, scale=WIDTH**-0.5)
    golden = torch.cat([part.double() @ w.double() for part, w in zip(rows.split(counts.tolist()), weights)])
    options = {"group_list": counts, "split_item": 3, "group_type": 0, "group_list_type": 1}
    return Case([[rows], [weights]], near(golden), options)
