"""torch_npu: which CANN each build is matched with, shipped with or marked for: rules/compat/torch_npu.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError, Source
from ascend_doctor.knowledge.rule_file import RuleFile, text, texts
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Builds:
    """Builds of one release of the vendor; ``release`` and ``python_up_to`` are empty where nobody states them."""

    release: str
    torch_npu: tuple[str, ...]
    cann: tuple[str, ...]
    python_up_to: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Marked:
    """Releases of torch_npu and of CANN that the vendor marks compatible with each other, all with all."""

    releases: tuple[str, ...]
    cann: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Wheels:
    """What wheels need, from a release of torch on, up to the next entry."""

    torch_from: str
    python_from: str
    glibc: str


@dataclass(frozen=True)
class TorchNpuTable:
    """``shipped``: (build, CANN) of releases of vllm-ascend; ``pair``: what says that torch has to be the same."""

    builds: tuple[Builds, ...]
    shipped: tuple[tuple[str, str], ...]
    shipped_source: Source
    marked: tuple[Marked, ...]
    wheels: tuple[Wheels, ...]
    pair: Source
    wheels_source: Source


def load(folders: Sequence[Path]) -> TorchNpuTable:
    """All folders together, later ones first, so that a user's row is found before ours. Raises RuleError."""
    builds: list[Builds] = []
    shipped: list[tuple[str, str]] = []
    marked: list[Marked] = []
    wheels: list[Wheels] = []
    sources: dict[str, Source] = {}
    for folder in folders:
        path = folder / "compat" / "torch_npu.yaml"
        if not path.is_file():
            continue
        rules = RuleFile(path)
        sources.update(rules.sources)
        own = []
        for entry, where in rules.entries("builds"):
            release, newest = text(entry, "release", where, ""), text(entry, "python_up_to", where, "")
            names, canns = texts(entry, "torch_npu", where), texts(entry, "cann", where)
            own.append(Builds(release, names, canns, newest, rules.named(entry, where)))
        builds = own + builds
        for entry, where in rules.entries("shipped"):
            shipped.append((text(entry, "torch_npu", where), text(entry, "cann", where)))
        for entry, where in rules.entries("marked"):
            fields = (texts(entry, "releases", where), texts(entry, "cann", where))
            marked.append(Marked(*fields, rules.named(entry, where)))
        for entry, where in rules.entries("wheels"):
            wheels.append(Wheels(*(text(entry, key, where) for key in ("torch_from", "python_from", "glibc"))))
    missing = {"policy", "metadata", "wheels"} - set(sources)
    if builds and missing:
        raise RuleError(f"compat/torch_npu.yaml: sources lacks {', '.join(sorted(missing))}")
    nothing = Source("", "", "unverified")
    policy, pair, pypi = (sources.get(name, nothing) for name in ("policy", "metadata", "wheels"))
    return TorchNpuTable(tuple(builds), tuple(shipped), policy, tuple(marked), tuple(wheels), pair, pypi)
