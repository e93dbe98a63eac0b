"""Which names redaction leaves, and which words are also names: from rules/redaction.yaml and our own files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import ascend_doctor
from ascend_doctor.knowledge.reading import load_yaml
from ascend_doctor.paths import data_folder

PARSERS = ("facts", "derive", "logs", "memory")
"""Parts of this package that look for words in what machines print."""

_EXAMPLES = re.compile(rb"(?m)^\s*- [\"'].*$")
"""Lines of logs in rules/signatures, which name hosts."""

_LEADING_ZERO = re.compile(r"\D0\d")

LISTS = ("users", "hosts", "domains", "words", "numbered", "values")


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
        self._numbered = frozenset(lists["numbered"])
        self._domains, self._words = frozenset(lists["domains"]), frozenset(lists["words"])
        self._folders = (*folders, data_folder("checks"))
        self._texts: bytes | None = None

    def is_word(self, name: str) -> bool:
        lower = name.lower()
        if lower in self._words or lower in self.users:
            return True
        if lower.rstrip("0123456789") in self._numbered and not _LEADING_ZERO.search(lower):
            return True
        if self._texts is None:
            self._texts = b"\n".join(_all_texts(self._folders)).lower()
        return _stands_in(lower.encode("utf-8", "surrogatepass"), self._texts)

    def is_public(self, host: str) -> bool:
        """A host that everybody may know: of a public domain, or this machine by its usual name."""
        name = host.lower().rstrip(".")
        if name in self.hosts:
            return True
        parts = name.split(".")
        return any(".".join(parts[n:]) in self._domains for n in range(len(parts)))


def _stands_in(word: bytes, text: bytes) -> bool:
    """As a word of its own. By hand: a pattern would take fifty times as long."""
    place = text.find(word)
    while place >= 0:
        around = text[max(0, place - 1) : place] + text[place + len(word) : place + len(word) + 1]
        if not any(chr(sign).isalnum() for sign in around if sign < 128):
            return True
        place = text.find(word, place + 1)
    return False


def _all_texts(folders: Sequence[Path]) -> Iterator[bytes]:
    for folder in folders:
        for name in sorted(folder.rglob("*.yaml")):
            text = _read(name)
            yield _EXAMPLES.sub(b"", text) if name.parent.name == "signatures" else text
    for part in PARSERS:
        for name in sorted((Path(ascend_doctor.__file__).parent / part).rglob("*.py")):
            yield _read(name)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
