"""The memory of a model: published sums, what fits, what would, and the verb that says it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Callable

import jsonschema
import pytest
from click.testing import CliRunner
from hosts import FOLDER, host
from hypothesis import given, settings
from hypothesis import strategies as st
from test_safetensors import DENSE, MLA, V4, checkpoint, dense_tensors, mla_tensors, v4_tensors

from ascend_doctor.cli.memory import command
from ascend_doctor.derive.budget import Sum, sums
from ascend_doctor.facts import env, npu
from ascend_doctor.facts.demand import Demand, Wishes, demand
from ascend_doctor.facts.safetensors import Tensor
from ascend_doctor.host import Missing
from ascend_doctor.knowledge import cards, limits, models
from ascend_doctor.memory.budget import (
    Costs,
    Plan,
    Room,
    Subject,
    cards_for_weights,
    guide_line,
    largest,
    lines,
    most,
    short_bytes,
    side,
)
from ascend_doctor.memory.kv_cache import cache_of, whole_token
from ascend_doctor.memory.shapes import Shape, parameters, shape_of
from ascend_doctor.memory.weights import Format, Split, pieces_of_shape, stages
from ascend_doctor.paths import data_folder

KNOWN = models.load([data_folder("rules")])
CARDS = cards.load([data_folder("rules")])
LIMITS = limits.load([data_folder("rules")])
COSTS = Costs(runtime_mib=800, graphs_mib=512, copies=8, buffer_mib=200, firmware_mib=4096)
COMPUTED = [model.id for model in KNOWN.models if shape_of(model.config, KNOWN.indexed_ratio(model.config))]


def shape(name: str) -> Shape:
    model = KNOWN.named(name)
    found = shape_of(model.config, KNOWN.indexed_ratio(model.config)) if model else None
    assert found is not None
    return found


def subject(name: str, form: str | None = None) -> Subject:
    model = KNOWN.named(name)
    assert model is not None
    chosen = KNOWN.format(form or model.native)
    assert chosen is not None
    numbers = Format(chosen.name, chosen.experts, chosen.embeddings, chosen.other)
    return Subject(shape(name), pieces_of_shape(shape(name), numbers), chosen.name)


def plan(tp: int = 1, tokens: int = 4096, sequences: int = 1, pp: int = 1, ep: int = 1) -> Plan:
    return Plan(Split(tp, pp, ep, 1), sequences, tokens, 2, 2048, False)


def room(gib: float, fraction: float = 0.9) -> Room:
    return Room(int(gib * (1 << 30)), int(gib * (1 << 30)), fraction, False)


def summed(asked: Demand, changes: dict[str, Any] | None = None) -> Sum:
    machine = host("a2-healthy", changes)
    found = sums(asked, npu.collect(machine).facts, env.collect(machine).facts, KNOWN, CARDS, LIMITS)
    assert isinstance(found, tuple)
    return found[0]


def answered(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return getattr(done.exception, "exit_code", 1), str(done.exception)
    return int(done.return_value or 0), done.output


SCHEMA = jsonschema.Draft202012Validator(json.loads((data_folder("reports") / "schema.json").read_text("utf-8")))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The verb runs on a test host, which may be a delta."""

    def use(name: str, changes: dict[str, Any] | None = None) -> None:
        monkeypatch.setattr("ascend_doctor.cli.memory.chosen_host", lambda *_: host(name, changes))

    return use


def memory(*arguments: str) -> dict[str, Any]:
    code, text = answered("--format", "json", *arguments)
    run = json.loads(text)
    SCHEMA.validate(run)
    assert run["kind"] == "memory"
    assert code == run["gate"]["exit_code"]
    found: dict[str, Any] = run["memory"]
    return found


# Published figures


@pytest.mark.parametrize("name", COMPUTED)
def test_the_shape_gives_the_published_number_of_parameters(name: str) -> None:
    model = KNOWN.named(name)
    assert model is not None
    assert abs(parameters(shape(name)) - model.parameters) <= model.parameters // 1000


@pytest.mark.parametrize(
    ("name", "form", "published"),
    [
        ("DeepSeek-V4-Pro", "fp4_fp8", 849_500_000_000),
        ("DeepSeek-V4-Pro", "w4a8", 850_000_000_000),
        ("DeepSeek-V4-Pro", "bf16", 3_145_994_358_982),
        ("DeepSeek-V4-Flash", "fp4_fp8", 155_500_000_000),
        ("DeepSeek-V4-Flash", "w8a8", 284_300_000_000),
        ("DeepSeek-V3", "fp8", 671_000_000_000),
        ("DeepSeek-V3", "bf16", 1_342_052_808_704),
        ("DeepSeek-V3.2", "fp8", 671_000_000_000),
        ("Qwen3-32B", "bf16", 65_524_246_528),
        ("Qwen3-235B-A22B", "bf16", 470_187_269_120),
        ("Qwen2.5-7B", "bf16", 15_231_233_024),
        ("Llama-3-70B", "bf16", 141_107_412_992),
    ],
)
def test_weights_are_within_one_percent_of_what_was_published(name: str, form: str, published: int) -> None:
    assert abs(subject(name, form).weights - published) < published / 100


@pytest.mark.parametrize(
    ("name", "token"),
    [
        ("DeepSeek-V4-Pro", 9848),
        ("DeepSeek-V4-Flash", 6880),
        ("DeepSeek-V3", 70272),
        ("DeepSeek-V3.2", 78080),
        ("Qwen3-32B", 262144),
        ("Qwen3-235B-A22B", 192512),
        ("Qwen2.5-7B", 57344),
        ("Llama-3-8B", 131072),
    ],
)
def test_a_token_takes_the_published_bytes_of_cache(name: str, token: int) -> None:
    assert whole_token(shape(name)) == token


@pytest.mark.parametrize(("name", "window"), [("DeepSeek-V4-Pro", 7_995_392), ("DeepSeek-V4-Flash", 5_636_096)])
def test_a_sequence_of_v4_takes_its_windows_beside_its_tokens(name: str, window: int) -> None:
    assert cache_of(shape(name), Split(1, 1, 1, 1)).sequence == window


@pytest.mark.parametrize(("card", "count"), [(32, 30), (64, 15), (96, 10), (112, 9), (128, 8), (144, 7)])
def test_v4_pro_needs_the_published_number_of_cards(card: int, count: int) -> None:
    assert cards_for_weights(subject("DeepSeek-V4-Pro"), Room(card * 10**9, card * 10**9, 0.9, False)) == count
    assert memory("--model", "DeepSeek-V4-Pro", "--card", f"{card}GB")["cards_needed"] == count


def test_qwen3_32b_needs_two_cards_of_64_gib_and_runs_on_four() -> None:
    one = memory("--model", "Qwen3-32B", "--card", "910B3", "--max-model-len", "8192")
    four = memory("--model", "Qwen3-32B", "--card", "910B3", "--tp", "4", "--max-model-len", "8192")
    assert (one["fits"], one["cards_needed"], one["largest"]["quantization"]) == (False, 2, "fp8")
    assert four["fits"]
    assert four["rows"][0]["bytes"] == pytest.approx(65_524_246_528 / 4, rel=0.001)


def test_a_card_of_32_gib_has_no_room_for_14b_and_its_cache() -> None:
    """vllm-ascend issue 9372: weights of 27.54 GiB, then `Available KV cache memory: -0.87 GiB`."""
    found = memory("--model", "Qwen3-14B", "--card", "32GiB", "--max-model-len", "4096", "--enforce-eager")
    assert found["rows"][0]["bytes"] / (1 << 30) == pytest.approx(27.54, rel=0.01)
    assert not found["fits"]
    assert found["largest"]["layout"].startswith("2 ")


def test_v4_flash_in_w8a8_does_not_fit_on_eight_cards_of_32_gib() -> None:
    """vllm-ascend issue 8746."""
    found = memory(
        "--model", "DeepSeek-V4-Flash-w8a8-mtp", "--card", "910B4", "--tp", "8", "--ep", "8", "--max-model-len", "4096"
    )
    assert found["format"] == "w8a8"
    assert not found["fits"]
    assert found["cards_needed"] > 8


def test_v4_pro_in_w4a8_fits_on_the_servers_on_which_it_was_validated() -> None:
    """Two Atlas 800 A3: 32 devices of 64 GiB."""
    found = memory(
        *("--model", "DeepSeek-V4-Pro-w4a8-mtp", "--card", "A3", "--tp", "16", "--dp", "2", "--ep", "32"),
        *("--max-model-len", "65536"),
    )
    assert (found["format"], found["fits"]) == ("w4a8", True)


def test_where_no_shape_is_published_the_makers_figures_are_used() -> None:
    found = memory("--model", "DeepSeek-V4.1-Flash", "--card", "A3", "--tp", "16", "--max-model-len", "8192")
    assert found["weights_bytes"] == 510_000_000_000
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["kv_cache"]["bytes"] == 890 * 8192


def test_the_sum_for_ascend_mem_size_is_one_of_the_rows() -> None:
    line = guide_line(32768 << 20, COSTS)
    assert (line.bytes >> 20, line.formula) == (27872, "32768 - 4096 - 800 MiB")
    rows = memory("--model", "Qwen3-8B", "--card", "910B4", "--max-model-len", "4096")["rows"]
    found = next(row for row in rows if row["name"] == "ascend_mem_size")
    assert (found["bytes"] >> 20, found["side"]) == (27872, "beside")
    assert found["bytes"] >> 20 < 28000


# Real files


@pytest.mark.parametrize(
    ("config", "named"), [(DENSE, dense_tensors), (MLA, mla_tensors), (V4, v4_tensors)], ids=["dense", "mla", "v4"]
)
def test_the_verb_counts_a_folder_to_the_byte(tmp_path: Path, config: dict[str, Any], named: Any) -> None:
    total = checkpoint(tmp_path / "model", config, dict(named(config)), {}, 4)
    found = memory("--model", str(tmp_path / "model"), "--card", "64GB", "--max-model-len", "128")
    assert found["weights_bytes"] == total
    assert found["rows"][0]["bytes"] == total
    assert found["fits"]


@pytest.mark.parametrize(("dtype", "smaller"), [("BF16", "fp8"), ("I8", "")])
def test_files_in_bf16_that_do_not_fit_are_told_the_format_that_would(dtype: str, smaller: str) -> None:
    model = KNOWN.named("Qwen3-14B")
    assert model is not None
    files = (Tensor("model.layers.0.mlp.up_proj.weight", dtype, (5120, 1442218), 2, 29_536_614_400),)
    asked = Demand("/m", Wishes("/m", card="32GiB", max_model_len=4096), json.dumps(model.config), files)
    found = summed(asked)
    assert (found.fits, found.format, found.smaller_format) == (False, "files", smaller)


def test_files_that_cannot_be_read_leave_the_sum_open(tmp_path: Path) -> None:
    checkpoint(tmp_path / "model", DENSE, dict(dense_tensors(DENSE)), {}, 2)
    (tmp_path / "model" / "model-00001-of-00002.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    code, text = answered("--model", str(tmp_path / "model"), "--card", "64GB", "--format", "json")
    run = json.loads(text)
    assert (code, run["memory"]["fits"]) == (3, None)
    missing = [m for f in run["findings"] for m in f["missing"]]
    assert any("git-lfs" in m["detail"] for m in missing)


@pytest.mark.parametrize(("card", "code", "fits"), [("64GB", 3, None), ("1MB", 1, False)])
def test_without_its_cache_a_sum_may_show_that_it_does_not_fit_and_never_that_it_does(
    tmp_path: Path, card: str, code: int, fits: bool | None
) -> None:
    checkpoint(tmp_path / "model", {**DENSE, "model_type": "gemma3"}, dict(dense_tensors(DENSE)), {}, 1)
    got, text = answered("--model", str(tmp_path / "model"), "--card", card, "--format", "json")
    assert (got, json.loads(text)["memory"]["fits"]) == (code, fits)


def test_a_folder_without_weight_files_is_counted_by_its_shape(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**DENSE, "torch_dtype": "bfloat16"}))
    found = memory("--model", str(tmp_path), "--card", "64GB", "--max-model-len", "128")
    small = shape_of(DENSE)
    assert small is not None
    assert found["weights_bytes"] == pytest.approx(2 * parameters(small), rel=0.001)


# Against a host


def test_the_chips_that_are_here_are_what_is_compared_with() -> None:
    found = memory(
        *("--model", "Qwen3-32B", "--tp", "4", "--max-model-len", "8192"), "--snapshot", str(FOLDER / "a2-healthy")
    )
    assert found["card_bytes"] == 65536 << 20
    assert found["free_bytes"] < found["card_bytes"]
    assert found["fits"]


def test_a_chip_that_another_service_holds_is_short_and_its_holder_named(here: Callable[..., None]) -> None:
    """vllm-ascend issue 14628: less is free than the share, so the service refuses to start."""
    here("a2-hbm-held")
    found = memory("--model", "Qwen3-8B", "--max-model-len", "8192")
    assert not found["fits"]
    assert found["held_by"] == "78617 python3"
    assert found["short_bytes"] == int((65536 << 20) * Fraction("0.9")) - ((65536 - 60312) << 20)


def test_a_smaller_share_must_still_hold_the_weights(here: Callable[..., None]) -> None:
    here("a2-hbm-held")
    found = memory("--model", "Qwen2.5-7B", "--max-model-len", "1024", "--gpu-memory-utilization", "0.05")
    assert found["short_bytes"] > 0


@pytest.mark.parametrize("name", ["bare-linux", "a2-npu-smi-hangs"])
def test_without_an_npu_that_answers_nobody_can_say(here: Callable[..., None], name: str) -> None:
    here(name)
    code, text = answered("--model", "Qwen3-8B", "--format", "json")
    run = json.loads(text)
    assert (code, run["verdict"], run["memory"]["fits"]) == (3, "undecided", None)
    assert run["memory"]["rows"]


def test_hccl_buffsize_of_the_host_is_what_communicators_take() -> None:
    changes = {"env": {"HCCL_BUFFSIZE": "1024"}}
    asked = demand(host("a2-healthy"), Wishes("Qwen3-8B", tp=4, max_model_len=4096)).facts
    line = next(line for line in summed(asked, changes).lines if line.name == "communication")
    assert line.bytes == 2 * 2 * (1024 << 20)


def test_an_environment_that_nobody_saw_leaves_the_buffers_open() -> None:
    machine = host("a2-healthy")
    asked = demand(machine, Wishes("Qwen3-8B", tp=4, card="910B3")).facts
    found = sums(asked, npu.collect(machine).facts, {}, KNOWN, CARDS, LIMITS)
    assert isinstance(found, Missing)
    assert found.path == "env.HCCL_BUFFSIZE"


# Bad calls


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "Qwen3-32"], "did you mean Qwen3-32B"),
        (["--model", "nonsense"], "known: "),
        (["--model", "Qwen3-8B", "--card", "910B33"], "did you mean"),
        (["--model", "Qwen3-8B", "--quantization", "w3a3"], "known: "),
    ],
)
def test_a_word_that_nobody_knows_is_a_bad_call(arguments: list[str], said: str) -> None:
    code, text = answered(*arguments)
    assert code == 2
    assert said in text


def test_what_cannot_be_shared_out_is_an_error() -> None:
    code, text = answered("--model", "Qwen3-32B", "--tp", "6", "--card", "910B3", "--format", "json")
    failed = {f["check"] for f in json.loads(text)["findings"] if f["verdict"] == "fail"}
    assert (code, failed) == (1, {"budget.even"})


def test_more_tokens_than_the_context_are_an_error() -> None:
    code, text = answered("--model", "Qwen2.5-7B", "--max-model-len", "40000", "--card", "910B3", "--format", "json")
    failed = {f["check"] for f in json.loads(text)["findings"] if f["verdict"] == "fail"}
    assert (code, failed) == (1, {"budget.context"})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_table_shows_each_line_with_its_formula(language: str) -> None:
    code, text = answered("--model", "Qwen3-32B", "--card", "910B3", "--lang", language)
    assert code == 1
    assert "262144 B" in text
    assert "[WWWW" in text
    assert {"en": "short by", "zh": "还差"}[language] in text
    assert "memory_" not in text


def test_no_torch_is_imported(tmp_path: Path) -> None:
    import subprocess
    import sys

    script = (
        "import sys; from ascend_doctor.__main__ import main; main(); print([m for m in sys.modules if 'torch' in m])"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", script, "memory", "--model", "Qwen3-8B", "--card", "910B3", "--quiet"],
        capture_output=True, text=True, check=False, env=env,
    )  # fmt: skip
    assert done.stdout.endswith("[]\n"), done.stderr


# Laws

SPLITS = st.builds(Split, st.sampled_from([1, 2, 4, 8]), st.integers(1, 4), st.sampled_from([1, 2, 8]), st.just(1))
PLANS = st.builds(
    Plan,
    SPLITS,
    st.integers(1, 64),
    st.integers(1, 1 << 17),
    st.sampled_from([1, 2]),
    st.integers(1, 8192),
    st.booleans(),
)
MODELS = st.sampled_from(COMPUTED)


@settings(max_examples=25, deadline=None)
@given(MODELS, PLANS, st.sampled_from([32, 64, 128]))
def test_the_largest_that_fits_fits_and_one_more_does_not(name: str, asked: Plan, gib: int) -> None:
    what, where = subject(name), room(gib)
    best = largest(what, asked, COSTS, where, 16)

    def fits(other: Plan) -> bool:
        return short_bytes(lines(what, other, COSTS), where) == 0

    assert best.tokens == 0 or fits(replace(asked, tokens=best.tokens))
    assert best.tokens == shape(name).context or not fits(replace(asked, tokens=best.tokens + 1))
    assert best.sequences == 0 or fits(replace(asked, sequences=best.sequences))
    assert best.layout is None or fits(replace(asked, split=best.layout))


@settings(max_examples=40, deadline=None)
@given(MODELS, PLANS)
def test_more_ranks_never_hold_more_weights_each(name: str, asked: Plan) -> None:
    what, shape_ = subject(name), shape(name)
    twice = replace(asked.split, tp=asked.split.tp * 2)
    from ascend_doctor.memory.weights import rank_bytes

    assert rank_bytes(what.pieces, shape_, twice) <= rank_bytes(what.pieces, shape_, asked.split)


@settings(max_examples=40, deadline=None)
@given(MODELS, PLANS)
def test_the_lines_are_the_sum(name: str, asked: Plan) -> None:
    found = lines(subject(name), asked, COSTS)
    assert all(line.bytes >= 0 for line in found)
    assert side(found, "inside") + side(found, "outside") == sum(line.bytes for line in found)


@given(st.integers(1, 200), st.integers(1, 20))
def test_each_layer_is_on_one_stage(layers: int, pp: int) -> None:
    assert [layer for stage in stages(layers, pp) for layer in stage] == list(range(layers))


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_halving_finds_the_last_that_holds(edge: int, limit: int) -> None:
    assert most(lambda n: n <= edge, limit) == min(edge, limit)
