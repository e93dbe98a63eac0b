"""Which rules a run judges by: the shipped ones or a pack in their place, and what users add."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.paths import data_folder, yaml_files
from ascend_doctor.records import dataclass

ADDED = ("checks", "limits.yaml", "waivers.yaml", "compat", "environment", "hardware", "models", "profiles")
"""What a user's folder of rules may hold, besides anything else that rules/ holds."""


ON_REQUEST = "on-request"


@dataclass(frozen=True)
class Rulebook:
    """``checks`` and ``rules``: folders, the shipped ones (or the pack's) first; ``pack``: what replaced them."""

    checks: tuple[Path, ...]
    rules: tuple[Path, ...]
    waivers: tuple[Path, ...] = ()
    pack: Path | None = None

    @property
    def requested(self) -> tuple[Path, ...]:
        """Folders of checks that only a verb of their own asks: ``memory``, ``numa``."""
        return tuple(folder / ON_REQUEST for folder in self.checks)

    def is_shipped(self, message: str) -> bool:
        """Whether a complaint is about a file of ours."""
        ours = (self.checks[0], self.rules[0]) if self.pack is None else ()
        return any(message.startswith(str(folder)) for folder in ours)

    def fingerprint(self) -> str:
        """``sha256:...`` of every rule file with its name: the same rules, the same print."""
        digest = hashlib.sha256()
        for folder in (*self.checks, *self.rules):
            for name in yaml_files(folder):
                digest.update(f"{name}\0".encode())
                with open(f"{folder}/{name}", "rb") as file:
                    digest.update(file.read())
        return f"sha256:{digest.hexdigest()}"


def rulebook(added: Sequence[Path] = (), pack: Path | None = None, waivers: Sequence[Path] = ()) -> Rulebook:
    """The shipped rules, or ``pack`` (a folder with checks/ and rules/) in their place, with the users' folders.

    Raises RuleError for a folder that holds nothing that is read.
    """
    base = pack if pack is not None else data_folder("checks").parent
    checks, rules = [base / "checks"], [base / "rules"]
    if pack is not None:
        for folder in (*checks, *rules):
            if not folder.is_dir():
                raise RuleError(f"{pack}: no pack of rules: there is no {folder.name}/ in it")
    files = list(waivers)
    for folder in added:
        if not folder.is_dir():
            raise RuleError(f"{folder}: no such folder; --rules takes a folder with {', '.join(_names())}")
        if not any((folder / name).exists() for name in ADDED):
            raise RuleError(f"{folder}: nothing in it is read; expected are {', '.join(_names())}")
        checks += [folder / "checks"] if (folder / "checks").is_dir() else []
        rules.append(folder)
        files += [folder / "waivers.yaml"] if (folder / "waivers.yaml").is_file() else []
    return Rulebook(tuple(checks), tuple(rules), tuple(files), pack)


def _names() -> Iterator[str]:
    return (name if "." in name else f"{name}/" for name in ADDED)
