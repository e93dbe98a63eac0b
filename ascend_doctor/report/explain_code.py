"""An error code, or a signature of logs, as a page for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ascend_doctor.knowledge.codes import Code
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.remedies import RemedyStep, Texts
from ascend_doctor.knowledge.signatures import Signature, Signatures
from ascend_doctor.report.words import Words, words

SHOWN = 8
"""Signatures that may hide behind a code: the most telling ones."""


def code_text(code: Code, signatures: Signatures, lang: str) -> str:
    """Plain text: what it is, its fields, what it means, what is often behind it, what to do."""
    return "\n".join(_code_lines(code, signatures, words(lang))) + "\n"


def signature_text(signature: Signature, signatures: Signatures, lang: str) -> str:
    """Plain text: what the line means, what follows from it and what it follows from, what to do."""
    return "\n".join(_signature_lines(signature, signatures, words(lang))) + "\n"


def hidden_by(code: str, signatures: Signatures) -> list[Signature]:
    """Causes that may be behind a code: those that say so, and what the signatures of the code may follow from."""
    own = [one for one in signatures.every if code in one.codes or code.lower() in one.codes]
    above = {name for one in own for name in one.explained_by}
    named = f"code:{code}"
    found = [
        one
        for one in signatures.every
        if one not in own and (named in one.explains or one.id in above or one.cause in above)
    ]
    by_cause: dict[str, Signature] = {}
    for one in sorted(found, key=lambda one: one.role != "root"):
        by_cause.setdefault(one.cause, one)
    return list(by_cause.values())[:SHOWN]


def _code_lines(code: Code, signatures: Signatures, words: Words) -> Iterator[str]:
    language = words.language
    yield f"{code.code}: {code.name or words['code_unlisted']}"
    yield f"  {words['code_kind']}: {code.what.get(language, '')}"
    for part in code.parts:
        meaning = part.meaning.get(language, "")
        yield f"  {part.label[language]}: {part.value}{f' ({meaning})' if meaning else ''}"
    if code.meaning.get(language):
        yield f"  {words['code_meaning']}: {code.meaning[language]}"
    if code.surfaces_as:
        yield f"  {words['code_surfaces_as']}: {code.surfaces_as}"
    yield f"  {words['code_role']}: {words[f'code_role_{code.role}']} · {words[code.severity]} · {code.layer}"
    if code.causes.get(language):
        yield f"  {words['code_causes']}: {code.causes[language]}"
    hidden = hidden_by(code.code, signatures)
    if hidden:
        yield f"  {words['code_hides']}:"
        for one in hidden:
            yield f"  - {one.id}: {signatures.told(one).title[language]}"
    yield from _remedy_lines(code.remedy, words)
    yield from _source_lines((code.source,), words)


def _signature_lines(signature: Signature, signatures: Signatures, words: Words) -> Iterator[str]:
    language, told = words.language, signatures.told(signature)
    yield f"{signature.id}: {told.title[language]}"
    role = words[f"code_role_{signature.role}"]
    yield f"  {words['code_role']}: {role} · {words[signature.severity]} · {signature.layer}"
    yield f"  {words['code_meaning']}: {told.meaning[language]}"
    for name, text in (("why", told.why.get(language, "")), ("explained_by", ", ".join(signature.explained_by))):
        if text:
            yield f"  {words[name]}: {text}"
    yield f"  {words['signature_looks']}: {told.match[0][:300] if told.match else signature.regex}"
    yield from _remedy_lines(told.remedy, words)
    if told.verify:
        yield f"  {words['verify']}: {told.verify}"
    yield from _source_lines(told.sources, words)


def _remedy_lines(remedy: Sequence[RemedyStep], words: Words) -> Iterator[str]:
    if not remedy:
        return
    yield f"  {words['remedy']}:"
    for step in remedy:
        marks = [words["needs_root"]] if step.needs_root else []
        marks += [words[f"effect_{step.effect}"]] if step.effect != "none" else []
        marked = f" ({', '.join(marks)})" if marks else ""
        yield f"  - {_told(step.text, words)}{marked}"
        if step.command:
            yield f"    $ {step.command}"


def _told(text: Texts, words: Words) -> str:
    return str(text.get(words.language) or next(iter(text.values()), ""))


def _source_lines(sources: Sequence[Source], words: Words) -> Iterator[str]:
    yield ""
    yield f"  {words['sources']}:"
    for source in sources:
        yield f"  - {source.title} ({source.confidence}) {source.url}".rstrip()
