"""Version strings: the vendor's order, the families' grammars, and what cannot be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.versions import (
    NUMBER_FAMILIES,
    PYTHON_FAMILIES,
    VENDOR_FAMILIES,
    compare,
    covers,
    parse,
    release_of,
    within,
)

ORDERING = yaml.safe_load((Path(__file__).parent / "captures/versions/ordering.yaml").read_text(encoding="utf-8"))
FAMILIES: dict[str, Any] = ORDERING["families"]
SIGNS = {"<": -1, "=": 0, ">": 1, "?": None}
PAIRS = [*ORDERING["tricky_pairs"], *ORDERING["more_pairs"]]
ALL = (*VENDOR_FAMILIES, *NUMBER_FAMILIES, *PYTHON_FAMILIES, "innerversion")


@pytest.mark.parametrize("family", [name for name, entry in FAMILIES.items() if "ascending" in entry])
def test_every_ascending_list_ascends(family: str) -> None:
    names = FAMILIES[family]["ascending"]
    wrong = [
        (left, right)
        for i, left in enumerate(names)
        for j, right in enumerate(names)
        if compare(family, left, right) != (i > j) - (i < j)
    ]
    assert wrong == []


def test_patches_of_a_950_branch_ascend() -> None:
    for names in FAMILIES["driver_950"]["ascending_in_branch"].values():
        assert [compare("driver_950", a, b) for a, b in zip(names, names[1:])] == [-1] * (len(names) - 1)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p['family']} {p['a']} {p['cmp']} {p['b']}")
def test_a_tricky_pair_is_ordered_as_the_vendor_does(pair: dict[str, str]) -> None:
    wanted = SIGNS[pair["cmp"]]
    assert compare(pair["family"], pair["a"], pair["b"]) == wanted
    assert compare(pair["family"], pair["b"], pair["a"]) == (None if wanted is None else -wanted)


@pytest.mark.parametrize(
    ("family", "text", "same"),
    [
        ("cann", "8.3.0.2.220:8.3.RC2", "8.3.RC2"),  # version.cfg
        ("cann", "CANN 8.3.RC1", "8.3.RC1"),
        ("cann", "8.5.0-910b-ubuntu22.04-py3.11", "8.5.0"),  # an image's tag
        ("cann", "9.0.0-beta.2-a3-openeuler24.03-py3.11", "9.0.0-beta.2"),
        ("cann", "Ascend-cann-atb Version : 8.1.RC1.B150", "8.1.RC1"),
        ("mindie", "Ascend-mindie : MindIE 2.1.RC1.B152", "2.1.RC1"),
        ("vllm", "0.7.1+empty", "0.7.1"),
        ("driver", "V25.0.RC1", "25.0.rc1"),
    ],
)
def test_what_stands_around_a_version_is_dropped(family: str, text: str, same: str) -> None:
    assert compare(family, text, same) == 0


@pytest.mark.parametrize("text", ["", "NA", "master", "7.6.t7.0.b052-opiaistudio-...", "6.3.9.3", "7.35.23", "٢٥.٥.٠"])
def test_what_no_driver_is_called_is_no_driver_version(text: str) -> None:
    assert parse("driver", text) is None


@pytest.mark.parametrize(
    ("listed", "version", "meant"),
    [
        ("25.0.X", "25.0.rc1.1", True),
        ("25.0.RC1", "25.0.rc1.1", True),
        ("25.1.RC1 (as printed)", "25.1.rc1.b086", True),
        ("24.1.RC2", "24.1.x", True),
        ("26.1.0", "26.1.0.b083", True),
        ("25.5.0", "25.5.1", False),
        ("25.5.X", "25.3.rc1", False),
        ("25.0.RC1", "25.0.0", False),
        ("24.1.0", "25.0.x", False),
        ("25.0.X", "unknown", False),
    ],
)
def test_a_tables_entry_means_a_version_and_its_patches(listed: str, version: str, meant: bool) -> None:
    assert covers("driver", listed, version) is meant


@pytest.mark.parametrize(
    ("family", "ranges", "version", "inside"),
    [
        ("firmware", "[7.0.0,7.5.99]", "7.5.0.1.129", True),
        ("firmware", "[7.0.0,7.2.99]", "7.3.0.1.231", False),
        ("firmware", "[6.4.0,6.4.99],[7.0.0,7.7.99]", "7.7.0.1.231", True),
        ("firmware", "[7.0.0,7.5.99]", "7.5.99.3.220", True),
        ("driver", "[24.1,24.1.]", "24.1.rc3", True),
        ("driver", "[24.1,24.1.]", "25.0.rc1", False),
        ("driver", "[23.0.rc3,23.0.rc3.],[23.0.0,23.0.0.]", "23.0.rc3.3", True),
        ("driver", "[23.0.rc3,23.0.rc3.],[23.0.0,23.0.0.]", "23.0.7", False),
        ("firmware", "[7.0.0,7.5.99]", "7.6.t7.0.b052", None),
        ("firmware", "everything", "7.5.0.1.129", None),
    ],
)
def test_a_printed_range_includes_its_bounds(family: str, ranges: str, version: str, inside: bool | None) -> None:
    assert within(family, ranges, version) is inside


@pytest.mark.parametrize(
    ("text", "preview", "release"),
    [
        ("8.1.RC1.alpha001", True, "8.1.RC1"),
        ("9.1.0.beta.1", True, "9.1.0"),
        ("9.0.T102", True, ""),
        ("9.0.T511", True, "9.0.0"),
        ("8.0.RC3.beta1", False, "8.0.RC3"),
        ("8.0.RC2.10", False, "8.0.RC2.10"),
        ("8.1.RC1", False, "8.1.RC1"),
    ],
)
def test_a_preview_is_told_from_a_release_candidate_that_is_a_release(text: str, preview: bool, release: str) -> None:
    version = parse("cann", text)
    assert version is not None
    assert (version.preview, release_of(version)) == (preview, release)


small = st.integers(0, 30)
cann_versions = st.builds(
    lambda x, y, kind, n, patch, stage, k: (
        f"{x}.{y}." + (f"RC{n}" + (f".{patch}" if patch else "") if kind else str(n)) + stage.format(k=k)
    ),
    st.integers(5, 12), small, st.booleans(), small, small, st.sampled_from(["", ".alpha{k:03}", "-beta.{k}"]), small,
)  # fmt: skip
driver_versions = st.builds(
    lambda xy, kind, n, patch, stamp: (
        f"{xy[0]}.{xy[1]}." + (f"rc{n}" if kind else str(n)) + (f".{patch}" if patch else "") + stamp
    ),
    st.sampled_from([(21, 0), (22, 0), (5, 1), (6, 0), (23, 0), (24, 1), (25, 0), (25, 5), (26, 1)]),
    st.booleans(), small, small, st.sampled_from(["", ".b083"]),
)  # fmt: skip
firmware_versions = st.lists(small, min_size=5, max_size=5).map(lambda numbers: ".".join(map(str, numbers)))
python_versions = st.builds(
    lambda x, y, rc, post: f"{x}.{y}.0" + (f"rc{rc}" if rc else "") + (f".post{post}" if post else ""),
    small, small, small, small,
)  # fmt: skip
BY_FAMILY = {
    "cann": cann_versions,
    "driver": driver_versions,
    "firmware": firmware_versions,
    "torch_npu": python_versions,
}


@given(st.data(), st.sampled_from(sorted(BY_FAMILY)))
def test_versions_of_one_line_are_in_a_total_order(data: st.DataObject, family: str) -> None:
    a, b, c = (data.draw(BY_FAMILY[family]) for _ in range(3))
    assert compare(family, a, a) == 0
    first, second = compare(family, a, b), compare(family, b, c)
    assert first is not None
    assert second is not None
    assert compare(family, b, a) == -first
    if first <= 0 and second <= 0:
        assert compare(family, a, c) == min(first, second)


@given(st.data(), st.sampled_from(sorted(BY_FAMILY)))
def test_a_version_written_and_read_again_is_the_same(data: st.DataObject, family: str) -> None:
    version = parse(family, data.draw(BY_FAMILY[family]))
    assert version is not None
    assert parse(family, str(version)) == version


alphabet = st.text(st.sampled_from("0123456789.rcRCalphbetTxX-_+:v V[],\n"), max_size=30)


@given(st.sampled_from((*ALL, "nothing")), st.text(max_size=200) | alphabet, st.text(max_size=30) | alphabet)
def test_any_text_is_answered_and_never_raises(family: str, left: str, right: str) -> None:
    forth, back = compare(family, left, right), compare(family, right, left)
    assert back == (None if forth is None else -forth)
    assert covers(family, left, right) in (True, False)
    assert within(family, left, right) in (True, False, None)
    version = parse(family, left)
    assert version is None or parse(family, str(version)) == version
