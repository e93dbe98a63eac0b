"""Every CANN installation (toolkit, nnae, nnrt) in every layout, and which of them is selected.

Up to 8.3: /usr/local/Ascend/{ascend-toolkit,nnae,nnrt}/<version> with ``latest`` beside it; from 8.5:
/usr/local/Ascend/cann-<version> with the link ``cann``. set_env.sh of either sets ASCEND_HOME_PATH and
ASCEND_TOOLKIT_HOME, which may point anywhere. Sources: https://github.com/hicann/runtime, install files of 7.0 to 9.1.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import field
from typing import TypeVar

from ascend_doctor.facts.info_files import InfoFile, bracketed, info_file
from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, keyed
from ascend_doctor.records import dataclass
from ascend_doctor.versions import CannVersion

_Value = TypeVar("_Value")

BASE = "/usr/local/Ascend"
PACKAGES = {"ascend-toolkit": "toolkit", "nnae": "nnae", "nnrt": "nnrt"}
"""Folders of the older layout, each with one folder for each version -> kind of root."""

SELECTORS = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
"""Set by set_env.sh: the first that is set selects a root."""

LINKS = ("cann", "ascend-toolkit/latest", "nnae/latest", "nnrt/latest")
"""What set_env.sh would select; the first of a kind counts."""

ONLY_ONE = "the only one"
LINK_STEPS = 40

_ARCH_FOLDER = re.compile(r"(aarch64|arm64|x86_64)-linux")
_INSTALL_INFO = re.compile(r"ascend_(toolkit|nnae|nnrt)_install\.info")
_RELEASE_IN_BRACKETS = re.compile(r":(?:cann-)?([^\]:\s]+)\]?$")


@dataclass(frozen=True)
class Root:
    """One installation under its real path. ``selected_by``: a variable, a link, "the only one", or empty."""

    path: str
    kind: str
    version: CannVersion | Missing
    innerversion: str | Missing
    compatible_innerversions: tuple[str, ...] | Missing
    arch: str | Missing
    set_env: str | Missing
    selected: bool | Missing
    selected_by: str | Missing


@dataclass(frozen=True)
class Cann:
    """``roots``: the toolkits first, then nnae and nnrt, each by path; absent where no place has one."""

    roots: tuple[Root, ...] | Missing


@dataclass
class _Found:
    """A folder that has the files of an installation."""

    path: str
    kind: str
    names: tuple[str, ...]
    version: Parsed[str | Missing]
    install: InfoFile
    arch: Parsed[str | Missing]
    selected_by: str = ""


class _UnseenError(Exception):
    """A place that had to be looked at and could not be."""

    def __init__(self, missing: Missing, source: str) -> None:
        self.missing = missing
        self.source = source


@dataclass
class _Search:
    """Walks the places; a link is followed once, a root found once."""

    host: Host
    links: dict[str, str] = field(default_factory=dict)
    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    found: dict[str, _Found] = field(default_factory=dict)

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder; nothing where there is no such folder."""
        if path not in self.folders:
            self.folders[path] = _seen(self.host.list(path), ())
        return self.folders[path]

    def real(self, path: str, steps: int = LINK_STEPS) -> str:
        """The path without links; a loop ends where it began."""
        done = "/"
        parts = [p for p in path.split("/") if p and p != "."]
        while parts:
            part = parts.pop(0)
            if part == "..":
                done = posixpath.dirname(done)
                continue
            here = posixpath.join(done, part)
            target = self.link(here)
            if not target or steps <= 0:
                done = here
                continue
            steps -= 1
            parts = [p for p in target.split("/") if p and p != "."] + parts
            done = "/" if target.startswith("/") else done
        return done

    def link(self, path: str) -> str:
        """Where a link points; empty for what is none. What lies above the usual place is taken as it is."""
        if path in self.links or BASE.startswith(f"{path}/"):
            return self.links.get(path, "")
        answer = self.host.link(path)
        self.links[path] = _seen(answer, "")
        return self.links[path]

    def visit(self, path: str, through_latest: bool = True) -> str:
        """The real path of the installation that this path leads to; empty where it leads to none."""
        real = self.real(path)
        if real in self.found:
            return real
        names = self.names(real)
        if through_latest and posixpath.basename(real) == "latest":
            inner = next((n for n in (*sorted(filter(_ARCH_FOLDER.fullmatch, names)), "runtime") if n in names), "")
            owner = posixpath.dirname(self.real(f"{real}/{inner}")) if inner else real
            if owner != real:  # up to 8.3 latest is a folder of links into one version
                return self.visit(owner, through_latest=False)
        root = _root(self.host, real, names)
        if root:
            self.found[real] = root
        return real if root else ""


def collect(host: Host) -> Collected[Cann]:
    """Lists the usual places and what the environment names; starts nothing."""
    area = Area("cann")
    try:
        found, selected = _search(host)
    except _UnseenError as unseen:
        detail = f"{unseen.source}: {unseen.missing.detail}".rstrip(": ")
        missing: Missing = Missing(unseen.missing.reason, detail)
        return area.of(Cann(area.take("roots", Parsed(missing, unseen.source, {"": detail}))))
    if not found:
        why = f"no CANN in {BASE} nor where ASCEND_HOME_PATH points"
        absent = selected if isinstance(selected, Missing) else Missing(Reason.ABSENT, why)
        return area.of(Cann(area.take("roots", Parsed(absent, f"file:{BASE}", {"": absent.detail}))))
    order = list(PACKAGES.values())
    found.sort(key=lambda root: (order.index(root.kind), root.path))
    area.take("roots", Parsed((), f"file:{BASE}", {"": ", ".join(root.path for root in found)}))
    return area.of(Cann(tuple(_fact(host, area, keyed("roots", i), root, selected) for i, root in enumerate(found))))


def _search(host: Host) -> tuple[list[_Found], Missing | None]:
    """All roots; and why it is not known which one the environment selects, if so. Raises _UnseenError."""
    search = _Search(host)
    base = search.names(BASE)
    for name in base:
        if re.match(r"cann-[0-9]", name):
            search.visit(f"{BASE}/{name}")
    for package in PACKAGES:
        if package in base:
            for name in search.names(f"{BASE}/{package}"):
                if re.match("[0-9]", name):
                    search.visit(f"{BASE}/{package}/{name}")
    links = {}
    for link in LINKS:
        folder, _, name = f"{BASE}/{link}".rpartition("/")
        if link.partition("/")[0] in base and name in search.names(folder):
            links[link] = search.visit(f"{BASE}/{link}")
    unknown = _select(search, links)
    return list(search.found.values()), unknown


def _select(search: _Search, links: dict[str, str]) -> Missing | None:
    """Marks what the environment selects, else what the links do, else the only root there is."""
    chosen = ""
    for name in SELECTORS:
        answer = search.host.env(name)
        if isinstance(answer.value, Missing):
            if answer.value.reason is not Reason.ABSENT:
                return Missing(answer.value.reason, f"${name}")
            continue
        path = answer.value.strip()
        real = search.visit(path) if path.startswith("/") else ""
        if not chosen:
            chosen = name
            if real:
                search.found[real].selected_by = name
    if chosen:
        return None
    taken = set()
    for link, real in links.items():
        if real and search.found[real].kind not in taken:
            taken.add(search.found[real].kind)
            search.found[real].selected_by = f"{BASE}/{link}"
    if not taken and len(search.found) == 1:
        next(iter(search.found.values())).selected_by = ONLY_ONE
    return None


def _root(host: Host, path: str, names: tuple[str, ...]) -> _Found | None:
    """The installation in this folder, by the files that say its version; None where there are none of them."""
    folders = [n for n in names if _ARCH_FOLDER.fullmatch(n)]
    install, kind = InfoFile(f"file:{path}", Missing(Reason.ABSENT, "no install.info")), ""
    for folder in (*folders, ""):
        within = _seen(host.list(f"{path}/{folder}"), ()) if folder else names
        info = next(filter(None, map(_INSTALL_INFO.fullmatch, within)), None)
        if info:
            kind = info[1]
            install = info_file(host.read(posixpath.join(path, folder, info[0])))
            break
    if not (kind or {"version.cfg", "compiler", "runtime", "set_env.sh"} & set(names)):
        return None
    parent = posixpath.basename(posixpath.dirname(path))
    version = _version(host, path, names, install)
    arch = install.parsed("arch")
    if arch.value == Missing(Reason.ABSENT, "no arch=") or install.absent:
        arch = _arch_of(path, folders)
    return _Found(path, PACKAGES.get(parent) or kind or "toolkit", names, version, install, arch)


def _arch_of(path: str, folders: list[str]) -> Parsed[str | Missing]:
    value = folders[0].rpartition("-")[0] if len(folders) == 1 else Missing(Reason.ABSENT, "no install.info")
    return Parsed(value, f"file:{path}", {"": ", ".join(folders)})


def _version(host: Host, path: str, names: tuple[str, ...], install: InfoFile) -> Parsed[str | Missing]:
    """The release, from the first of the files that is there and names one; a component's number is none."""
    found = install.parsed("version")
    if _names_none(found) and "version.cfg" in names:
        found = _running_release(info_file(host.read(f"{path}/version.cfg")))
    for component in ("runtime", "compiler"):
        if _names_none(found) and component in names:
            found = _release_name(info_file(host.read(f"{path}/{component}/version.info")).parsed("version_dir"))
    name = posixpath.basename(path).replace("cann-", "", 1)
    if _names_none(found) and re.match("[0-9]", name):
        found = Parsed(name, f"file:{path}", {"": f"the name of the folder {path}"})
    return found


def _names_none(found: Parsed[str | Missing]) -> bool:
    return isinstance(found.value, Missing) and found.value.reason is Reason.ABSENT


def _running_release(file: InfoFile) -> Parsed[str | Missing]:
    """``8.3.RC2`` of ``runtime_running_version=[8.3.0.2.220:8.3.RC2]``."""
    keys = [f"{component}_running_version" for component in ("runtime", "compiler", "toolkit", "opp")]
    found = file.parsed(*keys, "runtime_installed_version")
    if isinstance(found.value, str):
        release = _RELEASE_IN_BRACKETS.search(found.value)
        value = release[1] if release else Missing(Reason.ABSENT, "no release in version.cfg")
        return Parsed(value, found.source, found.texts)
    return found


def _release_name(found: Parsed[str | Missing]) -> Parsed[str | Missing]:
    """``8.5.0`` of ``version_dir=cann-8.5.0``."""
    value = found.value.replace("cann-", "", 1) if isinstance(found.value, str) else found.value
    return Parsed(value, found.source, found.texts)


def _fact(host: Host, area: Area, path: str, root: _Found, unknown: Missing | None) -> Root:
    listed = root.install.parsed("compatible_version")
    inner = bracketed(listed.value) if isinstance(listed.value, str) else listed.value
    shown = Parsed(root.path, f"file:{root.path}", {"": root.path})
    return Root(
        path=str(area.take(path, shown)),
        kind=root.kind,
        version=area.take(f"{path}.version", root.version),
        innerversion=area.take(f"{path}.innerversion", root.install.parsed("innerversion")),
        compatible_innerversions=area.take(
            f"{path}.compatible_innerversions", Parsed(inner, listed.source, listed.texts)
        ),
        arch=area.take(f"{path}.arch", root.arch),
        set_env=_set_env(host, root),
        selected=unknown or bool(root.selected_by),
        selected_by=unknown or root.selected_by,
    )


def _set_env(host: Host, root: _Found) -> str | Missing:
    """The set_env.sh to source: in the root, or beside the versions in the older layout."""
    if "set_env.sh" in root.names:
        return f"{root.path}/set_env.sh"
    parent = posixpath.dirname(root.path)
    if posixpath.basename(parent) not in PACKAGES:
        return Missing(Reason.ABSENT, "no set_env.sh")
    there = host.stat(f"{parent}/set_env.sh").value
    return there if isinstance(there, Missing) else f"{parent}/set_env.sh"


def _seen(answer: Answer[_Value], nothing: _Value) -> _Value:
    """The answer; ``nothing`` where there is nothing. Raises _UnseenError where nobody could look."""
    if not isinstance(answer.value, Missing):
        return answer.value
    if answer.value.reason in (Reason.ABSENT, Reason.UNSUPPORTED):  # not there, or no folder or link
        return nothing
    raise _UnseenError(answer.value, answer.source)
