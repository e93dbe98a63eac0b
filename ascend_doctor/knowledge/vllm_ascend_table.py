"""Releases of vllm-ascend and the set that each is made for: rules/compat/vllm_ascend.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError, Source
from ascend_doctor.knowledge.rule_file import RuleFile, text, texts
from ascend_doctor.records import dataclass

NEVER = "never"


@dataclass(frozen=True)
class Stack:
    """One release; what it does not state is empty. ``glibc``: architecture -> what its wheel needs."""

    version: str
    vllm: tuple[str, ...]
    cann: str
    cann_310p: str
    torch: str
    torch_npu: str
    wheel_torch_npu: str
    triton_ascend: str
    python: str
    transformers: str
    glibc: Mapping[str, str]
    driver: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class VllmAscendTable:
    """``chips``: family -> the first release that knows it, or NEVER; families that are not here always were known."""

    releases: tuple[Stack, ...]
    chips: Mapping[str, str]


_FIELDS = ("cann_310p", "torch", "torch_npu", "wheel_torch_npu", "triton_ascend", "python", "transformers", "driver")


def load(folders: Sequence[Path]) -> VllmAscendTable:
    """All folders together. Raises RuleError, also for a release that is there twice."""
    releases: dict[str, Stack] = {}
    chips: dict[str, str] = {}
    for folder in folders:
        path = folder / "compat" / "vllm_ascend.yaml"
        if not path.is_file():
            continue
        rules = RuleFile(path)
        for entry, where in rules.entries("releases"):
            version = text(entry, "version", where)
            if version in releases:
                raise RuleError(f"{where}: {version} is there already; leave it out")
            stated = {name: text(entry, name, where, "") for name in _FIELDS}
            releases[version] = Stack(
                version=version,
                vllm=texts(entry, "vllm", where),
                cann=text(entry, "cann", where),
                cann_310p=stated["cann_310p"],
                torch=stated["torch"],
                torch_npu=stated["torch_npu"],
                wheel_torch_npu=stated["wheel_torch_npu"],
                triton_ascend=stated["triton_ascend"],
                python=stated["python"],
                transformers=stated["transformers"],
                glibc={key[6:]: text(entry, key, where) for key in entry if str(key).startswith("glibc_")},
                driver=stated["driver"],
                sources=rules.named(entry, where),
            )
        for entry, where in rules.entries("chips"):
            chips[text(entry, "family", where)] = text(entry, "from", where)
    return VllmAscendTable(tuple(releases.values()), chips)
