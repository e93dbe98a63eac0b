"""A torch_npu in small: its fused operators by the formulas of its documentation, written apart from the probes.

Computed in fp32 from the given tensors and rounded at the end, as the real ones are.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional


def fake_npu(**changes: Any) -> SimpleNamespace:
    """All operators that are probed; ``changes``: other ones in their place, None takes one away."""
    found = {name: value for name, value in globals().items() if name.startswith(("npu_", "scatter_update_"))}
    found.update(changes)
    return SimpleNamespace(**{name: value for name, value in found.items() if value is not None})


def npu_rms_norm(x, gamma, epsilon=1e-6):
    rstd = 1 / torch.sqrt(x.float().square().mean(-1, keepdim=True) + epsilon)
    return (x.float() * rstd * gamma.float()).to(x.dtype), rstd


def npu_add_rms_norm(x1, x2, gamma, epsilon=1e-6):
    added = x1.float() + x2.float()
    y, rstd = npu_rms_norm(added, gamma, epsilon)
    return y.to(x1.dtype), rstd, added.to(x1.dtype)


def npu_rotary_mul(x, r1, r2, rotary_mode="half", rotate=None):
    wide = x.float()
    if rotary_mode == "interleave":
        turned = torch.stack((-wide[..., 1::2], wide[..., ::2]), dim=-1).flatten(-2)
    else:
        low, high = wide.chunk(2, -1)
        turned = torch.cat((-high, low), dim=-1)
    return (r1.float() * wide + r2.float() * turned).to(x.dtype)


def npu_interleave_rope(x, cos, sin):
    b, n, s, d = x.shape
    halves = x.reshape(b, n, s, d // 2, 2).transpose(-1, -2).reshape(b, n, s, d)
    return npu_rotary_mul(halves, cos, sin)


def npu_apply_rotary_pos_emb(query, key, cos, sin, layout="BSND", rotary_mode="half"):
    return npu_rotary_mul(query, cos, sin), npu_rotary_mul(key, cos, sin)


def npu_swiglu(x, dim=-1):
    gate, up = x.float().chunk(2, dim)
    return (functional.silu(gate) * up).to(x.dtype)


def npu_clipped_swiglu(x, *, group_index=None, dim=-1, alpha=1.702, limit=7.0, bias=1.0, interleaved=True):
    gate, up = (x.float()[..., ::2], x.float()[..., 1::2]) if interleaved else x.float().chunk(2, dim)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return (gate * torch.sigmoid(alpha * gate) * (up + bias)).to(x.dtype)


def npu_scatter_nd_update_(cache, indices, updates):
    for place, row in zip(indices.tolist(), updates):
        cache[tuple(place)] = row
    return cache


def scatter_update_(cache, indices, updates, axis):
    for batch, begin in enumerate(indices.tolist()):
        cache[batch].narrow(axis, begin, updates.shape[axis]).copy_(updates[batch])
    return cache


def npu_transpose_batchmatmul(x, weight, *, perm_x1=None, perm_x2=None, perm_y=None):
    return torch.bmm(x.float().permute(perm_x1), weight.float()).permute(perm_y).to(x.dtype)


def npu_mhc_sinkhorn(x, *, eps=1e-6, num_iters=20, out_flag=0):
    y = torch.softmax(x, dim=-1) + eps
    y = y / (y.sum(dim=-2, keepdim=True) + eps)
    for _ in range(num_iters - 1):
        y = y / (y.sum(dim=-1, keepdim=True) + eps)
        y = y / (y.sum(dim=-2, keepdim=True) + eps)
    return y, None, None


def npu_mhc_post(x, h_res, h_out, h_post):
    """As op-plugin's own test computes it (test_npu_mhc_post.py)."""
    mixed = torch.sum(h_res.unsqueeze(-1) * x.float().unsqueeze(-2), dim=-3)
    return (h_post.unsqueeze(-1) * h_out.float().unsqueeze(-2) + mixed).to(x.dtype)


def npu_moe_gating_top_k(
    x, k, *, bias=None, k_group=1, group_count=1, group_select_mode=0, renorm=0, norm_type=0, out_flag=False,
    routed_scaling_factor=1.0, eps=1e-20,
):  # fmt: skip
    """As op-plugin's own test computes it (test_npu_moe_gating_top_k.py)."""
    chances = torch.sigmoid(x) if norm_type == 1 else torch.softmax(x, -1)
    groups = (chances + bias).reshape(x.shape[0], group_count, -1)
    total = groups.sort(-1, descending=True).values[..., :2].sum(-1) if group_select_mode else groups.amax(-1)
    kept = total.argsort(dim=-1, descending=True, stable=True)[:, :k_group]
    mask = torch.ones_like(total, dtype=torch.bool).scatter(-1, kept, False)
    experts = groups.masked_fill(mask[..., None], float("-inf")).flatten(1).argsort(-1, descending=True)[:, :k]
    y = chances.gather(-1, experts)
    if norm_type == 1:
        y = y / (y.sum(-1, keepdim=True) + eps)
    return (y * routed_scaling_factor).to(x.dtype), experts.int(), None


def npu_moe_gating_top_k_softmax(x, finished=None, k=1):
    y, experts = torch.softmax(x.float(), -1).sort(-1, descending=True)
    return y[:, :k].to(x.dtype), experts[:, :k].int(), None


def npu_moe_init_routing_v2(
    x, expert_idx, *, active_num=-1, expert_capacity=-1, expert_num=-1, drop_pad_mode=0, expert_tokens_num_type=0,
    expert_tokens_num_flag=False, quant_mode=-1, active_expert_range=(), row_idx_type=0,
):  # fmt: skip
    pairs = sorted((expert, place) for place, expert in enumerate(expert_idx.flatten().tolist()))
    rows = torch.stack([x[place // expert_idx.shape[1]] for _, place in pairs])
    counts = torch.tensor([sum(expert == one for expert, _ in pairs) for one in range(expert_num)])
    return rows, torch.tensor([place for _, place in pairs], dtype=torch.int32), counts, None


def npu_moe_token_permute(tokens, indices, num_out_tokens=None, padded_mode=False):
    pairs = sorted((expert, place) for place, expert in enumerate(indices.flatten().tolist()))
    order = torch.tensor([place for _, place in pairs])
    return tokens[order // indices.shape[1]], order.argsort().int()


def npu_moe_token_unpermute(permuted, sorted_indices, probs=None, padded_mode=False, restore_shape=None):
    rows = permuted[sorted_indices.long()].float().reshape(*probs.shape, -1)
    return (rows * probs.float()[..., None]).sum(1).to(permuted.dtype)


def npu_grouped_matmul(x, weight, *, group_list, split_item=0, group_type=None, group_list_type=0):
    rows, begin = [], 0
    for matrix, count in zip(weight[0], group_list.tolist()):
        rows.append(x[0][begin : begin + count].float() @ matrix.float())
        begin += count
    return [torch.cat(rows).to(x[0].dtype)]


def npu_fusion_attention(
    query, key, value, head_num, input_layout, atten_mask=None, scale=1.0, keep_prob=1.0, next_tockens=2147483647
):  # fmt: skip
    scores = query.float() @ key.float().mT * scale
    weights = torch.softmax(scores.masked_fill(atten_mask, float("-inf")), -1)
    return (weights @ value.float()).to(query.dtype), None, None, None, 0, 0, 0


def npu_fused_infer_attention_score(query, key, value, *, num_heads, input_layout, scale, atten_mask):
    return npu_fusion_attention(query, key, value, num_heads, input_layout, atten_mask, scale)[:2]


def npu_lightning_indexer(query, key, weights, *, layout_query, layout_key, sparse_count, sparse_mode):
    scores = torch.einsum("bqhd,bkgd->bqhk", query.float(), key.float()).relu()
    total = (weights.float()[..., None] * scores).sum(2)
    return total.topk(sparse_count, dim=-1).indices[:, :, None].int(), None


def npu_top_k_top_p(logits, p=None, k=None):
    """Step by step as its documentation tells it, from the smallest up."""
    out = torch.full_like(logits, float("-inf"))
    for row, (top_p, top_k) in enumerate(zip(p.tolist(), k.tolist())):
        values, places = logits[row].float().sort(stable=True)
        values = values.masked_fill(values < values[-top_k], float("-inf"))
        below = torch.softmax(values, -1).cumsum(-1) <= 1 - top_p
        below[-1] = False
        values = values.masked_fill(below, float("-inf"))
        out[row, places] = values.to(logits.dtype)
    return out


def npu_quant_matmul(x1, x2, scale, *, pertoken_scale=None, output_dtype=None):
    product = (x1.double() @ x2.double()) * scale.double()
    if pertoken_scale is not None:
        product = product * pertoken_scale.double()[:, None]
    return product.to(output_dtype)


def npu_dynamic_quant(x, *, smooth_scales=None):
    scale = x.float().abs().amax(-1) / 127
    return (x.float() / scale[:, None]).round().to(torch.int8), scale


def npu_weight_quant_batchmatmul(x, weight, antiquant_scale):
    return (x.float() @ (weight.float() * antiquant_scale.float())).to(x.dtype)
