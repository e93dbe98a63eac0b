"""What it means how two parts stand to each other, what was reported of that, and what to type.

rules/compat/pairs.yaml and rules/compat/known_bad.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError, Source, source_of
from ascend_doctor.knowledge.remedies import RemedyStep, Texts, step_of
from ascend_doctor.knowledge.rule_file import RuleFile, languages, severity, text, texts
from ascend_doctor.records import dataclass

REACHED_BY = ("logs", "import", "libraries", "install", "launch", "self")
"""What reaches an entry that neither files nor npu-smi show."""


@dataclass(frozen=True)
class Report:
    """A combination that was reported to fail. One of ``when``, ``judged_by`` and ``reached_by`` is not empty."""

    id: str
    severity: str
    pair: tuple[str, ...]
    when: Mapping[str, str]
    judged_by: str
    reached_by: str
    symptom: Texts
    fix: Texts
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Pairs:
    """``relations``: name -> its text, or under ``known_bad`` the id of a report; ``indexes``: where pip looks."""

    relations: Mapping[str, Texts]
    indexes: Mapping[str, str]
    steps: Mapping[str, RemedyStep]
    reports: Mapping[str, Report]


def load(folders: Sequence[Path]) -> Pairs:
    """Later folders win, entry by entry. Raises RuleError, naming file and entry."""
    relations: dict[str, Texts] = {}
    indexes: dict[str, str] = {}
    steps: dict[str, RemedyStep] = {}
    reports: dict[str, Report] = {}
    for folder in folders:
        path = folder / "compat" / "pairs.yaml"
        if path.is_file():
            rules = RuleFile(path)
            for name, words in rules.content.get("relations", {}).items():
                relations[name] = languages(words, f"{path}: relations.{name}")
            indexes.update(rules.content.get("indexes", {}))
            for name, entry in rules.content.get("steps", {}).items():
                steps[name] = step_of(entry, f"{path}: steps.{name}")
        path = folder / "compat" / "known_bad.yaml"
        if path.is_file():
            for entry, where in RuleFile(path).entries("entries"):
                report = _report(entry, where)
                reports[report.id] = report
    unknown = {words["known_bad"] for words in relations.values() if "known_bad" in words} - set(reports)
    if unknown and reports:
        raise RuleError(f"compat/pairs.yaml: relations name entries that known_bad.yaml lacks: {', '.join(unknown)}")
    return Pairs(relations, indexes, steps, reports)


def _report(entry: Mapping[str, object], where: str) -> Report:
    when = entry.get("when", {})
    judged_by, reached_by = text(entry, "judged_by", where, ""), text(entry, "reached_by", where, "")
    if not isinstance(when, Mapping) or sum(map(bool, (when, judged_by, reached_by))) != 1:
        raise RuleError(f"{where}: give one of when: {{PART: CONDITION}}, judged_by: CHECK and reached_by")
    if reached_by and reached_by not in REACHED_BY:
        raise RuleError(f"{where}: reached_by is one of {', '.join(REACHED_BY)}")
    source = entry.get("source")
    return Report(
        text(entry, "id", where),
        severity(entry, where),
        texts(entry, "pair", where),
        {str(part): text(when, part, where) for part in when},
        judged_by,
        reached_by,
        languages(entry["symptom"], where) if "symptom" in entry else {},
        languages(entry["fix"], where) if "fix" in entry else {},
        (source_of(source, where),) if isinstance(source, Mapping) else (),
    )
