"""A run with names and secrets taken out of its texts: what it judged, how gravely and how often stays as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from ascend_doctor.engine.findings import Evidence, Finding, Localized, Note, RemedyStep
from ascend_doctor.engine.run import Run
from ascend_doctor.host import Missing
from ascend_doctor.host.redact import Hiding

T = TypeVar("T")

STATES = ("none", "secrets", "identity")
_OF_HOSTS = ("hostname", "host")
_OF_USERS = ("user", "username")
"""Fields and keys whose text is a name as a whole."""


def hidden_run(run: Run, hide: Hiding, state: str = "") -> Run:
    """``state``: what had been hidden before, where the run was made from something redacted."""
    hide.learn(_texts(run))
    deep = _Deep(hide)
    return replace(
        run,
        host=deep.of(run.host),
        notes=tuple(Note(note.kind, _localized(note.text, hide)) for note in run.notes),
        findings=tuple(_finding(finding, hide) for finding in run.findings),
        collection=tuple(
            replace(q, source=hide.path(q.source), missing=None if q.missing is None else hide.text(q.missing))
            for q in run.collection
        ),
        facts=deep.of(run.facts),
        rows=deep.of(run.rows),
        answer=deep.of(run.answer),
        machine=deep.of(run.machine),
        logs=deep.of(run.logs),
        redacted=max(hide.state, state, run.redacted, key=lambda word: STATES.index(word) if word in STATES else 0),
    )


def _texts(run: Run) -> Iterator[str]:
    """In which names may stand as such: what machines say, not what rules say."""
    for finding in run.findings:
        for shown in finding.evidence:
            yield shown.source
            yield shown.text
        yield from (finding.found or {}).values()
        for missing in finding.missing:
            yield missing.detail
    for value in (run.facts, run.machine, run.answer if run.logs is None else run.logs):
        yield from _all_texts(value)


def _all_texts(value: object, name: str = "") -> Iterator[str]:
    """What is a name as a whole gets a label, by which it is known as one."""
    if isinstance(value, str):
        label = "hostname=" if name in _OF_HOSTS else "user=" if name in _OF_USERS else ""
        yield label + value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _all_texts(key)
            yield from _all_texts(item, key)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _all_texts(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field, part in value.__dict__.items():
            yield from _all_texts(part, field)


def _finding(finding: Finding, hide: Hiding) -> Finding:
    return replace(
        finding,
        subject=hide.text(finding.subject),
        found=_localized(finding.found, hide),
        expected=_localized(finding.expected, hide),
        why=_localized(finding.why, hide),
        reason=None if finding.reason is None else hide.text(finding.reason),
        missing=tuple(Missing(m.reason, hide.text(m.detail), hide.text(m.path)) for m in finding.missing),
        evidence=tuple(Evidence(hide.path(e.source), hide.shown(e.source, e.text)) for e in finding.evidence),
        remedy=tuple(_step(step, hide) for step in finding.remedy),
        verify=_text(finding.verify, hide),
        waiver=_Deep(hide).of(finding.waiver),
    )


def _step(step: RemedyStep, hide: Hiding) -> RemedyStep:
    text = _localized(step.text, hide)
    return replace(step, text=text, command=_text(step.command, hide), undo=_text(step.undo, hide))


def _text(text: str | None, hide: Hiding) -> str | None:
    return None if text is None else hide.text(text)


def _localized(texts: Localized | None, hide: Hiding) -> Any:
    return None if texts is None else {language: hide.text(text) for language, text in texts.items()}


class _Deep:
    """Values of any depth: keys and texts, lists, maps and records."""

    def __init__(self, hide: Hiding) -> None:
        self._hide = hide
        self._fields: dict[type, tuple[str, ...]] = {}

    def of(self, value: T, name: str = "") -> T:
        """The same value where nothing in it is hidden."""
        found: Any = self._of(value, name)
        return found  # type: ignore[no-any-return]

    def _of(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            return self._named(value, name) if len(value) > 1 else value
        if value is None or isinstance(value, (int, float)):
            return value
        if isinstance(value, Mapping):
            return self._map(value, name)
        if isinstance(value, (tuple, list)):
            items = [self._of(item, name) for item in value]
            if all(new is old for new, old in zip(items, value)):
                return value
            return tuple(items) if isinstance(value, tuple) else items
        if is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        return value

    def _named(self, text: str, name: str) -> str:
        if name in _OF_HOSTS:
            return self._hide.host(text)
        return self._hide.user(text) if name in _OF_USERS else self._hide.text(text)

    def _map(self, value: Mapping[Any, Any], name: str) -> Mapping[Any, Any]:
        """``env``: variables by name; the area ``user`` has the user's name."""
        found = {}
        for key, item in value.items():
            if name == "env" and isinstance(key, str) and isinstance(item, str):
                found[key] = self._hide.variable(key, item)
                continue
            within = "user" if name == "user" and key == "name" else key if isinstance(key, str) else ""
            found[self._hide.text(key) if isinstance(key, str) else key] = self._of(item, within)
        return _grouped_by_text(value, found) if value.get("template") else found

    def _record(self, value: Any) -> Any:
        kind = type(value)
        names = self._fields.get(kind)
        if names is None:
            names = self._fields[kind] = tuple(part.name for part in fields(value))
        changed = {}
        for name in names:
            old = getattr(value, name)
            new = self._of(old, name)
            if new is not old and new != old:
                changed[name] = new
        if not changed:
            return value
        if getattr(value, "template", ""):  # an incident of logs
            events = changed.get("events", value.events)
            if events[0].record.text != value.first.record.text:
                changed["template"] = _template(events[0].record.text)
        return replace(value, **changed)


def _grouped_by_text(old: Mapping[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A template has no numbers, so that a name of a host is no longer one in it: it is made anew of the text."""
    if "text" in old and old["text"] != new["text"]:
        new["template"] = _template(new["text"])
    return new


def _template(text: str) -> str:
    """Most runs have no logs and are spared what this imports."""
    from ascend_doctor.logs.incidents import template

    return template(text)
