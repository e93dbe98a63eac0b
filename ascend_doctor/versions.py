"""Ascend version strings: families, their order, and the answer "these two cannot be compared".

A family is a numbering of its own; versions of two families have nothing in common. CANN and driver releases are no
Python versions: ``8.1.RC1`` is a release below ``8.1.0``, ``.beta1`` is a label but ``-beta.1`` a preview, ``.b083`` is
a build stamp, the driver's numbers started anew once, and boards of the 950 have branches beside the main line.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any, Callable

from ascend_doctor.records import dataclass

CannVersion = str
HdkVersion = str
FirmwareVersion = str
PythonVersion = str
"""Annotations of facts: a text that the checks compare as a version of its family."""

TEXT_LIMIT = 120
"""Characters: what is longer is no version."""

DRIVER_BRANCHES_950 = ((1, 0), (25, 1), (25, 6), (25, 7))
"""Driver numbers of Ascend 950 products (25.1 is printed for others too): beside the main line, not on it."""

DRIVER_BEFORE_RESTART = (20, 21, 22)
"""Years 2020 to 2022; the driver's numbers then went on with 5.1 and 6.0, and with the year again from 23.0."""

DRIVER_AFTER_RESTART = ((5, 0), (5, 1), (6, 0))

CANN_PREVIEW_NAMES = {
    "9.0.t2": "9.0.0-beta.1",
    "9.0.t511": "9.0.0-beta.2",
    "9.1.t1": "9.1.0-beta.1",
    "9.1.t6": "9.1.0-beta.3",
}
"""Internal builds of which the vendor's release repository names the published preview."""

TRITON_ASCEND_RELEASED = {"3.2.0": 20260121}
"""Day of upload: a nightly of the same number that was built later is newer, whatever PEP 440 says."""

ALPHA, BETA, RELEASE = range(3)
CANDIDATE, FINAL = range(2)


@dataclass(frozen=True)
class Version:
    """A version of one family. Two are comparable on one ``line``, as far as their keys are ``sure``.

    ``sure`` is None for a whole version; else how many parts of the key are known (``24.1.x``, ``9.0.T102``: two).
    """

    family: str
    text: str = field(compare=False)
    line: str
    key: tuple[Any, ...]
    sure: int | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def preview(self) -> bool:
        """Whether it precedes a release: alphaNNN, -beta.N, .beta.N, Tn."""
        if self.family not in VENDOR_FAMILIES:
            return False
        if self.sure is not None:
            return "t" in self.key
        return bool(self.key[STAGE] < RELEASE)

    @property
    def wildcard(self) -> bool:
        """Whether it stands for several versions: 25.5.X."""
        return self.sure is not None and not self.preview


STAGE = 6
"""Where a vendor's key has ALPHA, BETA or RELEASE: (era, X, Y, CANDIDATE or FINAL, n, patch, stage, k)."""


def parse(family: str, text: str) -> Version | None:
    """The version that a text of this family names; None where it names none. Never raises."""
    parser = _PARSERS.get(family)
    if parser is None or len(text) > TEXT_LIMIT:
        return None
    return parser(family, text.strip())


def compare(family: str, left: str, right: str) -> int | None:
    """-1, 0 or 1 as ``left`` is older than, the same release as, or newer than ``right``; None: cannot be compared."""
    a, b = parse(family, left), parse(family, right)
    return None if a is None or b is None else order(a, b)


def order(a: Version, b: Version) -> int | None:
    """``compare`` of two that are parsed already."""
    if a.family != b.family or a.line != b.line:
        return None
    if a.key == b.key and a.sure == b.sure:
        return 0
    sure = min(len(a.key) if a.sure is None else a.sure, len(b.key) if b.sure is None else b.sure)
    left, right = a.key[:sure], b.key[:sure]
    if left != right:
        return -1 if left < right else 1
    return None if a.sure is not None or b.sure is not None else 0


def covers(family: str, listed: str, version: str) -> bool:
    """Whether an entry of a vendor's table means this version: 25.0.X, 25.0.RC1 with patches, 25.1.RC1 (as printed).

    A version of which only ``24.1.x`` is known is meant by any entry of 24.1.
    """
    entry, found = parse(family, re.sub(r"\s*\(.*", "", listed, flags=re.DOTALL)), parse(family, version)
    if entry is None or found is None or entry.line != found.line:
        return False
    if family not in VENDOR_FAMILIES:
        return order(entry, found) == 0
    whole = STAGE - 1  # without patch, stage and stamp
    length = min(whole if v.sure is None else v.sure for v in (entry, found))
    return entry.key[:length] == found.key[:length]


def release_of(version: Version) -> str:
    """What a preview precedes (9.1.0 for 9.1.0-beta.2), or the version itself; empty for an internal build."""
    if version.family not in VENDOR_FAMILIES or version.sure is not None:
        return ""
    _, major, minor, kind, number, patch = version.key[:STAGE]
    name = f"{major}.{minor}.{'RC' if kind == CANDIDATE else ''}{number}"
    return f"{name}.{patch}" if patch else name


def within(family: str, ranges: str, version: str) -> bool | None:
    """Whether it is in ``[7.0.0,7.5.99],[24.1,24.1.]``, bounds and their patches included; None: not readable."""
    found = parse(family, version)
    bounds = re.findall(r"\[([^\[\],]*),([^\[\],]*)\]", ranges[: 20 * TEXT_LIMIT])
    if found is None or found.sure is not None or not bounds:
        return None
    inside = [_between(family, low.strip(), high.strip(), found) for low, high in bounds]
    return None if None in inside and True not in inside else True in inside


def _between(family: str, low: str, high: str, found: Version) -> bool | None:
    lowest, highest = _bound(family, low), _bound(family, high.rstrip("."))
    if lowest is None or highest is None or lowest.line != found.line or highest.line != found.line:
        return None if lowest is None or highest is None else False
    return lowest.key <= found.key and found.key[: len(highest.key)] <= highest.key


def _bound(family: str, text: str) -> Version | None:
    """An end of a range: a version without its patches, or the numbers that one begins with (24.1)."""
    whole = parse(family, text) if family in VENDOR_FAMILIES else None
    if whole is not None and whole.sure is None:
        return Version(family, text, whole.line, whole.key if whole.key[STAGE - 1] else whole.key[: STAGE - 1])
    if not re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,6})*", text):
        return None
    numbers = tuple(map(int, text.split(".")))
    if family not in VENDOR_FAMILIES:
        return Version(family, text, "", numbers)
    line, era = _driver_line(numbers) if family.startswith("driver") else ("", 0)
    return None if era is None else Version(family, text, line, (era, *numbers))


_VENDOR = re.compile(
    r"""(?P<x>[0-9]{1,4})\.(?P<y>[0-9]{1,4})
        (?:\.(?:rc(?P<rc>[0-9]{1,4})|(?P<z>[0-9]{1,4})|t(?P<t>[0-9]{1,4})|(?P<any>x)))
        (?:\.(?:(?P<patch>[0-9]{1,4})|spc(?P<spc>[0-9]{1,4})|(?P<any_patch>x)))?
        (?:\.alpha(?P<alpha>[0-9]{1,4})|[.-]beta\.(?P<beta>[0-9]{1,4})|(?P<label>\.beta[0-9]{1,4}))?
        (?:\.t(?P<trial>[0-9]{1,4}))?
        (?:\.b[0-9]{1,6}|_[0-9]{8,14}|\.tr[0-9]{1,4})?""",
    re.VERBOSE,
)

_WORDS = re.compile(r"^(?:.*:)?\s*(?:(?:ascend[- ]?)?(?:cann|hdk|mindie|driver)\s+)?v?(?=[0-9])", re.DOTALL)
_IMAGE = re.compile(r"-(?:910|950|310|a2|a3|a5)[a-z0-9]*(?:-[a-z0-9._]+)*$")

VENDOR_FAMILIES = ("cann", "driver", "driver_950", "mindie", "mindcluster")
NUMBER_FAMILIES = ("cann_component", "firmware", "torchnpu_plugin")
PYTHON_FAMILIES = ("torch", "torch_npu", "vllm", "vllm_ascend", "triton_ascend", "mindspore", "python")


def _vendor(family: str, text: str) -> Version | None:
    plain = _IMAGE.sub("", _WORDS.sub("", text.lower()))
    if family == "cann":
        plain = CANN_PREVIEW_NAMES.get(plain, plain)
    found = _VENDOR.fullmatch(plain)
    if found is None or not _belongs(family, found):
        return None
    x, y = int(found["x"]), int(found["y"])
    line, era = _driver_line((x, y)) if family.startswith("driver") else ("", 0)
    if era is None or (family == "driver_950" and not line):
        return None
    printed = text[len(text) - len(plain) :] if text.lower().endswith(plain) else plain
    head = (era, x, y)
    if found["any"]:
        return Version(family, printed, line, head, sure=len(head))
    if found["t"]:
        return Version(family, printed, line, (*head, "t", int(found["t"])), sure=len(head))
    base = (*head, CANDIDATE if found["rc"] else FINAL, int(found["rc"] or found["z"]))
    if found["any_patch"]:
        return Version(family, printed, line, base, sure=len(base))
    if found["trial"]:
        return Version(family, printed, line, (*base, "t", int(found["trial"])), sure=len(base))
    stage = ALPHA if found["alpha"] else BETA if found["beta"] else RELEASE
    patch = int(found["patch"] or found["spc"] or 0)
    return Version(family, printed, line, (*base, patch, stage, int(found["alpha"] or found["beta"] or 0)))


def _belongs(family: str, found: re.Match[str]) -> bool:
    """Whether the family writes versions of this shape."""
    if family == "cann":
        return not (found["spc"] or found["trial"] or (found["z"] and found["patch"]))
    return not (found["alpha"] or found["beta"] or found["label"]) and (family == "mindcluster" or not found["spc"])


def _driver_line(numbers: tuple[int, ...]) -> tuple[str, int | None]:
    """The line on which a driver stands ("" is the main one) and its era there; None for no driver's number."""
    if numbers[:2] in DRIVER_BRANCHES_950:
        return f"{numbers[0]}.{numbers[1]}", 0
    if numbers[0] in DRIVER_BEFORE_RESTART:
        return "", 0
    if numbers[:2] in DRIVER_AFTER_RESTART:
        return "", 1
    return "", 2 if 23 <= numbers[0] < 100 else None


def _numbers(family: str, text: str) -> Version | None:
    fields = "{4}" if family != "torchnpu_plugin" else "{2}"
    plain = text.lower()
    plain = plain[1:] if plain.startswith("v") else plain
    if not re.fullmatch(rf"[0-9]{{1,6}}(?:\.[0-9]{{1,6}}){fields}", plain):
        return None
    return Version(family, plain, "", tuple(map(int, plain.split("."))))


def _innerversion(family: str, text: str) -> Version | None:
    """Its C-number has no order: only the same one is comparable with it."""
    found = re.fullmatch(r"(v[0-9]{3}r[0-9]{3}c[0-9]{2})[a-z0-9]*", text.lower())
    return Version(family, text, found[1], ()) if found else None


def _python(family: str, text: str) -> Version | None:
    from packaging.version import InvalidVersion
    from packaging.version import Version as PythonVersion

    built = re.fullmatch(r"([0-9.]{1,20})\.dev([0-9]{8})(?:\+.*)?", text) if family == "triton_ascend" else None
    try:
        if built and int(built[2]) > TRITON_ASCEND_RELEASED.get(built[1], int(built[2])):
            key = PythonVersion(f"{built[1]}+dev{built[2]}")
        else:
            key = PythonVersion(text)
            key = PythonVersion(key.public)
    except (InvalidVersion, ValueError):
        return None
    return Version(family, text, "", (key,))


_PARSERS: dict[str, Callable[[str, str], Version | None]] = {
    **dict.fromkeys(VENDOR_FAMILIES, _vendor),
    **dict.fromkeys(NUMBER_FAMILIES, _numbers),
    **dict.fromkeys(PYTHON_FAMILIES, _python),
    "innerversion": _innerversion,
}
