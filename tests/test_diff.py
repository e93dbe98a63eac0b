"""Two looks compared: what got worse fails the gate, what got better or changed is told, what always moves is not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command import Command
from hosts import FOLDER, all_hosts, host
from log_runs import CAPTURES, run_of

from ascend_doctor.cli.reports import rendered
from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.differences import NotComparableError, Side, diff
from ascend_doctor.engine.fact_changes import fact_changes
from ascend_doctor.engine.gate import Gate
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, preflight, run_as_json
from ascend_doctor.engine.waivers import load_waivers
from ascend_doctor.knowledge import differences
from ascend_doctor.paths import data_folder
from ascend_doctor.report.stored import run_of_bytes

BOOK = rulebook()
KNOWN = differences.load(BOOK.rules)
CHECKS = load_checks([data_folder("checks")])
AREAS_OF = {check.id: check.areas for check in CHECKS}


@cache
def run_of_host(name: str) -> Run:
    return preflight(host(name), Asked(CHECKS, BOOK, with_facts=True, workers=1))


def of(before: Run, after: Run, gate: Gate | None = None) -> Run:
    return diff(
        Side("before.json", before), Side("after.json", after), KNOWN, BOOK.rules, gate or Gate(), lambda c: AREAS_OF[c]
    )


def changes(run: Run, kind: str) -> list[str]:
    assert run.answer
    return [change["check"] for change in run.answer["diff"]["changes"] if change["change"] == kind]


def facts(run: Run) -> Mapping[str, tuple[str | None, str | None]]:
    assert run.answer
    return {fact["path"]: (fact["before"], fact["after"]) for fact in run.answer["diff"]["facts"]}


@pytest.mark.parametrize("name", all_hosts()[::20])
def test_a_host_compared_with_itself_is_the_same(name: str) -> None:
    run = of(run_of_host(name), run_of_host(name))
    assert (run.verdict, run.exit_code, run.findings) == ("pass", 0, ())
    assert run.answer
    assert (run.answer["diff"]["changes"], run.answer["diff"]["facts"]) == ([], [])


def test_what_fails_now_is_a_regression_and_fails_the_gate() -> None:
    run = of(run_of_host("a2-healthy"), run_of_host("a2-thp-defrag-always"), Gate("warning"))
    assert run.exit_code == 1
    assert changes(run, "worse") == ["thp.direct-compaction"]
    assert [finding.check for finding in run.findings] == ["thp.direct-compaction"]
    assert facts(run) == {"thp.defrag": ("madvise", "always")}


def test_a_regression_below_the_gate_is_told_and_passes() -> None:
    run = of(run_of_host("a2-healthy"), run_of_host("a2-thp-defrag-always"))
    assert (run.exit_code, run.counts["warning"]) == (0, 1)


def test_the_facts_that_a_regression_is_about_stand_beside_it() -> None:
    run = of(run_of_host("a2-healthy"), run_of_host("a2-thp-defrag-always"))
    assert run.answer
    assert run.answer["diff"]["changes"][0]["facts"] == ["thp.defrag"]


def test_what_was_mended_is_better_and_passes() -> None:
    run = of(run_of_host("a2-thp-defrag-always"), run_of_host("a2-healthy"), Gate("info", strict=True))
    assert (run.exit_code, changes(run, "better"), changes(run, "worse")) == (0, ["thp.direct-compaction"], [])


def test_a_fault_that_stays_is_no_regression() -> None:
    run = of(run_of_host("a2-driver-too-old"), run_of_host("a2-driver-too-old"))
    assert run_of_host("a2-driver-too-old").verdict == "fail"
    assert run.verdict == "pass"


def test_a_graver_finding_is_worse_and_a_milder_one_better() -> None:
    before = run_of_host("a2-thp-defrag-always")
    grave = replace(before, findings=tuple(replace(f, severity="error") if f.severity else f for f in before.findings))
    assert of(before, grave).exit_code == 1
    assert changes(of(grave, before), "better") == ["thp.direct-compaction"]


def test_what_cannot_be_judged_any_more_is_said_and_undecided_where_it_must_be() -> None:
    run = of(run_of_host("a2-healthy"), run_of_host("a2-driver-files-unseen"))
    assert "compat.driver-cann" in [*changes(run, "unseen"), *changes(run, "worse")]
    assert run.exit_code == (3 if any(f.required and f.verdict == "unknown" for f in run.findings) else 0)


def test_the_consequences_of_a_new_cause_stand_below_it() -> None:
    run = of(run_of_host("a2-healthy"), run_of_host("bare-linux"))
    assert run.findings[0].check == "ascend.present"
    assert run.counts["explained"] > 5


def test_a_waived_regression_is_told_and_does_not_fail(tmp_path: Path) -> None:
    file = tmp_path / "waivers.yaml"
    file.write_text(
        "- {check: thp.direct-compaction, subject: host, reason: measured, owner: me, expires: 2099-01-01}\n"
    )
    book = rulebook(waivers=[file])
    asked = Asked(CHECKS, book, waivers=load_waivers(book.waivers), with_facts=True)
    run = of(run_of_host("a2-healthy"), preflight(host("a2-thp-defrag-always"), asked), Gate("warning"))
    assert (run.exit_code, changes(run, "changed")) == (0, ["thp.direct-compaction"])


def test_readings_that_always_move_are_left_out_and_counted() -> None:
    moved = {"commands": [{"argv": ["npu-smi", "info"], "stdout": warmer()}]}
    after = preflight(host("a2-healthy", set=moved), Asked(CHECKS, BOOK, with_facts=True))
    run = of(run_of_host("a2-healthy"), after)
    assert run.answer
    assert facts(run) == {}
    assert run.answer["diff"]["facts_ignored"] >= 1


def warmer() -> str:
    """The table of a2-healthy with each chip drawing more power and nine degrees warmer."""
    table = (FOLDER / "a2-healthy/commands/npu-smi-info.out").read_text()
    hot = re.sub(r"(\| OK +\| )(\d\d)(\.\d +)(\d\d)", lambda m: f"{m[1]}{int(m[2]) + 5}{m[3]}{int(m[4]) + 9}", table)
    assert hot != table
    return hot


def test_an_element_in_the_middle_shifts_no_other() -> None:
    chips = [{"npu_id": n, "chip_id": 0, "health": "OK"} for n in range(3)]
    found, _ = fact_changes({"npu": {"chips": chips}}, {"npu": {"chips": chips[1:]}}, KNOWN, True)
    assert [(one.path, one.after) for one in found] == [("npu.chips[0/0]", None)]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 2}, [("x.a", "1", "2")]),
        ({"a": None}, {"a": 2}, [("x.a", "(denied)", "2")]),
        ({}, {"a": 2}, [("x.a", None, "2")]),
        ({"a": ["p", "q"]}, {"a": ["q", "r"]}, [("x.a", "p", "r")]),
        ({"a": ["p", "q"]}, {"a": ["q", "p"]}, [("x.a", "p, q", "q, p")]),
        ({"a": "/p:/q"}, {"a": "/q:/r"}, [("x.a", "/p", "/r")]),
        ({"a": {"b": 1, "c": 2}}, {}, [("x.a", "b 1, c 2", None)]),
    ],
)
def test_how_a_fact_that_differs_is_told(before: Any, after: Any, found: Any) -> None:
    sides = [{"x": side, "missing": {"x.a": {"reason": "denied"}}} for side in (before, after)]
    changed, _ = fact_changes(*sides, KNOWN, True)
    assert [(one.path, one.before, one.after) for one in changed] == found


def test_processes_of_logs_are_not_told_apart_by_their_number() -> None:
    run = run_of([CAPTURES / "logs" / "stderr-npu-oom-kvcache.log"])
    other = replace(run, findings=tuple(replace(f, subject="pid:77") for f in run.findings))
    mine = replace(run, findings=tuple(replace(f, subject="pid:5") for f in run.findings))
    assert of_logs(mine, other).findings == ()


def of_logs(before: Run, after: Run) -> Run:
    return diff(Side("a", before), Side("b", after), KNOWN, BOOK.rules, Gate())


def test_runs_of_two_kinds_cannot_be_compared() -> None:
    with pytest.raises(NotComparableError, match=r"before.json is a run of preflight, after.json one of logs"):
        of(run_of_host("a2-healthy"), run_of([CAPTURES / "logs" / "stderr-npu-oom-kvcache.log"]))


@pytest.mark.parametrize("pair", [("a2-healthy", "a3-healthy"), ("bare-linux", "a2-healthy"), ("a2-chip-alarm",) * 2])
def test_a_diff_keeps_to_the_schema_and_is_told_in_every_form(pair: tuple[str, str]) -> None:
    run = of(run_of_host(pair[0]), run_of_host(pair[1]))
    schema = json.loads((data_folder("reports") / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(run_as_json(run))))
    again = run_of_bytes(rendered(run, "json", "en").encode())
    for form in ("console", "markdown", "html", "junit", "json"):
        for lang in ("en", "zh"):
            assert rendered(again, form, lang) == rendered(run, form, lang)


def test_snapshots_and_written_runs_are_compared_from_the_command_line(tmp_path: Path) -> None:
    doctor = Command(tmp_path)
    doctor("preflight", "--snapshot", FOLDER / "a2-healthy", "--facts", "-o", "before.json")
    done = doctor("diff", "before.json", "example")
    assert done.returncode == 1
    assert done.stdout.startswith("✗ Got worse: 3 errors")
    assert "pci.npus[0000:02:00.0].current_width: 16 → 8" in doctor("diff", FOLDER / "a2-healthy", "example").stdout
    assert doctor("diff", "example", FOLDER / "a2-healthy").returncode == 0
    assert "no such" in doctor("diff", "before.json", "nothing.json").stderr.lower()
