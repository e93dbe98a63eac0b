"""A machine as a snapshot remembers it: answers from a folder or archive and asks nothing of the machine it runs on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Callable, TypeVar, Union

from ascend_doctor.host import (
    COMMAND_SECONDS,
    READ_LIMIT,
    Answer,
    Extent,
    Identity,
    Missing,
    Output,
    Python,
    Reason,
    Stat,
    StatVfs,
)
from ascend_doctor.host.document import Document, Place, checked, loaded
from ascend_doctor.host.members import DOCUMENT, Members, SnapshotError, open_members
from ascend_doctor.host.reasons import (
    NO_SUCH_FILE,
    NOT_A_FOLDER,
    NOT_A_LINK,
    NOT_ABSOLUTE,
    NOT_IN_SNAPSHOT,
    NOT_SET,
    TOO_LARGE,
    not_a_file,
)
from ascend_doctor.host.resolve import folders_above, resolved, tidy

T = TypeVar("T")


def open_snapshot(path: Path) -> SnapshotHost:
    """The host in a snapshot: a folder, its snapshot.json, or an archive. Raises SnapshotError."""
    members = open_members(path)
    where = f"{members.where}/{DOCUMENT}"
    return SnapshotHost(checked(loaded(content(members, DOCUMENT), where), where, members.index), members)


def content(members: Members, name: str) -> bytes:
    """The bytes of a member. Raises SnapshotError."""
    try:
        with members.open(name) as stream:
            return stream.read()
    except (OSError, EOFError) as error:
        raise SnapshotError(f"{members.where}/{name}: {getattr(error, 'strerror', None) or error}") from None


class SnapshotHost:
    """What stands directly under the path asked wins; then links are followed inside the snapshot."""

    def __init__(self, document: Document, members: Members) -> None:
        self.document, self.members = document, members
        self._links = {path: place.target for path, place in document.places.items() if place.target is not None}
        self._files: set[str] = set()
        for name, member in members.index.items():
            if name.startswith("files/"):
                path = name[len("files") :]
                if member.target is None:
                    self._files.add(path)
                elif path not in document.places:
                    self._links[path] = member.target
        self._children: dict[str, set[str]] | None = None

    # Files

    def read(self, path: str) -> Answer[bytes]:
        return self._answer(path, "read", self._bytes, self._unread)

    def open(self, path: str) -> Answer[BinaryIO]:
        return self._answer(path, "read", self._stream, self._unread)

    def list(self, path: str) -> Answer[tuple[str, ...]]:
        return self._answer(path, "list", lambda p: self._place(p).names, self._names_that_follow)

    def stat(self, path: str) -> Answer[Stat]:
        return self._answer(path, "stat", lambda p: self._place(p).stat, self._stat_that_follows)

    def statvfs(self, path: str) -> Answer[StatVfs]:
        return self._answer(path, "statvfs", lambda p: self._place(p).statvfs, lambda p: NOT_IN_SNAPSHOT)

    def link(self, path: str) -> Answer[str]:
        """As the others, but the last part of the path is not followed."""
        return self._answer(path, "link", self._links.get, lambda p: NOT_A_LINK, follow=False)

    def _answer(
        self,
        path: str,
        question: str,
        known: Callable[[str], T | Missing | None],
        follows: Callable[[str], T | Missing],
        follow: bool = True,
    ) -> Answer[T]:
        return Answer(f"file:{path}", self._value(tidy(path), question, known, follows, follow))

    def _value(
        self,
        path: str,
        question: str,
        known: Callable[[str], T | Missing | None],
        follows: Callable[[str], T | Missing],
        follow: bool,
    ) -> Union[T, Missing]:
        if not path.startswith("/"):
            return NOT_ABSOLUTE
        real = self._real(path, follow)
        for here in (path, real):
            if isinstance(here, Missing):
                return here
            place = self._place(here)
            why = place.missing.get(question) or place.missing.get("")
            value = why or known(here)
            if value is not None:
                return value
            for folder in folders_above(here):
                if folder in self.document.places and "" in self.document.places[folder].missing:
                    return self.document.places[folder].missing[""]
        assert isinstance(real, str)
        if not self._is_complete(real):
            return NOT_IN_SNAPSHOT
        return follows(real) if self._is_there(real) else self._why_not_there(real)

    def _place(self, path: str) -> Place:
        return self.document.places.get(path, _NOTHING)

    def _real(self, path: str, follow: bool) -> str | Missing:
        if not self._links and "/.." not in path:
            return path
        if follow:
            return resolved(path, self._links.get)
        folder, _, name = path.rpartition("/")
        above = resolved(folder or "/", self._links.get)
        return above if isinstance(above, Missing) else f"{above.rstrip('/')}/{name}"

    def _is_complete(self, path: str) -> bool:
        return any(part == "/" or path == part or path.startswith(part + "/") for part in self.document.complete)

    def _member(self, path: str) -> str:
        return self._place(path).content or (f"files{path}" if path in self._files else "")

    def _stream(self, path: str) -> BinaryIO | Missing | None:
        name = self._member(path)
        if not name:
            return None
        try:
            return self.members.open(name)
        except (OSError, EOFError, SnapshotError) as error:
            return Missing(Reason.FAILED, f"{self.members.where}/{name}: {getattr(error, 'strerror', None) or error}")

    def _bytes(self, path: str) -> bytes | Missing | None:
        name = self._member(path)
        if not name:
            return None
        if self.members.index[name].size > READ_LIMIT:
            return TOO_LARGE
        try:
            return content(self.members, name)
        except SnapshotError as error:
            return Missing(Reason.FAILED, str(error))

    # What follows from files/ and entries in the complete parts

    def _unread(self, path: str) -> Missing:
        kind = self._type(path)
        return NOT_IN_SNAPSHOT if kind in ("", "file") else not_a_file(kind)

    def _names_that_follow(self, path: str) -> tuple[str, ...] | Missing:
        kind = self._type(path)
        if kind == "dir":
            return tuple(sorted(self._tree().get(path, ())))
        return NOT_A_FOLDER if kind else NOT_IN_SNAPSHOT

    def _stat_that_follows(self, path: str) -> Stat | Missing:
        kind = self._type(path)
        return Stat(kind, 0o755 if kind == "dir" else 0o644, 0, 0) if kind else NOT_IN_SNAPSHOT

    def _type(self, path: str) -> str:
        """ "" where something is there and nothing says what: a name in a list."""
        place = self._place(path)
        if place.type:
            return place.type
        if path in self._files or place.content:
            return "file"
        return "dir" if path == "/" or path in self._tree() else ""

    def _is_there(self, path: str) -> bool:
        if path == "/" or path in self._files or path in self._links or path in self._tree():
            return True
        folder, _, name = path.rpartition("/")
        return self._place(path).is_there or name in (self._place(folder or "/").names or ())

    def _why_not_there(self, path: str) -> Missing:
        above = next((folder for folder in folders_above(path) if self._is_there(folder)), "/")
        return NO_SUCH_FILE if self._type(above) in ("", "dir") else NOT_A_FOLDER

    def _tree(self) -> dict[str, set[str]]:
        """Folder -> names, of all that is there; built once, for the complete parts only."""
        if self._children is None:
            tree: dict[str, set[str]] = {}
            there = {path for path, place in self.document.places.items() if place.is_there}
            for path in self._files.union(self._links, there):
                for folder in folders_above(path):
                    names = tree.setdefault(folder, set())
                    name = path.rpartition("/")[2]
                    if name in names:
                        break
                    names.add(name)
                    path = folder
            self._children = tree
        return self._children

    # Everything else

    def run(self, argv: Sequence[str], timeout: float = COMMAND_SECONDS) -> Answer[Output]:
        source = "command:" + " ".join(argv)
        command = self.document.commands.get(tuple(argv))
        if command is None:
            return Answer(source, NOT_IN_SNAPSHOT)
        if command.missing:
            return Answer(source, command.missing)
        try:
            out, err = (content(self.members, name) if name else b"" for name in (command.stdout, command.stderr))
        except SnapshotError as error:
            return Answer(source, Missing(Reason.FAILED, str(error)))
        return Answer(source, Output(command.rc, out, err))

    def env(self, name: str) -> Answer[str]:
        unlisted = NOT_SET if "env" in self.document.complete else NOT_IN_SNAPSHOT
        return Answer(f"env:{name}", self.document.env.get(name, unlisted))

    def env_names(self) -> Answer[tuple[str, ...]]:
        names: tuple[str, ...] | Missing | None = self.document.env_names
        if names is None:
            set_ = tuple(sorted(name for name, value in self.document.env.items() if isinstance(value, str)))
            names = set_ if "env" in self.document.complete else NOT_IN_SNAPSHOT
        return Answer("env", names)

    def observed(self, area: str, measure: Callable[[], object]) -> Answer[object]:
        """Never measures."""
        return Answer(f"observed:{area}", self._observation(area))

    def _observation(self, area: str) -> object | Missing:
        name = f"observations/{area}.json"
        if area in self.document.observations:
            return self.document.observations[area]
        if name not in self.members.index:
            return NOT_IN_SNAPSHOT
        try:
            value: object = json.loads(content(self.members, name))
            return value
        except (SnapshotError, ValueError, RecursionError) as error:
            return Missing(Reason.FAILED, f"{name}: {str(error)[:200]}")

    @property
    def extent(self) -> Extent:
        return self.document.extent

    @property
    def origin(self) -> str:
        return "snapshot"

    @property
    def identity(self) -> Identity:
        return self.document.identity

    @property
    def python(self) -> Answer[Python]:
        return Answer("python", self.document.python)

    def now(self) -> datetime:
        return self.document.taken_at


_NOTHING = Place()
