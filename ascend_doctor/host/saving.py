"""Recorded answers as the members of a snapshot, what is to be hidden taken out."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime, timezone
from typing import Any, Callable, Union

from ascend_doctor.host import Host, Identity, Missing, Output, Python, Reason, Stat, StatVfs
from ascend_doctor.host.document import SCHEMA
from ascend_doctor.host.members import DOCUMENT, MEMBER_BYTES, TOTAL_BYTES
from ascend_doctor.host.reasons import NOT_SET
from ascend_doctor.host.redact import Hiding
from ascend_doctor.host.resolve import folders_above

_LOG_BYTES = TOTAL_BYTES // 2
"""What is kept of files that were opened as streams, together."""

_LONGEST_NAME = 255


class Saving:
    """Takes answers one by one, as the recorder has them, and gives the members at the end."""

    def __init__(self, inner: Host, hide: Hiding) -> None:
        self._inner, self._hide = inner, hide
        self._files: dict[str, bytes] = {}
        self._logs_left = _LOG_BYTES
        self._members: dict[str, bytes] = {}
        self._entries: list[dict[str, Any]] = []
        self._commands: list[dict[str, Any]] = []
        self._env: dict[str, Any] = {}
        self._observations: dict[str, Any] = {}
        self._env_names: Any = None

    def take(self, kind: str, subject: Any, value: Any) -> None:
        if kind in ("read", "open", "list", "stat", "statvfs", "link"):
            self._take_path(kind, subject, value)
        elif kind == "run" and subject:
            self._take_command(subject, value)
        elif kind == "env":
            self._env[subject] = (
                None if value == NOT_SET else self._json(value, lambda text: self._hide.variable(subject, text))
            )
        elif kind == "env_names":
            self._env_names = self._json(value, list)
        elif kind == "observed":
            self._take_observation(subject, value)

    def members(self, taken_at: datetime, identity: Identity, python: Union[Python, Missing]) -> dict[str, bytes]:
        """Member names and bytes, snapshot.json among them."""
        self._place_files()
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "taken_at": taken_at.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z",
            "complete": False,
            "redacted": self._hide.state,
            **self._paths_in(self._parts(self._inner.extent)),
            "identity": {**self._parts(identity), "hostname": self._json(identity.hostname, self._hide.host)},
            "python": self._json(python, lambda found: self._paths_in(self._parts(found))),
            "env": self._env,
            "commands": self._commands,
            "entries": self._entries,
        }
        if self._env_names is not None:
            document["env_names"] = self._env_names
        if self._observations:
            document["observations"] = self._observations
        return {**self._members, DOCUMENT: (json.dumps(document, indent=1) + "\n").encode()}

    def _paths_in(self, parts: dict[str, Any]) -> dict[str, Any]:
        """Texts as paths, lists of texts likewise."""

        def hidden(value: Any) -> Any:
            if isinstance(value, str):
                return self._hide.path(value)
            return [hidden(item) for item in value] if isinstance(value, (list, tuple)) else value

        return {name: value if isinstance(value, dict) else hidden(value) for name, value in parts.items()}

    # Paths

    def _take_path(self, kind: str, real: str, value: Any) -> None:
        if not real.startswith("/"):
            return  # any snapshot answers that as a live host does
        if kind == "open" and value is None:
            value = self._stream(real)
            if isinstance(value, bytes):
                self._hide.learn([value.decode("utf-8", "surrogateescape")])
        path = self._hide.path(real)
        if isinstance(value, Missing):
            if kind == "read" and path in self._files:
                return  # too large to be read whole, and opened as a stream
            self._entries.append({"path": path, "of": "read" if kind == "open" else kind, **self._missing(value)})
        elif isinstance(value, bytes):
            self._files[path] = self._hide.file(real, value)
        elif isinstance(value, Stat):
            entry = {"type": value.type, "mode": f"{value.mode:04o}", "uid": value.uid, "gid": value.gid}
            self._entries.append({"path": path, **entry})
        elif isinstance(value, StatVfs):
            self._entries.append({"path": path, "statvfs": self._parts(value)})
        elif kind == "list":
            self._entries.append({"path": path, "type": "dir", "names": self._hide.names_in(real, value)})
        else:
            self._entries.append({"path": path, "type": "link", "target": self._hide.path(value)})

    def _stream(self, path: str) -> bytes | Missing:
        answer = self._inner.open(path)
        if isinstance(answer.value, Missing):
            return answer.value
        most = min(MEMBER_BYTES, self._logs_left)
        with answer.value as stream:
            try:
                data = stream.read(most + 1)
            except OSError as error:
                return Missing(Reason.FAILED, str(error.strerror))
        if len(data) > most:
            return Missing(Reason.NOT_COLLECTED, "too large for a snapshot")
        self._logs_left -= len(data)
        return data

    def _place_files(self) -> None:
        """Bytes go to files/PATH, or to extra/ where PATH can be no file there: its name, or another file below it."""
        above = {folder for path in self._files for folder in folders_above(path)}
        for n, (path, data) in enumerate(sorted(self._files.items())):
            if path not in above and _is_plain(path):
                self._members[f"files{path}"] = data
                continue
            name = f"extra/{n:05d}.bin"
            self._members[name] = data
            self._entries.append({"path": path, "content": name})

    # The rest

    def _take_command(self, argv: tuple[str, ...], value: Union[Output, Missing]) -> None:
        command: dict[str, Any] = {"argv": self._words(argv)}
        if isinstance(value, Missing):
            self._commands.append({**command, **self._missing(value)})
            return
        command["rc"] = value.rc
        for stream, suffix, data in (("stdout", "out", value.stdout), ("stderr", "err", value.stderr)):
            if data:
                command[stream] = f"commands/{len(self._commands):03d}.{suffix}"
                self._members[command[stream]] = self._hide.data(data)
        self._commands.append(command)

    def _take_observation(self, area: str, value: object) -> None:
        if isinstance(value, Missing):
            self._observations[area] = self._missing(value)
            return
        try:
            data = json.dumps(self._observation(value), indent=1).encode()
        except (TypeError, ValueError, RecursionError) as error:
            self._observations[area] = self._missing(Missing(Reason.FAILED, f"no JSON value: {error}"))
        else:
            self._members[f"observations/{area}.json"] = data

    def _observation(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._hide.text(value)
        if isinstance(value, (list, tuple)):
            if value and all(isinstance(word, str) for word in value):
                return self._words(value)
            return [self._observation(item) for item in value]
        if isinstance(value, dict):
            return {
                self._hide.path(key) if isinstance(key, str) else key: self._hide.variable(key, item)
                if isinstance(key, str) and isinstance(item, str)
                else self._observation(item)
                for key, item in value.items()
            }
        return value

    def _words(self, argv: Any) -> list[str]:
        """As one text with NUL between the words, as /proc has command lines: an option hides the word behind it."""
        words = self._hide.text("\0".join(argv)).split("\0")
        return words if len(words) == len(argv) else list(argv)

    def _parts(self, value: Any) -> dict[str, Any]:
        return {part.name: self._json(getattr(value, part.name)) for part in fields(value)}

    def _json(self, value: Any, shaped: Callable[[Any], Any] = lambda value: value) -> Any:
        return self._missing(value) if isinstance(value, Missing) else shaped(value)

    def _missing(self, why: Missing) -> dict[str, str]:
        given = {"missing": why.reason.value}
        return {**given, "detail": self._hide.text(why.detail)} if why.detail else given


def _is_plain(path: str) -> bool:
    try:
        names = path.encode().split(b"/")[1:]
    except UnicodeEncodeError:
        return False
    return all(name not in (b"", b"..") and b"\0" not in name and len(name) <= _LONGEST_NAME for name in names)
