"""One row for each pair of parts: what was found, how the two stand to each other, and what to type."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ascend_doctor.derive.parts import Part
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.pairs import Pairs, Report
from ascend_doctor.knowledge.reading import NEVER_AN_ERROR, Source
from ascend_doctor.knowledge.remedies import RemedyStep
from ascend_doctor.records import dataclass

LANGUAGES = ("en", "zh")
FITS = "fits"
RANK = {"": 0, "info": 1, "warning": 2, "error": 3}
NOT_SAID = Missing(Reason.ABSENT, "no table names one")


@dataclass(frozen=True)
class Judged:
    """How two parts stand to each other; a ``severity`` of "" says nothing. ``relation`` is a name of pairs.yaml."""

    relation: str
    severity: str
    wanted: str | Missing = NOT_SAID
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A pair as the checks see it. ``name`` holds no version, so that one pair has one name on all hosts."""

    name: str
    found: str
    wanted: str | Missing
    relation: str | Missing
    severity: str | Missing
    why: Mapping[str, str]
    remedy: tuple[RemedyStep, ...]
    sources: tuple[Source, ...]
    reads: tuple[str, ...]
    components: tuple[str, ...]


def pair(
    parts: Sequence[Part],
    judged: Judged | Missing,
    pairs: Pairs,
    steps: Sequence[RemedyStep] = (),
    components: Sequence[str] = (),
    reads: Sequence[str] = (),
) -> Pair:
    """The row; a part without a version, or a Missing in place of a judgement, makes it unknown."""
    unseen = next((part.version for part in parts if isinstance(part.version, Missing)), None)
    outcome = unseen if unseen is not None else judged
    names = tuple(components) or tuple(part.name for part in parts)
    row = Pair(
        name="-".join(names),
        found=", ".join(map(str, parts)),
        wanted=NOT_SAID,
        relation=FITS,
        severity="",
        why={},
        remedy=(),
        sources=(),
        reads=(*(part.path for part in parts), *reads),
        components=names,
    )
    if isinstance(outcome, Missing):
        return replace(row, relation=outcome, severity=outcome, wanted=outcome)
    report = pairs.reports.get(pairs.relations.get(outcome.relation, {}).get("known_bad", ""))
    return replace(
        row,
        wanted=outcome.wanted,
        relation=outcome.relation,
        severity=_at_most(outcome.severity, outcome.sources),
        why=_told(report) if report else pairs.relations.get(outcome.relation, {}),
        remedy=tuple(steps) if outcome.severity else (),
        sources=tuple(dict.fromkeys((*outcome.sources, *(report.sources if report else ())))),
    )


def worst(*judged: Judged | Missing) -> Judged | Missing:
    """The gravest; what is not known counts only where nothing known is an error."""
    known = [one for one in judged if isinstance(one, Judged)]
    top = max(known, key=lambda one: RANK[one.severity], default=Judged(FITS, ""))
    unseen = next((one for one in judged if isinstance(one, Missing)), None)
    return top if unseen is None or top.severity == "error" else unseen


def _at_most(severity: str, sources: Sequence[Source]) -> str:
    """An error only where a source of some weight says so."""
    unsure = bool(sources) and all(source.confidence in NEVER_AN_ERROR for source in sources)
    return "warning" if severity == "error" and unsure else severity


def _told(report: Report) -> Mapping[str, str]:
    return {
        language: f"{report.symptom.get(language, '')} {report.fix.get(language, '')}".replace("。 ", "。")
        for language in LANGUAGES
    }


def told(report: Report, part: Sequence[Part], pairs: Pairs) -> Pair:
    """The row of a report that is met as it stands."""
    row = pair(part, Judged(report.id, report.severity, NOT_SAID, report.sources), pairs, components=report.pair)
    return replace(row, name=report.id, why=_told(report))


def step(pairs: Pairs, name: str, quote: bool = True, **values: str) -> RemedyStep:
    """A step of the rules with its values, which are quoted where they go into a command."""
    pattern = pairs.steps[name]
    words = {language: text.format(**values) for language, text in pattern.text.items()}
    quoted = {key: shlex.quote(value) if quote else value for key, value in values.items()}
    return replace(pattern, text=words, command=pattern.command.format(**quoted) if pattern.command else None)
