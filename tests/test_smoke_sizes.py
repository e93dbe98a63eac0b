"""The sizes of the reference model: shipped ones are what they say, and what makes no sense is refused in words."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from ascend_doctor.children.deepseek_v4.config import CSA, HCA, SLIDING, Config
from ascend_doctor.children.deepseek_v4.shapes import (
    TABLE,
    cache_bytes,
    largest_draw,
    parameter_shapes,
    weight_bytes,
)
from ascend_doctor.knowledge import models, smoke_sizes
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.paths import data_folder

RULES = [data_folder("rules")]
SIZES = smoke_sizes.load(RULES)
NAMES = ("tiny", "default", "flash-width", "pro-width")


def kinds(config: Config) -> list[str]:
    return [config.kind(layer) for layer in range(config.layers)]


def test_there_are_four_sizes() -> None:
    assert tuple(SIZES.entries) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_size_has_hash_and_scored_experts(name: str) -> None:
    config = SIZES.named(name).config
    assert 0 < config.hash_layers < config.layers


@pytest.mark.parametrize("name", ["tiny", "default", "flash-width"])
def test_each_kind_of_attention_is_there(name: str) -> None:
    assert set(kinds(SIZES.named(name).config)) == {SLIDING, CSA, HCA}


def test_pro_has_no_layer_with_a_window_alone() -> None:
    assert set(kinds(SIZES.named("pro-width").config)) == {CSA, HCA}


@pytest.mark.parametrize("name", NAMES)
def test_index_scores_of_many_heads_are_no_ties(name: str) -> None:
    """With few heads ReLU leaves scores of exactly 0, and a choice among those is nobody's fault."""
    assert SIZES.named(name).config.index_heads >= 32


@pytest.mark.parametrize("name", NAMES)
def test_a_window_of_hca_fills_while_decoding(name: str) -> None:
    size = SIZES.named(name)
    assert size.sequence // 128 < size.length // 128


IN_THEIR_WORDS = {
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "head_dim": "head_dim",
    "rotary_dim": "qk_rope_head_dim",
    "query_rank": "q_lora_rank",
    "output_groups": "o_groups",
    "output_rank": "o_lora_rank",
    "window": "sliding_window",
    "index_heads": "index_n_heads",
    "index_dim": "index_head_dim",
    "experts_per_token": "num_experts_per_tok",
    "expert_width": "moe_intermediate_size",
    "streams": "hc_mult",
}


@pytest.mark.parametrize(("name", "model"), [("flash-width", "DeepSeek-V4-Flash"), ("pro-width", "DeepSeek-V4-Pro")])
def test_widths_are_those_of_the_real_model(name: str, model: str) -> None:
    config, real = SIZES.named(name).config, models.load(RULES).named(model)
    assert real is not None
    ours = {theirs: getattr(config, word) for word, theirs in IN_THEIR_WORDS.items()}
    assert ours == {theirs: real.config[theirs] for theirs in IN_THEIR_WORDS.values()}


@pytest.mark.parametrize("name", ["flash-width", "pro-width"])
def test_kinds_of_layers_are_those_of_the_real_model(name: str) -> None:
    """As many layers as the real model has are of its kinds, as often."""
    size = SIZES.named(name)
    real = models.load(RULES).named({"flash-width": "DeepSeek-V4-Flash", "pro-width": "DeepSeek-V4-Pro"}[name])
    assert real is not None
    assert set(size.config.ratios) == set(real.config["compress_ratios"])


@pytest.mark.parametrize(("name", "model"), [("flash-width", "DeepSeek-V4-Flash"), ("pro-width", "DeepSeek-V4-Pro")])
def test_with_all_layers_and_experts_it_has_the_parameters_of_the_real_model(name: str, model: str) -> None:
    """To the last one. The bias of a choice is learned apart and is no parameter, nor are tables of experts."""
    real = models.load(RULES).named(model)
    assert real is not None
    whole = replace(
        SIZES.named(name).config,
        ratios=tuple(real.config["compress_ratios"]),
        vocabulary=real.config["vocab_size"],
        experts=real.config["n_routed_experts"],
        hash_layers=3,
    )
    parameters = parameter_shapes(whole).items()
    counted = (prod(p.shape) for at, p in parameters if p.filled != TABLE and not at.endswith("experts.choice"))
    assert sum(counted) == real.parameters


def test_two_runs_of_default_fit_beside_each_other() -> None:
    """The golden one and the other, and torch, within 2.5 GiB."""
    config = SIZES.named("default").config
    assert weight_bytes(config, "fp32") + weight_bytes(config, "bf16") + largest_draw(config) < 1.75 * (1 << 30)


def test_caches_of_default_are_small() -> None:
    size = SIZES.named("default")
    assert cache_bytes(size.config, 1, size.length, "bf16") < 1 << 20


def test_further_layers_are_of_the_kinds_that_the_size_names() -> None:
    changed = SIZES.named("tiny").changed(layers=6)
    assert changed.config.ratios == (0, 4, 128, 4, 128, 4)


def test_fewer_layers_are_the_first_ones() -> None:
    assert SIZES.named("default").changed(layers=2).config.ratios == (0, 4)


def test_experts_format_and_tokens_can_be_changed() -> None:
    size = SIZES.named("tiny").changed(experts=32, dtype="fp16", sequence=500, decode=8)
    assert (size.config.experts, size.dtype, size.sequence, size.decode, size.length) == (32, "fp16", 500, 8, 508)


def test_what_is_not_changed_stays() -> None:
    assert SIZES.named("default").changed() == SIZES.named("default")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": 0}, "0 layers: give 1 to 61"),
        ({"layers": -3}, "-3 layers: give 1 to 61"),
        ({"layers": 62}, "62 layers: give 1 to 61"),
        ({"experts": 1}, "1 experts: each token of size tiny goes through 2"),
        ({"experts": 385}, "no DeepSeek-V4 has more than 384"),
        ({"dtype": "bf61"}, "dtype bf61 is none of fp32, bf16, fp16; did you mean bf16"),
        ({"sequence": 127}, "a prompt of 127 tokens shows less .* from 128 tokens on"),
        ({"layers": 2, "sequence": 67}, "from 68 tokens on"),
        ({"decode": 0}, "0 tokens to decode: give at least 1"),
        ({"sequence": 1048576}, "1048640 positions are more than the 1048576"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(RuleError, match=words):
        SIZES.named("tiny").changed(**change)


def test_a_name_that_is_unknown_gets_the_nearest() -> None:
    with pytest.raises(RuleError, match="there is no size defualt; did you mean default"):
        SIZES.named("defualt")


SITE = """
sources:
  site: {title: "ours", url: "", confidence: field-report}
sizes:
  - id: "site"
    says: {en: "ours"}
    config: {vocabulary: 512, hidden: 256, ratios: [0], heads: 8, head_dim: 64, rotary_dim: 16, query_rank: 64,
             output_groups: 4, output_rank: 32, window: 32, index_heads: 32, index_dim: 32, index_topk: 16, experts: 16,
             experts_per_token: 2, expert_width: 128, hash_layers: 0, routed_scale: 1.5}
    sequence: 40
    decode: 8
    dtype: "bf16"
    source: site
"""


def with_site(folder: Path, text: str) -> smoke_sizes.Sizes:
    (folder / "smoke").mkdir()
    (folder / "smoke" / "sizes.yaml").write_text(text, encoding="utf-8")
    return smoke_sizes.load([*RULES, folder])


def test_a_site_may_add_a_size(tmp_path: Path) -> None:
    assert with_site(tmp_path, SITE).named("site").length == 48


def test_a_size_that_names_no_further_layers_has_none(tmp_path: Path) -> None:
    size = with_site(tmp_path, SITE).named("site")
    with pytest.raises(RuleError, match="size site has 1 layers and names no kinds of further ones"):
        size.changed(layers=2)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("hidden: 256, ", "", "sizes.yaml: sizes, entry 1: a model needs hidden"),
        ("heads: 8,", "heads: 6,", "6 heads make no 4 output_groups"),
        ("sequence: 40", "sequence: 20", "a prompt of 20 tokens shows less"),
        ("decode: 8", "decode: many", "decode has to be a whole number above 0, not 'many'"),
        ("source: site", "source: nobody", "sources has to name entries of sources"),
        ("config: {", "config: 5\n    other: {", "config has to be a mapping"),
    ],
)
def test_a_size_that_is_wrong_is_named_with_its_place(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert before in SITE
    with pytest.raises(RuleError, match=words):
        with_site(tmp_path, SITE.replace(before, after))
