"""A process as its loader would build it: libraries opened one after the other, versions and symbols compared.

Source: glibc elf/dl-deps.c (breadth first), dl-version.c, dl-lookup.c, dl-sort-maps.c and dl-open.c (the order in which
libraries are relocated, which decides the symbol that is missed first).
"""

from __future__ import annotations

import os
import posixpath
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ascend_doctor.host.elf.loader import Fault, Loader, Search, opened
from ascend_doctor.host.elf.reader import Elf, ElfError, FileSource, Symbol

OF_PYTHON = (b"Py", b"_Py")
"""What an interpreter defines itself: not missed where the program is not known."""

MOST_LIBRARIES = 2000
KIN = 8
"""Bytes of a name that symbols of one library are likely to share, such as _ZN5torc."""

MOST_UNDEFINED = 200
"""Of one library; ``Undefined.count`` tells how many there are."""


@dataclass(eq=False)
class Loaded:
    """A library in the process; ``parent`` is the one that asked for it first."""

    elf: Elf
    path: str
    names: set[str]
    parent: Loaded | None
    needed: list[Loaded] = field(default_factory=list)
    checked: bool = False


@dataclass(frozen=True)
class Undefined:
    """Symbols of a library that nothing in the process defines, in the order in which the loader would miss them."""

    path: str
    symbols: tuple[Symbol, ...]
    count: int


@dataclass
class Opening:
    """What dlopen of one file does. ``first_error``: the line that it fails with; empty where it works."""

    first_error: str = ""
    dies: bool = False
    scope: list[Loaded] = field(default_factory=list)
    new: list[Loaded] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    undefined: list[Undefined] = field(default_factory=list)

    def fail(self, fault: Fault) -> None:
        """Keeps the fault, and its line if it is the first: what lies behind it is looked at all the same."""
        if any((fault.kind, fault.library, fault.path) == (one.kind, one.library, one.path) for one in self.faults):
            return
        self.faults.append(fault)
        if fault.fatal and not self.first_error and not self.dies:
            self.first_error, self.dies = fault.says, not fault.says


class Process:
    """What is loaded. ``program``: the executable; None where it is not known, and with it what it defines."""

    def __init__(self, loader: Loader, program: Elf | None = None) -> None:
        self.loader = loader
        self._loaded: list[Loaded] = []
        self._by_name: dict[str, Loaded] = {}
        self._by_file: dict[object, Loaded] = {}
        self._global: list[Loaded] = []
        self._main: Loaded | None = None
        self.start = Opening()
        if program is not None:
            self._main = self._add(program, program.path, None)
            self._link(self._main, self.start, symbols=False)
            self._global += self.start.scope

    def open(self, target: str, is_global: bool = False, symbols: bool = True) -> Opening:
        """dlopen(target, RTLD_NOW), be it a path or a name; whatever fails, the rest is looked at as well.

        ``symbols``: whether to compare symbols too, which is most of the work.
        """
        opening = Opening()
        root = self._root(target, opening)
        if root is None:
            return opening
        self._link(root, opening, symbols)
        if is_global:
            self._global += [library for library in opening.scope if library not in self._global]
        return opening

    def close(self) -> None:
        for library in self._loaded:
            if isinstance(library.elf.source, FileSource):
                library.elf.source.close()
        self._loaded.clear()

    def _root(self, target: str, opening: Opening) -> Loaded | None:
        if "/" not in target:
            return self._library(target, self._main, opening, asker="")
        path = os.path.abspath(target)
        search = Search(self.loader, path, "")
        if search.through([path]) and search.elf is not None:
            refusal = search.elf.refusal
            if refusal:
                opening.fail(Fault("unloadable", path, path, "", f"{path}: {refusal}", True, refusal))
            return self._known(search.elf) or self._add(search.elf, path, None, opening)
        for fault in search.faults:
            opening.fail(fault)
        if not search.ended:
            opening.fail(Fault("not_found", path, path, "", _not_opened(path, search.faults), True))
        return None

    def _link(self, root: Loaded, opening: Opening, symbols: bool) -> None:
        """Maps what the root needs, breadth first; then versions and, where they are asked for, symbols."""
        queue, seen = deque([root]), {root}
        while queue:
            library = queue.popleft()
            opening.scope.append(library)
            if not library.needed:
                library.needed = list(self._needs(library, opening))
            for needed in library.needed:
                if needed not in seen and len(seen) < MOST_LIBRARIES:
                    seen.add(needed)
                    queue.append(needed)
        unchecked = [library for library in opening.scope if not library.checked]
        for library in unchecked:
            self._guarded(library, opening, self._check_versions)
        if symbols:
            scope = list(dict.fromkeys((*self._global, *opening.scope)))
            for library in _relocation_order(unchecked):
                self._guarded(library, opening, lambda one, into: self._check_symbols(one, scope, into))
        for library in unchecked:
            library.checked = True

    def _needs(self, library: Loaded, opening: Opening) -> Iterator[Loaded]:
        try:
            names = library.elf.needed
        except (ElfError, OSError) as error:
            opening.fail(_damage(library, error))
            return
        for name in names:
            found = self._library(name, library, opening, asker=library.path)
            if found is not None:
                yield found

    def _library(self, name: str, owner: Loaded | None, opening: Opening, asker: str) -> Loaded | None:
        """The library of that name: loaded already, or found as ld.so finds it."""
        if name in self._by_name:
            return self._by_name[name]
        if "/" in name:
            search = Search(self.loader, name, asker)
            search.through(self.loader.expanded([name], owner.path if owner else ""))
        else:
            no_defaults = owner is not None and owner.elf.no_default_folders
            search = self.loader.found(name, self._folders(owner), asker, no_defaults)
        for fault in search.faults:
            opening.fail(fault)
        if search.elf is not None:
            known = self._known(search.elf)
            if known:
                self._by_name.setdefault(name, known)
                return known
            return self._add(search.elf, name, owner, opening)
        if not search.ended:
            opening.fail(Fault("not_found", name, "", asker, search.failure, True))
        return None

    def _folders(self, owner: Loaded | None) -> list[Sequence[str]]:
        """DT_RPATH of the owner and of those that brought it in, LD_LIBRARY_PATH, DT_RUNPATH of the owner."""
        lists: list[Sequence[str]] = []
        runpath = owner.elf.runpath if owner else None
        if runpath is None:
            chain, ancestor = [], owner
            while ancestor is not None:
                chain.append(ancestor)
                ancestor = ancestor.parent
            if self._main is not None and self._main not in chain:
                chain.append(self._main)
            lists += [self.loader.expanded(one.elf.rpath.split(":"), one.path) for one in chain if one.elf.rpath]
        lists.append(self.loader.library_path)
        if owner is not None and runpath:
            lists.append(self.loader.expanded(runpath.split(":"), owner.path))
        return lists

    def _known(self, elf: Elf) -> Loaded | None:
        known = self._by_file.get(getattr(elf.source, "identity", None))
        if known is not None and isinstance(elf.source, FileSource):
            elf.source.close()
        return known

    def _add(self, elf: Elf, name: str, parent: Loaded | None, opening: Opening | None = None) -> Loaded:
        library = Loaded(elf, elf.path, {name}, parent)
        self._loaded.append(library)
        self._by_name.setdefault(name, library)
        self._by_file[getattr(elf.source, "identity", id(elf))] = library
        try:
            if elf.soname:
                library.names.add(elf.soname)
                self._by_name.setdefault(elf.soname, library)
        except (ElfError, OSError) as error:
            if opening is not None:
                opening.fail(_damage(library, error))
        if opening is not None:
            opening.new.append(library)
        return library

    def _guarded(self, library: Loaded, opening: Opening, check: object) -> None:
        try:
            check(library, opening)  # type: ignore[operator]
        except (ElfError, OSError) as error:
            opening.fail(_damage(library, error))

    def _check_versions(self, library: Loaded, opening: Opening) -> None:
        for need in library.elf.version_needs.values():
            provider = self._by_name.get(need.file)
            if provider is None or need.weak or not provider.elf.defines_versions:
                continue
            if need.version not in provider.elf.versions.values():
                says = f"{provider.path}: version `{need.version}' not found (required by {library.path})"
                opening.fail(Fault("version", need.file, provider.path, library.path, says, True, need.version))

    def _check_symbols(self, library: Loaded, scope: Sequence[Loaded], opening: Opening) -> None:
        missed: dict[int, Symbol] = {}
        providers = list(scope)
        likely: dict[tuple[bytes, str], Loaded] = {}
        for symbol in library.elf.undefined():
            if self._main is None and symbol.name.startswith(OF_PYTHON):
                continue
            kin = (symbol.name[:KIN], symbol.version)
            guess = likely.get(kin)
            if guess is not None and guess.elf.defines(symbol.name, symbol.hash, symbol.version):
                continue
            for place, provider in enumerate(providers):
                if provider is not guess and provider.elf.defines(symbol.name, symbol.hash, symbol.version):
                    likely[kin] = provider
                    providers.insert(0, providers.pop(place))  # only whether there is one matters, not which
                    break
            else:
                missed[symbol.number] = symbol
        if not missed:
            return
        order = library.elf.first_relocated(frozenset(missed))
        if not order:
            return
        symbols = tuple(missed[index] for index in order)
        opening.undefined.append(Undefined(library.path, symbols[:MOST_UNDEFINED], len(symbols)))
        if not opening.first_error and not opening.dies:
            first = symbols[0]
            version = f", version {first.version}" if first.version else ""
            opening.first_error = f"{library.path}: undefined symbol: {text_of(first.name)}{version}"


def text_of(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _relocation_order(libraries: Sequence[Loaded]) -> list[Loaded]:
    """What a library needs comes before it: a depth-first walk that begins at the one that was loaded last."""
    wanted, done, order = set(libraries), set(), []
    for start in reversed(libraries):
        walk: list[tuple[Loaded, int]] = [(start, 0)]
        if start in done:
            continue
        done.add(start)
        while walk:
            library, place = walk.pop()
            if place < len(library.needed):
                walk.append((library, place + 1))
                following = library.needed[place]
                if following not in done:
                    done.add(following)
                    walk.append((following, 0))
            elif library in wanted:
                order.append(library)
    return order


def _damage(library: Loaded, error: Exception) -> Fault:
    kind = error.kind if isinstance(error, ElfError) else "unreadable"
    detail = "" if isinstance(error, ElfError) else str(error)
    return Fault(kind, posixpath.basename(library.path), library.path, "", "", True, detail)


def _not_opened(path: str, faults: Sequence[Fault]) -> str:
    """By a full path the reason is said; in a search it is passed over."""
    reasons = {
        "denied": "cannot open shared object file: Permission denied",
        "loop": "cannot open shared object file: Too many levels of symbolic links",
        "elf32": "wrong ELF class: ELFCLASS32",
    }
    said = [reasons[fault.kind] for fault in faults if fault.kind in reasons]
    return f"{path}: {said[0] if said else 'cannot open shared object file: No such file or directory'}"


def program_at(loader: Loader, path: str) -> Elf | None:
    """The executable at a path; None where it is a script or nothing that can be read."""
    try:
        return opened(loader.files, path)
    except (OSError, ElfError, ValueError):
        return None
