"""Signatures of log lines: rules/signatures/*.yaml, one file for each topic.

A run over logs needs the head of every signature (what to look for, what it tells) and the texts of a few. So a file is
cut at its entries and their heads are read line by line; what stands below ``title`` is parsed as YAML when it is asked
for. A head that is written in another way than ours is parsed as YAML too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, Source, load_yaml, nearest, source_of
from ascend_doctor.knowledge.remedies import RemedyStep, Texts, step_of
from ascend_doctor.records import dataclass

FOLDER = "signatures"
SHARED = "shared.yaml"
"""Steps and sources that many signatures name."""

HEAD = {
    "id": str,
    "kind": tuple,
    "layer": str,
    "role": str,
    "severity": str,
    "cause": str,
    "event": str,
    "codes": tuple,
    "anchors": tuple,
    "regex": str,
    "explains": tuple,
    "explained_by": tuple,
}
"""Keys of a head, and what they hold; lists are written in brackets, with every item in double quotes or bare."""

_ENTRY = re.compile(r"^- ", re.MULTILINE)
_BODY = re.compile(r"^  title:", re.MULTILINE)
_LINE = re.compile(r"(?:- |  )([a-z_]{1,20}): (.+)", re.ASCII)
_ITEM = re.compile(r'"((?:[^"\\]|\\["\\])*)"|([^\s,"\[\]]+)')
_ESCAPED = re.compile(r"\\([\"\\])")


@dataclass(frozen=True)
class Told:
    """What a signature tells a reader. ``samples``: lines that must and that must not match."""

    title: Texts
    meaning: Texts
    why: Texts
    remedy: tuple[RemedyStep, ...]
    verify: str | None
    sources: tuple[Source, ...]
    match: tuple[str, ...]
    no_match: tuple[str, ...]


@dataclass(frozen=True)
class Signature:
    """Lines that one pattern knows. ``cause`` is shared by all signatures of the same thing; ``event``: for preflight.

    ``anchors``: one of them is in every line that the pattern finds. ``explains``: ids, causes or ``code:507015`` that
    follow from it. ``where``: file and id, for messages.
    """

    id: str
    kinds: tuple[str, ...]
    layer: str
    role: str
    severity: str
    cause: str
    event: str
    codes: tuple[str, ...]
    anchors: tuple[str, ...]
    regex: str
    explains: tuple[str, ...]
    explained_by: tuple[str, ...]
    where: str
    body: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """Raises RuleError where it is no pattern."""
        return _compiled(self.regex, self.where)

    def checked(self) -> Signature:
        """Itself, where its pattern is one. Raises RuleError."""
        _compiled(self.regex, self.where)
        return self

    def told(self, shared: Mapping[str, Mapping[str, Any]]) -> Told:
        """The texts. Raises RuleError, naming file and signature."""
        return _told(self, shared)


@dataclass(frozen=True)
class Signatures:
    """All signatures, in the order of the files; the first of two that both match a line is the more specific one."""

    every: tuple[Signature, ...]
    by_id: Mapping[str, Signature]
    folders: tuple[Path, ...]
    shared: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    indexes: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Both are filled when they are first needed. An index is, for a kind of log: anchor -> numbers of signatures."""

    def of(self, name: str) -> Signature | None:
        return self.by_id.get(name)

    def anchors(self, kind: str = "unknown") -> tuple[str, ...]:
        """The literals to look for in a log of that kind, without repetition; all of them where it is not known."""
        return tuple(self._index(kind))

    def matching(
        self, line: str, kind: str = "unknown", anchors: Sequence[str] | None = None
    ) -> list[tuple[Signature, re.Match[str]]]:
        """The signatures that know a line, in their order. ``anchors``: those in the line, where they are known."""
        index = self._index(kind)
        present = [anchor for anchor in index if anchor in line] if anchors is None else anchors
        if not present:
            return []
        numbers = sorted({number for anchor in present for number in index.get(anchor, ())})
        found = []
        for number in numbers:
            match = self.every[number].pattern.search(line)
            if match:
                found.append((self.every[number], match))
        return found

    def told(self, signature: Signature) -> Told:
        """The texts of a signature, with the steps and sources that it shares with others."""
        if not self.shared:
            self.shared.update(_shared(self.folders))
        return signature.told(self.shared)

    def _index(self, kind: str) -> dict[str, list[int]]:
        if kind not in self.indexes:
            index: dict[str, list[int]] = {}
            for number, signature in enumerate(self.every):
                if kind == "unknown" or kind in signature.kinds:
                    for anchor in signature.anchors:
                        index.setdefault(anchor, []).append(number)
            self.indexes[kind] = index
        return self.indexes[kind]


def load(folders: Sequence[Path]) -> Signatures:
    """The heads of all files. Raises RuleError, naming file and entry; also for an id that is given twice."""
    by_id: dict[str, Signature] = {}
    for folder in folders:
        for path in sorted((folder / FOLDER).glob("*.yaml")):
            if path.name == SHARED:
                continue
            for signature in read(path):
                known = by_id.setdefault(signature.id, signature)
                if known is not signature:
                    raise RuleError(f"{signature.where}: there is one of that id already, {known.where}")
    return Signatures(tuple(by_id.values()), by_id, tuple(folders))


def read(path: Path) -> Iterator[Signature]:
    """The signatures of one file, without their texts."""
    text = path.read_text(encoding="utf-8")
    starts = [match.start() for match in _ENTRY.finditer(text)]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)]), 1):
        yield _signature(text[start:end], f"{path}: entry {number}", str(path))


def _signature(chunk: str, where: str, path: str) -> Signature:
    body = _BODY.search(chunk)
    head = _head(chunk[: body.start()] if body else chunk)
    if head is None:
        head = _yaml_head(chunk, where)
    missing = [key for key in ("id", "kind", "layer", "role", "severity", "anchors", "regex") if not head.get(key)]
    if missing:
        raise RuleError(f"{where}: {', '.join(missing)} is missing")
    name = head["id"]
    return Signature(
        id=name,
        kinds=head["kind"],
        layer=head["layer"],
        role=head["role"],
        severity=head["severity"],
        cause=head.get("cause") or name,
        event=head.get("event", ""),
        codes=head.get("codes", ()),
        anchors=head["anchors"],
        regex=head["regex"],
        explains=head.get("explains", ()),
        explained_by=head.get("explained_by", ()),
        where=f"{path}: {name}",
        body=chunk[body.start() :] if body else "",
    )


def _head(text: str) -> dict[str, Any] | None:
    """None where a line is not of the form that is quick to read."""
    head: dict[str, Any] = {}
    for line in text.rstrip().split("\n"):
        match = _LINE.fullmatch(line)
        kind = HEAD.get(match[1]) if match else None
        if match is None or kind is None or match[1] in head:
            return None
        value = _items(match[2]) if kind is tuple else _scalar(match[2])
        if value is None:
            return None
        head[match[1]] = value
    return head


def _items(text: str) -> tuple[str, ...] | None:
    if not (text.startswith("[") and text.endswith("]")) or "'" in _ITEM.sub("", text):
        return None
    return tuple(
        _ESCAPED.sub(r"\1", quoted) if quoted or not bare else bare for quoted, bare in _ITEM.findall(text[1:-1])
    )


def _scalar(text: str) -> str | None:
    if text.startswith("'"):
        inner = text[1:-1]
        single = text.endswith("'") and len(text) > 1 and "'" not in inner.replace("''", "")
        return inner.replace("''", "'") if single else None
    return text if re.fullmatch(r"[\w.-]+", text, re.ASCII) else None


def _yaml_head(chunk: str, where: str) -> dict[str, Any]:
    entry = _yaml(chunk, where)
    entry = entry[0] if isinstance(entry, list) and entry else entry
    if not isinstance(entry, Mapping):
        raise RuleError(f"{where}: a signature is a mapping that starts with id")
    head: dict[str, Any] = {}
    for key, value in entry.items():
        if key in HEAD:
            many = value if isinstance(value, list) else [value]
            head[key] = tuple(str(item) for item in many) if HEAD[key] is tuple else str(value)
        elif key not in ("title", "meaning", "why", "remedy", "verify", "sources", "samples", "tests"):
            raise RuleError(f"{where}: {key} is no key of a signature{nearest(str(key), HEAD)}")
    return head


def _yaml(text: str, where: str) -> Any:
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise RuleError(f"{where}: no valid YAML: {getattr(error, 'problem', None) or error}") from None


@cache
def _compiled(regex: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(regex)
    except re.error as error:
        raise RuleError(f"{where}: regex: {error}") from None


def _shared(folders: Sequence[Path]) -> dict[str, Mapping[str, Any]]:
    """Names of steps and sources -> what they stand for."""
    found: dict[str, dict[str, Any]] = {"steps": {}, "sources": {}}
    for folder in folders:
        path = folder / FOLDER / SHARED
        document = load_yaml(path) if path.is_file() else {}
        for part, entries in found.items():
            entries.update({**document.get(part, {}), **entries})
    return dict(found)


def _told(signature: Signature, shared: Mapping[str, Mapping[str, Any]]) -> Told:
    where = signature.where
    body = _yaml(signature.body, where) or {}
    samples = body.get("samples", {})
    verify = body.get("verify")
    return Told(
        title=_texts(body.get("title"), f"{where}: title"),
        meaning=_texts(body.get("meaning"), f"{where}: meaning"),
        why=_texts(body.get("why", {}), f"{where}: why"),
        remedy=tuple(step_of(_named(step, "steps", shared, where), where) for step in body.get("remedy", ())),
        verify=None if verify is None else str(verify),
        sources=tuple(source_of(_named(one, "sources", shared, where), where) for one in body.get("sources", ())),
        match=tuple(str(line) for line in samples.get("match", ())),
        no_match=tuple(str(line) for line in samples.get("no_match", ())),
    )


def _texts(value: Any, where: str) -> Texts:
    if not isinstance(value, Mapping):
        raise RuleError(f"{where}: give {{en: ..., zh: ...}}")
    return {str(language): str(text) for language, text in value.items()}


def _named(value: Any, part: str, shared: Mapping[str, Mapping[str, Any]], where: str) -> Any:
    """What a name stands for; anything else as it is."""
    if not isinstance(value, str):
        return value
    if value not in shared.get(part, {}):
        raise RuleError(f"{where}: {SHARED} has no {part[:-1]} {value}{nearest(value, shared.get(part, {}))}")
    return shared[part][value]
