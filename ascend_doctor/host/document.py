"""snapshot.json, checked whole before it is believed (DESIGN section 4)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, NoReturn

from ascend_doctor.host import Extent, Identity, Missing, Python, Reason, Stat, StatVfs
from ascend_doctor.host.members import SnapshotError
from ascend_doctor.host.reasons import NOT_IN_SNAPSHOT, NOT_SET
from ascend_doctor.host.resolve import tidy
from ascend_doctor.records import dataclass

SCHEMA = "ascend-doctor/snapshot/1"
TYPES = ("file", "dir", "char", "block", "fifo", "socket", "other", "link")
QUESTIONS = ("read", "list", "stat", "statvfs", "link")
EVERYTHING = ("/", "env")
LONGEST_TARGET = 4096
DETAILS = ("-l", "-m", "board", "ecc", "common", "usages", "proc-mem")
"""What npu-smi info is asked for only in depth, the last ones behind ``-t``."""
IMPORTS, SMOKE = "import_probe", "smoke"
"""The observation that only a run makes which imports."""


@dataclass(frozen=True)
class Command:
    """What a command answered; the streams are member names, "" for an empty stream."""

    rc: int = 0
    stdout: str = ""
    stderr: str = ""
    missing: Missing | None = None


@dataclass
class Place:
    """All that is known of one path; ``missing`` is by question, "" for all of them."""

    type: str = ""
    stat: Stat | None = None
    names: tuple[str, ...] | None = None
    statvfs: StatVfs | None = None
    target: str | None = None
    content: str = ""
    missing: dict[str, Missing] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        known = self.type or self.target is not None or self.names is not None or self.statvfs or self.content
        return bool(known) or any(why.reason is not Reason.ABSENT for why in self.missing.values())


@dataclass(frozen=True)
class Document:
    """``complete``: paths below which, and "env", what is not listed is absent.

    ``extent``: as it says; of a hand-made one that does not say it follows from the answers that it has.
    """

    taken_at: datetime
    complete: tuple[str, ...]
    redacted: str
    extent: Extent
    identity: Identity
    env: Mapping[str, str | Missing]
    env_names: tuple[str, ...] | Missing | None
    python: Python | Missing
    commands: Mapping[tuple[str, ...], Command]
    places: Mapping[str, Place]
    observations: Mapping[str, Missing]


def loaded(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a snapshot.json of our schema, its parts not checked yet. Raises SnapshotError."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{where}: no valid JSON: {str(error)[:200]}; collect it again") from None
    if not isinstance(raw, dict):
        raise SnapshotError(f"{where}: no JSON object; collect it again")
    schema = raw.get("schema")
    if schema != SCHEMA:
        raise SnapshotError(f'{where}: schema is {_shown(schema)}; this version reads "{SCHEMA}"')
    return raw


def checked(raw: Mapping[str, Any], where: str, members: Collection[str]) -> Document:
    """The document with everything of its type, and every member that it names there. Raises SnapshotError."""
    try:
        commands = _commands(raw.get("commands", []), members)
        return Document(
            taken_at=_time(raw.get("taken_at"), "taken_at"),
            complete=_complete(raw.get("complete", False)),
            redacted=_text(raw.get("redacted", "none"), "redacted"),
            extent=_extent(raw, commands, members),
            identity=_identity(raw.get("identity", {}), "identity"),
            env={
                name: _or_missing(value, f"env.{name}", _text, NOT_SET)
                for name, value in _object(raw.get("env", {}), "env").items()
            },
            env_names=_or_missing(raw.get("env_names"), "env_names", _texts, None),
            python=_python(raw),
            commands=commands,
            places=_places(raw.get("entries", []), members),
            observations={
                area: _missing(value, f"observations.{area}")
                for area, value in _object(raw.get("observations", {}), "observations").items()
            },
        )
    except _Wrong as error:
        raise SnapshotError(f"{where}: {error}; mend it or collect it again") from None


class _Wrong(Exception):
    pass


def _wrong(place: str, value: object, wanted: str) -> NoReturn:
    raise _Wrong(f"{place}: {_shown(value)} is no {wanted}")


def _shown(value: object) -> str:
    text = json.dumps(value, default=str, skipkeys=True)  # a delta's YAML may have dates
    return text if len(text) <= 60 else text[:59] + "…"


def _object(value: object, place: str) -> dict[str, Any]:
    return value if isinstance(value, dict) else _wrong(place, value, "object")


def _list(value: object, place: str) -> list[Any]:
    return value if isinstance(value, list) else _wrong(place, value, "list")


def _text(value: object, place: str) -> str:
    return value if isinstance(value, str) else _wrong(place, value, "text")


def _texts(value: object, place: str) -> tuple[str, ...]:
    return tuple(_text(item, f"{place}[{n}]") for n, item in enumerate(_list(value, place)))


def _number(value: object, place: str) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else _wrong(place, value, "whole number")


def _boolean(value: object, place: str) -> bool:
    return value if isinstance(value, bool) else _wrong(place, value, "true or false")


def _path(value: object, place: str) -> str:
    path = _text(value, place)
    if not path.startswith("/"):
        _wrong(place, value, "absolute path")
    return tidy(path)


def _missing(value: object, place: str) -> Missing:
    """``{"missing": REASON, "detail": TEXT}``."""
    given = _object(value, place)
    reason = given.get("missing")
    if not isinstance(reason, str) or reason not in {known.value for known in Reason}:
        _wrong(f"{place}.missing", reason, "reason (" + ", ".join(known.value for known in Reason) + ")")
    return Missing(Reason(reason), _text(given.get("detail", ""), f"{place}.detail"))


def _or_missing(value: object, place: str, read: Any, if_null: Any) -> Any:
    if value is None:
        return if_null
    return _missing(value, place) if isinstance(value, dict) and "missing" in value else read(value, place)


def _time(value: object, place: str) -> datetime:
    text = _text(value, place)
    form = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,6})?(Z|[+-]\d\d:\d\d)"
    found = re.fullmatch(form, text, re.ASCII)
    try:
        if not found:
            raise ValueError
        fraction = (found[2] or ".0")[1:].ljust(6, "0")
        return datetime.fromisoformat(f"{found[1]}.{fraction}{found[3].replace('Z', '+00:00')}")
    except ValueError:
        _wrong(place, value, "time such as 2026-11-30T09:00:00Z")


def _complete(value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return EVERYTHING if value else ()
    parts = _texts(value, "complete")
    return tuple(part if part == "env" else _path(part, f"complete[{n}]") for n, part in enumerate(parts))


def _identity(value: object, place: str) -> Identity:
    given = _object(value, place)

    def part(name: str, read: Any) -> Any:
        return _or_missing(given.get(name), f"{place}.{name}", read, NOT_IN_SNAPSHOT)

    return Identity(
        part("hostname", _text),
        part("arch", _text),
        part("kernel", _text),
        part("uid", _number),
        part("gids", _numbers),
    )


def _numbers(value: object, place: str) -> tuple[int, ...]:
    return tuple(_number(item, f"{place}[{n}]") for n, item in enumerate(_list(value, place)))


def _python(raw: Mapping[str, Any]) -> Python | Missing:
    if "python" not in raw:
        return NOT_IN_SNAPSHOT
    if raw["python"] is None:
        return Missing(Reason.ABSENT, "no Python found")
    given = _object(raw["python"], "python")
    if "missing" in given:
        return _missing(given, "python")
    return Python(
        _text(given.get("executable"), "python.executable"),
        _or_missing(given.get("version"), "python.version", _text, NOT_IN_SNAPSHOT),
        _or_missing(given.get("site"), "python.site", _texts, NOT_IN_SNAPSHOT),
    )


def _member(value: object, place: str, members: Collection[str]) -> str:
    name = _text(value, place)
    if name not in members:
        raise _Wrong(f"{place}: {_shown(name)} is not in the snapshot")
    return name


def _commands(value: object, members: Collection[str]) -> dict[tuple[str, ...], Command]:
    found = {}
    for n, item in enumerate(_list(value, "commands")):
        place = f"commands[{n}]"
        given = _object(item, place)
        argv = _texts(given.get("argv"), f"{place}.argv")
        if not argv:
            _wrong(f"{place}.argv", [], "command line")
        if "missing" in given:
            found[argv] = Command(missing=_missing(given, place))
            continue
        out, err = (_member(given[s], f"{place}.{s}", members) if given.get(s) else "" for s in ("stdout", "stderr"))
        found[argv] = Command(_number(given.get("rc", 0), f"{place}.rc"), out, err)
    return found


def _extent(raw: Mapping[str, Any], commands: Collection[tuple[str, ...]], members: Collection[str]) -> Extent:
    missing = _object(raw.get("observations", {}), "observations")
    imported, smoked = (f"observations/{name}.json" in members or name in missing for name in (IMPORTS, SMOKE))
    return Extent(
        deep=_boolean(raw.get("deep", any(map(_asks_in_depth, commands))), "deep"),
        imports=_boolean(raw.get("imports", imported), "imports"),
        libraries=_texts(raw.get("libraries", []), "libraries"),
        smoke=_boolean(raw.get("smoke", smoked), "smoke"),
    )


def _asks_in_depth(argv: tuple[str, ...]) -> bool:
    if argv[0] == "npu-smi":
        return any(word in DETAILS for word in argv[2:4])
    return argv[0] == "hccn_tool"


def _places(value: object, members: Collection[str]) -> dict[str, Place]:
    places: dict[str, Place] = {}
    for n, item in enumerate(_list(value, "entries")):
        given = _object(item, f"entries[{n}]")
        path = _path(given.get("path"), f"entries[{n}].path")
        _add_entry(places.setdefault(path, Place()), given, f"entries[{n}]", members)
    return places


def _add_entry(known: Place, given: dict[str, Any], place: str, members: Collection[str]) -> None:
    """Later entries of a path add to what earlier ones say."""
    if "missing" in given:
        question = given.get("of", "")
        if question and question not in QUESTIONS:
            _wrong(f"{place}.of", question, f"question ({', '.join(QUESTIONS)})")
        known.missing[question] = _missing(given, place)
        return
    if "type" in given:
        if given["type"] not in TYPES:
            _wrong(f"{place}.type", given["type"], f"type ({', '.join(TYPES)})")
        if given["type"] == "link":
            known.target = _text(given.get("target"), f"{place}.target")
            if not 0 < len(known.target) <= LONGEST_TARGET:
                _wrong(f"{place}.target", known.target, f"path of 1 to {LONGEST_TARGET} characters")
            return
        known.type = given["type"]
    if "mode" in given:
        known.stat = Stat(
            known.type or _wrong(f"{place}.type", None, f"type ({', '.join(TYPES)})"),
            _mode(given["mode"], f"{place}.mode"),
            _number(given.get("uid", 0), f"{place}.uid"),
            _number(given.get("gid", 0), f"{place}.gid"),
        )
    if "names" in given:
        known.names = tuple(sorted(_texts(given["names"], f"{place}.names")))
        known.type = known.type or "dir"
    if "statvfs" in given:
        sizes = _object(given["statvfs"], f"{place}.statvfs")
        known.statvfs = StatVfs(
            *(_number(sizes.get(part), f"{place}.statvfs.{part}") for part in ("size", "free", "inodes_free"))
        )
    if "content" in given:
        known.content = _member(given["content"], f"{place}.content", members)


def _mode(value: object, place: str) -> int:
    if not isinstance(value, str) or not re.fullmatch("[0-7]{1,5}", value, re.ASCII):
        _wrong(place, value, 'octal mode such as "0644"')
    return int(value, 8)
