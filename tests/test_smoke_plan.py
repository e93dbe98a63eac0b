"""Which device a smoke run takes, and which it leaves alone: before anything is started, on hosts of all kinds."""

from __future__ import annotations

from typing import Any

import pytest
from hosts import host

from ascend_doctor.host import Missing
from ascend_doctor.paths import data_folder
from ascend_doctor.smoke.plan import Planned, SmokeError, Target, Wishes, planned

RULES = [data_folder("rules")]
MEMINFO = "MemTotal:       32000000 kB\nMemFree:         {free} kB\nMemAvailable:    {free} kB\n"


def plan(name: str, changes: dict[str, Any] | None = None, **wishes: Any) -> Planned:
    return planned(host(name, changes), Wishes(**wishes), RULES)


def only(found: Planned) -> Target:
    (target,) = found.targets
    return target


# Which one


@pytest.mark.parametrize(
    ("name", "word"),
    [("a2-healthy", "npu:0"), ("310p-healthy", "npu:0"), ("bare-linux", "cpu"), ("a2-hbm-held", "npu:1")],
)
def test_auto_takes_the_first_npu_that_is_free_and_the_cpu_where_there_is_none(name: str, word: str) -> None:
    target = only(plan(name))
    assert (target.word, target.refused) == (word, "")


def test_a_named_npu_is_taken() -> None:
    assert only(plan("a2-healthy", device="npu:3")).word == "npu:3"


def test_numbers_are_those_that_a_process_sees() -> None:
    """This host's process sees cards 4 and 3, in this order; the free memory tells them apart."""
    seen = [target.free_mib for target in plan("a2-visible-devices-unordered", each=True).targets]
    whole = [target.free_mib for target in plan("a2-healthy", each=True).targets]
    assert seen == [whole[4], whole[3]]


def test_each_takes_all_in_order_and_leaves_the_held_one_alone() -> None:
    targets = plan("a2-hbm-held", each=True).targets
    assert [target.word for target in targets] == [f"npu:{number}" for number in range(8)]
    assert [bool(target.refused) for target in targets] == [True] + [False] * 7


def test_ranks_take_free_ones_and_run_their_own_stage() -> None:
    found = plan("a2-hbm-held", ranks=2)
    assert [target.word for target in found.targets] == ["npu:1", "npu:2"]
    assert [stage.id for stage in found.stages] == ["ranks"]


def test_ranks_on_the_cpu_need_no_device() -> None:
    assert [target.word for target in plan("a2-healthy", device="cpu", ranks=3).targets] == ["cpu"] * 3


# Which is left alone


def test_a_held_card_is_refused_with_its_holder() -> None:
    target = only(plan("a2-hbm-held", device="npu:0"))
    assert "NPU 0/0 is held by 78617 python3 57010 MiB" in target.refused
    assert "--force" in target.refused


def test_a_card_with_less_free_than_the_sum_is_refused_with_the_sum() -> None:
    """The size wants more than the 64 GB of the card."""
    wide = {"size": "pro-width", "layers": 2, "experts": 384, "seq": 240, "decode": 64}
    target = only(plan("a2-healthy", device="npu:2", **wide))
    assert isinstance(target.free_mib, int)
    assert target.need_bytes > target.free_mib << 20
    assert f"{target.free_mib} MiB are free" in target.refused
    assert "weights" in target.refused


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a2-npu-smi-hangs", "hang"),
        ("a2-npu-smi-missing", "command_not_found"),
        ("a2-npu-smi-denied", "no_permission"),
        ("a2-container-card-held", "device_occupied"),
    ],
)
def test_where_nobody_can_tell_who_holds_the_card_it_is_left_alone(name: str, why: str) -> None:
    target = only(plan(name))
    assert isinstance(target.free_mib, Missing)
    assert why in target.refused


@pytest.mark.parametrize("name", ["a2-npu-smi-hangs", "a2-container-card-held"])
def test_force_takes_what_nobody_can_tell(name: str) -> None:
    assert only(plan(name, force=True)).refused == ""


def test_force_takes_a_held_card_that_is_named() -> None:
    target = only(plan("a2-hbm-held", device="npu:0", force=True))
    assert (target.word, target.refused) == ("npu:0", "")


def test_force_without_a_name_still_takes_a_free_card() -> None:
    """A production service is not hurt where that is not asked for by name."""
    assert only(plan("a2-hbm-held", force=True)).word == "npu:1"
    assert [target.word for target in plan("a2-hbm-held", force=True, ranks=2).targets] == ["npu:1", "npu:2"]


def test_ranks_that_do_not_find_enough_free_cards_name_the_held_one() -> None:
    refused = [target.refused for target in plan("a2-hbm-held", ranks=8).targets if target.refused]
    assert len(refused) == 1
    assert "78617" in refused[0]


# The host's memory


def test_a_host_with_too_little_memory_is_refused_with_the_sum_and_a_way_out() -> None:
    short = {"files": {"/proc/meminfo": MEMINFO.format(free=200_000)}}
    target = only(plan("bare-linux", short, device="cpu"))
    assert target.refused.startswith("195 MiB of host memory are free; needed are ")
    assert "golden" in target.refused
    assert "--size" in target.refused


def test_a_smaller_size_fits_where_a_larger_one_does_not() -> None:
    short = {"files": {"/proc/meminfo": MEMINFO.format(free=1_500_000)}}
    assert only(plan("bare-linux", short, device="cpu", size="flash-width")).refused
    assert only(plan("bare-linux", short, device="cpu", size="tiny")).refused == ""


def test_force_takes_a_host_with_too_little_memory() -> None:
    short = {"files": {"/proc/meminfo": MEMINFO.format(free=200_000)}}
    assert only(plan("bare-linux", short, device="cpu", force=True)).refused == ""


# Calls that make no run


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"device": "tpu"}, "--device tpu: give auto, cpu, npu, npu:3 or cuda:0"),
        ({"device": "npu:9"}, "--device npu:9: a process sees 8 NPUs here"),
        ({"device": "npu:1", "each": True}, "names one device"),
        ({"device": "npu:1", "ranks": 2}, "names one device"),
        ({"ranks": 9}, "--ranks 9: a process sees 8 NPUs here"),
        ({"size": "huge"}, "there is no size huge"),
        ({"dtype": "int8"}, "int8"),
    ],
)
def test_a_call_that_makes_no_run_says_what_and_what_to_do(wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(SmokeError, match=words):
        plan("a2-healthy", **wishes)


def test_deadlines_grow_with_the_model_and_a_wish_sets_them_all() -> None:
    small, large = plan("a2-healthy", size="tiny"), plan("a2-healthy", size="pro-width")
    assert large.seconds["forced"] > small.seconds["forced"]
    assert set(plan("a2-healthy", step_seconds=7.0).seconds.values()) == {7.0}
