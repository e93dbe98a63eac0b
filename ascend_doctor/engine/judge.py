"""Judges checks over facts and rows: each check gives at least one finding, whatever the host is like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ascend_doctor.engine.checks import SEVERITIES, Check, FailEntry, From, Remedy, Sources, Text, never_an_error
from ascend_doctor.engine.expressions import Expression
from ascend_doctor.engine.findings import Evidence, Finding, Localized, RemedyStep
from ascend_doctor.engine.scope import Scope, Unknown, merged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.engine.texts import LANGUAGES, Template, filled, shown
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.knowledge.reading import Source


def judge(check: Check, situation: Situation) -> list[Finding]:
    """All findings of a check, one for each subject."""
    return list(_Judge(check, situation).findings())


@dataclass
class _Judge:
    check: Check
    situation: Situation

    def findings(self) -> Iterator[Finding]:
        scope = Scope(self.situation.facts, self.situation.rows)
        loop = self.check.loop
        when = self.check.when
        if when is not None and (loop is None or loop.variable not in when.variables):
            stop = self._applicability(when, scope, "host")
            if stop:
                yield stop
                return
        if loop is None:
            yield self._verdict(scope, "host")
            return
        values, path = _located(loop.over, scope)
        if isinstance(values, Missing) and values.reason is Reason.ABSENT:
            yield self._skip("host", scope, f"{values.path or path} is absent", (values,))
        elif isinstance(values, (Missing, Unknown)):
            why = values.why if isinstance(values, Unknown) else (replace(values, path=values.path or path),)
            yield self._undecided("host", scope, why)
        elif not values:
            scope.read[path] = None
            yield self._skip("host", scope, f"{path} is empty")
        else:
            for key, value in values.items() if isinstance(values, Mapping) else enumerate(values):
                yield self._row(scope.binding(loop.variable, value, keyed(path, key)), value, when)

    def _row(self, scope: Scope, value: Any, when: Expression | None) -> Finding:
        assert self.check.loop is not None
        if isinstance(value, Missing):
            return self._undecided("host", scope, (value,))
        words = scope.apart()
        subject = self.check.subject.filled(words)
        nameless = merged(expression.value(words) for expression in self.check.subject.expressions)
        if nameless.why:
            return self._undecided(subject, scope, nameless.why)
        if when is not None and self.check.loop.variable in when.variables:
            stop = self._applicability(when, scope, subject)
            if stop:
                return stop
        return self._verdict(scope, subject)

    def _applicability(self, when: Expression, scope: Scope, subject: str) -> Finding | None:
        answer = when.value(scope)
        if answer is True:
            return None
        if isinstance(answer, Unknown):
            return self._undecided(subject, scope, answer.why)
        return self._skip(subject, scope, f"only when {when.text}")

    def _verdict(self, scope: Scope, subject: str) -> Finding:
        unknown: list[Any] = []
        for entry in self.check.fail:
            answer = entry.condition.value(scope)
            if answer is True:
                return self._failed(entry, scope, subject, merged(unknown).why)
            if isinstance(answer, Unknown):
                unknown.append(answer)
        if unknown:
            return self._undecided(subject, scope, merged(unknown).why)
        return replace(self._bare(subject, "pass"), evidence=self._evidence(scope), components=self._components(scope))

    def _failed(self, entry: FailEntry, scope: Scope, subject: str, undetermined: tuple[Missing, ...]) -> Finding:
        words = scope.apart()
        severity = _brought(entry.severity, words) if isinstance(entry.severity, From) else entry.severity
        if isinstance(severity, (Unknown, Missing)) or severity not in SEVERITIES:
            why = severity.why if isinstance(severity, Unknown) else ()
            return self._undecided(subject, scope, why)
        sources = _sources(entry.sources or self.check.sources, words)
        if severity == "error" and never_an_error(sources):
            severity = "warning"
        return replace(
            self._bare(subject, "fail"),
            severity=severity,
            found=_text(entry.found, words),
            expected=_text(entry.expected, words),
            why=_text(entry.why or self.check.why, words),
            missing=undetermined,
            evidence=self._evidence(scope),
            remedy=_remedy(entry.remedy or self.check.remedy, words),
            verify=_command(self.check.verify, words),
            sources=sources,
            components=self._components(scope),
        )

    def _undecided(self, subject: str, scope: Scope, why: Sequence[Missing]) -> Finding:
        """Unknown; a skip where the only reason is that the hardware or tool has no such thing."""
        missing = tuple(dict.fromkeys(why))
        if missing and all(m.reason is Reason.UNSUPPORTED for m in missing):
            reason = "; ".join(f"{m.path}: {m.detail or m.reason.value}" for m in missing)
            return self._skip(subject, scope, reason, missing)
        words = scope.apart()
        return replace(
            self._bare(subject, "unknown"),
            why=_text(self.check.why, words) if _bound(self.check.why, words) else None,
            missing=missing,
            evidence=self._evidence(scope),
            components=self._components(scope),
        )

    def _skip(self, subject: str, scope: Scope, reason: str, missing: tuple[Missing, ...] = ()) -> Finding:
        bare = self._bare(subject, "skip")
        return replace(bare, reason=reason, missing=missing, evidence=self._evidence(scope))

    def _bare(self, subject: str, verdict: str) -> Finding:
        check = self.check
        title = {language: text.filled(Scope(_none, _none), language) for language, text in check.title.items()}
        return Finding(check.id, subject, verdict, None, check.layer, title, required=check.required)

    def _evidence(self, scope: Scope) -> tuple[Evidence, ...]:
        paths = (p for p in scope.read if not any(p.startswith(name) for name in self.check.row_sets))
        return self.situation.evidence(paths)

    def _components(self, scope: Scope) -> tuple[str, ...]:
        loop = self.check.loop
        row = scope.bound[loop.variable][0] if loop and loop.variable in scope.bound else None
        return tuple(getattr(row, "components", ()))


def _bound(text: Text, scope: Scope) -> bool:
    """Whether all loop variables of a text have values: where a list is not known, its rows are not either."""
    if text is None or isinstance(text, From):
        return text is None or text.expression.variables <= set(scope.bound)
    return all(e.variables <= set(scope.bound) for t in text.values() for e in t.expressions)


def _none(name: str) -> object:
    return Missing(Reason.NOT_COLLECTED, "a title names no facts", name)


def _located(expression: Expression, scope: Scope) -> tuple[Any, str]:
    assert expression.locate is not None
    return expression.locate(scope)


def _brought(field: From, scope: Scope) -> Any:
    return field.expression.value(scope)


def _text(text: Text, scope: Scope) -> Localized | None:
    if text is None:
        return None
    if not isinstance(text, From):
        return filled(text, scope)
    value = _brought(text, scope)
    if isinstance(value, Unknown) and all(m.reason is Reason.ABSENT for m in value.why):
        return None
    return {language: shown(value, language) for language in LANGUAGES}


def _command(command: Template | None, scope: Scope) -> str | None:
    return None if command is None else command.filled(scope, quote=True)


def _remedy(remedy: Remedy, scope: Scope) -> tuple[RemedyStep, ...]:
    if remedy is None:
        return ()
    if isinstance(remedy, From):
        value = _brought(remedy, scope)
        return () if isinstance(value, Unknown) else tuple(value)
    return tuple(
        RemedyStep(
            filled(step.text, scope),
            _command(step.command, scope),
            step.needs_root,
            step.effect,
            _command(step.undo, scope),
        )
        for step in remedy
    )


def _sources(sources: Sources, scope: Scope) -> tuple[Source, ...]:
    if sources is None:
        return ()
    if isinstance(sources, From):
        value = _brought(sources, scope)
        return () if isinstance(value, Unknown) else tuple(value)
    return sources
