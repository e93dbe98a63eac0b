"""Which names redaction leaves, and which words are also names: from rules/redaction.yaml and our own files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import ascend_doctor
from ascend_doctor.knowledge.reading import load_yaml
from ascend_doctor.paths import data_folder

LISTS = ("users", "hosts", "domains", "words", "values")


class PublicNames:
    """``is_word``: whether a name is also a word that rules, checks or parsers look for in what machines print.

    A log says ``worker``, and a user may be called so: replacing it everywhere would change what the log means.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        lists: dict[str, set[str]] = {name: set() for name in LISTS}
        for folder in folders:
            if (folder / "redaction.yaml").is_file():
                document = load_yaml(folder / "redaction.yaml")
                for name in LISTS:
                    lists[name].update(map(str, document.get(name) or ()))
        self.users, self.hosts = frozenset(lists["users"]), frozenset(lists["hosts"])
        self.values = frozenset(lists["values"])
        self._domains, self._words = frozenset(lists["domains"]), frozenset(lists["words"])
        self._folders = (*folders, data_folder("checks"), Path(ascend_doctor.__file__).parent)
        self._texts: bytes | None = None

    def is_word(self, name: str) -> bool:
        lower = name.lower()
        if lower in self._words or lower in self.users:
            return True
        if self._texts is None:
            self._texts = b"\n".join(_all_texts(self._folders)).lower()
        pattern = rb"(?<![a-z0-9])" + re.escape(lower.encode("utf-8", "surrogatepass")) + rb"(?![a-z0-9])"
        return re.search(pattern, self._texts) is not None

    def is_public(self, host: str) -> bool:
        """A host that everybody may know: of a public domain, or this machine by its usual name."""
        name = host.lower().rstrip(".")
        if name in self.hosts:
            return True
        parts = name.split(".")
        return any(".".join(parts[n:]) in self._domains for n in range(len(parts)))


def _all_texts(folders: Sequence[Path]) -> list[bytes]:
    found = []
    for folder in folders:
        for pattern in ("*.yaml", "*.py"):
            for path in folder.rglob(pattern):
                try:
                    found.append(path.read_bytes())
                except OSError:
                    continue
    return found
