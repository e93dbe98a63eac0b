"""The loader: what a check file may be, and where a complaint points."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.paths import data_folder

GOOD = """\
- id: thp.example
  title: {en: "Huge pages are as wanted", zh: "透明大页符合要求"}
  layer: settings
  fail:
    - if: thp.defrag == "always"
      severity: warning
      found: {en: "defrag is {thp.defrag}", zh: "defrag 为 {thp.defrag}"}
  why: {en: "Because.", zh: "原因。"}
  remedy:
    - text: {en: "Do it", zh: "执行"}
      command: "echo madvise"
      effect: none
"""


def load(tmp_path: Path, text: str) -> str:
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RuleError) as refused:
        load_checks([tmp_path])
    return str(refused.value).replace(f"{tmp_path}/", "")


def test_the_shipped_checks_load() -> None:
    assert load_checks([data_folder("checks")])


def test_a_check_knows_the_areas_that_it_needs(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD, encoding="utf-8")
    (check,) = load_checks([tmp_path])
    assert check.areas == {"thp"}


@pytest.mark.parametrize(
    ("wrong", "right", "says"),
    [
        ("layer: setings", "layer: settings", "mine.yaml:3:10: setings is none of"),
        ("layer: setings", "layer: settings", "did you mean settings?"),
        ("severty: warning", "severity: warning", "mine.yaml:6:7: unknown key severty; did you mean severity?"),
        ("severity: warn", "severity: warning", "mine.yaml:6:17: warn is none of error, warning, info"),
        ('if: thp.defrg == "always"', 'if: thp.defrag == "always"', "mine.yaml:5:11: unknown fact thp.defrg"),
        ("{thp.defragg}", "{thp.defrag}", "unknown fact thp.defragg; did you mean defrag?"),
        ("effect: nothing", "effect: none", "mine.yaml:12:15: nothing is none of"),
        ("id: THP Example", "id: thp.example", "mine.yaml:1:7: THP Example: an id is area.slug"),
        ('  why: {en: "Because.", zh: "原因。"}\n', "", "why is given twice"),
        (
            "title: [a]",
            'title: {en: "Huge pages are as wanted", zh: "透明大页符合要求"}',
            "mine.yaml:2:10: expected a text",
        ),
        (
            "{en: x, fr: y}",
            '{en: "Huge pages are as wanted", zh: "透明大页符合要求"}',
            "mine.yaml:2:18: unknown key fr",
        ),
        ("if: thp.defrag", 'if: thp.defrag == "always"', "mine.yaml:5:11: thp.defrag is no condition"),
        ("  fail:\n   when: x", "  fail:", "no valid YAML"),
        ("needs_root: 1", "effect: none", "mine.yaml:12:19: expected true or false"),
        ("&a {en: x}", '{en: "Huge pages are as wanted", zh: "透明大页符合要求"}', None),
    ],
)
def test_a_typical_mistake_is_told_with_its_place_and_the_nearest_right_word(
    tmp_path: Path, wrong: str, right: str, says: str | None
) -> None:
    if right == "":
        text = GOOD + wrong
    else:
        assert right in GOOD
        text = GOOD.replace(right, wrong, 1)
    if says is None:  # an anchor that nothing refers to is harmless
        (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
        assert load_checks([tmp_path])
        return
    assert says in load(tmp_path, text)


def test_an_alias_is_refused(tmp_path: Path) -> None:
    text = (
        GOOD.replace("why: {en", "why: &w {en")
        + "  verify: x\n"
        + GOOD.replace("thp.example", "thp.other").replace('why: {en: "Because.", zh: "原因。"}', "why: *w")
    )
    assert "anchors and aliases are not used" in load(tmp_path, text)


def test_two_checks_of_one_name_are_refused(tmp_path: Path) -> None:
    assert "thp.example is there already" in load(tmp_path, GOOD + GOOD)


def test_a_loop_without_a_subject_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("  fail:", "  for_each: chip in npu.chips\n  fail:")
    assert "for_each needs a subject" in load(tmp_path, text)


def test_causes_that_turn_in_a_circle_are_refused(tmp_path: Path) -> None:
    one = GOOD.replace("  layer", "  explained_by: [thp.other]\n  layer")
    two = GOOD.replace("thp.example", "thp.other").replace("  layer", "  explained_by: [thp.example]\n  layer")
    assert "turns in a circle" in load(tmp_path, one + two)


def test_an_unknown_cause_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("  layer", "  explained_by: [thp.exampel]\n  layer")
    assert "explained_by names no check: thp.exampel; did you mean thp.example?" in load(tmp_path, text)
