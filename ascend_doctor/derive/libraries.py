"""What the analysis of the libraries means: whose libraries are missing, which files are spoilt, what does not fit.

A library that several targets want is told once, for the first of them. Symbols are judged only where the libraries
that would define them are all there: what a missing library would have defined is no fault of its own.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass

from ascend_doctor.derive import rows
from ascend_doctor.facts.cann import Cann
from ascend_doctor.facts.libraries import Fault, Libraries, Target, Undefined
from ascend_doctor.facts.library_path import is_stub
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.loading import Loading
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.torch_npu_table import TorchNpuTable
from ascend_doctor.records import dataclass

PASSED_OVER = ("dangling", "denied", "loop", "foreign_machine", "elf32")
"""Files after which the loader goes on to the next folder: no harm where it finds a good one there."""

SPOILT = ("too_short", "no_elf", "truncated", "damaged", "unloadable", "unreadable")
FILES = (*PASSED_OVER, "directory", *SPOILT)
MODULES = ("other_python", "no_extension")
SHOWN = 4
BEHIND = {
    "torch": {"torch", "python"},
    "torch_npu": {"torch", "torch_npu"},
    "cann": {"cann", "driver"},
    "nnal": {"nnal", "cann", "driver"},
}
"""Owner of symbols -> owners of libraries that have to be whole to say that a symbol is missing; for others: all."""

OPTIONAL = "torch_npu.atb"
"""Opened when an operator of ATB is first used, so a host without ATB is a good one."""

ALWAYS_OPENED = ("torch", "torch_npu", "vllm_ascend", "libascendcl.so", "libhccl.so")

Place = tuple[str, Target, int, Fault]


@dataclass(frozen=True)
class Need:
    """Libraries of one owner that are nowhere. ``found_others``: of the same owner, some were found."""

    subject: str
    owner: str
    target: str
    count: int
    which: str
    says: str
    optional: bool
    severity: str
    installed: bool | Missing
    found_others: bool
    sources: tuple[Source, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class File:
    """Files that are wrong in one way; ``kind`` is empty where there is none. ``spoilt``: their content is wrong."""

    subject: str
    kind: str
    path: str
    library: str
    detail: str
    count: int
    which: str
    target: str
    says: str
    severity: str
    spoilt: bool
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Symbols:
    """Symbols of one owner that nothing defines. ``wants``: the version that would have them, where it is known."""

    subject: str
    owner: str
    target: str
    count: int
    first: str
    which: str
    path: str
    says: str
    severity: str
    version: str
    wants: str
    sources: tuple[Source, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class System:
    """A version that a library of the system, such as libc.so.6, does not define."""

    subject: str
    kind: str
    version: str
    path: str
    needed_by: str
    count: int
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Lookups:
    """Functions that nothing defines: ``required`` at the first device call, ``others`` by features."""

    target: str
    required: str
    says: str
    others: int
    which: str
    sources: tuple[Source, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """An extension module that this interpreter cannot import; ``kind`` is empty where all can be."""

    subject: str
    kind: str
    module: str
    there: str
    python: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Stubs:
    """Libraries to link with that would be loaded."""

    count: int
    which: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """A folder of CANN that ``import torch_npu`` asks for."""

    subject: str
    given_by: str
    path: str
    part: str
    there: bool | Missing
    reads: tuple[str, ...]


@rows("libraries.needs")
def needs(libraries: Libraries, cann: Cann, loading: Loading) -> tuple[Need, ...] | Missing:
    """One row for each owner of missing libraries; one good row where none is missing."""
    targets = _whole(libraries)
    if isinstance(targets, Missing):
        return targets
    if not targets:
        return ()
    met = {(target.name, fault.library) for _, target, _, fault in _places(targets) if fault.kind in PASSED_OVER}
    groups: dict[str, list[Place]] = {}
    for place in _places(targets):
        _, target, _, fault = place
        if fault.kind == "not_found" and (target.name, fault.library) not in met:
            groups.setdefault(loading.of_library(_name(fault))[0].owner, []).append(place)
    if not groups:
        return (Need("host", "", "", 0, "", "", False, "info", True, True, (), ("libraries.targets",)),)
    owners = {loading.of_library(library.name)[0].owner for target in targets for library in target.loaded}
    return tuple(_need(owner, group, owner in owners, cann, loading) for owner, group in groups.items())


def _need(owner: str, group: list[Place], found_others: bool, cann: Cann, loading: Loading) -> Need:
    group = _once(group, lambda fault: _name(fault))
    _, target, _, first = group[0]
    installed: bool | Missing = True
    if isinstance(cann.roots, Missing):
        installed = False if cann.roots.reason is Reason.ABSENT else cann.roots
    named = [f"{_name(fault)}{_package(_name(fault), loading)}" for _, _, _, fault in group]
    says = f"{_name(first)}: cannot open shared object file: No such file or directory"
    return Need(
        subject=owner,
        owner=owner,
        target=_opens(target),
        count=len(group),
        which=_some(named),
        says=target.first_error if target.first_error.startswith(_name(first)) else says,
        optional=all(target.name == OPTIONAL for _, target, _, _ in group),
        severity=_severity([target for _, target, _, _ in group]),
        installed=installed,
        found_others=found_others,
        sources=loading.of_library(_name(first))[0].sources,
        reads=tuple(path for path, _, _, _ in group),
    )


def _package(name: str, loading: Loading) -> str:
    owner, package = loading.of_library(name)
    return f" ({package})" if owner.owner == "cann" else ""


@rows("libraries.files")
def files(libraries: Libraries) -> tuple[File, ...] | Missing:
    """One row for each way in which files are wrong."""
    targets = _whole(libraries)
    if isinstance(targets, Missing):
        return targets
    if not targets:
        return ()
    nowhere = {(target.name, fault.library) for _, target, _, fault in _places(targets) if fault.kind == "not_found"}
    groups: dict[str, list[Place]] = {}
    for place in _places(targets):
        _, target, _, fault = place
        harmless = fault.kind in PASSED_OVER and (target.name, fault.library) not in nowhere
        if fault.kind in FILES and not harmless:
            groups.setdefault(fault.kind, []).append(place)
    if not groups:
        return (File("host", "", "", "", "", 0, "", "", "", "info", False, ("libraries.targets",)),)
    return tuple(_file(kind, _once(group, lambda fault: fault.path)) for kind, group in groups.items())


def _file(kind: str, group: list[Place]) -> File:
    _, target, _, first = group[0]
    return File(
        subject=f"{posixpath.basename(first.path)}:{kind.replace('_', '-')}",
        kind=kind,
        path=first.path,
        library=_name(first),
        detail=first.detail,
        count=len(group),
        which=_some([fault.path for _, _, _, fault in group]),
        target=_opens(target),
        says="Bus error (SIGBUS)" if target.dies else target.first_error,
        severity=_severity([target for _, target, _, _ in group]),
        spoilt=kind in SPOILT,
        reads=tuple(path for path, _, _, _ in group),
    )


@rows("libraries.symbols")
def symbols(
    libraries: Libraries, python: TargetPython, cann: Cann, loading: Loading, torch_npu_table: TorchNpuTable
) -> tuple[Symbols, ...] | Missing:
    """One row for each owner of undefined symbols."""
    targets = _whole(libraries)
    if isinstance(targets, Missing):
        return targets
    if not targets:
        return ()
    groups: dict[str, list[tuple[str, Target, Undefined, list[str]]]] = {}
    for index, target in enumerate(targets):
        lacking = {loading.of_library(_name(fault))[0].owner for fault in target.faults if fault.fatal}
        for number, undefined in enumerate(target.undefined):
            path = f"libraries.targets[{index}].undefined[{number}]"
            by_owner: dict[str, list[str]] = {}
            for symbol, readable in zip(undefined.symbols, undefined.readable):
                by_owner.setdefault(loading.of_symbol(symbol).owner, []).append(readable)
            for owner, names in by_owner.items():
                if not lacking & BEHIND.get(owner, lacking):
                    groups.setdefault(owner, []).append((path, target, undefined, names))
    if not groups:
        return (Symbols("host", "", "", 0, "", "", "", "", "info", "", "", (), ("libraries.targets",)),)
    versions = _Versions(python, cann, torch_npu_table)
    return tuple(_symbols(loading, owner, group, versions) for owner, group in groups.items())


def _symbols(
    loading: Loading, owner: str, group: list[tuple[str, Target, Undefined, list[str]]], versions: _Versions
) -> Symbols:
    _, target, undefined, names = group[0]
    every = list(dict.fromkeys(name for _, _, _, some in group for name in some))
    found = next((one for one in loading.owners if one.owner == owner), None)
    return Symbols(
        subject=owner,
        owner=owner,
        target=_opens(target),
        count=max(len(every), undefined.count if len(group) == 1 and len(names) == len(undefined.symbols) else 0),
        first=names[0],
        which=_some(every),
        path=undefined.path,
        says=target.first_error,
        severity=_severity([target for _, target, _, _ in group]),
        version=versions.found(owner),
        wants=versions.wanted(owner),
        sources=found.sources if found else (),
        reads=tuple(path for path, _, _, _ in group),
    )


@dataclass(frozen=True)
class _Versions:
    """Versions for the reader of a finding: they decide nothing, so where one is not known, nothing is said."""

    python: TargetPython
    cann: Cann
    table: TorchNpuTable

    def found(self, owner: str) -> str:
        if owner == "torch":
            return f"torch {self._of('torch') or '?'}"
        roots = () if isinstance(self.cann.roots, Missing) else self.cann.roots
        known = [root for root in roots if not isinstance(root, Missing) and not isinstance(root.version, Missing)]
        chosen = next((str(root.version) for root in known if root.selected is True), "?")
        return f"CANN {chosen}" if owner == "cann" else ""

    def wanted(self, owner: str) -> str:
        torch_npu = self._of("torch_npu")
        if not torch_npu:
            return "?"
        if owner == "torch":
            return f"torch {'.'.join(torch_npu.split('.')[:2])}.*"
        fitting = next((b.cann for b in self.table.builds if torch_npu in b.torch_npu and b.cann), ())
        return f"CANN {', '.join(fitting)}" if owner == "cann" and fitting else "?"

    def _of(self, name: str) -> str:
        package = None if isinstance(self.python.packages, Missing) else self.python.packages.get(name)
        if package is None or isinstance(package, Missing) or isinstance(package.version, Missing):
            return ""
        return str(package.version)


@rows("libraries.system")
def system(libraries: Libraries) -> tuple[System, ...] | Missing:
    """One row for each version that is not defined."""
    targets = _whole(libraries)
    if isinstance(targets, Missing):
        return targets
    if not targets:
        return ()
    places = [place for place in _places(targets) if place[3].kind == "version"]
    groups: dict[tuple[str, str], list[Place]] = {}
    for place in places:
        groups.setdefault((place[3].path, place[3].detail), []).append(place)
    if not groups:
        return (System("host", "", "", "", "", 0, ("libraries.targets",)),)
    return tuple(
        System(
            subject=version,
            kind=_system_kind(version),
            version=version,
            path=path,
            needed_by=_some([fault.needed_by for _, _, _, fault in group]),
            count=len(group),
            reads=tuple(read for read, _, _, _ in group),
        )
        for (path, version), group in groups.items()
    )


def _system_kind(version: str) -> str:
    if version.startswith("GLIBC_"):
        return "glibc"
    return "libstdcxx" if version.startswith(("GLIBCXX_", "CXXABI_")) else "other"


@rows("libraries.lookups")
def lookups(libraries: Libraries, loading: Loading) -> tuple[Lookups, ...] | Missing:
    """One row for each target that looks functions up when it calls them."""
    targets = _whole(libraries)
    if isinstance(targets, Missing):
        return targets
    found = []
    for index, target in enumerate(targets):
        missing = target.lookups_missing
        if isinstance(missing, Missing) and missing.reason is Reason.UNSUPPORTED:
            continue
        if isinstance(missing, Missing):
            return missing
        required = [call for call in loading.first_call if call.function in missing]
        others = [name for name in missing if name not in {call.function for call in required}]
        found.append(
            Lookups(
                target=target.name,
                required=", ".join(call.function for call in required),
                says=required[0].says if required else "",
                others=len(others),
                which=_some(others),
                sources=tuple(dict.fromkeys(call.source for call in loading.first_call)),
                reads=(f"libraries.targets[{index}].lookups_missing",),
            )
        )
    return tuple(found)


@rows("libraries.modules")
def modules(libraries: Libraries, python: TargetPython) -> tuple[Module, ...] | Missing:
    """One row for each extension module that has no file for this interpreter."""
    targets = _whole(libraries)
    if isinstance(targets, Missing):
        return targets
    if not any(target.name.startswith("torch") for target in targets):
        return ()
    version = "" if isinstance(python.version, Missing) else str(python.version)
    found = tuple(
        Module(fault.library, fault.kind, fault.library, fault.detail, version, (path,))
        for path, _, _, fault in _places(targets)
        if fault.kind in MODULES
    )
    return found or (Module("host", "", "", "", version, ("libraries.targets",)),)


@rows("libraries.stubs")
def stubs(libraries: Libraries) -> tuple[Stubs, ...] | Missing:
    """One row: the libraries from devlib and stub folders."""
    targets = _whole(libraries)
    if isinstance(targets, Missing):
        return targets
    loaded = [
        (f"libraries.targets[{index}].loaded[{number}]", library.path)
        for index, target in enumerate(targets)
        for number, library in enumerate(target.loaded)
        if is_stub(library.path)
    ]
    paths = list(dict.fromkeys(path for _, path in loaded))
    reads = tuple(read for read, _ in loaded) or ("libraries.targets",)
    return (Stubs(len(paths), _some(paths), reads),) if targets else ()


@rows("libraries.asked_folders")
def asked_folders(libraries: Libraries) -> tuple[Asked, ...] | Missing:
    """The folders that torch_npu asks for, where the target Python has one."""
    targets = _whole(libraries)
    if isinstance(targets, Missing):
        return targets
    if not any(target.name == "torch_npu" for target in targets):
        return ()
    if isinstance(libraries.folders, Missing):
        return libraries.folders
    found = []
    for index, folder in enumerate(libraries.folders):
        parts = (folder, *(() if isinstance(folder, Missing) else (folder.given_by, folder.path)))
        unknown = next((part for part in parts if isinstance(part, Missing)), None)
        if unknown is not None:
            return unknown
        home, there = libraries.folders[0].there, folder.there
        if not folder.given_by and home is not True:
            if home is False:
                break  # of a home that is not there its parts are not told apart
            there = home
        part = "" if folder.given_by else posixpath.basename(folder.path)
        found.append(
            Asked(
                folder.given_by or folder.path,
                folder.given_by,
                folder.path,
                part,
                there,
                (f"libraries.folders[{index}]",),
            )
        )
    return tuple(found)


def _whole(libraries: Libraries) -> tuple[Target, ...] | Missing:
    """The targets, of which nothing may be missing but what does not apply: they came from one measurement."""
    if isinstance(libraries.targets, Missing):
        return libraries.targets
    unknown = next(_missing(libraries.targets), None)
    return libraries.targets if unknown is None else unknown


def _missing(value: object) -> Iterator[Missing]:
    if isinstance(value, Missing):
        if value.reason is not Reason.UNSUPPORTED:
            yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _missing(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from _missing(getattr(value, one.name))


def _places(targets: Sequence[Target]) -> Iterator[Place]:
    for index, target in enumerate(targets):
        for number, fault in enumerate(target.faults):
            yield f"libraries.targets[{index}].faults[{number}]", target, number, fault


def _once(group: list[Place], key: object) -> list[Place]:
    found: dict[str, Place] = {}
    for place in group:
        found.setdefault(key(place[3]), place)  # type: ignore[operator]
    return list(found.values())


def _name(fault: Fault) -> str:
    return posixpath.basename(fault.library)


def _severity(targets: Sequence[Target]) -> str:
    """What every program opens, or only one that uses custom operators, ATB or a library that the user named."""
    return "error" if any(target.name in ALWAYS_OPENED for target in targets) else "warning"


def _opens(target: Target) -> str:
    """What a user would type or run to get there."""
    if target.name in ("torch", "torch_npu", "vllm_ascend"):
        return f"import {target.name}"
    return posixpath.basename(target.path)


def _some(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" (+{rest})" if rest > 0 else "")
