"""The Python that a deployment would use, found without running it (DESIGN section 4, "Target interpreter")."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from ascend_doctor.host import Missing, Python, Reason, Stat, decoded, files
from ascend_doctor.host.commands import runnable
from ascend_doctor.host.files import Files

_LIBRARY = re.compile(r"python(3\.\d+)")


class Place(Protocol):
    """Where interpreters are looked for."""

    @property
    def files(self) -> Files: ...

    def is_runnable(self, path: str) -> bool: ...

    def real(self, path: str) -> str:
        """The path without links; as it is where it leads nowhere."""

    def is_ours(self, executable: str) -> bool:
        """Whether it serves nobody but us."""


class Here:
    """This machine."""

    files: Files = files

    def is_runnable(self, path: str) -> bool:
        return isinstance(runnable(path), str)

    def real(self, path: str) -> str:
        return os.path.realpath(path)

    def is_ours(self, executable: str) -> bool:
        """A virtual environment that was made for us is ours alone; a system's interpreter serves everyone."""
        own_environment = sys.prefix != sys.base_prefix
        return own_environment and self.real(_prefix(executable)) == self.real(sys.prefix)


def target_python(given: str | None, environ: Mapping[str, str], place: Place | None = None) -> Python | Missing:
    """``given`` is what the user or the launch command names; else the active environment, else the first on PATH."""
    search = _Search(environ, place or Here())
    if given is not None:
        path = given if "/" in given else next(search.on_path(given), given)
        if not search.is_a(path, "file"):
            return Missing(Reason.ABSENT, f"{given}: no such program")
        return search.described(os.path.abspath(path))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        path = os.path.join(environ.get(name) or "/nowhere", "bin", "python")
        if search.place.is_runnable(path):
            return search.described(path)
    for path in search.on_path("python3"):
        if not search.place.is_ours(path):
            return search.described(path)
    return Missing(Reason.ABSENT, "no python3 on PATH but our own")


def _prefix(executable: str) -> str:
    return os.path.dirname(os.path.dirname(executable))


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


class _Search:
    def __init__(self, environ: Mapping[str, str], place: Place) -> None:
        self._environ, self.place = environ, place

    def is_a(self, path: str, kind: str) -> bool:
        found = self.place.files.status(path)
        return isinstance(found, Stat) and found.type == kind

    def on_path(self, name: str) -> Iterator[str]:
        for folder in self._environ.get("PATH", "").split(":"):
            path = os.path.join(folder, name)
            if folder.startswith("/") and self.place.is_runnable(path):
                yield path

    def described(self, executable: str) -> Python:
        """Version and package folders, from pyvenv.cfg and the names of folders."""
        prefix = _prefix(executable)
        settings = self._settings(prefix)
        if settings is None:
            version = self._version_by_name(executable)
            site = version if isinstance(version, Missing) else self._system_site(executable, version)
            return Python(executable, version, site)
        number = re.match(r"3\.\d+(\.\d+)?", settings.get("version") or settings.get("version_info") or "")
        version = number[0] if number else self._version_by_name(executable)
        if isinstance(version, Missing):
            return Python(executable, version, version)
        site = self._there(f"{prefix}/{lib}/python{_minor(version)}/site-packages" for lib in ("lib", "lib64"))
        if settings.get("include-system-site-packages", "").lower() == "true":
            site += self._system_site(os.path.join(settings.get("home", "/usr/bin"), "python3"), version)
        return Python(executable, version, site or Missing(Reason.FAILED, "no folder of packages found"))

    def _settings(self, prefix: str) -> dict[str, str] | None:
        text = self.place.files.read(f"{prefix}/pyvenv.cfg")
        if isinstance(text, Missing):
            return None
        pairs = (line.partition("=") for line in decoded(text[: 1 << 16]).splitlines())
        return {key.strip().lower(): value.strip() for key, _, value in pairs}

    def _version_by_name(self, executable: str) -> str | Missing:
        """From ``python3.11``, which ``python3`` points to, else from the only lib/python3.x folder beside it."""
        real = self.place.real(executable)
        named = _LIBRARY.fullmatch(os.path.basename(real))
        if named:
            return named[1]
        names = self.place.files.names(f"{_prefix(real)}/lib")
        versions = [found[1] for found in map(_LIBRARY.fullmatch, names) if found] if isinstance(names, tuple) else []
        return (
            versions[0] if len(versions) == 1 else Missing(Reason.FAILED, "its version cannot be told from its files")
        )

    def _system_site(self, executable: str, version: str) -> tuple[str, ...]:
        """Site folders of upstream, Debian and Red Hat layouts, and the user's own, where they are there."""
        real = _prefix(self.place.real(executable))
        prefixes = [*dict.fromkeys((_prefix(executable), real)), *(["/usr/local"] if real == "/usr" else [])]
        library, home = f"python{_minor(version)}", self._environ.get("HOME")
        places = [f"{home}/.local/lib/{library}/site-packages"] if home else []
        for prefix in dict.fromkeys(reversed(prefixes)):
            places += [
                f"{prefix}/{lib}/{library}/{kind}"
                for lib in ("lib", "lib64")
                for kind in ("site-packages", "dist-packages")
            ]
            places += [f"{prefix}/lib/python3/dist-packages"]
        return self._there(places)

    def _there(self, places: Iterable[str]) -> tuple[str, ...]:
        """Each folder once, though lib64 may be a link to lib."""
        there = [place for place in places if self.is_a(place, "dir")]
        return tuple({self.place.real(place): place for place in reversed(there)}.values())[::-1]
