"""A check or an environment variable as a page: for the terminal, and for a reader whom a report sent here."""

from __future__ import annotations

from collections.abc import Iterator

from ascend_doctor.engine.checks import Check, FailEntry, From, Remedy, Sources, Text
from ascend_doctor.engine.texts import Template
from ascend_doctor.knowledge.environment import Environment, Variable
from ascend_doctor.report.words import Words, words


def title_text(check: Check, lang: str) -> str:
    """The check's title."""
    return _source_text(check.title[lang])


def check_text(check: Check, lang: str) -> str:
    """Plain text: title, when it applies, each way to fail, why, what to do, sources."""
    return "\n".join(_lines(check, words(lang))) + "\n"


def _lines(check: Check, words: Words) -> Iterator[str]:
    language = words.language
    required = f" · {words['required']}" if check.required else ""
    yield f"{check.id}: {_source_text(check.title[language])}"
    yield f"  {words['layer']}: {check.layer}{required}"
    if check.loop:
        yield f"  {words['for_each']}: {check.loop.variable} in {check.loop.over.text}"
    if check.when:
        yield f"  {words['applies_when']}: {check.when.text}"
    if check.explained_by:
        yield f"  {words['explained_by']}: {', '.join(check.explained_by)}"
    for entry in check.fail:
        yield from _entry_lines(entry, words)
    yield from _text_lines("why", check.why, words, "  ")
    yield from _remedy_lines(check.remedy, words, "  ")
    if check.verify:
        yield f"  {words['verify']}: {_source_text(check.verify)}"
    yield from _source_lines(check.sources, words)


def _entry_lines(entry: FailEntry, words: Words) -> Iterator[str]:
    severity = entry.severity if isinstance(entry.severity, str) else f"{{{entry.severity.expression.text}}}"
    yield ""
    yield f"  {words.table.get(severity, severity)}: {entry.condition.text}"
    for name, text in (("found", entry.found), ("expected", entry.expected), ("why", entry.why)):
        yield from _text_lines(name, text, words, "    ")
    yield from _remedy_lines(entry.remedy, words, "    ")


def _text_lines(name: str, text: Text, words: Words, indent: str) -> Iterator[str]:
    if text is not None and not isinstance(text, From):
        yield f"{indent}{words[name]}: {_source_text(text[words.language])}"


def _remedy_lines(remedy: Remedy, words: Words, indent: str) -> Iterator[str]:
    if remedy is None or isinstance(remedy, From):
        return
    yield f"{indent}{words['remedy']}:"
    for step in remedy:
        marks = [words["needs_root"]] if step.needs_root else []
        marks += [words[f"effect_{step.effect}"]] if step.effect != "none" else []
        yield f"{indent}  - {_source_text(step.text[words.language])}{_marked(marks)}"
        if step.command:
            yield f"{indent}    $ {_source_text(step.command)}"
        if step.undo:
            yield f"{indent}    {words['undo']}: {_source_text(step.undo)}"


def _source_lines(sources: Sources, words: Words) -> Iterator[str]:
    if sources is None or isinstance(sources, From):
        return
    yield ""
    yield f"  {words['sources']}:"
    for source in sources:
        yield f"  - {source.title} ({source.confidence}) {source.url}".rstrip()


def _source_text(template: Template) -> str:
    """As it is written, placeholders and all."""
    return "".join(p if isinstance(p, str) else f"{{{p.text}}}" for p in template.pieces)


def _marked(marks: list[str]) -> str:
    return f" ({', '.join(marks)})" if marks else ""


def variable_text(variable: Variable, environment: Environment, lang: str) -> str:
    """Plain text: meaning, readers, values, versions, advice, sources."""
    return "\n".join(_variable_lines(variable, environment, words(lang))) + "\n"


def _variable_lines(variable: Variable, environment: Environment, words: Words) -> Iterator[str]:
    language = words.language
    yield f"{variable.name}: {variable.meaning.get(language, '')}"
    values = environment.described(variable.values)[language] if variable.values else ""
    facts = (
        ("read_by", ", ".join(variable.read_by) or words["nobody"]),
        ("values", values),
        ("default", variable.default),
        ("only_on", ", ".join(variable.only_on)),
        ("since", variable.since),
        ("until", variable.until),
        ("obsolete", words["obsolete_text"] if variable.obsolete else ""),
        ("replaced_by", variable.replaced_by),
        ("refused", variable.refused),
    )
    for name, text in facts:
        if text:
            yield f"  {words[name]}: {text}"
    for kind, own in variable.values.get("chips", {}).items():
        yield f"    {kind}: {environment.described({**variable.values, **own})[language]}"
    sources = [environment.source(variable.source, variable.name)]
    for advice in variable.advice:
        about = ", ".join(str(advice[key]) for key in ("chips", "framework", "role") if key in advice)
        yield f"  {words['advice']}{f' ({about})' if about else ''}: {advice.get(language, '')}"
        sources.append(environment.source(advice["source"], variable.name))
    yield from _source_lines(tuple(dict.fromkeys(sources)), words)
