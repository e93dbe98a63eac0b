"""From findings to the exit code: what counts, what explains what, and the order of reading."""

from __future__ import annotations

import pytest

from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.gate import Gate, counts, exit_code, explained, numbered, ordered


def finding(
    check: str, verdict: str = "fail", severity: str | None = None, subject: str = "host", **more: object
) -> Finding:
    severity = severity or ("error" if verdict == "fail" else None)
    return Finding(check, subject, verdict, severity, "driver", {"en": check}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("findings", "gate", "code"),
    [
        ([finding("a.a", "pass")], Gate(), 0),
        ([finding("a.a", severity="error")], Gate(), 1),
        ([finding("a.a", severity="warning")], Gate(), 0),
        ([finding("a.a", severity="warning")], Gate("warning"), 1),
        ([finding("a.a", severity="info")], Gate("info"), 1),
        ([finding("a.a", "unknown")], Gate(), 0),
        ([finding("a.a", "unknown")], Gate(strict=True), 3),
        ([finding("a.a", "unknown", required=True)], Gate(), 3),
        ([finding("a.a", "unknown", required=True), finding("b.b")], Gate(), 1),
        ([finding("a.a", "waived", severity="error")], Gate(), 0),
    ],
)
def test_the_exit_code_follows_from_the_gravest_finding(findings: list[Finding], gate: Gate, code: int) -> None:
    assert exit_code(findings, gate) == code


def test_a_cause_explains_its_consequence_and_changes_no_exit_code() -> None:
    cause, effect = finding("driver.installed"), finding("npu.answers", severity="warning")
    found = explained([effect, cause], {"npu.answers": ["driver.installed"]})
    assert [f.because for f in found] == ["driver.installed", None]
    assert exit_code(found, Gate("warning")) == exit_code([effect, cause], Gate("warning")) == 1


@pytest.mark.parametrize(
    ("effect", "because"),
    [
        (finding("b.b", subject="npu:1"), None),
        (finding("b.b", subject="npu:0"), "a.a"),
        (finding("b.b", subject="host"), "a.a"),
        (finding("b.b", "unknown", subject="npu:0"), "a.a"),
        (finding("b.b", "pass", subject="npu:0"), None),
    ],
)
def test_a_cause_reaches_its_own_subject_or_the_host(effect: Finding, because: str | None) -> None:
    found = explained([finding("a.a", subject="npu:0"), effect], {"b.b": ["a.a"]})
    assert found[1].because == because


def test_a_lesser_finding_explains_no_graver_one() -> None:
    found = explained([finding("a.a", severity="info"), finding("b.b")], {"b.b": ["a.a"]})
    assert found[1].because is None


def test_the_worst_comes_first_and_what_follows_from_it_below_it() -> None:
    found = explained(
        [
            finding("z.warning", severity="warning"),
            finding("p.pass", "pass"),
            finding("u.unknown", "unknown"),
            finding("effect.one", severity="info"),
            finding("cause.one", severity="error"),
        ],
        {"effect.one": ["cause.one"]},
    )
    assert [f.check for f in ordered(found)] == ["cause.one", "effect.one", "z.warning", "u.unknown", "p.pass"]


def test_counts_tell_each_finding_once() -> None:
    found = explained([finding("a.a"), finding("b.b"), finding("c.c", "pass")], {"b.b": ["a.a"]})
    assert {k: n for k, n in counts(found).items() if n} == {"error": 1, "explained": 1, "pass": 1}


def test_a_subject_given_twice_keeps_both() -> None:
    found = numbered([finding("a.a", subject="npu:0"), finding("a.a", subject="npu:0")])
    assert [f.subject for f in found] == ["npu:0", "npu:0#2"]
