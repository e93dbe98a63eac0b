"""Waivers: who answers for a finding, until when; and what is said of those that no longer help."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from hosts import host

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, preflight
from ascend_doctor.engine.waivers import Waiver, load_waivers
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.paths import data_folder
from ascend_doctor.report.console import plain_text
from ascend_doctor.report.html import page
from ascend_doctor.report.markdown import as_text

CHECKS = load_checks([data_folder("checks")])
TODAY = date(2026, 11, 30)


def waiver(check: str, subject: str = "*", expires: date = date(2027, 1, 1)) -> Waiver:
    return Waiver(check, subject, "known, ticket 12", "platform team", expires, "mine.yaml:1")


def run(*waivers: Waiver) -> Run:
    """Of a host whose THP defrag is always; its snapshot was taken on 2026-11-30."""
    return preflight(host("a2-thp-defrag-always"), Asked(CHECKS, rulebook(), waivers=waivers))


def test_a_waiver_demotes_a_finding_and_keeps_it_listed() -> None:
    finding = next(f for f in run(waiver("thp.*")).findings if f.check == "thp.direct-compaction")
    assert finding.verdict == "waived"
    assert finding.waiver is not None
    assert (finding.waiver.owner, finding.waiver.days_left) == ("platform team", 32)


@pytest.mark.parametrize(
    "tell", [lambda run: plain_text(run, "en"), lambda run: as_text(run, "en"), lambda run: page(run, "en")]
)
def test_every_report_says_who_waives_until_when_and_why(tell: Callable[[Run], str]) -> None:
    told = " ".join(tell(run(waiver("thp.*"))).split())
    assert "waived by platform team until 2027-01-01 (32 days left): known, ticket 12" in told


def test_a_waived_finding_does_not_count() -> None:
    counts = run(waiver("thp.*")).counts
    assert (counts["warning"], counts["waived"]) == (0, 1)


def test_a_waiver_of_another_subject_changes_nothing() -> None:
    assert run(waiver("thp.*", "npu:3")).counts["warning"] == 1


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (waiver("thp.*", expires=date(2026, 11, 29)), "waiver-expired"),
        (waiver("numa.free-memory"), "waiver-unused"),
    ],
)
def test_a_waiver_that_helps_no_more_is_said(given: Waiver, kind: str) -> None:
    found = run(given)
    assert [note.kind for note in found.notes] == [kind]
    assert "mine.yaml:1" in found.notes[0].text["en"]
    assert found.counts["warning"] == 1


def test_a_waiver_holds_on_its_last_day() -> None:
    assert run(waiver("thp.*", expires=TODAY)).counts["waived"] == 1


def test_a_waiver_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "waivers.yaml"
    file.write_text(
        "- {check: thp.enabled, subject: host, reason: tested, owner: platform team, expires: 2027-02-28}\n"
    )
    (found,) = load_waivers([file])
    assert found.expires == date(2027, 2, 28)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {check: a.b, reason: r, owner: o}", ":1:3: expires is missing"),
        ("- {check: a.b, reason: r, owner: o, expires: soon}", ":1:46: give the last day as 2027-03-31"),
        ("- {check: a.b, reason: '', owner: o, expires: 2027-01-01}", "reason is empty"),
        ("- {chek: a.b}", ":1:4: unknown key chek; did you mean check?"),
    ],
)
def test_a_waiver_without_an_owner_a_reason_or_an_end_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "waivers.yaml"
    file.write_text(text)
    with pytest.raises(RuleError) as refused:
        load_waivers([file])
    assert says in str(refused.value)
