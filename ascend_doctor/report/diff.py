"""What a diff tells beside its findings: the two sides, what got better or changed, and the facts that differ."""

from __future__ import annotations

from collections.abc import Iterator

from ascend_doctor.engine.differences import KINDS
from ascend_doctor.engine.run import Run
from ascend_doctor.records import dataclass
from ascend_doctor.report.fields import Field
from ascend_doctor.report.words import Words

FACTS_SHOWN = 40
TEXT_SHOWN = 160


@dataclass(frozen=True)
class ChangeLine:
    """A change in words; ``facts``: those of its areas that differ, as lines."""

    kind: str
    check: str
    subject: str
    title: str
    before: str
    after: str
    facts: tuple[str, ...]


@dataclass(frozen=True)
class FactLine:
    path: str
    before: str
    after: str


@dataclass(frozen=True)
class Diff:
    """``before`` and ``after``: what each side is called, with host and time."""

    before: str
    after: str
    changes: tuple[ChangeLine, ...]
    facts: tuple[FactLine, ...]
    same: int
    ignored: int

    def of(self, kind: str) -> tuple[ChangeLine, ...]:
        return tuple(change for change in self.changes if change.kind == kind)


def diff_of(run: Run, words: Words) -> Diff:
    """Raises StoredError for a stored run whose answer is broken."""
    found = Field(run.answer or {})["diff"]
    facts = found["facts"].each(lambda one: _fact(one, words))
    by_path = {fact.path: fact for fact in facts}
    return Diff(
        before=_side(found["before"]),
        after=_side(found["after"]),
        changes=found["changes"].each(lambda one: _change(one, by_path, words)),
        facts=facts,
        same=found["same"].whole(),
        ignored=found["facts_ignored"].whole(),
    )


def counted(found: Diff, words: Words) -> str:
    """``1 got worse · 3 got better · 12 facts differ``."""
    texts = [words.count(f"diff_{kind}_count", len(found.of(kind))) for kind in KINDS if found.of(kind)]
    texts += [words.count("diff_facts_count", len(found.facts))] if found.facts else []
    texts += [words.count("diff_same", found.same)] if found.same else []
    texts += [words.count("diff_ignored", found.ignored)] if found.ignored else []
    return " · ".join(texts)


def fact_text(fact: FactLine) -> str:
    return f"{fact.path}: {fact.before} → {fact.after}"


def _fact(field: Field, words: Words) -> FactLine:
    return FactLine(field["path"].text(), _value(field["before"], words), _value(field["after"], words))


def _side(field: Field) -> str:
    host, started = field["host"].or_none(Field.text), field["started"].text()
    return " · ".join([field["name"].text(), *([host] if host else []), started])


def _change(field: Field, facts: dict[str, FactLine], words: Words) -> ChangeLine:
    return ChangeLine(
        kind=field["change"].one_of(KINDS),
        check=field["check"].text(),
        subject=field["subject"].text(),
        title=field["title"].texts()[words.language],
        before=_state(field["before"], words),
        after=_state(field["after"], words),
        facts=tuple(fact_text(facts[path]) for path in field["facts"].each(Field.text) if path in facts),
    )


def _state(field: Field, words: Words) -> str:
    """``error: defrag is always``, ``passed``."""
    if field.value is None:
        return words["diff_no_subject"]
    verdict, found = field["verdict"].text(), field["found"].or_none(Field.texts)
    word = (
        words[field["severity"].one_of(("error", "warning", "info"))]
        if verdict == "fail"
        else words[field["verdict"].one_of(("pass", "unknown", "skip", "waived"))]
    )
    return words.after(word, found[words.language]) if found else word


def _value(field: Field, words: Words) -> str:
    text = field.or_none(Field.text)
    if text is None:
        return words["diff_none"]
    return text if len(text) <= TEXT_SHOWN else f"{text[: TEXT_SHOWN - 1]}…"


def table(run: Run, words: Words, verbose: bool = False) -> str:
    """Plain lines for a terminal: what got better or changed, and the facts."""
    return "".join(f"{line}\n" for line in _lines(diff_of(run, words), words, verbose))


def _lines(found: Diff, words: Words, verbose: bool) -> Iterator[str]:
    for kind in ("better", "changed"):
        lines = found.of(kind)
        if lines:
            yield from ("", words[f"diff_{kind}"])
        for line in lines:
            name = line.check if line.subject == "host" else f"{line.check} {line.subject}"
            yield f"  {name}: {line.before} → {line.after}"
            yield from (f"    {fact}" for fact in line.facts)
    if found.facts:
        yield from ("", words["diff_facts"])
        shown = found.facts if verbose else found.facts[:FACTS_SHOWN]
        yield from (f"  {fact_text(fact)}" for fact in shown)
        if len(found.facts) > len(shown):
            yield f"  {words.count('console_more', len(found.facts) - len(shown))}"
