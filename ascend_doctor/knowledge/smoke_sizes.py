"""Sizes of the reference model that a smoke run may have: rules/smoke/sizes.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ascend_doctor.children.deepseek_v4.config import CSA, HCA, Config
from ascend_doctor.children.deepseek_v4.shapes import DTYPE_BYTES
from ascend_doctor.knowledge.reading import RuleError, Source, nearest
from ascend_doctor.knowledge.rule_file import RuleFile, languages, text
from ascend_doctor.records import dataclass

LIMITS = ("layers", "experts", "positions")


@dataclass(frozen=True)
class Size:
    """``sequence`` and ``decode``: tokens of the prompt, and those made after it, one by one.

    ``repeats``: ratios of further layers, over and over; ``most``: what no DeepSeek-V4 exceeds.
    """

    name: str
    says: Mapping[str, str]
    config: Config
    repeats: tuple[int, ...]
    sequence: int
    decode: int
    dtype: str
    most: Mapping[str, int]
    sources: tuple[Source, ...]

    @property
    def length(self) -> int:
        """Positions that the caches need."""
        return self.sequence + self.decode

    def changed(
        self,
        layers: int | None = None,
        experts: int | None = None,
        dtype: str | None = None,
        sequence: int | None = None,
        decode: int | None = None,
    ) -> Size:
        """With other numbers. Raises RuleError, in words, for what makes no model or shows less than the layers do."""
        ratios = self.config.ratios
        if layers is not None:
            further = (layers - len(ratios)) // max(len(self.repeats), 1) + 1
            ratios = (*ratios, *self.repeats * max(further, 0))[: max(layers, 0)]
        changed = replace(
            self,
            config=replace(self.config, ratios=ratios, experts=self.config.experts if experts is None else experts),
            dtype=self.dtype if dtype is None else dtype,
            sequence=self.sequence if sequence is None else sequence,
            decode=self.decode if decode is None else decode,
        )
        wrong = changed.refusal(layers)
        if wrong:
            raise RuleError(wrong)
        return changed

    def refusal(self, layers: int | None = None) -> str:
        """Why there can be no such run; empty where there can. ``layers``: how many were asked for."""
        config, most = self.config, self.most
        wanted = config.layers if layers is None else layers
        if self.dtype not in DTYPE_BYTES:
            return f"dtype {self.dtype} is none of {', '.join(DTYPE_BYTES)}{nearest(self.dtype, DTYPE_BYTES)}"
        if not 1 <= wanted <= most["layers"]:
            return f"{wanted} layers: give 1 to {most['layers']}, the layers of the largest DeepSeek-V4"
        if wanted != config.layers:
            return f"size {self.name} has {config.layers} layers and names no kinds of further ones"
        if not config.experts_per_token <= config.experts <= most["experts"]:
            return (
                f"{config.experts} experts: each token of size {self.name} goes through {config.experts_per_token}, "
                f"and no DeepSeek-V4 has more than {most['experts']}; give a number between"
            )
        if self.decode < 1:
            return f"{self.decode} tokens to decode: give at least 1"
        if self.sequence < self.least_sequence:
            return (
                f"a prompt of {self.sequence} tokens shows less than these layers do: windows fill and the indexer "
                f"has to choose from {self.least_sequence} tokens on; give at least so many"
            )
        if self.length > most["positions"]:
            return f"{self.length} positions are more than the {most['positions']} of any DeepSeek-V4"
        return ""

    @property
    def least_sequence(self) -> int:
        """Tokens after which each kind of layer has done all that it does: left a window, made an entry, chosen."""
        config = self.config
        needs = {HCA: 128, CSA: 4 * (config.index_topk + 1)}
        kinds = [config.kind(layer) for layer in range(config.layers)]
        return max([config.window + 1, *(needs.get(kind, 0) for kind in kinds)])


@dataclass(frozen=True)
class Sizes:
    entries: Mapping[str, Size]

    def named(self, name: str) -> Size:
        """Raises RuleError for a name that is unknown."""
        if name not in self.entries:
            raise RuleError(f"there is no size {name}{nearest(name, self.entries)}; known: {', '.join(self.entries)}")
        return self.entries[name]


def load(folders: Sequence[Path]) -> Sizes:
    """All folders together, later ones win. Raises RuleError, naming file and entry."""
    sizes: dict[str, Size] = {}
    most: dict[str, int] = {}
    for folder in folders:
        path = folder / "smoke" / "sizes.yaml"
        if not path.is_file():
            continue
        rules = RuleFile(path)
        for entry, where in rules.entries("limits"):
            most[text(entry, "name", where)] = _count(entry, "most", where)
        lacking = [name for name in LIMITS if name not in most]
        if lacking:
            raise RuleError(f"{path}: limits has to name {', '.join(lacking)}")
        for entry, where in rules.entries("sizes"):
            size = _size(rules, entry, where, most)
            sizes[size.name] = size
    return Sizes(sizes)


def _size(rules: RuleFile, entry: Mapping[str, Any], where: str, most: Mapping[str, int]) -> Size:
    config, repeats = entry.get("config"), entry.get("repeats", [])
    if not isinstance(config, Mapping):
        raise RuleError(f"{where}: config has to be a mapping of the sizes of a model")
    try:
        further = Config.of({**config, "ratios": repeats}).ratios if repeats else ()
        made = Config.of(config)
    except ValueError as error:
        raise RuleError(f"{where}: {error}") from None
    size = Size(
        name=text(entry, "id", where),
        says=languages(entry.get("says"), where),
        config=made,
        repeats=further,
        sequence=_count(entry, "sequence", where),
        decode=_count(entry, "decode", where),
        dtype=text(entry, "dtype", where),
        most=most,
        sources=rules.named(entry, where),
    )
    wrong = size.refusal()
    if wrong:
        raise RuleError(f"{where}: {wrong}")
    return size


def _count(entry: Mapping[str, Any], key: str, where: str) -> int:
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RuleError(f"{where}: {key} has to be a whole number above 0, not {value!r}")
    return value
