"""transformers' own DeepSeek-V4 with weights of ours: what the reference model is compared with."""

from __future__ import annotations

from typing import Any

from ascend_doctor.children.deepseek_v4.config import Config

THEIR_NAMES = {
    "embedding": "model.embed_tokens.weight",
    "head": "lm_head.weight",
    "norm": "model.norm.weight",
    "final_streams.mix": "model.hc_head.hc_fn",
    "final_streams.base": "model.hc_head.hc_base",
    "final_streams.scale": "model.hc_head.hc_scale",
    "attention_streams.mix": "attn_hc.fn",
    "attention_streams.base": "attn_hc.base",
    "attention_streams.scale": "attn_hc.scale",
    "expert_streams.mix": "ffn_hc.fn",
    "expert_streams.base": "ffn_hc.base",
    "expert_streams.scale": "ffn_hc.scale",
    "attention.norm": "input_layernorm.weight",
    "attention.query_down": "self_attn.q_a_proj.weight",
    "attention.query_norm": "self_attn.q_a_norm.weight",
    "attention.query_up": "self_attn.q_b_proj.weight",
    "attention.key": "self_attn.kv_proj.weight",
    "attention.key_norm": "self_attn.kv_norm.weight",
    "attention.sinks": "self_attn.sinks",
    "attention.output_down": "self_attn.o_a_proj.weight",
    "attention.output_up": "self_attn.o_b_proj.weight",
    "attention.compressor.value": "self_attn.compressor.kv_proj.weight",
    "attention.compressor.gate": "self_attn.compressor.gate_proj.weight",
    "attention.compressor.position": "self_attn.compressor.position_bias",
    "attention.compressor.norm": "self_attn.compressor.kv_norm.weight",
    "attention.indexer.compressor.value": "self_attn.compressor.indexer.kv_proj.weight",
    "attention.indexer.compressor.gate": "self_attn.compressor.indexer.gate_proj.weight",
    "attention.indexer.compressor.position": "self_attn.compressor.indexer.position_bias",
    "attention.indexer.compressor.norm": "self_attn.compressor.indexer.kv_norm.weight",
    "attention.indexer.query": "self_attn.compressor.indexer.q_b_proj.weight",
    "attention.indexer.weights": "self_attn.compressor.indexer.scorer.weights_proj.weight",
    "experts.norm": "post_attention_layernorm.weight",
    "experts.router": "mlp.gate.weight",
    "experts.table": "mlp.gate.tid2eid",
    "experts.choice": "mlp.gate.e_score_correction_bias",
    "experts.gate_up": "mlp.experts.gate_up_proj",
    "experts.down": "mlp.experts.down_proj",
    "experts.shared_down": "mlp.shared_experts.down_proj.weight",
}


def their_model(config: Config, weights: dict[str, Any]) -> Any:
    """A DeepseekV4ForCausalLM of the same sizes that holds the same numbers; every parameter of theirs is filled."""
    from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

    model = DeepseekV4ForCausalLM(
        DeepseekV4Config(
            vocab_size=config.vocabulary,
            hidden_size=config.hidden,
            moe_intermediate_size=config.expert_width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            head_dim=config.head_dim,
            qk_rope_head_dim=config.rotary_dim,
            q_lora_rank=config.query_rank,
            o_groups=config.output_groups,
            o_lora_rank=config.output_rank,
            num_experts_per_tok=config.experts_per_token,
            n_routed_experts=config.experts,
            routed_scaling_factor=config.routed_scale,
            compress_ratios=list(config.ratios),
            num_hash_layers=config.hash_layers,
            sliding_window=config.window,
            index_n_heads=config.index_heads,
            index_head_dim=config.index_dim,
            index_topk=config.index_topk,
            rope_parameters={"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 65536},
            attn_implementation="eager",
        )
    )
    model.load_state_dict(_theirs(model.state_dict(), weights), strict=True)
    return model.eval()


def _theirs(state: dict[str, Any], weights: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, tensor in weights.items():
        at = ""
        if name.startswith("layers."):
            _, number, name = name.split(".", 2)
            at = f"model.layers.{number}."
        if name == "experts.shared_gate_up":
            gate, up = tensor.chunk(2)
            found[f"{at}mlp.shared_experts.gate_proj.weight"] = gate
            found[f"{at}mlp.shared_experts.up_proj.weight"] = up
        else:
            found[at + THEIR_NAMES[name]] = tensor.reshape(state[at + THEIR_NAMES[name]].shape)
    return found
