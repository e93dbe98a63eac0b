"""Headers of weight files: exact bytes for three kinds of models, and what is no weight file."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.demand import Wishes, demand
from ascend_doctor.facts.safetensors import INDEX, Tensor, header, tensors, weight_files
from ascend_doctor.host import Missing, Reason
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.memory.shapes import Shape, parameters, shape_of
from ascend_doctor.memory.weights import Split, pieces_of_tensors, rank_bytes

Shapes = Mapping[str, tuple[int, ...]]
WIDTH = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "I8": 1, "F8_E8M0": 1}

DENSE = {
    "model_type": "qwen3", "num_hidden_layers": 3, "hidden_size": 64, "vocab_size": 512, "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "max_position_embeddings": 4096,
}  # fmt: skip
MLA = {
    "model_type": "deepseek_v3", "num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 512,
    "num_attention_heads": 8, "q_lora_rank": 24, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
    "v_head_dim": 16, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "first_k_dense_replace": 1, "intermediate_size": 96, "max_position_embeddings": 4096,
}  # fmt: skip
V4 = {
    "model_type": "deepseek_v4", "num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 512,
    "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 32, "qk_rope_head_dim": 8, "q_lora_rank": 24,
    "o_groups": 2, "o_lora_rank": 16, "sliding_window": 16, "index_n_heads": 4, "index_head_dim": 16,
    "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "hc_mult": 4,
    "compress_ratios": [0, 128, 4, 128], "max_position_embeddings": 4096,
}  # fmt: skip


def dense_tensors(c: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """As transformers names them for Qwen3."""
    h, q, kv = c["hidden_size"], c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    yield "model.embed_tokens.weight", (c["vocab_size"], h)
    for n in range(c["num_hidden_layers"]):
        p = f"model.layers.{n}"
        yield f"{p}.self_attn.q_proj.weight", (q, h)
        yield f"{p}.self_attn.k_proj.weight", (kv, h)
        yield f"{p}.self_attn.v_proj.weight", (kv, h)
        yield f"{p}.self_attn.o_proj.weight", (h, q)
        yield f"{p}.self_attn.q_norm.weight", (c["head_dim"],)
        yield f"{p}.self_attn.k_norm.weight", (c["head_dim"],)
        yield from mlp(f"{p}.mlp", h, c["intermediate_size"])
        yield f"{p}.input_layernorm.weight", (h,)
        yield f"{p}.post_attention_layernorm.weight", (h,)
    yield "model.norm.weight", (h,)
    yield "lm_head.weight", (c["vocab_size"], h)


def mlp(prefix: str, hidden: int, inter: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{prefix}.gate_proj.weight", (inter, hidden)
    yield f"{prefix}.up_proj.weight", (inter, hidden)
    yield f"{prefix}.down_proj.weight", (hidden, inter)


def mla_tensors(c: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """As the checkpoints of DeepSeek-V3 name them."""
    h, heads = c["hidden_size"], c["num_attention_heads"]
    head = c["qk_nope_head_dim"] + c["qk_rope_head_dim"]
    yield "model.embed_tokens.weight", (c["vocab_size"], h)
    for n in range(c["num_hidden_layers"]):
        p = f"model.layers.{n}"
        yield f"{p}.self_attn.q_a_proj.weight", (c["q_lora_rank"], h)
        yield f"{p}.self_attn.q_a_layernorm.weight", (c["q_lora_rank"],)
        yield f"{p}.self_attn.q_b_proj.weight", (heads * head, c["q_lora_rank"])
        yield f"{p}.self_attn.kv_a_proj_with_mqa.weight", (c["kv_lora_rank"] + c["qk_rope_head_dim"], h)
        yield f"{p}.self_attn.kv_a_layernorm.weight", (c["kv_lora_rank"],)
        both = c["qk_nope_head_dim"] + c["v_head_dim"]
        yield f"{p}.self_attn.kv_b_proj.weight", (heads * both, c["kv_lora_rank"])
        yield f"{p}.self_attn.o_proj.weight", (h, heads * c["v_head_dim"])
        yield f"{p}.input_layernorm.weight", (h,)
        yield f"{p}.post_attention_layernorm.weight", (h,)
        if n < c["first_k_dense_replace"]:
            yield from mlp(f"{p}.mlp", h, c["intermediate_size"])
            continue
        yield f"{p}.mlp.gate.weight", (c["n_routed_experts"], h)
        yield from mlp(f"{p}.mlp.shared_experts", h, c["moe_intermediate_size"])
        for e in range(c["n_routed_experts"]):
            yield from mlp(f"{p}.mlp.experts.{e}", h, c["moe_intermediate_size"])
    yield "model.norm.weight", (h,)
    yield "lm_head.weight", (c["vocab_size"], h)


def v4_tensors(c: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """As the checkpoints of DeepSeek-V4 name them."""
    h, q = c["hidden_size"], c["num_attention_heads"] * c["head_dim"]
    n_streams, groups, rank = c["hc_mult"], c["o_groups"], c["o_lora_rank"]
    mix = (2 + n_streams) * n_streams
    yield "embed.weight", (c["vocab_size"], h)
    for n, ratio in enumerate(c["compress_ratios"]):
        p = f"layers.{n}"
        yield f"{p}.attn.wq_a.weight", (c["q_lora_rank"], h)
        yield f"{p}.attn.q_norm.weight", (c["q_lora_rank"],)
        yield f"{p}.attn.wq_b.weight", (q, c["q_lora_rank"])
        yield f"{p}.attn.wkv.weight", (c["head_dim"], h)
        yield f"{p}.attn.kv_norm.weight", (c["head_dim"],)
        yield f"{p}.attn.wo_a.weight", (groups * rank, q // groups)
        yield f"{p}.attn.wo_b.weight", (h, groups * rank)
        yield f"{p}.attn.attn_sink", (c["num_attention_heads"],)
        if ratio:
            yield from compressor(f"{p}.attn.compressor", h, ratio, c["head_dim"])
        if ratio == 4:
            yield f"{p}.attn.indexer.wq_b.weight", (c["index_n_heads"] * c["index_head_dim"], c["q_lora_rank"])
            yield f"{p}.attn.indexer.weights_proj.weight", (c["index_n_heads"], h)
            yield from compressor(f"{p}.attn.indexer.compressor", h, ratio, c["index_head_dim"])
        yield f"{p}.attn_norm.weight", (h,)
        yield f"{p}.ffn_norm.weight", (h,)
        for name in ("attn", "ffn"):
            yield f"{p}.hc_{name}_fn", (mix, n_streams * h)
            yield f"{p}.hc_{name}_base", (mix,)
            yield f"{p}.hc_{name}_scale", (3,)
        yield f"{p}.ffn.gate.weight", (c["n_routed_experts"], h)
        for expert in ("shared_experts", *(f"experts.{e}" for e in range(c["n_routed_experts"]))):
            yield f"{p}.ffn.{expert}.w1.weight", (c["moe_intermediate_size"], h)
            yield f"{p}.ffn.{expert}.w3.weight", (c["moe_intermediate_size"], h)
            yield f"{p}.ffn.{expert}.w2.weight", (h, c["moe_intermediate_size"])
    yield "hc_head_fn", (n_streams, n_streams * h)
    yield "hc_head_base", (n_streams,)
    yield "hc_head_scale", (1,)
    yield "norm.weight", (h,)
    yield "head.weight", (c["vocab_size"], h)


def compressor(prefix: str, hidden: int, ratio: int, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    wide = width * (2 if ratio == 4 else 1)
    yield f"{prefix}.wkv.weight", (wide, hidden)
    yield f"{prefix}.wgate.weight", (wide, hidden)
    yield f"{prefix}.ape", (ratio, wide)
    yield f"{prefix}.norm.weight", (width,)


INDEXED = 4
"""Of DeepSeek-V4: layers of compression 4 have an indexer."""
KINDS = [(DENSE, dense_tensors), (MLA, mla_tensors), (V4, v4_tensors)]
NAMES = ["dense GQA", "MLA with experts", "V4"]


def size(shape: tuple[int, ...], dtype: str = "BF16") -> int:
    count = 1
    for part in shape:
        count *= part
    return count * WIDTH[dtype]


def shard(found: Mapping[str, tuple[tuple[int, ...], str]]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (shape, dtype) in found.items():
        end = offset + size(shape, dtype)
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + bytes(offset)


def checkpoint(folder: Path, config: Mapping[str, Any], shapes: Shapes, dtypes: Mapping[str, str], shards: int) -> int:
    """Writes a checkpoint and gives the bytes of its tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    names, weight_map, total = list(shapes), {}, 0
    for number in range(shards):
        part = {name: (shapes[name], dtypes.get(name, "BF16")) for name in names[number::shards]}
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        (folder / file).write_bytes(shard(part))
        weight_map.update(dict.fromkeys(part, file))
        total += sum(size(*entry) for entry in part.values())
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    return total


def live() -> LiveHost:
    return LiveHost(KnownEnv(frozenset(), ()))


@pytest.mark.parametrize(("config", "named"), KINDS, ids=NAMES)
def test_the_bytes_of_a_checkpoint_are_exact(tmp_path: Path, config: dict[str, Any], named: Any) -> None:
    total = checkpoint(tmp_path / "model", config, dict(named(config)), {}, 3)
    found = tensors(live(), str(tmp_path / "model")).value
    assert not isinstance(found, Missing)
    assert sum(tensor.bytes for tensor in found) == total
    assert all(tensor.bytes == tensor.count * size(tensor.shape, tensor.dtype) for tensor in found)
    assert sum(tensor.count for tensor in found) == len(dict(named(config)))


@pytest.mark.parametrize(("config", "named"), KINDS, ids=NAMES)
def test_the_shape_counts_the_very_parameters_of_the_tensors(config: dict[str, Any], named: Any) -> None:
    shape = shape_of(config, INDEXED)
    assert shape is not None
    assert parameters(shape) == sum(size(part) // 2 for _, part in named(config))


@pytest.mark.parametrize(("config", "named"), KINDS, ids=NAMES)
@pytest.mark.parametrize("split", [Split(2, 1, 1, 1), Split(4, 1, 4, 1), Split(1, 2, 1, 1), Split(8, 2, 8, 1)], ids=str)
def test_a_rank_holds_as_much_by_its_tensors_as_by_its_shape(config: dict[str, Any], named: Any, split: Split) -> None:
    from ascend_doctor.memory.weights import Format, pieces_of_shape

    shape = shape_of(config, INDEXED)
    assert shape is not None
    real = pieces_of_tensors([Tensor(name, "BF16", part, 1, size(part)) for name, part in named(config)], shape.layers)
    counted = pieces_of_shape(shape, Format("bf16", 16, 16, 16))
    assert rank_bytes(real, shape, split) == rank_bytes(counted, shape, split)


def test_a_rank_of_a_dense_model_holds_half_of_what_tp_2_splits() -> None:
    shape = shape_of(DENSE)
    assert shape is not None
    whole = sum(size(part) for name, part in dense_tensors(DENSE) if "norm" in name)
    split = sum(size(part) for name, part in dense_tensors(DENSE) if "norm" not in name)
    found = [Tensor(name, "BF16", part, 1, size(part)) for name, part in dense_tensors(DENSE)]
    assert rank_bytes(pieces_of_tensors(found, shape.layers), shape, Split(2, 1, 1, 1)) == whole + split // 2


def test_kv_heads_are_split_no_further_than_there_are() -> None:
    shape = shape_of(DENSE)
    assert shape is not None
    kv = [Tensor(n, "BF16", p, 1, size(p)) for n, p in dense_tensors(DENSE) if ".k_proj" in n or ".v_proj" in n]
    pieces = pieces_of_tensors(kv, shape.layers)
    assert rank_bytes(pieces, shape, Split(8, 1, 1, 1)) == sum(t.bytes for t in kv) // DENSE["num_key_value_heads"]


def test_experts_are_shared_out_whole_with_expert_parallelism() -> None:
    shape = shape_of(MLA)
    assert shape is not None
    experts = [Tensor(n, "BF16", p, 1, size(p)) for n, p in mla_tensors(MLA) if ".experts." in n]
    pieces = pieces_of_tensors(experts, shape.layers)
    assert rank_bytes(pieces, shape, Split(1, 1, 3, 3)) == sum(t.bytes for t in experts) * 3 // 8


def test_experts_without_expert_parallelism_are_split_over_tp_and_dp() -> None:
    shape = shape_of(MLA)
    assert shape is not None
    experts = [Tensor(n, "BF16", p, 1, size(p)) for n, p in mla_tensors(MLA) if ".experts." in n]
    pieces = pieces_of_tensors(experts, shape.layers)
    assert rank_bytes(pieces, shape, Split(2, 1, 1, 2)) == sum(t.bytes for t in experts) // 4


def test_layers_of_speculative_decoding_lie_with_the_last_stage() -> None:
    shape = shape_of(MLA)
    assert shape is not None
    mtp = [
        Tensor("model.layers.4.eh_proj.weight", "BF16", (64, 128), 1, 16384),
        Tensor("mtp.0.norm.weight", "BF16", (64,), 1, 128),
    ]
    assert rank_bytes(pieces_of_tensors(mtp, shape.layers), shape, Split(1, 4, 1, 1)) == 16512


def test_numbers_of_any_width_count_as_they_are(tmp_path: Path) -> None:
    shapes: Shapes = {"a.weight": (8, 4), "a.scale": (8, 1), "b.weight": (4,)}
    total = checkpoint(tmp_path / "m", {}, shapes, {"a.weight": "I8", "a.scale": "F8_E8M0", "b.weight": "F32"}, 1)
    assert total == 32 + 8 + 16
    found = tensors(live(), str(tmp_path / "m")).value
    assert not isinstance(found, Missing)
    assert sum(tensor.bytes for tensor in found) == total


def test_a_pointer_of_git_lfs_is_no_weight_file(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    found = tensors(live(), str(tmp_path)).value
    assert isinstance(found, Missing)
    assert found.reason is Reason.FAILED
    assert "git-lfs" in found.detail


def test_one_file_that_is_cut_leaves_the_whole_unknown(tmp_path: Path) -> None:
    checkpoint(tmp_path, DENSE, dict(dense_tensors(DENSE)), {}, 2)
    file = tmp_path / "model-00002-of-00002.safetensors"
    file.write_bytes(file.read_bytes()[:20])
    found = tensors(live(), str(tmp_path)).value
    assert isinstance(found, Missing)
    assert "model-00002-of-00002.safetensors" in found.detail


def test_a_file_that_the_index_names_and_that_is_not_there_leaves_the_whole_unknown(tmp_path: Path) -> None:
    checkpoint(tmp_path, DENSE, dict(dense_tensors(DENSE)), {}, 2)
    (tmp_path / "model-00001-of-00002.safetensors").unlink()
    found = tensors(live(), str(tmp_path)).value
    assert isinstance(found, Missing)
    assert "model-00001" in found.detail


def test_only_files_that_the_index_names_are_read(tmp_path: Path) -> None:
    total = checkpoint(tmp_path, DENSE, dict(dense_tensors(DENSE)), {}, 2)
    (tmp_path / "consolidated.safetensors").write_bytes(shard({"again": ((64, 64), "BF16")}))
    found = tensors(live(), str(tmp_path)).value
    assert not isinstance(found, Missing)
    assert sum(tensor.bytes for tensor in found) == total


def test_an_index_cannot_lead_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "../../etc/passwd.safetensors"}}))
    assert isinstance(weight_files(live(), str(tmp_path)), Missing)


def test_a_name_that_is_no_folder_is_named_only() -> None:
    found = demand(live(), Wishes("deepseek-ai/DeepSeek-V3")).facts
    assert isinstance(found.tensors, Missing)
    assert found.tensors.reason is Reason.ABSENT


@given(st.binary(max_size=400))
def test_any_bytes_give_tensors_or_missing(data: bytes) -> None:
    assert isinstance(header(io.BytesIO(data), {}), (Missing, type(None)))


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=9), x),
        max_leaves=9,
    )
)
def test_any_json_gives_tensors_or_missing(value: object) -> None:
    text = json.dumps(value).encode()
    assert isinstance(header(io.BytesIO(struct.pack("<Q", len(text)) + text), {}), (Missing, type(None)))


WORDS = sorted({*DENSE, *MLA, *V4})


@given(
    st.dictionaries(
        st.sampled_from(WORDS),
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers()),
    )
)
def test_any_config_gives_a_shape_or_nothing(config: dict[str, Any]) -> None:
    shape = shape_of(config, INDEXED)
    assert shape is None or isinstance(shape, Shape)
