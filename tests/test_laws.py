"""Laws that hold for every host: what a change of the asking may do to the answers, and what it may not."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from hosts import FOLDER, all_hosts, expectations, host, profile_of

from ascend_doctor.engine.asked import Asked, asked
from ascend_doctor.engine.checks import Check, keeps, load_checks
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.rulebook import ON_REQUEST
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.tree import paths, without
from ascend_doctor.host import Missing, Reason
from ascend_doctor.host.delta import asked_of as words_asked
from ascend_doctor.knowledge.environment import known_env
from ascend_doctor.paths import data_folder

CHECKS = load_checks([data_folder("checks"), data_folder("checks") / ON_REQUEST])
RULES = [data_folder("rules")]
REGULAR = [check for check in CHECKS if not check.on_request]
AREAS = sorted({area for check in CHECKS for area in check.areas})
HOSTS = all_hosts()
WHOLE = [name for name in HOSTS if (FOLDER / name / "snapshot.json").is_file()]
"""The bases; the many small changes of them are judged once, and not again with each fact removed."""
PACKAGE = Path(__file__).parent.parent / "ascend_doctor"


VARIABLES = known_env(RULES)


def asked_of(name: str) -> Asked:
    return asked(host(name), words_asked(FOLDER / name), name, VARIABLES)


def situation_of(name: str) -> Situation:
    call = asked_of(name)
    situation = Situation(call.host, RULES, profile=profile_of(name), given=call.given)
    situation.collect(AREAS)
    assert not situation.broken
    return situation


judged_on = lru_cache(maxsize=None)(situation_of)
"""For what only reads: a host is collected once, however many checks name it."""


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_gives_the_errors_and_warnings_that_it_expects_and_no_other(name: str) -> None:
    call = asked_of(name)
    checks = [c for c in CHECKS if not c.on_request or (call.requested and keeps(c.id, call.requested, ()))]
    findings = judged([c for c in checks if keeps(c.id, (), call.passed_over)], judged_on(name))
    grave = {(f.check, f.severity) for f in findings if f.verdict == "fail" and f.severity != "info"}
    expected = {
        (e["check"], e.get("severity")) for e in expectations(name) if e.get("severity") in ("error", "warning")
    }
    assert grave == expected
    for entry in expectations(name):
        assert any(_is(finding, entry) for finding in findings), entry


def _is(finding: Finding, entry: dict[str, str]) -> bool:
    return all(getattr(finding, key) == value for key, value in entry.items())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_is_reached_as_pass_fail_and_unknown(check: Check) -> None:
    for verdict in ("pass", "fail", "unknown"):
        names = check.tests.get(verdict, ())
        assert names, f"{check.id} names no host that gives {verdict}"
        for name in names:
            found = {f.verdict for f in judged([_alone(check)], judged_on(name))}
            assert verdict in found, f"{check.id} on {name}"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_each_way_to_fail_is_reached(check: Check) -> None:
    reached: set[int] = set()
    for name in check.tests.get("fail", ()):
        situation = judged_on(name)
        for number, entry in enumerate(check.fail):
            first = _alone(check, fail=(entry,))
            if any(f.verdict == "fail" for f in judged([first], situation)):
                reached.add(number)
    lines = [check.fail[n].condition.text for n in range(len(check.fail)) if n not in reached]
    assert not lines, f"{check.id}: no host named under tests: fail reaches {lines}"


def _alone(check: Check, **changes: object) -> Check:
    return replace(check, explained_by=(), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WHOLE)
def test_a_fact_removed_leads_only_to_unknown_or_skip(name: str) -> None:
    situation = situation_of(name)
    whole = _verdicts(judged(REGULAR, situation))
    gone = Missing(Reason.NOT_COLLECTED, "removed by the test")
    for area in AREAS:
        facts = situation.facts(area)
        if isinstance(facts, Missing):
            continue
        using = [check for check in REGULAR if area in check.areas]
        for path in _some(list(paths(facts, area))):
            situation.replace_facts(area, without(facts, area, path, gone))
            for (check, subject), verdict in _verdicts(judged(using, situation)).items():
                before = whole.get((check, subject))
                allowed = verdict in ("unknown", "skip") or verdict == before
                assert allowed, f"{path} removed: {check} {subject} turned from {before} to {verdict}"
            situation.replace_facts(area, facts)


def _some(found: list[str]) -> list[str]:
    """All paths of small areas; of large ones every part of the first and the last elements."""
    return found if len(found) < 120 else found[:60] + found[60:-60:23] + found[-60:]


def _verdicts(findings: list[Finding]) -> dict[tuple[str, str], str]:
    return {(f.check, f.subject): f.verdict for f in findings}


@pytest.mark.parametrize("name", [name for name in HOSTS if not words_asked(FOLDER / name)])
def test_the_order_of_collection_changes_nothing(name: str) -> None:
    forward, backward = (Situation(host(name), RULES, profile=profile_of(name)) for _ in range(2))
    for area in AREAS:
        forward.collect([area])
    for area in reversed(AREAS):
        backward.collect([area])
    assert judged(REGULAR, forward) == judged(tuple(reversed(REGULAR)), backward)


ORDER = (
    *("cli", "report fleet smoke engine", "derive", "logs memory"),
    *("facts knowledge", "versions host", "paths records"),
)
"""DESIGN: imports run one way; what stands further right may be imported, what stands further left may not."""


def test_imports_run_one_way() -> None:
    rank = {name: number for number, names in enumerate(ORDER) for name in names.split()}
    wrong = []
    for module in PACKAGE.rglob("*.py"):
        part = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for imported in _imports(module):
            if part in rank and imported in rank and part != imported:
                same = rank[part] == rank[imported]
                allowed = rank[imported] > rank[part] or (same and (part, imported) == ("report", "engine"))
                if not allowed:
                    wrong.append(f"{module.relative_to(PACKAGE)} imports {imported}")
    assert not wrong


def _imports(module: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("ascend_doctor.")}
    return found


def test_only_host_and_logs_ask_the_machine() -> None:
    asking = {"subprocess", "os", "psutil", "socket", "platform", "ctypes", "mmap", "shutil"}
    wrong = []
    for folder in ("facts", "knowledge", "derive", "engine"):
        for module in (PACKAGE / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                wrong += [f"{module.relative_to(PACKAGE)}: {n}" for n in names if n.split(".")[0] in asking]
    assert not wrong
