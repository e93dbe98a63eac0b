"""A run of a few checks reads only their files, and is as strict with what it reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascend_doctor.engine.checks import keeps, listed_ids, load_checks
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.paths import data_folder

SHIPPED = data_folder("checks")
EVERY = load_checks([SHIPPED])

CHECK = """\
- id: {id}
  title: "Huge pages are as wanted"
  layer: settings
  explained_by: [{causes}]
  fail:
    - {{if: thp.defrag == "always", severity: warning, found: "{found}"}}
"""


def written(folder: Path, name: str, id: str = "thp.mine", causes: str = "", found: str = "always") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(CHECK.format(id=id, causes=causes, found=found), encoding="utf-8")
    return path


@pytest.mark.parametrize("globs", [["compat.*", "npu.answers"], ["thp.*"], ["*.free-*"], ["*"], ["no.such"]])
def test_chosen_checks_are_those_of_a_whole_load(globs: list[str]) -> None:
    chosen = load_checks([SHIPPED], lambda name: keeps(name, globs, ["compat.numpy"]))
    assert [check.id for check in chosen] == [c.id for c in EVERY if keeps(c.id, globs, ["compat.numpy"])]
    whole = {check.id: check for check in EVERY}
    assert all(check.areas == whole[check.id].areas for check in chosen)


def test_the_ids_of_all_checks_are_seen_without_parsing() -> None:
    seen = [name for names in listed_ids([SHIPPED]).values() for name in names]
    assert [name for name in seen if re.fullmatch(r"[a-z_-]+\.[a-z0-9-]+", name)] == [check.id for check in EVERY]


def test_a_broken_file_is_read_only_where_one_of_its_checks_is_chosen(tmp_path: Path) -> None:
    written(tmp_path, "good")
    written(tmp_path, "broken", "cpu.mine", found="{thp.nothing}")
    assert [check.id for check in load_checks([tmp_path], lambda name: name == "thp.mine")] == ["thp.mine"]
    for wanted in (lambda name: name == "cpu.mine", None):
        with pytest.raises(RuleError, match="unknown fact"):
            load_checks([tmp_path], wanted)


def test_what_explains_a_check_may_be_in_a_file_that_is_not_read(tmp_path: Path) -> None:
    written(tmp_path, "effect", causes="cpu.mine")
    written(tmp_path, "cause", "cpu.mine")
    assert load_checks([tmp_path], lambda name: name == "thp.mine")[0].explained_by == ("cpu.mine",)
    written(tmp_path, "effect", causes="cpu.min")
    with pytest.raises(RuleError, match=r"names no check: cpu\.min; did you mean cpu\.mine\?"):
        load_checks([tmp_path], lambda name: name == "thp.mine")


def test_an_id_that_is_given_twice_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    written(tmp_path, "first")
    written(tmp_path, "second")
    with pytest.raises(RuleError, match="is there already"):
        load_checks([tmp_path], lambda name: name == "thp.mine")


@pytest.mark.parametrize(
    "head",
    ["- id: thp.mine\n  title: t", '- "id": "thp.mine"\n  title: t', "- title: t\n  id:   'thp.mine'  # so"],
)
def test_an_id_is_found_in_any_style(tmp_path: Path, head: str) -> None:
    rest = CHECK.format(id="", causes="", found="x").split("\n", 2)[2]
    (tmp_path / "mine.yaml").write_text(f"{head}\n{rest}", encoding="utf-8")
    for wanted in (None, lambda name: name == "thp.mine"):
        assert [check.id for check in load_checks([tmp_path], wanted)] == ["thp.mine"]
    assert load_checks([tmp_path], lambda name: name == "thp.other") == ()


def test_a_file_without_an_id_is_always_read(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("- title: x\n", encoding="utf-8")
    with pytest.raises(RuleError, match="id is missing"):
        load_checks([tmp_path], lambda name: name == "thp.mine")
