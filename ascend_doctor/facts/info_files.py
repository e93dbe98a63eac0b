"""The ``KEY=value`` files that Ascend packages leave behind: version.info, ascend_install.info, version.cfg."""

from __future__ import annotations

from ascend_doctor.host import Answer, Missing, Parsed, Reason, decoded
from ascend_doctor.records import dataclass

VALUE_LIMIT = 2000
"""Characters: a longer value is no version, path or list of versions."""


@dataclass(frozen=True)
class InfoFile:
    """One file that was asked for: lower-case keys -> (value, line), or why there is none."""

    source: str
    lines: dict[str, tuple[str, str]] | Missing

    @property
    def absent(self) -> bool:
        return isinstance(self.lines, Missing) and self.lines.reason is Reason.ABSENT

    def parsed(self, *keys: str) -> Parsed[str | Missing]:
        """The value of the first of these keys that the file has; absent where it has none of them."""
        if isinstance(self.lines, Missing):
            return Parsed(self.lines, self.source, {"": self.lines.detail or self.lines.reason.value})
        for key in keys:
            if key in self.lines:
                value, line = self.lines[key]
                return Parsed(value, self.source, {"": line})
        why = f"no {' or '.join(keys)}="
        return Parsed(Missing(Reason.ABSENT, why), self.source, {"": why})


def info_file(answer: Answer[bytes]) -> InfoFile:
    """An answer, read as ``KEY=value`` lines."""
    value = answer.value
    return InfoFile(answer.source, value if isinstance(value, Missing) else pairs(value))


def pairs(data: bytes) -> dict[str, tuple[str, str]]:
    """Lower-case key -> (value without quotes, the whole line); the first of a key counts, comments do not."""
    found: dict[str, tuple[str, str]] = {}
    for line in decoded(data).splitlines():
        key, equals, value = line.strip().partition("=")
        value = value.strip().strip("\"'").strip()
        if equals and value and not key.startswith("#") and len(value) <= VALUE_LIMIT:
            found.setdefault(key.strip().lower(), (value, line.strip()))
    return found


def bracketed(text: str) -> tuple[str, ...]:
    """The parts of ``[V100R001C15],[V100R001C18]``."""
    parts = (part.strip(" []") for part in text.split("],"))
    return tuple(part for part in parts if part)
