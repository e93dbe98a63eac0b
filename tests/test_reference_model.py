"""The reference model: it is DeepSeek-V4, it holds the bytes that it says, and its choices can be replayed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from ascend_doctor.children.deepseek_v4 import shapes  # noqa: E402
from ascend_doctor.children.deepseek_v4.attention import softmax_with_sink  # noqa: E402
from ascend_doctor.children.deepseek_v4.caches import Caches, Ring  # noqa: E402
from ascend_doctor.children.deepseek_v4.config import Config  # noqa: E402
from ascend_doctor.children.deepseek_v4.hyper_connections import sinkhorn  # noqa: E402
from ascend_doctor.children.deepseek_v4.layers import layer_probes  # noqa: E402
from ascend_doctor.children.deepseek_v4.model import Model  # noqa: E402
from ascend_doctor.children.deepseek_v4.rotary import Rotary, compressed_frequencies, plain_frequencies  # noqa: E402
from ascend_doctor.children.deepseek_v4.routing import Choices, Routing, agreement  # noqa: E402
from ascend_doctor.children.deepseek_v4.weights import (  # noqa: E402
    seeded_weights,
    tensor_bytes,
    weights_digest,
    widened,
)

pytestmark = pytest.mark.torch
TORCH = tuple(int(number) for number in torch.__version__.split(".")[:2])

PROMPT, STEPS, SEED = 300, 40, 7
LENGTH = PROMPT + STEPS

MIXED = Config(
    vocabulary=512,
    hidden=256,
    ratios=(0, 4, 128, 4),
    heads=8,
    head_dim=64,
    rotary_dim=16,
    query_rank=64,
    output_groups=4,
    output_rank=32,
    window=32,
    index_heads=32,
    index_dim=32,
    index_topk=16,
    experts=16,
    experts_per_token=2,
    expert_width=128,
    hash_layers=1,
    routed_scale=1.5,
)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def weights() -> dict[str, Any]:
    return seeded_weights(MIXED, SEED, "fp32")


def tokens(batch: int = 1) -> Any:
    return torch.randint(0, MIXED.vocabulary, (batch, LENGTH), generator=torch.Generator().manual_seed(SEED))


def in_chunks(config: Config, weights: Any, sizes: list[int], routing: Routing, dtype: str = "fp32") -> Any:
    """Logits of all positions, the tokens given in pieces of these sizes."""
    model, caches = Model(config, weights, LENGTH), Caches(config, 1, LENGTH, dtype)
    out, start = [], 0
    for size in sizes:
        out.append(model.forward(tokens()[:, start : start + size], caches, start, routing))
        start += size
    return torch.cat(out, 1)


ONE_BY_ONE = [PROMPT, *[1] * STEPS]


@pytest.fixture(scope="module")
def golden(weights: dict[str, Any]) -> tuple[Any, Choices]:
    """Logits of a prompt and steps after it, and what was chosen."""
    recording = Routing.recording()
    return in_chunks(MIXED, weights, ONE_BY_ONE, recording), recording.choices


@pytest.mark.parametrize(
    ("ratios", "hash_layers"),
    [
        pytest.param((0, 0), 0, id="sliding window, scored routing"),
        pytest.param((0, 0), 2, id="sliding window, hash routing"),
        pytest.param((4, 4), 0, id="CSA"),
        pytest.param((128, 128), 0, id="HCA"),
        pytest.param((0, 4, 128, 4), 1, id="all kinds"),
    ],
)
def test_prompt_and_steps_are_those_of_transformers(ratios: tuple[int, ...], hash_layers: int) -> None:
    pytest.importorskip("transformers.models.deepseek_v4")
    from v4_oracle import their_model

    config = replace(MIXED, ratios=ratios, hash_layers=hash_layers)
    weights = seeded_weights(config, SEED, "fp32")
    theirs, cache, out = their_model(config, weights), None, []
    with torch.no_grad():
        for start, stop in ((0, PROMPT), *((at, at + 1) for at in range(PROMPT, LENGTH))):
            answer = theirs(tokens()[:, start:stop], cache=cache, use_cache=True)
            out.append(answer.logits)
            cache = answer.cache
    ours = in_chunks(config, weights, ONE_BY_ONE, Routing.free())
    assert float((ours - torch.cat(out, 1)).abs().max()) < 1e-5


# How the tokens come makes no difference


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([LENGTH], id="at once"),
        pytest.param([1, 3, 100, 7, 150, 39, 40], id="across windows"),
        pytest.param([128, 128, 84], id="whole windows"),
    ],
)
def test_a_prompt_in_pieces_gives_the_same(weights: Any, golden: Any, sizes: list[int]) -> None:
    assert float((in_chunks(MIXED, weights, sizes, Routing.free()) - golden[0]).abs().max()) < 1e-5


def test_a_sequence_beside_others_gives_the_same(weights: Any) -> None:
    model, together = Model(MIXED, weights, LENGTH), Caches(MIXED, 2, LENGTH, "fp32")
    both = model.forward(tokens(batch=2), together, 0)
    alone = model.forward(tokens(batch=2)[1:], Caches(MIXED, 1, LENGTH, "fp32"), 0)
    assert float((both[1:] - alone).abs().max()) < 1e-5


def test_the_last_position_alone_is_that_of_all(weights: Any) -> None:
    model = Model(MIXED, weights, LENGTH)
    whole = model.forward(tokens(), Caches(MIXED, 1, LENGTH, "fp32"), 0)
    last = model.forward(tokens(), Caches(MIXED, 1, LENGTH, "fp32"), 0, last_only=True)
    assert float((whole[:, -1:] - last).abs().max()) < 1e-5


def test_more_tokens_than_positions_are_refused(weights: Any) -> None:
    model, caches = Model(MIXED, weights, LENGTH), Caches(MIXED, 1, 320, "fp32")
    with pytest.raises(ValueError, match=r"340 tokens from position 0 on are more than the 320 positions"):
        model.forward(tokens(), caches, 0)


# Memory


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_weights_have_the_bytes_that_were_predicted(dtype: str) -> None:
    assert tensor_bytes(seeded_weights(MIXED, SEED, dtype)) == shapes.weight_bytes(MIXED, dtype)


@pytest.mark.parametrize(("dtype", "batch", "length"), [("fp32", 1, LENGTH), ("bf16", 3, 1001)])
def test_caches_have_the_bytes_that_were_predicted(dtype: str, batch: int, length: int) -> None:
    assert Caches(MIXED, batch, length, dtype).bytes() == shapes.cache_bytes(MIXED, batch, length, dtype)


def test_tables_have_the_bytes_that_were_predicted(weights: Any) -> None:
    model = Model(MIXED, weights, LENGTH)
    tables = [table for rotary in (model.plain, model.compressed) for table in (rotary.cosines, rotary.sines)]
    assert sum(table.numel() * table.element_size() for table in tables) == shapes.table_bytes(MIXED, LENGTH)


def test_a_token_of_pro_and_of_flash_takes_the_published_cache() -> None:
    """9848 and 6880 bytes of bf16: CSA and HCA layers of the real models, their real widths."""
    for layers, published in (((128, *(128, 4) * 30), 9848), ((0, 0, *(4, 128) * 20, 4), 6880)):
        config = replace(MIXED, ratios=layers, head_dim=512, index_dim=128)
        few, many = (shapes.cache_bytes(config, 1, length, "bf16") for length in (1280, 2560))
        assert int((many - few) / 1280) == published


def test_caches_stay_where_they_are(weights: Any) -> None:
    model, caches = Model(MIXED, weights, LENGTH), Caches(MIXED, 1, LENGTH, "fp32")
    before = caches.addresses()
    model.forward(tokens()[:, :PROMPT], caches, 0)
    model.forward(tokens()[:, PROMPT : PROMPT + 1], caches, PROMPT)
    caches.reset()
    assert caches.addresses() == before


def test_all_caches_are_written(weights: Any) -> None:
    caches = Caches(MIXED, 1, LENGTH, "fp32")
    Model(MIXED, weights, LENGTH).forward(tokens(), caches, 0)
    assert not [name for name, tensor in caches.tensors().items() if not tensor.all(-1).all()]


class Live(TorchDispatchMode):  # type: ignore[misc]
    """Bytes of the tensors that operators made and that are still held."""

    def __init__(self, known: list[Any]) -> None:
        super().__init__()
        self.held = {tensor.untyped_storage().data_ptr(): 0 for tensor in known}
        self.most = 0

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = operator(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (list, tuple)) else [made]:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in self.held:
                self.held[storage.data_ptr()] = storage.nbytes()
                weakref.finalize(storage, self.held.pop, storage.data_ptr(), None)
                self.most = max(self.most, sum(self.held.values()))
        return made


@pytest.mark.skipif(TORCH < (2, 3), reason="storages of older torch cannot be told apart")
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(("start", "count"), [(0, 40), (0, PROMPT), (LENGTH - 1, 1)])
def test_what_a_pass_holds_is_within_what_was_predicted(dtype: str, start: int, count: int) -> None:
    drawn, caches = seeded_weights(MIXED, SEED, dtype), Caches(MIXED, 1, LENGTH, dtype)
    model, asked = Model(MIXED, drawn, LENGTH), tokens()[:, start : start + count]
    known = [*drawn.values(), *caches.tensors().values(), asked, model.plain.cosines, model.plain.sines]
    with Live([*known, model.compressed.cosines, model.compressed.sines]) as live:
        model.forward(asked, caches, start)
    predicted = shapes.activation_bytes(MIXED, 1, count, start + count, dtype)
    assert predicted / 3 < live.most <= predicted


# Seeds


def test_a_seed_gives_the_same_weights_again() -> None:
    first, again, other = (weights_digest(seeded_weights(MIXED, seed, "bf16")) for seed in (1, 1, 2))
    assert first == again != other


def test_a_digest_tells_one_changed_number(weights: Any) -> None:
    before = weights_digest(weights)
    changed = {**weights, "norm": weights["norm"].clone()}
    changed["norm"][-1] += 1e-6
    assert weights_digest(changed) != before


def test_golden_weights_are_the_rounded_ones() -> None:
    rounded = seeded_weights(MIXED, SEED, "fp32", rounded_to="bf16")
    assert weights_digest(rounded) == weights_digest(widened(seeded_weights(MIXED, SEED, "bf16")))


# Routing


def test_replayed_choices_give_the_same_bits(weights: Any, golden: Any) -> None:
    logits, choices = golden
    assert torch.equal(logits, in_chunks(MIXED, weights, ONE_BY_ONE, Routing.replaying(choices)))


def test_choices_may_be_replayed_in_other_pieces(weights: Any, golden: Any) -> None:
    logits, choices = golden
    pieces = in_chunks(MIXED, weights, [7, 250, 83], Routing.replaying(choices))
    assert float((logits - pieces).abs().max()) < 1e-5


@pytest.mark.parametrize(("dtype", "most", "least_cosine"), [("bf16", 0.06, 0.998), ("fp16", 0.01, 0.9999)])
def test_narrow_numbers_stay_near_the_golden_run_where_choices_are_replayed(
    dtype: str, most: float, least_cosine: float
) -> None:
    if dtype == "fp16" and TORCH < (2, 2):
        pytest.skip("older torch multiplies no fp16 on the CPU")
    narrow, recording = seeded_weights(MIXED, SEED, dtype), Routing.recording()
    right = in_chunks(MIXED, widened(narrow), [LENGTH], recording)
    ours = in_chunks(MIXED, narrow, ONE_BY_ONE, Routing.replaying(recording.choices), dtype).float()
    relative = (ours - right).norm(dim=-1) / right.norm(dim=-1)
    assert float(relative.max()) <= most
    assert float(torch.cosine_similarity(ours, right, dim=-1).min()) >= least_cosine


def test_other_choices_give_other_numbers(weights: Any, golden: Any) -> None:
    """What is replayed is used: each expert replaced by the next one."""
    (right, choices), wrong = golden, Choices()
    for part, layer in choices.made():
        chosen = choices.all(part, layer)
        wrong.note(part, layer, 0, (chosen + 1) % MIXED.experts if part == "experts" else chosen)
    relative = (in_chunks(MIXED, weights, [LENGTH], Routing.replaying(wrong)) - right).norm() / right.norm()
    assert float(relative) > 0.3


def test_choices_that_were_not_recorded_are_no_choices(weights: Any) -> None:
    recording = Routing.recording()
    in_chunks(MIXED, weights, [100], recording)
    with pytest.raises(ValueError, match="no choice of experts is recorded for layer 0, positions 0 to 339"):
        in_chunks(MIXED, weights, [LENGTH], Routing.replaying(recording.choices))


def test_a_run_agrees_with_itself_and_not_with_another_seed(golden: Any) -> None:
    others = Routing.recording()
    in_chunks(MIXED, seeded_weights(MIXED, SEED + 1, "fp32"), [LENGTH], others)
    same, different = (agreement(golden[1], run, MIXED) for run in (golden[1], others.choices))
    assert [same[name] for name in ("experts", "hash", "index")] == [1.0, 1.0, 1.0]
    assert all(different[name] < 0.6 for name in ("experts", "hash", "index"))


def test_a_token_gets_its_own_experts_in_a_hash_layer(weights: Any, golden: Any) -> None:
    assert torch.equal(golden[1].experts(0), weights["layers.0.experts.table"][tokens()])


def test_a_token_never_gets_the_same_expert_twice(weights: Any) -> None:
    table = weights["layers.0.experts.table"]
    assert not (table[:, :1] == table[:, 1:]).any()


# Parts


@pytest.mark.parametrize(
    ("name", "probe"), layer_probes(MIXED), ids=lambda value: value if isinstance(value, str) else ""
)
def test_each_part_alone_stays_near_its_golden_run(name: str, probe: Any) -> None:
    narrow, golden = seeded_weights(MIXED, SEED, "bf16"), Routing.recording()
    right = probe(widened(narrow), SEED, golden)
    ours = probe(narrow, SEED, Routing.replaying(golden.choices))
    for output in right:
        assert float((ours[output].float() - right[output]).norm() / right[output].norm()) < 0.02


def test_the_probe_of_csa_makes_the_indexer_choose(weights: Any) -> None:
    recording = Routing.recording()
    dict(layer_probes(MIXED))["csa"](weights, SEED, recording)
    last = recording.choices.index(0)[0, -1]
    assert sorted(last.tolist()) != list(range(MIXED.index_topk))


@pytest.mark.parametrize("frequencies", [plain_frequencies, compressed_frequencies])
@pytest.mark.parametrize("shape", [(2, 50, 64), (1, 50, 8, 64)])
def test_turning_back_undoes_turning(frequencies: Any, shape: tuple[int, ...]) -> None:
    rotary = Rotary(frequencies(MIXED), 100, "cpu")
    x = torch.randn(shape, generator=torch.Generator().manual_seed(SEED))
    assert float((rotary.turned(rotary.turned(x, 30), 30, back=True) - x).abs().max()) < 1e-6


def test_turned_vectors_tell_distances_only() -> None:
    rotary = Rotary(plain_frequencies(MIXED), 200, "cpu")
    query, key = torch.randn((2, 1, 1, 64), generator=torch.Generator().manual_seed(SEED)).double().unbind(0)
    near, far = (
        float((rotary.turned(query, at).double() * rotary.turned(key, at - 9).double()).sum()) for at in (10, 190)
    )
    assert near == pytest.approx(far, abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.1, 1.0))
def test_the_rows_and_columns_of_a_mixing_matrix_sum_to_one(seed: int, scale: float) -> None:
    logits = torch.randn((5, 4, 4), generator=torch.Generator().manual_seed(seed)) * scale
    mixing = sinkhorn(logits, 20, 1e-6)
    assert torch.allclose(mixing.sum(-2), torch.ones(5, 4), atol=1e-5)
    assert torch.allclose(mixing.sum(-1), torch.ones(5, 4), atol=2e-3)


def test_a_sink_takes_its_share() -> None:
    shares = softmax_with_sink(torch.zeros(1, 1, 1, 3), torch.zeros(1))
    assert shares.flatten().tolist() == pytest.approx([0.25, 0.25, 0.25])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_a_ring_has_the_last_rows_however_they_came(sizes: list[int]) -> None:
    ring, rows, start = Ring(torch.zeros(1, 8, 1)), torch.arange(1.0, 200.0).view(1, -1, 1), 0
    for size in sizes:
        ring.write(start, rows[:, start : start + size])
        start += size
    first = max(0, start - 8)
    assert torch.equal(ring.followed_by(first, start, rows[:, start : start + 2]), rows[:, first : start + 2])


# Sizes that make no model


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heads": 6}, "6 heads make no 4 output_groups"),
        ({"ratios": [0, 5]}, "ratios are of"),
        ({"ratios": []}, "at least one layer"),
        ({"experts": 1}, "2 experts for each token of 1 experts"),
        ({"hidden": 0}, "hidden is a number above 0"),
        ({"hidden": 12.5}, "hidden is a whole number"),
        ({"hidden": "256"}, "hidden is a number above 0, not '256'"),
        ({"rotary_dim": 15}, "rotary_dim 15 is odd"),
        ({"index_dim": 8}, "rotary_dim is above head_dim or index_dim"),
        ({"depth": 3}, "a model has no depth"),
    ],
)
def test_sizes_that_make_no_model_are_refused(change: dict[str, Any], words: str) -> None:
    values = {**MIXED.__dict__, "ratios": list(MIXED.ratios), **change}
    with pytest.raises(ValueError, match=words):
        Config.of(values)


def test_a_size_that_is_not_given_is_named() -> None:
    values = {name: value for name, value in MIXED.__dict__.items() if name != "window"}
    with pytest.raises(ValueError, match="a model needs window"):
        Config.of(values)
