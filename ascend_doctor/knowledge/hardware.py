"""Chips by PCI id, and the device nodes that they need: rules/hardware/pci-ids.yaml and device-nodes.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.reading import RuleError, load_yaml, source_of
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Nodes:
    """Device nodes for one way that a chip meets its host; ``sign`` and ``chips`` (beginnings of names) tell it."""

    needs: tuple[str, ...] = ()
    sign: str = ""
    chips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hardware:
    """``chips``: PCI device id -> name, None for an id without a public name; ``nodes``: ``host`` and ``own``."""

    chips: Mapping[str, str | None] = field(default_factory=dict)
    nodes: Mapping[str, Nodes] = field(default_factory=dict)


def load(folders: Sequence[Path]) -> Hardware:
    """Later folders win, entry by entry. Raises RuleError, naming file and entry."""
    chips: dict[str, str | None] = {}
    nodes: dict[str, Nodes] = {}
    for folder in folders:
        ids = folder / "hardware" / "pci-ids.yaml"
        if ids.is_file():
            chips.update(_chips(ids))
        kinds = folder / "hardware" / "device-nodes.yaml"
        if kinds.is_file():
            nodes.update(_nodes(kinds))
    return Hardware(chips, nodes)


def _chips(path: Path) -> Mapping[str, str | None]:
    document = _mapping(load_yaml(path), str(path))
    source_of(_mapping(document.get("source"), f"{path}: source"), f"{path}: source")
    found: dict[str, str | None] = {}
    for name, entry in _mapping(document.get("devices"), f"{path}: devices").items():
        where = f"{path}: devices.{name}"
        chip = _mapping(entry, where).get("chip")
        if not (chip is None or isinstance(chip, str)):
            raise RuleError(f"{where}: chip is a name in quotes, or null")
        found[str(name)] = chip
    return found


def _nodes(path: Path) -> Mapping[str, Nodes]:
    found: dict[str, Nodes] = {}
    for name, entry in _mapping(load_yaml(path), str(path)).items():
        where = f"{path}: {name}"
        fields = _mapping(entry, where)
        source_of(fields, where)
        needs, chips = _texts(fields.get("needs"), where), _texts(fields.get("chips", []), where)
        found[str(name)] = Nodes(needs, str(fields.get("sign", "")), chips)
    return found


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RuleError(f"{where}: give a mapping")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise RuleError(f"{where}: needs and chips are lists of texts")
    return tuple(value)
