"""The simple commands of a shell script, as far as they can be told without running it.

Source: POSIX, Shell Command Language (https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html).
Loops and tests are not followed: their commands are taken one by one, and a word that only a shell could fill in stays
as it is written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from ascend_doctor.records import dataclass

SHELLS = ("sh", "bash", "dash", "zsh", "ash")
LONGEST = 1 << 18
"""Characters of a script; a longer one starts no service that is meant here."""
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w{0,100})\}|([A-Za-z_]\w{0,100}))", re.ASCII)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,200})=(.*)", re.DOTALL | re.ASCII)
_DROPPED = re.compile(
    r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?P<dropped>(?<![^\s;&|()])(?:\#[^\n]*|\d+(?=[<>])))""",
    re.DOTALL | re.ASCII,
)
"""Quoted parts, which stay, and what goes: comments, and the numbers of redirections (2>&1)."""
_KEYWORDS = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "{", "}", "!", "time"),
)


@dataclass(frozen=True)
class Simple:
    """One command of a script, with the variables that the lines before it exported or took away."""

    words: tuple[str, ...]
    exported: Mapping[str, str]
    unset: tuple[str, ...]


def open_to_the_shell(word: str) -> bool:
    """Whether a shell would still fill something in: ``$MODEL``, ``${TP:-4}``, ``$(nproc)``."""
    return re.search(r"\$[\w{(@*#?!$-]|`", word, re.ASCII) is not None


def commands(script: str) -> Iterator[Simple]:
    """Of a script or of the text behind ``-c``, in order; none where quotes do not close."""
    known: dict[str, str] = {}
    exported: dict[str, str] = {}
    unset: list[str] = []
    for written in _segments(script):
        words = [filled(word, known) for word in written]
        while words and words[0] in _KEYWORDS:
            words.pop(0)
        found = [_ASSIGNMENT.fullmatch(word) for word in words]
        if words and all(found):
            known.update({match[1]: match[2] for match in found if match})
            exported.update({match[1]: match[2] for match in found if match and match[1] in exported})
        elif words and words[0] in ("export", "declare", "typeset"):
            for word in words[1:]:
                name, equals, value = word.partition("=")
                if equals:
                    known[name] = exported[name] = value
                elif name in known:
                    exported[name] = known[name]
        elif words and words[0] == "unset":
            unset += [word for word in words[1:] if not word.startswith("-")]
            for name in words[1:]:
                exported.pop(name, None)
        elif words:
            yield Simple(tuple(words), dict(exported), tuple(unset))


def filled(word: str, known: Mapping[str, str]) -> str:
    """With the variables that the script itself set; others stay."""
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), word)


def _segments(script: str) -> Iterator[list[str]]:
    """Words between separators, without comments and redirections."""
    if len(script) > LONGEST:
        return
    plain = _DROPPED.sub(lambda found: "" if found["dropped"] else found[0], script.replace("\\\r\n", "\\\n"))
    lexer = shlex.shlex(plain.replace("\\\n", " "), posix=True, punctuation_chars=";&|<>()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    skips = False
    while True:
        try:
            token = lexer.get_token()
        except ValueError:
            return
        if token and token.strip(";&|<>()\n"):
            words += [] if skips else [token]
            skips = False
        elif token and ("<" in token or ">" in token):
            skips = True
        elif token == "":
            words.append(token)
        else:
            if words:
                yield words
            words, skips = [], False
            if token is None:
                return


def script_of(words: Sequence[str]) -> tuple[str | None, str | None]:
    """Of ``bash -lc TEXT`` the text, of ``bash -e start.sh`` the file."""
    rest = list(words)
    while rest and rest[0].startswith(("-", "+")):
        word = rest.pop(0)
        if not word.startswith("--") and "c" in word and word.startswith("-"):
            while rest and rest[0].startswith("-"):
                rest.pop(0)
            return (rest[0], None) if rest else (None, None)
        if word in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") and rest:
            rest.pop(0)
    return (None, rest[0]) if rest else (None, None)
