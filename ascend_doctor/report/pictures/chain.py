"""The versions as a chain: each part stands on those before it; where two do not fit, the chain is broken."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ascend_doctor.engine.findings import Finding
from ascend_doctor.records import dataclass
from ascend_doctor.report.pictures.rows import Version

GRAVITY = ("error", "warning", "unknown", "info", "pass")


@dataclass(frozen=True)
class Joint:
    """Where a part meets ``other``, which stands before it: the finding on the two, the gravest of several."""

    other: str
    mark: str
    finding: Finding
    target: str


@dataclass(frozen=True)
class Part:
    """``mark``: the gravest of its joints, "" where nobody judged it; ``broken``: joints that do not hold, worst first.

    ``held``: the parts before it that it fits.
    """

    version: Version
    mark: str
    broken: tuple[Joint, ...]
    held: tuple[str, ...]


def chain(versions: Sequence[Version], findings: Sequence[tuple[Finding, str]]) -> tuple[Part, ...]:
    """Empty where fewer than two parts are known; each finding comes with its place in the page."""
    if len(versions) < 2:
        return ()
    names = [version.part for version in versions]
    joints: dict[tuple[str, str], Joint] = {}
    for finding, target in findings:
        mark = str(finding.severity) if finding.verdict == "fail" else finding.verdict
        if mark not in GRAVITY:
            continue
        for one, other in product(finding.components, finding.components):
            if one in names and other in names and names.index(one) < names.index(other):
                known = joints.get((one, other))
                if known is None or GRAVITY.index(mark) < GRAVITY.index(known.mark):
                    joints[one, other] = Joint(one, mark, finding, target)
    return tuple(_part(version, joints) for version in versions)


def _part(version: Version, joints: dict[tuple[str, str], Joint]) -> Part:
    own = [joint for (_, later), joint in joints.items() if later == version.part]
    touching = [joint.mark for pair, joint in joints.items() if version.part in pair]
    own.sort(key=lambda joint: GRAVITY.index(joint.mark))
    return Part(
        version,
        min(touching, key=GRAVITY.index) if touching else "",
        tuple(joint for joint in own if joint.mark != "pass"),
        tuple(joint.other for joint in own if joint.mark == "pass"),
    )
