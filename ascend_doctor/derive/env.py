"""What is to be said of the environment variables that are set: values, names, and settings that do not go together.

Each row set gives a row for each thing that is wrong, and else one for the host: a good environment is a pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ascend_doctor.derive import rows
from ascend_doctor.facts.env import Env
from ascend_doctor.facts.npu import Npu
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.environment import JUDGED, Environment, Variable, ends
from ascend_doctor.knowledge.reading import Source

SOC = "SOC_VERSION"
REMARKABLE = re.compile(rf"form: (?:{'|'.join(JUDGED)})|only_on:|obsolete:|replaced_by:|^- name: {SOC}$", re.MULTILINE)
"""Words of an entry without which nothing is said of the variable here, so that its entry need not be built."""

SLIP_LENGTH = 5
"""Letters that the differing end of a name has at least, so that one wrong letter in it is a slip and no other word."""

PORT = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
LAST_PORT = 65535
ADDRESS = re.compile(r"(\d{1,3}\.){3}\d{1,3}(%\S+)?|[0-9a-fA-F:]*:[0-9a-fA-F:.]*(%\S+)?", re.ASCII)


@dataclass(frozen=True)
class Remark:
    """``name`` is the variable, empty where nothing is wrong; ``instead``: what to use, or what its name looks like."""

    subject: str
    name: str
    value: str
    wrong: bool | Missing
    severity: str
    found: dict[str, str]
    expected: dict[str, str]
    instead: str
    refused: str
    sources: tuple[Source, ...]
    reads: tuple[str, ...]


@rows("env.judged_values")
def judged_values(env: Env, npu: Npu, environment: Environment) -> tuple[Remark, ...]:
    """Values out of the form or range that their readers document, on this kind of chip where it matters."""
    found = []
    for variable, value in _set(env, environment):
        if variable.values.get("form") not in JUDGED or "judged_by" in variable.values:
            continue
        wrong, values = _judged(variable, value, npu, environment)
        if wrong is not False:
            severity = "error" if variable.refused else "warning"
            by_chip = ("npu.chips",) if values is not variable.values else ()
            expected = environment.described(values)
            found.append(_remark(environment, variable, value, wrong, severity, expected=expected, reads=by_chip))
    return _or_fine(found, env)


@rows("env.chip_settings")
def chip_settings(env: Env, npu: Npu, environment: Environment) -> tuple[Remark, ...]:
    """Variables that do nothing on this kind of chip, and a SOC_VERSION of another kind."""
    found = []
    for variable, value in _set(env, environment):
        if not variable.only_on and variable.name != SOC:
            continue
        kind, severity = _chip(npu, environment), "info"
        wrong: bool | Missing = kind if isinstance(kind, Missing) else kind not in variable.only_on
        if variable.name == SOC:
            asked, severity = environment.chip(value, "soc"), "warning"
            if not asked:
                continue
            wrong = kind if isinstance(kind, Missing) else kind != asked
        if wrong is not False:
            instead = "" if isinstance(kind, Missing) else kind
            found.append(_remark(environment, variable, value, wrong, severity, instead=instead, reads=("npu.chips",)))
    return _or_fine(found, env)


@rows("env.unknown_names")
def unknown_names(env: Env, environment: Environment) -> tuple[Remark, ...]:
    """Variables that are in no catalogue and look like one that is; ``instead`` is that one."""
    known, found = environment.names(), []
    for name, value in env.items():
        if name in known or isinstance(value, Missing):
            continue
        instead = environment.near(name)
        if instead:
            severity = "warning" if is_slip(name, instead) else "info"
            found.append(Remark(f"env:{name}", name, value, True, severity, {}, {}, instead, "", (), (f"env.{name}",)))
    return _or_fine(found, env)


@rows("env.obsolete_names")
def obsolete_names(env: Env, environment: Environment) -> tuple[Remark, ...]:
    """Variables that their readers no longer have, or are about to replace by ``instead``."""
    found = [
        _remark(environment, variable, value, True, "info", instead=variable.replaced_by)
        for variable, value in _set(env, environment)
        if variable.obsolete or variable.replaced_by
    ]
    return _or_fine(found, env)


@rows("env.conflicts")
def conflicts(env: Env, npu: Npu, environment: Environment) -> tuple[Remark, ...]:
    """Settings that do not go together."""
    found = []
    given = [name for name, value in env.items() if isinstance(value, str)]
    for conflict in environment.conflicts(given):
        wrong = _all(_is_like(env.get(name), like) for name, like in conflict.when.items())
        if conflict.chips and wrong is not False:
            kind = _chip(npu, environment)
            wrong = _all((wrong, kind if isinstance(kind, Missing) else kind in conflict.chips))
        if wrong is not False:
            names = [name for name, like in conflict.when.items() if like is not None]
            reads = (*(f"env.{name}" for name in conflict.when), *(("npu.chips",) if conflict.chips else ()))
            found.append(
                Remark(
                    subject=f"env:{'+'.join(names)}",
                    name=names[0],
                    value="",
                    wrong=wrong,
                    severity=conflict.severity,
                    found=dict(conflict.found),
                    expected=dict(conflict.expected),
                    instead="",
                    refused="",
                    sources=(environment.source(conflict.source, names[0]),),
                    reads=reads,
                )
            )
    return _or_fine(found, env)


def fits(values: Mapping[str, Any], text: str) -> bool:
    """Whether a value is of the form and in the range; a form that cannot be judged fits."""
    form = values.get("form")
    if form == "choice":
        words, word = values.get("of", ()), text.strip()
        if values.get("any_case"):
            words, word = [w.lower() for w in words], word.lower()
        return word in words
    if form in ("integer", "number"):
        wanted = r"[+-]?\d+" if form == "integer" else r"[+-]?(\d+\.?\d*|\.\d+)"
        if not re.fullmatch(wanted, text.strip(), re.ASCII) or len(text) > 40:
            return False
        number = float(text)
        within: bool = values.get("min", number) <= number <= values.get("max", number)
        return within and number % values.get("multiple_of", 1 if form == "integer" else number or 1) == 0
    if form == "pattern":
        return re.fullmatch(values["pattern"], text.strip(), re.ASCII) is not None
    if form == "ports":
        return text.strip() == "auto" or all(_is_port(part.strip()) for part in text.split(","))
    return form != "address" or ADDRESS.fullmatch(text.strip()) is not None


def is_slip(name: str, known: str) -> bool:
    """Whether one letter is wrong, missing, too many or changed places, or just a _ is; digits tell versions apart."""
    end, known_end = ends(name, known)
    if end.replace("_", "") == known_end.replace("_", ""):
        return True
    if min(len(end), len(known_end)) < SLIP_LENGTH or re.sub(r"\D", "", end) != re.sub(r"\D", "", known_end):
        return False
    start = next((i for i, (a, b) in enumerate(zip(end, known_end)) if a != b), min(len(end), len(known_end)))
    rest, other = end[start:], known_end[start:]
    swapped = rest[1::-1] + rest[2:]
    return rest[1:] == other or rest == other[1:] or rest[1:] == other[1:] or swapped == other


def _is_port(text: str) -> bool:
    found = PORT.fullmatch(text)
    return found is not None and 1 <= int(found[1]) <= int(found[2] or found[1]) <= LAST_PORT


def _set(env: Env, environment: Environment) -> Iterator[tuple[Variable, str]]:
    """The variables that are set to something and of which the catalogue may have something to say."""
    for name, value in env.items():
        if isinstance(value, str) and value.strip() and environment.says(name, REMARKABLE):
            variable = environment.of(name)
            if variable is not None:
                yield variable, value


def _judged(
    variable: Variable, value: str, npu: Npu, environment: Environment
) -> tuple[bool | Missing, Mapping[str, Any]]:
    """Whether a value is wrong, and what was wanted; the chip is looked for only where it decides."""
    if not fits(variable.values, value):
        return True, variable.values
    by_chip = {kind: {**variable.values, **own} for kind, own in variable.values.get("chips", {}).items()}
    if all(fits(values, value) for values in by_chip.values()):
        return False, variable.values
    kind = _chip(npu, environment)
    if isinstance(kind, Missing):
        return kind, variable.values
    values = by_chip.get(kind, variable.values)
    return not fits(values, value), values


def _chip(npu: Npu, environment: Environment) -> str | Missing:
    """The kind of all chips."""
    if isinstance(npu.chips, Missing):
        return npu.chips
    names = [chip if isinstance(chip, Missing) else chip.name for chip in npu.chips]
    unseen = next((name for name in names if isinstance(name, Missing)), None)
    if unseen is not None:
        return unseen
    kinds = {environment.chip(name) for name in set(map(str, names))}
    if len(kinds) == 1 and "" not in kinds:
        return kinds.pop()
    return Missing(Reason.UNSUPPORTED, "no one kind of chips that the rules know", "npu.chips")


def _is_like(value: str | Missing | None, like: str | None) -> bool | Missing:
    if isinstance(value, Missing) and value.reason is not Reason.ABSENT:
        return value
    if not isinstance(value, str) or not value:
        return like is None
    return like is not None and re.fullmatch(like, value.strip(), re.ASCII) is not None


def _all(conditions: Iterator[bool | Missing] | tuple[bool | Missing, ...]) -> bool | Missing:
    """False where one is, else the first unknown one, else true."""
    given = tuple(conditions)
    if False in given:
        return False
    return next((c for c in given if isinstance(c, Missing)), True)


def _remark(
    environment: Environment,
    variable: Variable,
    value: str,
    wrong: bool | Missing,
    severity: str,
    expected: dict[str, str] | None = None,
    instead: str = "",
    reads: tuple[str, ...] = (),
) -> Remark:
    return Remark(
        subject=f"env:{variable.name}",
        name=variable.name,
        value=value,
        wrong=wrong,
        severity=severity,
        found=dict(variable.meaning),
        expected=expected or {},
        instead=instead,
        refused=variable.refused,
        sources=(environment.source(variable.source, variable.name),),
        reads=(f"env.{variable.name}", *reads),
    )


def _or_fine(found: list[Remark], env: Env) -> tuple[Remark, ...]:
    """The rows, and the host's: fine where there are none, unknown where a variable could not be read."""
    unseen = next((v for v in env.values() if isinstance(v, Missing) and v.reason is not Reason.ABSENT), None)
    if found and unseen is None:
        return tuple(found)
    host = Remark("host", "", "", False if unseen is None else unseen, "info", {}, {}, "", "", (), ("env",))
    return (*found, host)
