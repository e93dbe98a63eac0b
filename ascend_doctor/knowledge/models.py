"""Models, architectures and number formats that are known by name: rules/models/*.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, Source
from ascend_doctor.knowledge.rule_file import RuleFile, text, texts
from ascend_doctor.records import dataclass

MADE_BY = ("mtp", "quarot")
"""Ends of names of checkpoints that change neither shape nor format."""


@dataclass(frozen=True)
class Model:
    """``config``: in the words of config.json; ``native``: the format of its first checkpoint.

    ``published_weights`` and ``published_kv_of_token`` are bytes, 0 where a sum of parts is known.
    """

    id: str
    names: tuple[str, ...]
    native: str
    parameters: int
    config: Mapping[str, Any]
    published_weights: int
    published_kv_of_token: int
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class NumberFormat:
    """Bits of a weight by part, its share of scales included."""

    name: str
    known_as: tuple[str, ...]
    experts: float
    embeddings: float
    other: float
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Architecture:
    """What holds for each model of one ``model_type``.

    ``transformers``: the first release that knows it, "" where none is known to; ``indexed_ratio``: of V4, else 0.
    """

    model_type: str
    transformers: str
    indexed_ratio: int
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Models:
    models: tuple[Model, ...] = field(default_factory=tuple)
    formats: tuple[NumberFormat, ...] = field(default_factory=tuple)
    architectures: tuple[Architecture, ...] = field(default_factory=tuple)

    def named(self, name: str) -> Model | None:
        """By its name or another that is known; the owner before the slash and case do not count.

        A known format may follow it, and words for how that was made: ``-w8a8-mtp-QuaRot``.
        """
        plain = _plain(name)
        while plain:
            found = next((m for m in self.models if plain in map(_plain, (m.id, *m.names))), None)
            shorter, dash, last = plain.rpartition("-")
            if found or not dash or not (last in MADE_BY or any(last == f.name for f in self.formats)):
                return found
            plain = shorter
        return None

    def architecture(self, model_type: object) -> Architecture | None:
        return next((a for a in self.architectures if a.model_type == model_type), None)

    def indexed_ratio(self, config: Mapping[str, Any]) -> int:
        """Of the architecture that a config.json names; 0 where it has none."""
        found = self.architecture(config.get("model_type"))
        return found.indexed_ratio if found else 0

    def format(self, name: str) -> NumberFormat | None:
        plain = name.lower()
        return next((f for f in self.formats if plain in (f.name, *f.known_as)), None)

    def format_in(self, name: str, fallback: str) -> NumberFormat | None:
        """The format that the name of a checkpoint ends with (``-w8a8-mtp``), else the fallback."""
        words = _plain(name).replace("_", "-").split("-")
        found = next((f for word in words for f in self.formats if word == f.name), None)
        return found or self.format(fallback)


def _plain(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower()


def load(folders: Sequence[Path]) -> Models:
    """All folders together, later ones first. Raises RuleError, naming file and entry."""
    models: list[Model] = []
    formats: list[NumberFormat] = []
    kinds: list[Architecture] = []
    for folder in folders:
        for path in sorted((folder / "models").glob("*.yaml")):
            rules = RuleFile(path)
            models = [_model(rules, entry, where) for entry, where in rules.entries("models")] + models
            formats = [_format(rules, entry, where) for entry, where in rules.entries("formats")] + formats
            kinds = [_architecture(rules, entry, where) for entry, where in rules.entries("architectures")] + kinds
    return Models(tuple(models), tuple(formats), tuple(kinds))


def _model(rules: RuleFile, entry: Mapping[str, Any], where: str) -> Model:
    config = entry.get("config")
    if not isinstance(config, Mapping):
        raise RuleError(f"{where}: config has to be a mapping in the words of config.json")
    return Model(
        id=text(entry, "id", where),
        names=texts(entry, "names", where),
        native=text(entry, "native", where),
        parameters=_count(entry, "parameters", where),
        config=config,
        published_weights=_count(entry, "published_weights", where, 0),
        published_kv_of_token=_count(entry, "published_kv_of_token", where, 0),
        sources=rules.named(entry, where),
    )


def _architecture(rules: RuleFile, entry: Mapping[str, Any], where: str) -> Architecture:
    return Architecture(
        model_type=text(entry, "model_type", where),
        transformers=text(entry, "transformers", where, ""),
        indexed_ratio=_count(entry, "indexed_ratio", where, 0),
        sources=rules.named(entry, where),
    )


def _format(rules: RuleFile, entry: Mapping[str, Any], where: str) -> NumberFormat:
    return NumberFormat(
        name=text(entry, "name", where),
        known_as=texts(entry, "known_as", where),
        experts=_bits(entry, "experts", where),
        embeddings=_bits(entry, "embeddings", where),
        other=_bits(entry, "other", where),
        sources=rules.named(entry, where),
    )


def _bits(entry: Mapping[str, Any], key: str, where: str) -> float:
    value = entry.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 64:
        raise RuleError(f"{where}: {key} is bits of a number, above 0 and 64 at most, not {value!r}")
    return float(value)


def _count(entry: Mapping[str, Any], key: str, where: str, default: int | None = None) -> int:
    value = entry.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RuleError(f"{where}: {key} has to be a whole number, not {value!r}")
    return value
