"""Where the knowledge of logs is, for rows that meet a log now and then: most runs never read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class LogBook:
    folders: tuple[Path, ...]


def load(folders: Sequence[Path]) -> LogBook:
    """Reads nothing yet."""
    return LogBook(tuple(folders))
