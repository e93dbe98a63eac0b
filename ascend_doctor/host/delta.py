"""Test hosts that differ from another host in a few answers: host.yaml (DESIGN section 11, last paragraph)."""

from __future__ import annotations

import base64
import binascii
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ascend_doctor.host.document import checked, loaded
from ascend_doctor.host.members import DOCUMENT, Member, Members, SnapshotError, open_members
from ascend_doctor.host.resolve import folders_above, tidy
from ascend_doctor.host.snapshot import SnapshotHost, content
from ascend_doctor.paths import data_folder

DELTA = "host.yaml"
EMBEDDED = "example"
"""The base that is always there: reports/example."""
KEYS = ("says", "base", "set", "profile", "asked", "expect")
SETS = ("env", "files", "entries", "commands", "missing", "identity", "python", "observations", "taken_at", "complete")
CHECKED = ("env", "entries", "identity", "python", "taken_at", "complete")
LONGEST_CHAIN = 10


class HostError(SnapshotError):
    """A host.yaml that cannot be used: file, place, what to do."""


def host_names(folder: Path) -> list[str]:
    """The hosts in a folder: those of its folders that have a snapshot.json or a host.yaml."""
    return sorted({path.parent.name for name in (DOCUMENT, DELTA) for path in folder.glob(f"*/{name}")})


def expectations(folder: Path) -> list[dict[str, str]]:
    """Every error and warning that a host must give: ``expect`` of its host.yaml, or of a base's snapshot.json."""
    if (folder / DELTA).is_file():
        expected = _document(folder / DELTA).get("expect")
    else:
        expected = loaded((folder / DOCUMENT).read_bytes(), f"{folder}/{DOCUMENT}").get("expect")
    return list(expected or ())


def profile_of(folder: Path) -> str | None:
    """The profile by which a host is judged: the name of a shipped one, or the path of a file beside its host.yaml."""
    named = _document(folder / DELTA).get("profile") if (folder / DELTA).is_file() else None
    return str(folder / named) if isinstance(named, str) and named.endswith(".yaml") else named


def asked_of(folder: Path) -> Mapping[str, Any]:
    """What is asked of a host beside its state, such as ``launch``: a command line; empty where nothing is."""
    asked = _document(folder / DELTA).get("asked") if (folder / DELTA).is_file() else None
    if asked is not None and not isinstance(asked, Mapping):
        raise HostError(f"{folder / DELTA}: asked: give a mapping")
    return asked or {}


def open_host(folder: Path, bases: Path) -> SnapshotHost:
    """The host of a folder: a whole snapshot, or a base in ``bases`` with its host.yaml laid over it."""
    return _Draft.of(folder, bases, LONGEST_CHAIN).host()


def changed(folder: Path, bases: Path, changes: Mapping[str, Any]) -> SnapshotHost:
    """The same with more changes, in the words of ``set``."""
    draft = _Draft.of(folder, bases, LONGEST_CHAIN)
    draft.change(changes, f"{folder}: changes")
    return draft.host()


class _Draft:
    """A snapshot's document, as JSON, and members, while a delta changes them."""

    def __init__(self, raw: dict[str, Any], members: Members) -> None:
        self.raw, self.members = raw, _Overlaid(members)
        self.entries: list[dict[str, Any]] = list(raw.get("entries", []))
        self.commands: list[dict[str, Any]] = list(raw.get("commands", []))
        self.where = ""

    @classmethod
    def of(cls, folder: Path, bases: Path, chain: int) -> _Draft:
        if not (folder / DELTA).is_file():
            if not (folder / DOCUMENT).is_file():
                raise HostError(f"{folder}: neither {DELTA} nor {DOCUMENT} in it; name a folder that has one")
            members = open_members(folder)
            where = f"{folder}/{DOCUMENT}"
            raw = loaded(content(members, DOCUMENT), where)
            checked(raw, where, members.index)
            return cls(raw, members)
        where = f"{folder}/{DELTA}"
        delta = _document(folder / DELTA)
        base = delta.get("base")
        below = data_folder("reports") if base == EMBEDDED and not (bases / EMBEDDED).is_dir() else bases
        if not isinstance(base, str) or not (below / base).is_dir():
            raise HostError(f"{where}: base: {base} is no folder in {bases}; name one that is, or {EMBEDDED}")
        if chain == 0:
            raise HostError(
                f"{where}: base: more than {LONGEST_CHAIN} hosts one above the other; do they name each other?"
            )
        draft = cls.of(below / base, bases, chain - 1)
        draft.change(delta.get("set") or {}, f"{where}: set")
        return draft

    def host(self) -> SnapshotHost:
        raw = {**self.raw, "entries": self.entries, "commands": self.commands}
        return SnapshotHost(checked(raw, self.members.where, self.members.index), self.members)

    def change(self, changes: Mapping[str, Any], where: str) -> None:
        """``missing`` first, so that a file may be set below a folder that is missing else."""
        self.where = where
        _only(changes, SETS, where)
        self._check({part: changes[part] for part in CHECKED if part in changes})
        for what, reason in self._mapping(changes, "missing").items():
            self._set_missing(what, reason)
        for path, text in self._mapping(changes, "files").items():
            self._set_file(path, text)
        for entry in self._list(changes, "entries"):
            self._set_entry(entry)
        for command in self._list(changes, "commands"):
            self._set_command(command)
        for area, value in self._mapping(changes, "observations").items():
            missing = self.raw.get("observations", {})
            self.raw = {**self.raw, "observations": {other: why for other, why in missing.items() if other != area}}
            self.members.add(f"observations/{area}.json", json.dumps(value).encode())
        for part in ("env", "identity"):
            if part in changes:
                self.raw = {**self.raw, part: {**self.raw.get(part, {}), **self._mapping(changes, part)}}
        for part in ("python", "taken_at", "complete"):
            if part in changes:
                self.raw = {**self.raw, part: changes[part]}

    def _check(self, parts: Mapping[str, Any]) -> None:
        """Parts in the words of snapshot.json, so that an error names their place in the delta."""
        try:
            checked({"taken_at": "2026-01-01T00:00:00Z", **parts}, self.where, self.members.index)
        except SnapshotError as error:
            raise HostError(str(error)) from None

    def _wrong(self, place: str, what: str) -> NoReturn:
        raise HostError(f"{self.where}.{place}: {what}")

    def _mapping(self, changes: Mapping[str, Any], part: str) -> Mapping[Any, Any]:
        value = changes.get(part) or {}
        return value if isinstance(value, Mapping) else self._wrong(part, "give NAME: VALUE for each")

    def _list(self, changes: Mapping[str, Any], part: str) -> list[Any]:
        value = changes.get(part) or []
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            self._wrong(part, "give a list of {...}")
        return value

    def _path(self, value: object, place: str) -> str:
        if not isinstance(value, str) or not value.startswith("/") or ".." in value.split("/"):
            self._wrong(place, f"{value} is no absolute path")
        return tidy(value)

    # Paths

    def _forget(self, path: str) -> None:
        """Everything at a path and below it."""
        self.entries = [e for e in self.entries if not _at_or_below(tidy(e["path"]), path)]
        self.members.remove_below(f"files{path}")

    def _make_room(self, path: str) -> None:
        """A path that will be there: nothing above it is missing, and listed folders name it."""
        above = folders_above(path)
        self.entries = [e for e in self.entries if not ("missing" in e and "of" not in e and tidy(e["path"]) in above)]
        child = path
        for folder in above:
            self._name_in(folder, child.rpartition("/")[2], there=True)
            child = folder

    def _name_in(self, folder: str, name: str, there: bool) -> None:
        for n, entry in enumerate(self.entries):
            if tidy(entry["path"]) == folder and "names" in entry:
                names = {*entry["names"], name} if there else {*entry["names"]} - {name}
                self.entries[n] = {**entry, "names": sorted(names)}

    def _set_missing(self, what: object, reason: object) -> None:
        given = dict(reason) if isinstance(reason, Mapping) else {"missing": reason}
        if not isinstance(what, str) or not what:
            self._wrong("missing", f"{what} is neither a path nor a command line")
        self._check({"observations": {what: given}})
        if not what.startswith("/"):
            argv = next((c["argv"] for c in self.commands if " ".join(c["argv"]) == what), what.split())
            self._replace_command({"argv": list(argv), **given})
            return
        path = self._path(what, "missing")
        self._forget(path)
        if given["missing"] == "absent":
            self._name_in(path.rpartition("/")[0] or "/", path.rpartition("/")[2], there=False)
        else:
            self._make_room(path)
        self.entries.append({"path": path, **given})

    def _set_file(self, what: object, text: object) -> None:
        path = self._path(what, "files")
        if isinstance(text, Mapping) and set(text) == {"base64"}:
            try:
                data = base64.b64decode(str(text["base64"]), validate=True)
            except (binascii.Error, ValueError):
                self._wrong(f"files.{path}", "no valid base64")
        elif isinstance(text, str):
            data = text.encode()
        else:
            self._wrong(f"files.{path}", "give the text, in quotes, or {base64: ...}")
        kept = [e for e in self.entries if tidy(e["path"]) == path and e.get("type", "") == "file" and "mode" in e]
        self._forget(path)
        self._make_room(path)
        self.entries += kept
        self.members.add(f"files{path}", data)

    def _set_entry(self, entry: Mapping[str, Any]) -> None:
        path = self._path(entry.get("path"), "entries")
        if "missing" in entry and "of" not in entry:
            self._set_missing(path, {k: v for k, v in entry.items() if k != "path"})
            return
        if "missing" not in entry:
            self._make_room(path)
            self.entries = [e for e in self.entries if not ("missing" in e and tidy(e["path"]) == path)]
            if "target" in entry:
                self._forget(path)
            elif "type" in entry:
                self.entries = [e for e in self.entries if not ("target" in e and tidy(e["path"]) == path)]
        self.entries.append(dict(entry))

    # Commands

    def _set_command(self, command: Mapping[str, Any]) -> None:
        argv = command.get("argv")
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
            self._wrong("commands", f"argv is {argv}; give a list of texts")
        _only(command, ("argv", "rc", "stdout", "stderr", "missing", "detail"), f"{self.where}.commands: {argv}")
        new = dict(command)
        for stream in ("stdout", "stderr"):
            if stream in new:
                if not isinstance(new[stream], str):
                    self._wrong("commands", f"{' '.join(argv)}: {stream}: give the text, in quotes")
                name = f"commands/set-{len(self.members.index):05d}.{stream}"
                self.members.add(name, new[stream].encode())
                new[stream] = name
        self._replace_command(new)

    def _replace_command(self, command: dict[str, Any]) -> None:
        self.commands = [c for c in self.commands if c["argv"] != command["argv"]] + [command]


class _Overlaid:
    """Members of a base, some removed and some added."""

    def __init__(self, base: Members) -> None:
        self.where, self._base = base.where, base
        self.index: dict[str, Member] = dict(base.index)
        self._added: dict[str, bytes] = {}

    def add(self, name: str, data: bytes) -> None:
        self._added[name] = data
        self.index[name] = Member(len(data))

    def remove_below(self, name: str) -> None:
        self.index = {other: member for other, member in self.index.items() if not _at_or_below(other, name)}
        self._added = {other: data for other, data in self._added.items() if other in self.index}

    def open(self, name: str) -> BinaryIO:
        return io.BytesIO(self._added[name]) if name in self._added else self._base.open(name)


def _at_or_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _document(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        delta = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise HostError(f"{place}: no valid YAML: {getattr(error, 'problem', None) or error}") from None
    except OSError as error:
        raise HostError(f"{path}: cannot be read: {error.strerror}") from None
    if not isinstance(delta, Mapping):
        raise HostError(f"{path}: give {', '.join(KEYS)}")
    _only(delta, KEYS, str(path))
    return delta


def _only(given: object, known: tuple[str, ...], where: str) -> None:
    if not isinstance(given, Mapping):
        raise HostError(f"{where}: give some of {', '.join(known)}")
    for key in given:
        if key not in known:
            raise HostError(f"{where}: {key} is unknown; give {', '.join(known)}")
