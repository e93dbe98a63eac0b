"""Checks as they are written in checks/*.yaml, read strictly: each complaint names file, line and column.

This is the loader of each run; what only we must keep (both languages, sources, hosts) is the lint's.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Callable, Union

from ascend_doctor.derive import row_set
from ascend_doctor.engine.comparisons import ExpressionError
from ascend_doctor.engine.expressions import Expression, compiled
from ascend_doctor.engine.rulebook import ON_REQUEST
from ascend_doctor.engine.texts import LANGUAGES, Template, Texts, template
from ascend_doctor.engine.types import Listed, Mapped, Type
from ascend_doctor.facts import AREAS
from ascend_doctor.knowledge.reading import CONFIDENCES, NEVER_AN_ERROR, Source, nearest
from ascend_doctor.knowledge.yaml_nodes import Place, composed
from ascend_doctor.records import dataclass

LAYERS = ("hardware", "driver", "access", "libraries", "versions", "settings", "launch")
SEVERITIES = ("error", "warning", "info")
EFFECTS = ("none", "restart", "reboot", "data-loss")
TESTED = ("pass", "fail", "unknown", "skip")

_CHECK_KEYS = (
    *("id", "title", "layer", "required", "for_each", "subject", "when", "explained_by", "fail"),
    *("why", "remedy", "verify", "sources", "tests"),
)
_ENTRY_KEYS = ("if", "severity", "found", "expected", "why", "remedy", "sources")
_STEP_KEYS = ("text", "command", "needs_root", "effect", "undo")
_SOURCE_KEYS = ("title", "url", "confidence")
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\.[a-z0-9]+(?:-[a-z0-9]+)*")
_LOOKS_LIKE_AN_ID = re.compile(r"""\bid["']?[ \t]*:[ \t]*["']?([^\s"',}]+)""")
_LOOP = re.compile(r"([a-z_][a-z0-9_]*)\s+in\s+(.+)", re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One step of a remedy: what to do, and what to type."""

    text: Texts
    command: Template | None
    needs_root: bool
    effect: str
    undo: Template | None


@dataclass(frozen=True)
class From:
    """A field that a row brings: ``{from: row.severity}``."""

    expression: Expression


Severity = Union[str, From]
Text = Union[Texts, From, None]
Remedy = Union[tuple[Step, ...], From, None]
Sources = Union[tuple[Source, ...], From, None]


@dataclass(frozen=True)
class FailEntry:
    """One way to fail; None: as the check says."""

    condition: Expression
    severity: Severity
    found: Text
    expected: Text
    why: Text
    remedy: Remedy
    sources: Sources


@dataclass(frozen=True)
class Loop:
    variable: str
    over: Expression


@dataclass(frozen=True)
class Check:
    """A question to a host. ``areas`` and ``row_sets`` are what it needs to be answered."""

    id: str
    title: Texts
    layer: str
    required: bool
    loop: Loop | None
    subject: Template
    when: Expression | None
    explained_by: tuple[str, ...]
    fail: tuple[FailEntry, ...]
    why: Text
    remedy: Remedy
    verify: Template | None
    sources: Sources
    tests: Mapping[str, tuple[str, ...]]
    place: Place
    areas: frozenset[str]
    row_sets: frozenset[str]

    @property
    def on_request(self) -> bool:
        """Only a call that brings facts of its own asks it: a launch, a plan, a process."""
        return self.place.file.parent.name == ON_REQUEST


def load_checks(folders: Iterable[Path], wanted: Callable[[str], bool] | None = None) -> tuple[Check, ...]:
    """The checks of the folders' *.yaml files, in order. Raises RuleError for the first thing that is wrong.

    ``wanted``: only those with such ids, and only their files are parsed: a run of a few checks costs little.
    """
    listed = listed_ids(folders)
    checks: dict[str, Check] = {}
    for file, names in listed.items():
        if wanted is not None and names and not any(wanted(name) or not _ID.fullmatch(name) for name in names):
            continue
        root = composed(file)
        for place in root.items() if root else ():
            named = place.scalars().get("id")
            if wanted is not None and named and not wanted(str(named.node.value)):
                continue
            check = _Reader(place).check()
            if check.id in checks:
                first = checks[check.id].place
                raise place.error(f"{check.id} is there already: {first.file}:{first.line}")
            checks[check.id] = check
    known = {*checks, *(name for names in listed.values() for name in names)}
    for check in checks.values():
        for name in check.explained_by:
            if name not in known:
                raise check.place.error(f"{check.id}: explained_by names no check: {name}{nearest(name, known)}")
    _refuse_cycles(checks)
    return tuple(checks.values())


def listed_ids(folders: Iterable[Path]) -> dict[Path, tuple[str, ...]]:
    """File -> the ids of its checks, found by their look and not parsed: none is left out, a text may add some."""
    files = [file for folder in folders for file in sorted(folder.glob("*.yaml"))]
    return {file: _ids_in(file) for file in files}


def _ids_in(file: Path) -> tuple[str, ...]:
    try:
        return tuple(_LOOKS_LIKE_AN_ID.findall(file.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return ()


def keeps(name: str, only: Sequence[str], skip: Sequence[str]) -> bool:
    """Whether a check is chosen: it matches one of ``only`` (all, where it is empty) and none of ``skip``; globs."""
    wanted = not only or any(fnmatch.fnmatchcase(name, glob) for glob in only)
    return wanted and not any(fnmatch.fnmatchcase(name, glob) for glob in skip)


def _refuse_cycles(checks: Mapping[str, Check]) -> None:
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise checks[name].place.error(f"explained_by turns in a circle: {' -> '.join((*path, name))}")
        if name not in done:
            for cause in checks[name].explained_by:
                if cause in checks:
                    walk(cause, (*path, name))
            done.add(name)

    for name in checks:
        walk(name, ())


class _Reader:
    """Reads one check; gathers the expressions on the way."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.variables: dict[str, Type] = {}
        self.known: dict[str, Expression] = {}

    def check(self) -> Check:
        keys = self.place.mapping(_CHECK_KEYS, ("id", "title", "layer", "fail"))
        name = keys["id"].text()
        if not _ID.fullmatch(name):
            raise keys["id"].error(f"{name}: an id is area.slug in lower case with hyphens")
        loop = self._loop(keys["for_each"]) if "for_each" in keys else None
        if loop and "subject" not in keys:
            raise self.place.error(f"{name}: for_each needs a subject such as 'npu:{{{loop.variable}.npu_id}}'")
        when = self._expression(keys["when"], "bool") if "when" in keys else None
        entries = keys["fail"].items()
        if not entries:
            raise keys["fail"].error("give at least one way to fail")
        title = self._texts(keys["title"])
        subject = self._template(keys["subject"]) if "subject" in keys else Template(("host",))
        fail = tuple(self._entry(p) for p in entries)
        why, remedy = self._text(keys, "why"), self._remedy(keys)
        verify = self._template(keys["verify"]) if "verify" in keys else None
        row_sets = frozenset(r for e in self.known.values() for r in e.row_sets)
        return Check(
            id=name,
            title=title,
            layer=keys["layer"].choice(LAYERS),
            required=keys["required"].flag() if "required" in keys else False,
            loop=loop,
            subject=subject,
            when=when,
            explained_by=tuple(p.text() for p in keys["explained_by"].items()) if "explained_by" in keys else (),
            fail=fail,
            why=why,
            remedy=remedy,
            verify=verify,
            sources=self._sources(keys),
            tests=self._tests(keys["tests"]) if "tests" in keys else {},
            place=self.place,
            areas=frozenset(a for e in self.known.values() for a in e.areas) | _areas_of(row_sets),
            row_sets=row_sets,
        )

    def _loop(self, place: Place) -> Loop:
        match = _LOOP.fullmatch(place.text().strip())
        if not match:
            raise place.error("for_each reads as `chip in npu.chips`")
        variable = match[1]
        if variable in AREAS:
            raise place.error(f"{variable} is the name of an area; choose another loop variable")
        over = self._compiled(place, match[2])
        if not isinstance(over.type, (Listed, Mapped)) or over.locate is None:
            raise place.error(f"{match[2]} is no list and no map")
        self.variables[variable] = over.type.element if isinstance(over.type, Listed) else over.type.value
        return Loop(variable, over)

    def _entry(self, place: Place) -> FailEntry:
        keys = place.mapping(_ENTRY_KEYS, ("if", "severity", "found"))
        severity = keys["severity"]
        return FailEntry(
            condition=self._expression(keys["if"], "bool"),
            severity=self._from(severity) if severity.is_mapping else severity.choice(SEVERITIES),
            found=self._text(keys, "found"),
            expected=self._text(keys, "expected"),
            why=self._text(keys, "why"),
            remedy=self._remedy(keys),
            sources=self._sources(keys),
        )

    def _from(self, place: Place) -> From:
        keys = place.mapping(("from",), ("from",))
        return From(self._expression(keys["from"]))

    def _text(self, keys: Mapping[str, Place], name: str) -> Text:
        if name not in keys:
            return None
        place = keys[name]
        if place.is_mapping and "from" in place.mapping((*LANGUAGES, "from")):
            return self._from(place)
        return self._texts(place)

    def _texts(self, place: Place) -> Texts:
        if not place.is_mapping:
            one = self._template(place)
            return dict.fromkeys(LANGUAGES, one)
        given = {language: self._template(p) for language, p in place.mapping(LANGUAGES).items()}
        if not given:
            raise place.error(f"give a text in {' or '.join(LANGUAGES)}")
        first = next(iter(given.values()))
        return {language: given.get(language, first) for language in LANGUAGES}

    def _remedy(self, keys: Mapping[str, Place]) -> Remedy:
        if "remedy" not in keys:
            return None
        if keys["remedy"].is_mapping:
            return self._from(keys["remedy"])
        return tuple(self._step(p) for p in keys["remedy"].items())

    def _step(self, place: Place) -> Step:
        keys = place.mapping(_STEP_KEYS, ("text",))
        return Step(
            text=self._texts(keys["text"]),
            command=self._template(keys["command"]) if "command" in keys else None,
            needs_root=keys["needs_root"].flag() if "needs_root" in keys else False,
            effect=keys["effect"].choice(EFFECTS) if "effect" in keys else "none",
            undo=self._template(keys["undo"]) if "undo" in keys else None,
        )

    def _sources(self, keys: Mapping[str, Place]) -> Sources:
        if "sources" not in keys:
            return None
        if keys["sources"].is_mapping:
            return self._from(keys["sources"])
        found = []
        for place in keys["sources"].items():
            fields = place.mapping(_SOURCE_KEYS, ("title", "confidence"))
            confidence = fields["confidence"].choice(CONFIDENCES)
            url = fields["url"].text() if "url" in fields else ""
            found.append(Source(fields["title"].text(), url, confidence))
        return tuple(found)

    def _tests(self, place: Place) -> Mapping[str, tuple[str, ...]]:
        return {verdict: tuple(p.text() for p in hosts.items()) for verdict, hosts in place.mapping(TESTED).items()}

    def _expression(self, place: Place, wanted: str | None = None) -> Expression:
        expression = self._compiled(place, place.text())
        if wanted and expression.type not in (wanted, None):
            raise place.error(f"{expression.text} is no condition")
        return expression

    def _compiled(self, place: Place, text: str) -> Expression:
        """Compiles a text once: the languages of a check repeat each other's placeholders."""
        if text not in self.known:
            try:
                self.known[text] = compiled(text, self.variables)
            except ExpressionError as error:
                raise place.error(str(error)) from None
        return self.known[text]

    def _template(self, place: Place) -> Template:
        return template(place.text(), lambda text: self._compiled(place, text))


def _areas_of(row_sets: Collection[str]) -> frozenset[str]:
    found: set[str] = set()
    for name in row_sets:
        rows = row_set(name)
        found.update(need for need in (rows.needs if rows else ()) if need in AREAS)
    return frozenset(found)


def never_an_error(sources: Iterable[Source]) -> bool:
    """Whether all sources are of a kind that never makes an error (DESIGN section 7)."""
    given = tuple(sources)
    return bool(given) and all(source.confidence in NEVER_AN_ERROR for source in given)
