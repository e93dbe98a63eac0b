"""Rules tried on hosts: each check as pass, fail and unknown, each way to fail, each host's expectations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ascend_doctor.engine.asked import asked
from ascend_doctor.engine.checks import Check, keeps
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.host.delta import DELTA, asked_of, expectations, host_names, open_host, profile_of
from ascend_doctor.knowledge.environment import known_env
from ascend_doctor.knowledge.profile import profile
from ascend_doctor.records import dataclass

GOALS = ("pass", "fail", "unknown")


@dataclass(frozen=True)
class Coverage:
    """``reached`` of ``goals``; ``lacking`` says what no host shows, and what a host shows against its word."""

    goals: int
    reached: int
    hosts: int
    lacking: tuple[str, ...]


class Hosts:
    """The test hosts of some folders, each collected once. A delta's base is looked for in the first folder."""

    def __init__(self, folders: Sequence[Path], rules: Sequence[Path], checks: Sequence[Check]) -> None:
        self._bases, self._rules = folders[0], rules
        self._areas = {area for check in checks for area in check.areas}
        self._situations: dict[str, Situation] = {}
        self._globs: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
        self.places = {name: folder / name for folder in folders for name in host_names(folder)}

    def situation(self, name: str) -> Situation:
        """Raises HostError for a host that is not well-formed, RuleError for its profile."""
        if name not in self._situations:
            folder = self.places[name]
            named = profile_of(folder)
            chosen = profile(named, self._rules) if named else None
            where, variables = str(folder / DELTA), known_env(self._rules)
            call = asked(open_host(folder, self._bases), asked_of(folder), where, variables)
            made = Situation(call.host, self._rules, workers=1, profile=chosen, given=call.given)
            made.collect(self._areas)
            self._situations[name], self._globs[name] = made, (call.requested, call.passed_over)
        return self._situations[name]

    def judging(self, name: str, checks: Sequence[Check]) -> list[Check]:
        """Those that a run on that host judges by: of the ones on request what was asked for."""
        self.situation(name)
        requested, passed_over = self._globs[name]
        kept = [check for check in checks if not check.on_request or (requested and keeps(check.id, requested, ()))]
        return [check for check in kept if keeps(check.id, (), passed_over)]


def tried(checks: Sequence[Check], rules: Sequence[Path], folders: Sequence[Path]) -> Coverage:
    """Judges the hosts of the folders by the checks. Raises HostError for a host that is not well-formed."""
    hosts = Hosts(folders, rules, checks)
    goals = [list(_verdict(check, verdict, hosts)) for check in checks for verdict in GOALS]
    goals += [list(_entry(check, number, hosts)) for check in checks for number in range(len(check.fail))]
    lacking = [wrong for goal in goals for wrong in goal]
    known = {check.id for check in checks}
    for name, folder in hosts.places.items():
        expected = [e for e in expectations(folder) if e.get("check") in known]
        lacking += _against(name, judged(hosts.judging(name, checks), hosts.situation(name)), expected)
    return Coverage(len(goals), sum(not goal for goal in goals), len(hosts.places), tuple(lacking))


def _verdict(check: Check, verdict: str, hosts: Hosts) -> Iterator[str]:
    names = check.tests.get(verdict, ())
    if not names:
        yield f"{check.id}: tests name no host that gives {verdict}"
    for name in names:
        if name not in hosts.places:
            yield f"{check.id}: tests: {verdict}: there is no host {name}"
            continue
        found = {f.verdict for f in judged([replace(check, explained_by=())], hosts.situation(name))}
        if verdict not in found:
            yield f"{check.id}: {name} gives {', '.join(sorted(found))}, not {verdict}"


def _entry(check: Check, number: int, hosts: Hosts) -> Iterator[str]:
    entry = check.fail[number]
    alone = [replace(check, fail=(entry,), explained_by=())]
    names = [name for name in check.tests.get("fail", ()) if name in hosts.places]
    if not any(f.verdict == "fail" for name in names for f in judged(alone, hosts.situation(name))):
        yield f"{check.id}: no host under tests: fail reaches entry {number + 1}: {entry.condition.text}"


def _against(name: str, findings: Sequence[Finding], expected: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for finding in findings:
        grave = finding.verdict == "fail" and finding.severity != "info"
        if grave and not any((e["check"], e.get("severity")) == (finding.check, finding.severity) for e in expected):
            yield f"{name}: {finding.check} {finding.subject} gives {finding.severity}, which it does not expect"
    for entry in expected:
        if not any(all(getattr(f, key, None) == value for key, value in entry.items()) for f in findings):
            yield f"{name}: expects {dict(entry)}, which does not come"
