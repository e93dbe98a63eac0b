"""A profile: which checks, which limits, what must be answered, and which hardware is expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ascend_doctor.knowledge.limits import Number
from ascend_doctor.knowledge.reading import RuleError, nearest
from ascend_doctor.knowledge.yaml_nodes import Place, composed
from ascend_doctor.records import dataclass

KEYS = ("says", "only", "skip", "required", "limits", "expect")
EXPECTED = ("npus", "chips", "chip_name", "hbm_mib", "driver", "numa_nodes")


@dataclass(frozen=True)
class Expected:
    """The hardware that a site expects; None: it does not say."""

    npus: int | None = None
    chips: int | None = None
    chip_name: str | None = None
    hbm_mib: int | None = None
    driver: str | None = None
    numa_nodes: int | None = None


@dataclass(frozen=True)
class Profile:
    """``only`` and ``skip`` are globs of check names; ``required`` names; ``limits`` such as numa.per_card_mib."""

    name: str = ""
    says: Mapping[str, str] | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    limits: Mapping[str, Number] | None = None
    expect: Expected = Expected()
    place: str = ""


def load(folders: Sequence[Path]) -> Profile:
    """Where no profile was chosen: nothing is expected."""
    return Profile()


def profile(name: str, folders: Sequence[Path]) -> Profile:
    """The profile of a name (rules/profiles/NAME.yaml of any folder, later ones first) or of a file's path.

    Raises RuleError for one that is not there or not well-formed.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return _read(Path(name))
    for folder in reversed(folders):
        file = folder / "profiles" / f"{name}.yaml"
        if file.is_file():
            return _read(file)
    known = sorted({file.stem for folder in folders for file in (folder / "profiles").glob("*.yaml")})
    raise RuleError(f"there is no profile {name}{nearest(name, known)}; known: {', '.join(known)}, or a file's path")


def _read(file: Path) -> Profile:
    root = composed(file)
    if root is None:
        raise RuleError(f"{file}: an empty profile; known keys are {', '.join(KEYS)}")
    keys = root.mapping(KEYS)
    says = keys["says"].plain() if "says" in keys else None
    return Profile(
        name=file.stem,
        says={"en": says, "zh": says} if isinstance(says, str) else says,
        only=_texts(keys, "only"),
        skip=_texts(keys, "skip"),
        required=_texts(keys, "required"),
        limits={n: p.number() for n, p in keys["limits"].mapping(()).items()} if "limits" in keys else None,
        expect=_expected(keys["expect"]) if "expect" in keys else Expected(),
        place=str(file),
    )


def _texts(keys: Mapping[str, Place], name: str) -> tuple[str, ...]:
    return tuple(place.text() for place in keys[name].items()) if name in keys else ()


def _expected(place: Place) -> Expected:
    given = place.mapping(EXPECTED)
    words = {name: p.text() for name, p in given.items() if name in ("chip_name", "driver")}
    numbers = {name: int(p.number()) for name, p in given.items() if name not in words}
    return Expected(
        npus=numbers.get("npus"),
        chips=numbers.get("chips"),
        chip_name=words.get("chip_name"),
        hbm_mib=numbers.get("hbm_mib"),
        driver=words.get("driver"),
        numa_nodes=numbers.get("numa_nodes"),
    )
