"""Operators of a smoke run as rows and findings: which probe decides, what is told, and copies against the link."""

from __future__ import annotations

from typing import Any

import pytest
from hosts import host

from ascend_doctor.derive.smoke_operators import slowest_link_gib_s
from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.pci import Function, Pci
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.smoke_gates import load
from ascend_doctor.paths import data_folder

RULES = [data_folder("rules")]
FOLDERS = [data_folder("checks"), data_folder("checks") / "on-request"]
CHECKS = load_checks(FOLDERS, lambda name: name == "smoke.operators")
GATES = [gate for gate in load(RULES).gates if gate.stage in ("operators", "ranks")]


def step(name: str, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    return {"stage": "operators", "step": name, "outcome": outcome, "seconds": 0.1, "deadline": 60, **more}


def right(name: str, **measures: Any) -> dict[str, Any]:
    return step(name, measures={"nonfinite": 0, "rel_l2": 0.0002, "worst_row": 0.0003, "fallback": "", **measures})


def findings(*steps: dict[str, Any], device: str = "npu:0", **more: Any) -> dict[str, Finding]:
    """By their subjects, on a healthy host with that smoke run."""
    plan = {"size": "tiny", "seq": 240, "decode": 64, "config": {}, "stages": ["operators"]}
    run = {"plan": plan, "devices": [{"device": device, "dtype": "bf16", "steps": list(steps), **more}]}
    situation = Situation(host("a2-healthy", {"observations": {"smoke": run}}), RULES)
    situation.collect(sorted({area for check in CHECKS for area in check.areas}))
    assert not situation.broken
    found = judged(CHECKS, situation)
    assert not [text for finding in found for text in (finding.found or {}).values() if "{" in text]
    return {finding.subject: finding for finding in found}


def test_operators_that_are_right_pass_one_finding_each() -> None:
    found = findings(right("matmul.bf16.k1000"), right("matmul.fp16.k1008"), right("npu_rms_norm.bf16"))
    assert {subject: f.verdict for subject, f in found.items()} == {
        "npu:0 matmul": "pass",
        "npu:0 npu_rms_norm": "pass",
    }


def test_the_first_wrong_probe_decides_and_the_others_are_named() -> None:
    wrong = {"rel_l2": 0.0102, "worst_row": 0.0105}
    found = findings(
        right("matmul.bf16.k1000"), right("matmul.bf16.k1008", **wrong), right("matmul.fp16.k1024", **wrong)
    )
    finding = found["npu:0 matmul"]
    assert (finding.verdict, finding.severity) == ("fail", "error")
    assert finding.found["en"] == "matmul.bf16.k1008: relative error 0.0102 (+ matmul.fp16.k1024)"
    assert finding.expected["en"] == "at most 0.006 in bf16"
    assert "matmul.bf16.k1008" in finding.evidence[0].text


def test_an_error_of_one_probe_counts_more_than_a_warning_of_one_before_it() -> None:
    found = findings(right("sort.stable", fallback="aten::sort.stable"), right("sort.other", differing=3, of=8))
    assert found["npu:0 sort"].severity == "error"


@pytest.mark.parametrize(
    ("entry", "severity", "words"),
    [
        (right("sort.stable", fallback="aten::sort.stable"), "warning", "aten::sort.stable ran on the CPU"),
        (step("sdpa.bf16.d64", "signal", signal="SIGSEGV"), "error", "SIGSEGV"),
        (step("sdpa.bf16.d64", "deadline"), "error", "hangs"),
        (
            step("topk.bf16", "raised", errors=[{"type": "RuntimeError", "text": "507015 aicore", "where": "x.py:1"}]),
            "error",
            "507015",
        ),
        (right("matmul.fp32.k1024", rel_l2=0.0003, hf32=True), "info", "allow_hf32 is True"),
        (step("npu_swiglu.bf16", measures={"raised": "RuntimeError: 361001"}), "warning", "361001"),
    ],
)
def test_each_way_to_fail_has_its_severity_and_its_words(entry: dict[str, Any], severity: str, words: str) -> None:
    (finding,) = findings(entry).values()
    assert (finding.verdict, finding.severity) == ("fail", severity)
    assert words in finding.found["en"]


def test_fused_operators_that_are_not_to_be_had_are_one_line_of_information() -> None:
    found = findings(
        step("npu_mhc_sinkhorn", "unsupported", detail="error code is 561103"),
        step("npu_swiglu.bf16", "absent", detail="torch_npu.npu_swiglu"),
        step("npu_swiglu.fp16", "absent", detail="torch_npu.npu_swiglu"),
        step("npu_clipped_swiglu.bf16", "absent", detail="torch_npu.npu_clipped_swiglu"),
    )
    assert {subject: (f.severity, f.found["en"]) for subject, f in found.items()} == {
        "npu:0 absent": ("info", "this torch_npu does not have npu_swiglu, npu_clipped_swiglu"),
        "npu:0 unsupported": ("info", "this chip or CANN does not take npu_mhc_sinkhorn"),
    }


def test_what_the_cpu_does_not_have_is_no_finding() -> None:
    found = findings(step("int8.int32", "unsupported", detail="torch._int_mm"), device="cpu")
    assert found["cpu int8"].verdict == "pass"


def test_a_stage_that_was_not_reached_is_a_skip() -> None:
    found = findings(step("", "not_reached", detail="the device did not open"))
    assert found["npu:0 operators"].verdict == "skip"


def test_a_device_that_was_refused_is_unknown() -> None:
    found = findings(refused="another process holds it")
    assert found["npu:0 operators"].verdict == "unknown"


def test_a_damaged_observation_is_unknown() -> None:
    situation = Situation(host("a2-healthy", {"observations": {"smoke": None}}), RULES)
    situation.collect(sorted({area for check in CHECKS for area in check.areas}))
    assert {finding.verdict for finding in judged(CHECKS, situation)} == {"unknown"}


# Copies against the link


@pytest.mark.parametrize(("reached", "verdict"), [(24.0, "pass"), (7.5, "pass"), (7.2, "fail"), (2.4, "fail")])
def test_copies_below_a_quarter_of_the_link_are_a_warning(reached: float, verdict: str) -> None:
    """The cards of this host run at 16 GT/s with 16 lanes: 29.3 GiB/s."""
    entry = step("copies.pinned", measures={"differing": 0, "of": 1, "to_device_gib_s": reached, "fallback": ""})
    finding = findings(entry)["npu:0 copies"]
    assert finding.verdict == verdict
    assert finding.severity in (None, "warning")


def function(speed: float | Missing, width: int | Missing) -> Function:
    gone = Missing(Reason.ABSENT, "")
    return Function("0000:c1:00.0", "19e5", "d802", gone, gone, speed, width, speed, width, gone)


def test_the_link_is_the_slowest_of_all_cards_by_what_it_carries() -> None:
    links = Pci({"a": function(16.0, 16), "b": function(16.0, 8), "c": function(32.0, 16)})
    assert slowest_link_gib_s(links) == pytest.approx(16e9 * 8 * 128 / 130 / 8 / 2**30)


def test_an_old_link_carries_eight_bits_of_ten() -> None:
    assert slowest_link_gib_s(Pci({"a": function(5.0, 8)})) == pytest.approx(4e9 / 2**30)


@pytest.mark.parametrize(
    "links", [Pci({}), Pci({"a": function(Missing(Reason.ABSENT, ""), 16)}), Pci(Missing(Reason.DENIED, ""))]
)
def test_a_link_that_is_not_known_judges_no_copy(links: Pci) -> None:
    assert slowest_link_gib_s(links) is None


# The rules


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.told.id)
def test_a_gate_says_in_both_languages_what_is_found_expected_and_why(gate: Any) -> None:
    for texts in (gate.told.found, gate.told.expected, gate.told.why, *(step.text for step in gate.told.remedy)):
        assert set(texts) == {"en", "zh"}
        assert all(texts.values())
    assert gate.told.sources
    assert gate.told.remedy


def test_no_error_stands_on_an_unverified_source_alone() -> None:
    weak = ("unverified", "pypi-only")
    errors = [gate for gate in GATES if gate.told.severity == "error"]
    assert [g.told.id for g in errors if all(source.confidence in weak for source in g.told.sources)] == []


def test_gates_have_names_of_their_own() -> None:
    names = [gate.told.id for gate in GATES]
    assert len(set(names)) == len(names)
