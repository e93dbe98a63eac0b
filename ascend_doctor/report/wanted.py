"""The set that a release wants: ``vllm-ascend==0.23.0`` with its vLLM, torch, torch_npu, CANN and driver."""

from __future__ import annotations

import json
import re

from ascend_doctor.derive.parts import ordered
from ascend_doctor.derive.wants import Want, known, wants
from ascend_doctor.report.versions import Known, aligned, footnotes, marks, numbered
from ascend_doctor.report.words import Words

PARTS = ("vllm_ascend", "torch_npu", "cann", "mindie", "mindspore", "triton_ascend")
SCHEMA = "ascend-doctor/wanted/1"


class UnknownReleaseError(Exception):
    """A name or version that the tables do not know; says which they know."""


def wanted(text: str, tables: Known) -> tuple[str, str, tuple[Want, ...]]:
    """Part, version and what it wants; without a version the newest release. Raises UnknownReleaseError."""
    name, _, version = text.partition("==")
    part = re.sub(r"[-.]", "_", name.strip().lower())
    if part not in PARTS:
        names = ", ".join(p.replace("_", "-") for p in PARTS)
        raise UnknownReleaseError(f"no table tells what {name.strip()} wants; known are {names}")
    listed = known(part, tables.tables, tables.needs)
    version = version.strip() or _newest(listed)
    found = wants(part, version, tables.tables, tables.needs)
    if not found:
        near = _near(part, version, listed)
        raise UnknownReleaseError(f"{part.replace('_', '-')} {version} is in no table; the nearest known are {near}")
    return part, version, found


def _newest(listed: tuple[str, ...]) -> str:
    """The last one that is no preview, else the last."""
    final = [version for version in listed if not re.search(r"(?i)rc|alpha|beta|dev", version)]
    return (final or list(listed))[-1]


def _near(part: str, version: str, listed: tuple[str, ...]) -> str:
    """The two on either side; the newest where it cannot be compared."""
    older = [v for v in listed if ordered(part, v, version) == -1]
    newer = [v for v in listed if ordered(part, v, version) == 1]
    return ", ".join([*older[-2:], *newer[:2]] if older or newer else listed[-4:])


def wanted_text(text: str, tables: Known, words: Words) -> str:
    part, version, found = wanted(text, tables)
    numbers = numbered(source for want in found for source in want.sources if source.title)
    rows = [[words["versions_part"], words["sources"], words["versions_wants"]]]
    rows += [[want.part, marks(want.sources, numbers), " | ".join(want.versions)] for want in found]
    return f"{part.replace('_', '-')} {version}\n\n{aligned(rows)}\n{footnotes(numbers)}"


def wanted_json(text: str, tables: Known) -> str:
    part, version, found = wanted(text, tables)
    sets = [
        {
            "part": want.part,
            "versions": list(want.versions),
            "sources": [{"title": s.title, "url": s.url, "confidence": s.confidence} for s in want.sources],
        }
        for want in found
    ]
    document = {"schema": SCHEMA, "part": part, "version": version, "wants": sets}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
