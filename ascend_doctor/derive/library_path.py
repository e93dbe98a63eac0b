"""What LD_LIBRARY_PATH does wrong, and the value to give it: each question is one row, so that a good path is a pass.

The loader takes the first file of a name, first from LD_LIBRARY_PATH in order, then from ld.so.cache (ld.so(8)). What
is judged is the environment of the asking shell; a service may set its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ascend_doctor.derive import rows
from ascend_doctor.facts.cann import Cann, Root
from ascend_doctor.facts.driver import USUAL_PATH, Driver
from ascend_doctor.facts.library_path import Folder, LibraryPath, is_stub
from ascend_doctor.host import Missing, Reason
from ascend_doctor.records import dataclass

T = TypeVar("T")

HAL = "libascend_hal.so"
"""The library of the driver that the runtime of CANN, and so every framework, needs."""

ACL = "libascendcl.so"
DRIVER_FOLDERS = ("driver/lib64", "driver/lib64/common", "driver/lib64/driver")
HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
OPERATORS = "ASCEND_OPP_PATH"
MOVABLE = ("empty", "relative")
"""Forms of entries that are another folder wherever a process stands."""

UNTOLD = (Reason.DENIED, Reason.TIMEOUT, Reason.FAILED, Reason.NOT_COLLECTED)
"""Reasons that leave open what is there; absent is known, unsupported is said of entries that cannot be judged."""


@dataclass(frozen=True)
class Concern:
    """The entries that one question is about (``which``: as they are written), and the value without what is wrong."""

    count: int | Missing
    which: str
    corrected: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class DriverLibraries:
    """Whether the loader finds the driver. ``cann``: whether it is told of CANN; ``folder``: where the driver lies.

    ``configured``: the loader's configuration names that folder, so ``ldconfig`` alone may be what is missing.
    """

    found: bool | Missing
    cann: bool | Missing
    folder: str
    configured: bool | Missing
    corrected: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Sourcing:
    """Whether set_env.sh of CANN shows in the environment, and with it the path of the operators."""

    sourced: bool | Missing
    operators: bool | Missing
    script: str | Missing
    reads: tuple[str, ...]


@rows("library_path.gone")
def gone(library_path: LibraryPath, cann: Cann, driver: Driver) -> tuple[Concern, ...] | Missing:
    """Entries where there is no folder."""
    entries = _read(library_path)
    if isinstance(entries, Missing):
        return entries
    return _concern([_is_gone(entry) for entry in entries], corrected(library_path, cann, driver), entries, "type")


@rows("library_path.repeated")
def repeated(library_path: LibraryPath, cann: Cann, driver: Driver) -> tuple[Concern, ...] | Missing:
    """Entries that lead where an earlier one leads; movable ones have their own question."""
    entries = _read(library_path)
    if isinstance(entries, Missing):
        return entries
    seen: set[str] = set()
    verdicts: list[bool | Missing] = []
    for entry in entries:
        place, real = _place(entry), entry.real_path
        again = place in seen and entry.form not in MOVABLE
        verdicts.append(real if isinstance(real, Missing) and real.reason in UNTOLD and not again else again)
        seen.add(place)
    return _concern(verdicts, corrected(library_path, cann, driver), entries, "real_path")


@rows("library_path.movable")
def movable(library_path: LibraryPath, cann: Cann, driver: Driver) -> tuple[Concern, ...] | Missing:
    """Entries that mean another folder wherever a process stands: empty ones and relative ones."""
    entries = _read(library_path)
    if isinstance(entries, Missing):
        return entries
    verdicts = [entry.form in MOVABLE for entry in entries]
    return _concern(verdicts, corrected(library_path, cann, driver), entries, "form")


@rows("library_path.stubs")
def stubs(library_path: LibraryPath, cann: Cann, driver: Driver) -> tuple[Concern, ...] | Missing:
    """Stub folders whose libraries are taken in place of real ones that the loader would find after them."""
    entries = _read(library_path)
    if isinstance(entries, Missing):
        return entries
    verdicts: list[bool | Missing] = [_hides(entries, index, library_path.cached) for index in range(len(entries))]
    return _concern(verdicts, corrected(library_path, cann, driver), entries, "libraries")


@rows("library_path.installations")
def installations(library_path: LibraryPath, cann: Cann, driver: Driver) -> tuple[Concern, ...] | Missing:
    """The CANN installations that the path and ASCEND_HOME_PATH lead to, counted: one is right."""
    roots, entries = _found(cann), _read(library_path)
    if isinstance(roots, Missing):
        return roots
    if isinstance(entries, Missing):
        return entries
    found: dict[str, str] = {}
    for index, root in enumerate(roots):
        if isinstance(root.selected_by, str) and root.selected_by.startswith("ASCEND_"):
            found[root.path] = f"cann.roots[{index}].selected_by"
    for index, entry in enumerate(entries):
        owner = root_of(entry, roots)
        if owner:
            found.setdefault(owner.path, f"library_path.entries[{index}].real_path")
    parts = [*(root.selected_by for root in roots), *(entry.real_path for entry in entries)]
    untold = [part for part in parts if isinstance(part, Missing) and part.reason in UNTOLD]
    count: int | Missing = untold[0] if untold and len(found) < 2 else len(found)
    reads = tuple(found.values()) or ("library_path.entries",)
    return (Concern(count, ", ".join(found), corrected(library_path, cann, driver), reads),)


@rows("library_path.driver")
def driver_libraries(library_path: LibraryPath, cann: Cann, driver: Driver) -> tuple[DriverLibraries, ...] | Missing:
    """One row where both the driver and CANN are installed."""
    for installed in (_found(cann), driver.version):
        if isinstance(installed, Missing) and installed.reason is not Reason.UNSUPPORTED:
            return installed
    entries, cached = _read(library_path), library_path.cached
    if isinstance(entries, Missing):
        if entries.reason is not Reason.ABSENT:
            return entries
        entries = ()
    holding = [_holds(entry, HAL) for entry in entries if not entry.stub]
    configured = _whole(library_path.configured)
    folder = f"{_home(driver)}/driver/lib64/driver"
    row = DriverLibraries(
        found=_any_of([*holding, _in_cache(cached, HAL)]),
        cann=_any_of([_is_cann(entry, cann) for entry in entries]),
        folder=folder,
        configured=configured if isinstance(configured, Missing) else folder in configured,
        corrected=corrected(library_path, cann, driver),
        reads=("library_path.entries", "library_path.cached", "driver.version"),
    )
    return (row,)


@rows("library_path.sourcing")
def sourcing(library_path: LibraryPath, cann: Cann, env: Mapping[str, str | Missing]) -> tuple[Sourcing, ...] | Missing:
    """One row where CANN is installed."""
    roots, entries = _found(cann), _read(library_path)
    if isinstance(roots, Missing):
        return roots
    if isinstance(entries, Missing):
        in_path: list[bool | Missing] = [False if entries.reason is Reason.ABSENT else entries]
    else:
        in_path = [_is_cann(entry, cann) for entry in entries]
    selected = selected_root(cann) or roots[0]
    row = Sourcing(
        sourced=_any_of([*(_is_set(env, name) for name in (*HOMES, OPERATORS)), *in_path]),
        operators=_is_set(env, OPERATORS),
        script=selected.set_env,
        reads=(*(f"env.{name}" for name in (*HOMES, OPERATORS)), "library_path.entries", "cann.roots"),
    )
    return (row,)


def corrected(library_path: LibraryPath, cann: Cann, driver: Driver) -> str:
    """The value without folders that are gone, repeated, movable or of another CANN, and with the driver at its end.

    Stubs stay, last of all, only where no driver is installed: set_env.sh of CANN puts them there for building.
    """
    entries, roots, selected = _read(library_path), _found(cann), selected_root(cann)
    kept: dict[str, Folder] = {}
    for entry in () if isinstance(entries, Missing) else entries:
        owner = None if isinstance(roots, Missing) else root_of(entry, roots)
        foreign = owner is not None and selected is not None and owner.path != selected.path
        if entry.form not in MOVABLE and _is_gone(entry) is not True and not foreign:
            kept.setdefault(_place(entry), entry)
    real = [entry for entry in kept.values() if not entry.stub]
    folders = [entry.path if entry.form == "absolute" else entry.text for entry in real]
    if isinstance(driver.version, Missing) and driver.version.reason is Reason.ABSENT:
        return ":".join([*folders, *(entry.path for entry in kept.values() if entry.stub)])
    found = any(_holds(entry, HAL) is True for entry in real) or _in_cache(library_path.cached, HAL) is True
    lacking = () if found else (f"{_home(driver)}/{name}" for name in DRIVER_FOLDERS)
    return ":".join(dict.fromkeys([*folders, *lacking]))


def selected_root(cann: Cann) -> Root | None:
    """The installation that the environment or the links select; None where that is not known."""
    roots = _found(cann)
    return next((root for root in (() if isinstance(roots, Missing) else roots) if root.selected is True), None)


def root_of(entry: Folder, roots: Sequence[Root]) -> Root | None:
    """The installation in which an entry lies."""
    place = _place(entry)
    owners = [root for root in roots if place == root.path or place.startswith(f"{root.path}/")]
    return max(owners, key=lambda root: len(root.path)) if owners else None


def _read(library_path: LibraryPath) -> tuple[Folder, ...] | Missing:
    """The entries, unless one of them is not wholly read."""
    entries = _whole(library_path.entries)
    if isinstance(entries, Missing):
        return entries
    parts = (part for e in entries for part in (e.text, e.form, e.path, e.stub))
    return next((part for part in parts if isinstance(part, Missing)), entries)


def _found(cann: Cann) -> tuple[Root, ...] | Missing:
    """The installations, unless the place of one is not known."""
    roots = _whole(cann.roots)
    if isinstance(roots, Missing):
        return roots
    return next((root.path for root in roots if isinstance(root.path, Missing)), roots)


def _whole(values: tuple[T, ...] | Missing) -> tuple[T, ...] | Missing:
    """A list of which nothing is missing."""
    if isinstance(values, Missing):
        return values
    return next((value for value in values if isinstance(value, Missing)), values)


def _concern(
    verdicts: Sequence[bool | Missing], value: str, entries: tuple[Folder, ...], part: str
) -> tuple[Concern, ...]:
    """One row: the count is known as soon as one entry is concerned, else one that could not be seen leaves it open."""
    concerned = [index for index, verdict in enumerate(verdicts) if verdict is True]
    untold = [verdict for verdict in verdicts if isinstance(verdict, Missing)]
    count: int | Missing = untold[0] if untold and not concerned else len(concerned)
    which = ", ".join(entries[index].text or "(empty)" for index in concerned)
    reads = tuple(f"library_path.entries[{index}].{part}" for index in concerned) or ("library_path.entries",)
    return (Concern(count, which, value, reads),)


def _hides(entries: tuple[Folder, ...], index: int, cached: tuple[str, ...] | Missing) -> bool | Missing:
    """Whether a stub folder gives a library that an entry after it, or the cache, has in its real form."""
    if not entries[index].stub or _is_gone(entries[index]) is True:
        return False
    libraries = _whole(entries[index].libraries)
    if isinstance(libraries, Missing):
        return libraries if libraries.reason in UNTOLD else False
    verdicts: list[bool | Missing] = []
    for library in libraries:
        before = _any_of([_holds(entry, library) for entry in entries[:index]])
        if before is not False:
            verdicts.append(before if isinstance(before, Missing) else False)
            continue
        after = [_holds(entry, library) for entry in entries[index + 1 :] if not entry.stub]
        verdicts.append(_any_of([*after, _in_cache(cached, library)]))
    return _any_of(verdicts)


def _any_of(verdicts: Sequence[bool | Missing]) -> bool | Missing:
    """True where one is true, else the first that is not known, else False."""
    if any(verdict is True for verdict in verdicts):
        return True
    return next((verdict for verdict in verdicts if isinstance(verdict, Missing)), False)


def _is_gone(entry: Folder) -> bool | Missing:
    if isinstance(entry.type, Missing):
        return entry.type if entry.type.reason in UNTOLD else entry.type.reason is Reason.ABSENT
    return entry.type != "dir"


def _holds(entry: Folder, library: str) -> bool | Missing:
    libraries = _whole(entry.libraries)
    if isinstance(libraries, Missing):
        return libraries if libraries.reason in UNTOLD else False
    return library in libraries


def _in_cache(cached: tuple[str, ...] | Missing, library: str) -> bool | Missing:
    paths = _whole(cached)
    if isinstance(paths, Missing):
        return False if paths.reason is Reason.ABSENT else paths
    return any(path.endswith(f"/{library}") and not is_stub(path) for path in paths)


def _is_cann(entry: Folder, cann: Cann) -> bool | Missing:
    roots = _found(cann)
    if not isinstance(roots, Missing) and root_of(entry, roots):
        return True
    return False if entry.stub else _holds(entry, ACL)


def _is_set(env: Mapping[str, str | Missing], name: str) -> bool | Missing:
    value = env.get(name, Missing(Reason.NOT_COLLECTED, f"${name}", f"env.{name}"))
    if isinstance(value, Missing):
        return False if value.reason is Reason.ABSENT else value
    return bool(value.strip())


def _place(entry: Folder) -> str:
    return entry.real_path if isinstance(entry.real_path, str) else entry.path or entry.text


def _home(driver: Driver) -> str:
    return driver.install_path.rstrip("/") if isinstance(driver.install_path, str) else USUAL_PATH
