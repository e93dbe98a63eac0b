"""Finds checks/, rules/ and reports/: inside the package when installed, beside it in a checkout."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """The folder ``checks``, ``rules`` or ``reports``."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def yaml_files(folder: Path, below: str = "") -> list[str]:
    """The rule files in a folder and its folders, relative to it, sorted. pathlib would take as long as judging."""
    found = []
    with os.scandir(f"{folder}/{below}") as entries:
        for entry in entries:
            if entry.is_dir():
                found += yaml_files(folder, f"{below}{entry.name}/")
            elif entry.name.endswith(".yaml"):
                found.append(below + entry.name)
    return sorted(found)
