"""Recorded answers as the members of a snapshot, secrets taken out."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime, timezone
from typing import Any, Callable, Union

from ascend_doctor.host import Host, Identity, Missing, Output, Python, Reason, Stat, StatVfs
from ascend_doctor.host.document import SCHEMA
from ascend_doctor.host.members import DOCUMENT, MEMBER_BYTES, TOTAL_BYTES
from ascend_doctor.host.reasons import NOT_SET
from ascend_doctor.host.redact import HIDDEN
from ascend_doctor.host.resolve import folders_above

Redact = Callable[[bytes], bytes]

_LOG_BYTES = TOTAL_BYTES // 2
"""What is kept of files that were opened as streams, together."""

_LONGEST_NAME = 255


class Saving:
    """Takes answers one by one, as the recorder has them, and gives the members at the end."""

    def __init__(self, inner: Host, redact: Redact) -> None:
        self._inner, self._redact = inner, redact
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
            self._env[subject] = None if value == NOT_SET else _json(value, lambda text: self._variable(subject, text))
        elif kind == "env_names":
            self._env_names = _json(value, list)
        elif kind == "observed":
            self._take_observation(subject, value)

    def members(
        self, taken_at: datetime, identity: Identity, python: Union[Python, Missing], redacted: str
    ) -> dict[str, bytes]:
        """Member names and bytes, snapshot.json among them."""
        self._place_files()
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "taken_at": taken_at.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z",
            "complete": False,
            "redacted": redacted,
            **_parts(self._inner.extent),
            "identity": _parts(identity),
            "python": _json(python, _parts),
            "env": self._env,
            "commands": self._commands,
            "entries": self._entries,
        }
        if self._env_names is not None:
            document["env_names"] = self._env_names
        if self._observations:
            document["observations"] = self._observations
        return {**self._members, DOCUMENT: (json.dumps(document, indent=1) + "\n").encode()}

    # Paths

    def _take_path(self, kind: str, path: str, value: Any) -> None:
        if not path.startswith("/"):
            return  # any snapshot answers that as a live host does
        if kind == "open" and value is None:
            value = self._stream(path)
        if isinstance(value, Missing):
            if kind == "read" and path in self._files:
                return  # too large to be read whole, and opened as a stream
            self._entries.append({"path": path, "of": "read" if kind == "open" else kind, **_missing(value)})
        elif isinstance(value, bytes):
            self._files[path] = self._redact(value)
        elif isinstance(value, Stat):
            entry = {"type": value.type, "mode": f"{value.mode:04o}", "uid": value.uid, "gid": value.gid}
            self._entries.append({"path": path, **entry})
        elif isinstance(value, StatVfs):
            self._entries.append({"path": path, "statvfs": _parts(value)})
        elif kind == "list":
            self._entries.append({"path": path, "type": "dir", "names": list(value)})
        else:
            self._entries.append({"path": path, "type": "link", "target": value})

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
            self._commands.append({**command, **_missing(value)})
            return
        command["rc"] = value.rc
        for stream, suffix, data in (("stdout", "out", value.stdout), ("stderr", "err", value.stderr)):
            if data:
                command[stream] = f"commands/{len(self._commands):03d}.{suffix}"
                self._members[command[stream]] = self._redact(data)
        self._commands.append(command)

    def _take_observation(self, area: str, value: object) -> None:
        if isinstance(value, Missing):
            self._observations[area] = _missing(value)
            return
        try:
            data = json.dumps(self._observation(value), indent=1).encode()
        except (TypeError, ValueError, RecursionError) as error:
            self._observations[area] = _missing(Missing(Reason.FAILED, f"no JSON value: {error}"))
        else:
            self._members[f"observations/{area}.json"] = data

    def _observation(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, (list, tuple)):
            if value and all(isinstance(word, str) for word in value):
                return self._words(value)
            return [self._observation(item) for item in value]
        if isinstance(value, dict):
            return {
                key: self._variable(key, item)
                if isinstance(key, str) and isinstance(item, str)
                else self._observation(item)
                for key, item in value.items()
            }
        return value

    def _text(self, text: str) -> str:
        return _decoded(self._redact(_encoded(text)))

    def _variable(self, name: str, value: str) -> str:
        """A name behind which one word is hidden has the whole value hidden."""
        probe = f"{name}=x"
        return HIDDEN.decode() if value and self._text(probe) != probe else self._text(value)

    def _words(self, argv: Any) -> list[str]:
        """As one text with NUL between the words, as /proc has command lines: an option hides the word behind it."""
        words = self._text("\0".join(argv)).split("\0")
        return words if len(words) == len(argv) else list(argv)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _is_plain(path: str) -> bool:
    try:
        names = path.encode().split(b"/")[1:]
    except UnicodeEncodeError:
        return False
    return all(name not in (b"", b"..") and b"\0" not in name and len(name) <= _LONGEST_NAME for name in names)


def _parts(value: Any) -> dict[str, Any]:
    return {part.name: _json(getattr(value, part.name)) for part in fields(value)}


def _json(value: Any, shaped: Callable[[Any], Any] = lambda value: value) -> Any:
    return _missing(value) if isinstance(value, Missing) else shaped(value)


def _missing(why: Missing) -> dict[str, str]:
    return {"missing": why.reason.value, "detail": why.detail} if why.detail else {"missing": why.reason.value}
