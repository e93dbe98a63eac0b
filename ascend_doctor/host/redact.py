"""Takes secrets out of what leaves the machine (DESIGN section 10); everything else stays byte for byte.

A secret is what stands behind a name such as ``HF_TOKEN``, ``--api-key`` or ``password``, in an Authorization header or
before the @ of an address, what has the form in which a service gives its tokens, and a private key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

HIDDEN = b"***"

_SECRET_WORD = re.compile("key|token|secret|password|passwd|pwd|passphrase|credentials?|apikey")
_HARMLESS_LAST_WORD = re.compile(
    "timeout|ttl|expires?|expiry|file|path|dir|folder|type|size|length|len|count|num|limit|interval|mode|alg|algorithm"
    "|version|format|error|exception|line|enabled?|disabled?|id|name|status|usage|budget|rate|ratio|cache|dtype"
)
"""``token_timeout`` and ``key_file`` tell about a secret and do not hold it."""

_NOT_SECRET_NAMES = frozenset(["PWD"])
_NOT_SECRET_VALUES = frozenset([b"none", b"null", b"true", b"false", b"nil"])

_PLACES_OF_USERS = frozenset(b"files compat systemd altfiles extrausers db sss ldap nis nisplus winbind hesiod".split())
"""``passwd: files systemd`` of nsswitch.conf(5) is no password."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_STEMS = (b"key", b"token", b"secret", b"passw", b"passphrase", b"pwd", b"credential")
_NAME = rb"(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]{0,100})"
_BARE = rb"[^\s\0\"'&]*[^\s\0\"'&,;)\]}\\]"
_VALUE = rb"(\"[^\"\n\0]*\"|'[^'\n\0]*'|" + _BARE + rb")"

# compiled by the first text in which something like it may stand: most runs have none
_URL = rb"(?i)(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,30}://[^\s/:@\"'\0]*:)([^\s/\"'\0]+)@"
_HEADER = (
    rb"(?i)(?<![\w-])((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|digest|token)\s+)?)" + _BARE
)
_BEARER = rb"(?i)(?<![\w-])(bearer +)" + rb"([\w.~+/=-]{8,})"
_GIVEN = (
    rb"(?<![A-Za-z0-9_-])(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
    rb"|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|ms-[0-9a-f]{8}-[0-9a-f-]{27}"
    rb"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{4,})(?![A-Za-z0-9_-])"
)
"""Tokens of Hugging Face, OpenAI, GitHub, GitLab, Slack, AWS, Google and ModelScope, and JSON web tokens (RFC 7519)."""

_GIVEN_STEMS = (
    *(b"hf_", b"sk-", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_", b"glpat-"),
    *(b"xoxa-", b"xoxb-", b"xoxp-", b"xoxr-", b"xoxs-", b"akia", b"aiza", b"ms-", b"eyj"),
)
_PRIVATE_KEY = (
    rb"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)(?!\*{3})[^-]{1,20000}(?:(?=-----END)|\Z)|(?<=ssh-rsa )AAAA[\w+/=]{40,}"
)
_BEHIND_NAME = (
    _NAME + rb"(=)" + _VALUE,
    rb"(?<![\w.-])(--?[A-Za-z][\w.-]{0,100})([ \t\0]+)(?!-)" + _VALUE,
    rb"(?<=[\"'])(--?[A-Za-z][\w.-]{0,100})([\"']\s*,\s*)(?![\"']-)(\"[^\"\n\0]*\"|'[^'\n\0]*')",
    rb"(?<=[\"'])([A-Za-z_][\w.-]{0,100})([\"']\s*:\s*)(\"[^\"\n\0]*\"|'[^'\n\0]*')",
    rb"(?m)(?:(?<=^)|(?<=[\"']))([ \t]*[A-Za-z_][\w.-]{0,100})(:[ \t]+|[ \t]+=[ \t]+)" + _VALUE,
)


_ALL_STEMS = tuple(
    stem.decode() for stem in (b"://", b"authorization", b"bearer ", b"private key", b"ssh-rsa", *_GIVEN_STEMS, *_STEMS)
)


def secrets_in(text: str) -> str:
    """Of a text that is no bytes; most hold no secret, which is soon seen."""
    lower = text.lower()
    for stem in _ALL_STEMS:
        if stem in lower:
            data = text.encode("utf-8", "surrogatepass")
            hidden = secrets(data)
            return text if hidden == data else hidden.decode("utf-8", "surrogatepass")
    return text


def secrets(text: bytes) -> bytes:
    """The text with every secret replaced by ``***``; a second time it changes nothing."""
    lower = text.lower()
    if b"://" in lower:
        text = re.sub(_URL, rb"\1" + HIDDEN + rb"@", text)
    if b"authorization" in lower:
        text = re.sub(_HEADER, rb"\1" + HIDDEN, text)
    if b"bearer " in lower:
        text = re.sub(_BEARER, rb"\1" + HIDDEN, text)
    if b"private key" in lower or b"ssh-rsa" in lower:
        text = re.sub(_PRIVATE_KEY, lambda found: (found[1] or b"") + HIDDEN, text)
    for stem in _GIVEN_STEMS:
        if stem in lower:
            text = re.sub(_GIVEN, HIDDEN, text)
            break
    for stem in _STEMS:
        if stem in lower:
            for pattern in _BEHIND_NAME:
                text = re.sub(pattern, _hidden, text)
            break
    return text


def is_secret(name: str) -> bool:
    """Whether the value of a variable, an option or a key of that name is a secret."""
    words = [word.lower() for word in _WORD.findall(name)]
    if name in _NOT_SECRET_NAMES or not words or _HARMLESS_LAST_WORD.fullmatch(words[-1]):
        return False
    return any(_SECRET_WORD.fullmatch(word) for word in words)


def _hidden(found: re.Match[bytes]) -> bytes:
    name, between, value = found.groups()
    quote = value[:1] if value[:1] in (b'"', b"'") else b""
    bare = value.strip(quote) if quote else value
    if not bare or bare.lower() in _NOT_SECRET_VALUES or not is_secret(name.decode("latin-1")):
        return found[0]
    if name == b"passwd" and between[:1] == b":" and bare in _PLACES_OF_USERS:
        return found[0]
    return bytes(name + between + quote + HIDDEN + quote)


class Hiding:
    """What is hidden of a snapshot: secrets alone. ``state``: the word for it in snapshot.json and in a run."""

    state = "secrets"

    def learn(self, texts: Iterable[str]) -> None:
        """All texts, before any is replaced."""

    def data(self, data: bytes) -> bytes:
        """What a file holds or a command printed."""
        return secrets(data)

    def text(self, text: str) -> str:
        return secrets_in(text)

    def file(self, path: str, data: bytes) -> bytes:
        return self.data(data)

    def path(self, path: str) -> str:
        return path

    def names_in(self, folder: str, names: Sequence[str]) -> list[str]:
        return list(names)

    def host(self, name: str) -> str:
        return name

    def user(self, name: str) -> str:
        return name

    def shown(self, source: str, text: str) -> str:
        """Evidence: what of ``source`` shows something."""
        return self.text(text)

    def variable(self, name: str, value: str) -> str:
        """A name behind which one word is hidden has the whole value hidden."""
        probe = f"{name}=x"
        return HIDDEN.decode() if value and self.text(probe) != probe else self.text(value)
