"""Smoke runs of hosts that are at hand as snapshots: each check passes, fails and cannot say where it says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hosts import host
from smoke_runs import CHECKS, RULES

from ascend_doctor.engine.checks import Check
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation

TESTS = [(check, verdict, name) for check in CHECKS for verdict, names in check.tests.items() for name in names]


def found(name: str, *checks: Check) -> list[Finding]:
    situation = Situation(host(name), RULES)
    findings = judged(checks, situation)
    assert not situation.broken
    return findings


def test_every_check_names_hosts_for_each_verdict() -> None:
    assert {
        verdict for check in CHECKS for verdict in ("pass", "fail", "unknown") if not check.tests.get(verdict)
    } == set()


@pytest.mark.parametrize(("check", "verdict", "name"), TESTS, ids=lambda value: getattr(value, "id", value))
def test_a_check_gives_the_verdict_on_the_host_that_it_names(check: Check, verdict: str, name: str) -> None:
    assert verdict in {finding.verdict for finding in found(name, replace(check, explained_by=()))}


def test_each_card_of_a_broken_host_fails_at_its_own_stage() -> None:
    failed = {f.check: f.subject.partition(" ")[0] for f in found("a2-smoke-broken", *CHECKS) if f.verdict == "fail"}
    assert failed == {
        "smoke.import": "npu:0",
        "smoke.device": "npu:1",
        "smoke.operators": "npu:2",
        "smoke.layers": "npu:3",
        "smoke.forced": "npu:4",
        "smoke.free": "npu:5",
        "smoke.decode": "npu:6",
        "smoke.latency": "npu:7",
        "smoke.memory": "npu:8",
        "smoke.ranks": "npu:9",
    }


def test_an_import_that_fails_as_the_files_foretold_follows_from_them() -> None:
    because = {f.check: f.because for f in found("a2-smoke-unloadable", *CHECKS) if f.verdict == "fail"}
    assert because == {"smoke.libraries": None, "smoke.import": "smoke.libraries"}


def test_a_card_that_is_held_is_unknown_throughout() -> None:
    assert {f.verdict for f in found("a2-smoke-held", *CHECKS)} == {"unknown"}
