"""What a machine answers: the one protocol behind live hosts and snapshots, and how facts keep their source.

Nothing here touches a machine; live.py and snapshot.py do. A question has an answer or a reason why there is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from typing import BinaryIO, Callable, Generic, Protocol, TypeVar, Union

from ascend_doctor.records import dataclass

T = TypeVar("T")
U = TypeVar("U")

READ_LIMIT = 16 << 20
"""Bytes: the most that ``Host.read`` gives; larger files go through ``Host.open``."""

COMMAND_SECONDS = 10.0


class Reason(str, Enum):
    """Why there is no value. Only ``ABSENT`` says something about the host; the others are about the asking."""

    ABSENT = "absent"
    DENIED = "denied"
    TIMEOUT = "timeout"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    NOT_COLLECTED = "not_collected"


@dataclass(frozen=True)
class Missing:
    """A value that is not there: ``path`` is the fact's path, set by ``Area.of`` and kept when a row hands it on."""

    reason: Reason
    detail: str = ""
    path: str = ""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """``source`` reads as ``file:/proc/meminfo``, ``command:npu-smi info``, ``env:PATH`` or ``observed:AREA``."""

    source: str
    value: Union[T, Missing]
    seconds: float = 0.0


@dataclass(frozen=True)
class Output:
    """What a command printed; ``rc`` is its exit status (negative: ended by that signal)."""

    rc: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Stat:
    """Links followed. ``type``: dir, file, char, block, fifo, socket or other; ``mode``: the permission bits."""

    type: str
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True)
class StatVfs:
    """Of the file system below a path: bytes and inodes."""

    size: int
    free: int
    inodes_free: int


@dataclass(frozen=True)
class Identity:
    """Who asks, where: the host as the asking process sees it."""

    hostname: str | Missing
    arch: str | Missing
    kernel: str | Missing
    uid: int | Missing
    gids: tuple[int, ...] | Missing


@dataclass(frozen=True)
class Python:
    """The target interpreter, found without running it (DESIGN section 4)."""

    executable: str
    version: str | Missing
    site: tuple[str, ...] | Missing


@dataclass(frozen=True)
class Extent:
    """What is asked beyond the default, where the user wants it.

    ``deep``: each chip and its network port for details, which is many starts. ``imports``: whether packages of the
    target Python can be imported, which runs their code. ``libraries``: files to be looked at beside the deployment's.
    ``smoke``: whether a reduced model is computed on a device.
    """

    deep: bool = False
    imports: bool = False
    libraries: tuple[str, ...] = ()
    smoke: bool = False


class Host(Protocol):
    """A live machine or a snapshot of one. No method raises for what a host may be like: the answer says it."""

    def read(self, path: str) -> Answer[bytes]:
        """The whole file; larger than ``READ_LIMIT`` is Missing(failed)."""

    def open(self, path: str) -> Answer[BinaryIO]:
        """A stream of the file, for large ones; the caller closes it."""

    def list(self, path: str) -> Answer[tuple[str, ...]]:
        """The names in a folder, sorted."""

    def stat(self, path: str) -> Answer[Stat]:
        """Links followed; a dangling link is absent."""

    def statvfs(self, path: str) -> Answer[StatVfs]: ...

    def link(self, path: str) -> Answer[str]:
        """Where a symbolic link points, as written; Missing(unsupported) for what is there and no link."""

    def run(self, argv: Sequence[str], timeout: float = COMMAND_SECONDS) -> Answer[Output]:
        """Any exit status is an answer; absent: no such program; timeout: killed at the deadline, in seconds."""

    def env(self, name: str) -> Answer[str]:
        """absent: not set; not_collected: not a name that the rules know."""

    def env_names(self) -> Answer[tuple[str, ...]]:
        """The variables that are set and that the rules know by name or prefix, sorted."""

    def observed(self, area: str, measure: Callable[[], object]) -> Answer[object]:
        """What bytes cannot reproduce, as JSON values: measured here when live, taken from a snapshot else."""

    @property
    def extent(self) -> Extent:
        """A snapshot says how it was taken, so that its replay asks what the live run asked."""

    @property
    def origin(self) -> str:
        """``live`` or ``snapshot``."""

    @property
    def identity(self) -> Identity: ...

    @property
    def python(self) -> Answer[Python]: ...

    def now(self) -> datetime:
        """With time zone; a snapshot's is the time at which it was taken."""


@dataclass(frozen=True)
class Shown(Generic[T]):
    """What a parser found and the lines that show it: sub-path of the value -> text ("" is the value itself)."""

    value: Union[T, Missing]
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """A value on its way from an answer into an area."""

    value: Union[T, Missing]
    source: str
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Collected(Generic[T]):
    """An area of facts; ``provenance``: path prefix -> (source, text that shows it)."""

    name: str
    facts: T
    provenance: Mapping[str, tuple[str, str]]


@dataclass
class Area:
    """Builds one area: files what ``parsed`` gave under its path and remembers where it came from."""

    name: str
    provenance: dict[str, tuple[str, str]] = field(default_factory=dict)

    def take(self, path: str, parsed: Parsed[T]) -> Union[T, Missing]:
        """Hands the value on; ``path`` is relative to the area, "" for a table that is the whole area."""
        for part, text in (parsed.texts or {"": ""}).items():
            self.provenance[joined(joined(self.name, path), part)] = (parsed.source, text)
        return parsed.value

    def of(self, facts: U) -> Collected[U]:
        """The finished area: each Missing in it knows the path where it stands."""
        if isinstance(facts, Mapping):
            stamped: object = {name: _stamped(value, joined(self.name, name)) for name, value in facts.items()}
            return Collected(self.name, stamped, self.provenance)  # type: ignore[arg-type]
        return Collected(self.name, _stamped(facts, self.name), self.provenance)


def joined(path: str, part: str) -> str:
    """Two parts of a fact's path: ``npu`` and ``chips[0]``, ``npu.chips`` and ``[0]``."""
    if not path or not part:
        return path or part
    return path + part if part.startswith(("[", ".")) else f"{path}.{part}"


def keyed(path: str, key: object) -> str:
    """The path of a map's or list's element: ``nodes[4]``, ``npus["0000:c1:00.0"]``."""
    return f'{path}["{key}"]' if isinstance(key, str) else f"{path}[{key}]"


def _stamped(value: U, path: str) -> U:
    if isinstance(value, Missing):
        return value if value.path else replace(value, path=path)
    if isinstance(value, tuple):
        return tuple(_stamped(v, keyed(path, i)) for i, v in enumerate(value))  # type: ignore[return-value]
    if isinstance(value, Mapping):
        return {k: _stamped(v, keyed(path, k)) for k, v in value.items()}  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        new = {f.name: _stamped(getattr(value, f.name), f"{path}.{f.name}") for f in fields(value)}
        if all(new[name] is getattr(value, name) for name in new):
            return value
        return replace(value, **new)
    return value


TEXT_LIMIT = 400
"""Characters of evidence kept of one answer when its parser does not name the deciding line."""


def parsed(answer: Answer[U], parse: Callable[[U], Union[T, Missing, Shown[T]]]) -> Parsed[T]:
    """An answer through a parser; a Missing answer passes through. Bytes are shown whole unless the parser says how."""
    if isinstance(answer.value, Missing):
        why = answer.value
        return Parsed(why, answer.source, {"": f"{why.reason.value}: {why.detail}" if why.detail else why.reason.value})
    value = parse(answer.value)
    if isinstance(value, Shown):
        return Parsed(value.value, answer.source, value.texts)
    return Parsed(value, answer.source, {"": _text_of(answer.value)})


def _text_of(value: object) -> str:
    if isinstance(value, Output):
        value = value.stdout + value.stderr
    if isinstance(value, bytes):
        value = decoded(value).strip("\n").rstrip()
    elif isinstance(value, tuple):
        value = ", ".join(map(str, value))
    text = str(value)
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def decoded(data: bytes) -> str:
    """Text of any tool or file: UTF-8, else GB18030, else with marks; no BOM, colours, NUL or carriage returns."""
    for encoding in ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "gb18030"):
        try:
            text = data.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        text = data.decode(errors="replace")
    return _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
