"""The CANN installations, and whether they are releases."""

from __future__ import annotations

from ascend_doctor.derive import rows
from ascend_doctor.facts.cann import Cann
from ascend_doctor.host import Missing, Reason
from ascend_doctor.records import dataclass
from ascend_doctor.versions import parse, release_of


@dataclass(frozen=True)
class Release:
    """One CANN version. ``preview``: alpha, beta or internal; ``precedes``: the release that is to follow it."""

    name: str
    cann: str | Missing
    root: str
    preview: bool | Missing
    severity: str | Missing
    precedes: str | Missing
    reads: tuple[str, ...]
    components: tuple[str, ...] = ("cann",)


@rows("cann.releases")
def releases(cann: Cann) -> tuple[Release, ...] | Missing:
    """One row for each version, the selected one first; a preview that the environment does not select is info."""
    if isinstance(cann.roots, Missing):
        return cann.roots
    chosen = any(root.selected is True for root in cann.roots)
    found: dict[str, Release] = {}
    for number, root in sorted(enumerate(cann.roots), key=lambda pair: pair[1].selected is not True):
        path, text = f"cann.roots[{number}]", root.version
        name = root.path if isinstance(text, Missing) else text
        if name in found:
            continue
        severity: str | Missing = "warning"
        if root.selected is not True and len(cann.roots) > 1:
            severity = root.selected if isinstance(root.selected, Missing) else "info" if chosen else severity
        preview, precedes = _preview(text, f"{path}.version")
        found[name] = Release(name, text, root.path, preview, severity, precedes, (f"{path}.version",))
    return tuple(found.values())


def _preview(text: str | Missing, path: str) -> tuple[bool | Missing, str | Missing]:
    unknown = Missing(Reason.ABSENT, "no release is known to follow it")
    if isinstance(text, Missing):
        return text, unknown
    version = parse("cann", text)
    if version is None:
        return Missing(Reason.FAILED, f"{text} is no CANN version", path), unknown
    return version.preview, release_of(version) or unknown
