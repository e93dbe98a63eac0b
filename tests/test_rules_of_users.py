"""Rules that users bring: beside ours, in place of ours, as a profile or as site defaults."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ascend_doctor.paths import data_folder

CHECKOUT = Path(__file__).parent.parent

MINE = """\
- id: mine.driver
  title: "The driver is the one that we tested"
  layer: versions
  fail:
    - if: driver.version != "25.5.1"
      severity: warning
      found: "driver {driver.version}"
      expected: "25.5.1"
  why: "Nothing else was tested here."
  remedy:
    - {text: "See the runbook", command: "cat /usr/local/Ascend/driver/version.info"}
  sources:
    - {title: "Runbook 7", confidence: field-report}
  tests: {pass: [tested], fail: [other], unknown: [hidden]}
"""


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ascend_doctor", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )


def judged(*arguments: str) -> Any:
    done = doctor("preflight", "--snapshot", "example", "--format", "json", *arguments)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A user's folder with one check and three hosts to try it on."""
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "mine.yaml").write_text(MINE)
    version = "/usr/local/Ascend/driver/version.info"
    for name, change in {
        "tested": f'files: {{{version}: "Version=25.5.1\\n"}}',
        "other": f'files: {{{version}: "Version=24.1.rc3\\n"}}',
        "hidden": f"missing: {{{version}: denied}}",
    }.items():
        (tmp_path / "hosts" / name).mkdir(parents=True)
        expect = "[{check: mine.driver, severity: warning}]" if name == "other" else "[]"
        text = f"says: {name}\nbase: example\nset:\n  {change}\nexpect: {expect}\n"
        (tmp_path / "hosts" / name / "host.yaml").write_text(text)
    return tmp_path


def test_a_check_of_a_user_is_judged_beside_ours(rules: Path) -> None:
    findings = {f["check"]: f for f in judged("--rules", str(rules))["findings"]}
    assert findings["mine.driver"]["found"] == {"en": "driver 25.0.rc1.1", "zh": "driver 25.0.rc1.1"}
    assert "compat.driver-cann" in findings


def test_a_check_of_a_user_can_be_tested_and_linted(rules: Path) -> None:
    tested = doctor("rules", "test", "--rules", str(rules))
    assert tested.stdout.splitlines()[-1] == "1 checks on 3 hosts: 4 of 4 goals reached, 100 %"
    assert doctor("rules", "lint", "--rules", str(rules)).returncode == 0


def test_a_host_that_does_not_hold_its_word_is_said(rules: Path) -> None:
    (rules / "hosts" / "other" / "host.yaml").write_text("says: x\nbase: example\nset: {}\nexpect: []\n")
    tested = doctor("rules", "test", "--rules", str(rules))
    assert tested.returncode == 1
    assert "other: mine.driver host gives warning, which it does not expect" in tested.stdout


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("layer: versions", "layer: version", ":3:10: version is none of"),
        ("severity: warning", "severity: warn", ":6:17: warn is none of error, warning, info; did you mean warning?"),
        ("driver.version !=", "driver.versoin !=", ":5:11: unknown fact driver.versoin; did you mean version?"),
        ("driver.version !=", "drivr.version !=", ":5:11: unknown name drivr; did you mean driver?"),
        ('!= "25.5.1"', "!= 25.5", ":5:11: 25.5 is a number, not a version in quotes"),
        ("{driver.version}", "{driver.verson}", ":7:14: unknown fact driver.verson; did you mean version?"),
        ("  why:", "  wy:", ":9:3: unknown key wy; did you mean why?"),
        ("id: mine.driver", "id: Mine", ":1:7: Mine: an id is area.slug"),
        ("id: mine.driver", "id: npu.health", "npu.health is there already"),
        ("- if: driver", "- iff: driver", ":5:7: unknown key iff; did you mean if?"),
        ("confidence: field-report", "confidence: sure", ":13:40: sure is none of"),
        ('driver.version != "25.5.1"', "lenght(cann.roots) > 1", ":5:11: unknown function lenght; did you mean len?"),
        ("  layer: versions", "\tlayer: versions", ":3:1: no valid YAML"),
        ("layer: versions", "layer: versions\n  layer: driver", ":4:3: layer is given twice"),
    ],
)
def test_a_typical_mistake_gets_one_line_with_its_place_and_the_right_word(
    rules: Path, right: str, wrong: str, says: str
) -> None:
    assert right in MINE
    (rules / "checks" / "mine.yaml").write_text(MINE.replace(right, wrong, 1))
    done = doctor("preflight", "--snapshot", "example", "--rules", str(rules))
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert says in done.stderr
    assert "mine.yaml" in done.stderr


def test_a_limit_of_a_user_is_used_and_said(rules: Path) -> None:
    limit = "{value: 64, title: Runbook 7, confidence: field-report}"
    (rules / "limits.yaml").write_text(f"numa:\n  shared_mib: {limit}\n  per_card_mib: {limit}\n")
    run = judged("--rules", str(rules))
    assert not [f for f in run["findings"] if f["check"] == "numa.free-memory" and f["verdict"] == "fail"]
    said = [note["text"]["en"] for note in run["notes"] if note["kind"] == "limit-replaced"]
    assert any("numa.shared_mib to 64; the shipped limit is 1024" in text for text in said)


def test_waivers_in_the_folder_hold(rules: Path) -> None:
    (rules / "waivers.yaml").write_text(
        "- {check: thp.direct-compaction, reason: measured, owner: platform team, expires: 2027-01-31}\n"
    )
    run = judged("--rules", str(rules))
    assert [f["waiver"]["days_left"] for f in run["findings"] if f["verdict"] == "waived"] == [62]


@pytest.mark.parametrize("packed", [False, True])
def test_a_pack_replaces_the_shipped_rules_and_says_so(tmp_path: Path, packed: bool) -> None:
    pack = tmp_path / "pack"
    for name in ("checks", "rules"):
        (pack / name).mkdir(parents=True)
    (pack / "checks" / "mine.yaml").write_text(MINE)
    for name in ("pack.yaml", "notes.yaml"):
        (pack / "rules" / name).write_bytes((data_folder("rules") / name).read_bytes())
    place = pack
    if packed:
        place = tmp_path / "pack.tar.gz"
        with tarfile.open(place, "w:gz") as archive:
            for name in ("checks", "rules"):
                archive.add(pack / name, arcname=name)
    run = judged("--rules-pack", str(place))
    assert {f["check"] for f in run["findings"]} == {"mine.driver"}
    assert run["notes"][0]["kind"] == "rules-pack"
    console = doctor("preflight", "--snapshot", "example", "--rules-pack", str(place)).stdout
    assert "Judged by the rules in" in "\n".join(console.splitlines()[:5])


def test_a_profile_chooses_checks_and_limits(tmp_path: Path) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text("says: x\nonly: ['numa.*']\nlimits: {numa.per_card_mib: 1}\nrequired: [numa.affinity-known]\n")
    run = judged("--profile", str(profile))
    assert {f["check"].split(".")[0] for f in run["findings"]} == {"numa"}
    assert any(note["kind"] == "limit-replaced" for note in run["notes"])
    assert all(f["required"] for f in run["findings"] if f["check"] == "numa.affinity-known")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("onyl: [a]", ":1:1: unknown key onyl; did you mean only?"),
        ("limits: {numa.per_crd_mib: 1}", "there is no limit numa.per_crd_mib; did you mean numa.per_card_mib?"),
        ("expect: {npus: many}", ":1:16: expected a number"),
    ],
)
def test_a_bad_profile_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text(text)
    done = doctor("preflight", "--snapshot", "example", "--profile", str(profile))
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_an_unknown_profile_names_the_known_ones() -> None:
    done = doctor("preflight", "--snapshot", "example", "--profile", "eihgt")
    assert done.returncode == 2
    assert "there is no profile eihgt" in done.stderr


def test_site_defaults_hold_unless_the_call_says_else(tmp_path: Path) -> None:
    config = tmp_path / "site.yaml"
    config.write_text("only: ['thp.*']\nfail-on: warning\nlang: zh\n")
    assert doctor("preflight", "--snapshot", "example", "--config", str(config)).returncode == 1
    done = doctor("preflight", "--snapshot", "example", "--config", str(config), "--fail-on", "error")
    assert done.returncode == 0
    assert "可以部署" in done.stdout


@pytest.mark.parametrize("text", ["fail_on: warning", "snapshot: example", "only: thp.*"])
def test_bad_site_defaults_are_refused_with_their_place(tmp_path: Path, text: str) -> None:
    config = tmp_path / "site.yaml"
    config.write_text(text)
    done = doctor("preflight", "--snapshot", "example", "--config", str(config))
    assert done.returncode == 2
    assert "site.yaml:1:" in done.stderr


def test_a_folder_without_rules_is_refused(tmp_path: Path) -> None:
    done = doctor("preflight", "--snapshot", "example", "--rules", str(tmp_path))
    assert done.returncode == 2
    assert "nothing in it is read" in done.stderr
