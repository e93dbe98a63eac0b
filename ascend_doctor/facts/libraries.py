"""The shared libraries of the deployment as its loader would find and link them, told without running any of them.

Torch, torch_npu and vllm_ascend of the target Python; the libraries of CANN alone where that has no torch_npu; custom
operators. It is measured as a whole, since the bytes of the libraries are too many for a snapshot: host/elf says how.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Callable, TypeVar

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Python, Reason, decoded, keyed
from ascend_doctor.records import dataclass

T = TypeVar("T")

HOME, OPERATORS, CUSTOM = "ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH"
PARTS = ("runtime", "compiler")
"""The folders of the installation that ``import torch_npu`` asks for."""

MOST_NAMES = 40
"""Symbols that are handed to c++filt."""

WRONG_SHAPE = Missing(Reason.FAILED, "not in the form of a library analysis")


@dataclass(frozen=True)
class Library:
    name: str
    path: str


@dataclass(frozen=True)
class Fault:
    """What stands in the way of a library. ``fatal``: the loader stops there.

    ``kind``: not_found; a file that the loader passes over: dangling, denied, loop, foreign_machine; one that it
    stops at: directory, too_short, no_elf, elf32, truncated, damaged, unloadable, unreadable; version, whose ``detail``
    is the version that is not defined; other_python and no_extension of an extension module.
    """

    kind: str
    library: str
    path: str
    needed_by: str
    detail: str
    fatal: bool


@dataclass(frozen=True)
class Undefined:
    """Symbols that a library needs and nothing defines: the first ones, in the order in which the loader misses them.

    ``readable``: as c++filt shows them.
    """

    path: str
    count: int
    symbols: tuple[str, ...]
    readable: tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """A library that a deployment opens. ``first_error``: the line that the loader would print, empty for none.

    ``dies``: the process ends by a signal there. ``lookups_missing``: functions whose names torch_npu holds, to look
    them up later, and that nothing defines; unsupported where the target does no such thing.
    """

    name: str
    path: str
    first_error: str
    dies: bool
    loaded: tuple[Library, ...]
    faults: tuple[Fault, ...]
    undefined: tuple[Undefined, ...]
    lookups_missing: tuple[str, ...] | Missing


@dataclass(frozen=True)
class Folder:
    """A folder of CANN that ``import torch_npu`` asks for. ``given_by``: a variable, "" for a part of the home.

    ``path`` is empty where that variable is not set.
    """

    given_by: str
    path: str
    there: bool | Missing


@dataclass(frozen=True)
class Libraries:
    """``folders``: none where ASCEND_HOME_PATH is not set, as then torch_npu does not look."""

    targets: tuple[Target, ...] | Missing
    folders: tuple[Folder, ...] | Missing


def collect(host: Host) -> Collected[Libraries]:
    """One measurement, and two to four questions for folders; c++filt only for names that it can make readable."""
    area = Area("libraries")
    answer = host.observed("libraries", lambda: _measured(host))
    targets = answer.value if isinstance(answer.value, Missing) else analysis(answer.value)
    if not isinstance(targets, Missing):
        targets = _readable(host, targets)
        for index, target in enumerate(targets):
            area.take(keyed("targets", index), Parsed(None, answer.source, {"": _line(target)}))
            for number, fault in enumerate(target.faults):
                shown = {"": _fault_line(fault)}
                area.take(
                    f"{keyed('targets', index)}.faults[{number}]",
                    Parsed(None, f"file:{fault.path}" if fault.path else answer.source, shown),
                )
    shown = {"": targets.reason.value if isinstance(targets, Missing) else f"{len(targets)} libraries"}
    area.take("targets", Parsed(None, answer.source, shown))
    return area.of(Libraries(targets, _folders(host, area)))


def _measured(host: Host) -> object:
    """The analysis of this machine, or why there is nothing to ask for."""
    from ascend_doctor.host.elf.analysis import Question, analyse

    library_path, preload = host.env("LD_LIBRARY_PATH").value, host.env("LD_PRELOAD").value
    arch, python = host.identity.arch, host.python.value
    for value in (library_path, arch):
        if isinstance(value, Missing) and value.reason is not Reason.ABSENT:
            return value
    there = Python("", "", ()) if isinstance(python, Missing) else python
    return analyse(
        Question(
            arch=_text(arch),
            library_path=_text(library_path),
            preload=_text(preload),
            python=there.executable,
            python_version=_text(there.version),
            site=() if isinstance(there.site, Missing) else there.site,
            cann=isinstance(host.env(HOME).value, str) or "Ascend" in _text(library_path),
            custom=_custom_folders(host),
            libraries=host.extent.libraries,
            torch=host.extent.smoke,
            root=str(getattr(host, "root", "/")),
        )
    )


def _custom_folders(host: Host) -> tuple[str, ...]:
    """Of custom operators: those that the environment names, and the vendors of the operator package."""
    folders = [folder for folder in _text(host.env(CUSTOM).value).split(":") if folder.startswith("/")]
    operators = _text(host.env(OPERATORS).value)
    if operators.startswith("/"):
        names = host.list(f"{operators}/vendors").value
        folders += [f"{operators}/vendors/{name}" for name in (() if isinstance(names, Missing) else names)]
    return tuple(dict.fromkeys(folders))


def _text(value: str | Missing) -> str:
    return "" if isinstance(value, Missing) else value


def analysis(value: object) -> tuple[Target, ...] | Missing:
    """The targets of an analysis as JSON gives it; Missing(failed) for any other value."""
    try:
        found = tuple(_target(_of(entry, dict)) for entry in _of(_of(value, dict)["targets"], list))
    except (KeyError, TypeError, RecursionError):
        return WRONG_SHAPE
    return found


def _of(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(kind)
    return value


def _list(entry: Mapping[str, Any], key: str, make: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
    return tuple(make(_of(item, dict)) for item in _of(entry[key], list))


def _texts(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(_of(item, str) for item in _of(entry[key], list))


def _target(entry: Mapping[str, Any]) -> Target:
    nothing_looked_up = Missing(Reason.UNSUPPORTED, "nothing is looked up here, or the libraries are not whole")
    return Target(
        name=_of(entry["name"], str),
        path=_of(entry["path"], str),
        first_error=_of(entry["first_error"], str),
        dies=_of(entry["dies"], bool),
        loaded=_list(entry, "loaded", lambda one: Library(_of(one["name"], str), _of(one["path"], str))),
        faults=_list(entry, "faults", _fault),
        undefined=_list(entry, "undefined", _undefined),
        lookups_missing=nothing_looked_up if entry["lookups_missing"] is None else _texts(entry, "lookups_missing"),
    )


def _fault(entry: Mapping[str, Any]) -> Fault:
    kind, library, path, needed_by, detail = (
        _of(entry[key], str) for key in ("kind", "library", "path", "needed_by", "detail")
    )
    return Fault(kind, library, path, needed_by, detail, _of(entry["fatal"], bool))


def _undefined(entry: Mapping[str, Any]) -> Undefined:
    symbols = _texts(entry, "symbols")
    return Undefined(_of(entry["path"], str), _of(entry["count"], int), symbols, symbols)


def _readable(host: Host, targets: tuple[Target, ...]) -> tuple[Target, ...]:
    """With the names of C++ as c++filt shows them; as they are where it is not there."""
    mangled = [name for name in _undefined_names(targets) if name.startswith("_Z")][:MOST_NAMES]
    output = host.run(["c++filt", *mangled]).value if mangled else Missing(Reason.ABSENT)
    if isinstance(output, Missing) or output.rc:
        return targets
    lines = decoded(output.stdout).splitlines()
    plain = dict(zip(mangled, lines)) if len(lines) == len(mangled) else {}
    return tuple(
        replace(target, undefined=tuple(_made_readable(undefined, plain) for undefined in target.undefined))
        for target in targets
    )


def _made_readable(undefined: Undefined, plain: Mapping[str, str]) -> Undefined:
    return replace(undefined, readable=tuple(plain.get(name, name) for name in undefined.symbols))


def _undefined_names(targets: tuple[Target, ...]) -> Iterator[str]:
    """The first names of each library come before the later ones of others."""
    lists = [undefined.symbols for target in targets for undefined in target.undefined]
    place = 0
    while any(place < len(names) for names in lists):
        yield from (names[place] for names in lists if place < len(names))
        place += 1


def _folders(host: Host, area: Area) -> tuple[Folder, ...] | Missing:
    """As torch_npu asks for them: the home, the operators, then the parts of the home."""
    home = host.env(HOME).value
    if isinstance(home, Missing):
        return home if home.reason is not Reason.ABSENT else ()
    operators = host.env(OPERATORS).value
    wanted = [(HOME, home)]
    if isinstance(operators, Missing) and operators.reason is not Reason.ABSENT:
        return operators
    wanted.append((OPERATORS, _text(operators)))
    wanted += [("", posixpath.join(home, part)) for part in PARTS]
    found = []
    for index, (given_by, path) in enumerate(wanted):
        source, there = f"env:{given_by}", _is_there(host, path) if path else False
        shown = {"": f"{given_by}={path}" if given_by else f"{path}: {'there' if there is True else 'not there'}"}
        area.take(keyed("folders", index), Parsed(None, source if given_by else f"file:{path}", shown))
        found.append(Folder(given_by, path, there))
    return tuple(found)


def _is_there(host: Host, path: str) -> bool | Missing:
    value = host.stat(path).value
    if isinstance(value, Missing):
        return False if value.reason is Reason.ABSENT else value
    return True


def _line(target: Target) -> str:
    if target.dies:
        return f"{target.path}: the process would end by a signal (SIGBUS)"
    return target.first_error or f"{target.path}: loads, with {len(target.loaded)} libraries of its own"


def _fault_line(fault: Fault) -> str:
    words = [fault.kind.replace("_", " "), fault.detail, f"(needed by {fault.needed_by})" if fault.needed_by else ""]
    return f"{fault.path or fault.library}: {' '.join(word for word in words if word)}"
