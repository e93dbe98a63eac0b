"""LD_LIBRARY_PATH folder by folder, and what the loader knows besides: /etc/ld.so.cache and its configuration.

Sources: ld.so(8) (entries are parted by colons or semicolons, an empty one is the current folder, the first file of a
name wins, the cache comes after LD_LIBRARY_PATH), ldconfig(8), and the install script of the driver, which writes
/etc/ld.so.conf.d/ascend_driver_so.conf with mode 440: only root can read it, everybody can read the cache.
"""

from __future__ import annotations

import posixpath
import re

from ascend_doctor.host import Area, Collected, Host, Missing, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

VARIABLE = "LD_LIBRARY_PATH"
CACHE = "/etc/ld.so.cache"
CONFIGURATION = "/etc/ld.so.conf"
CONFIGURATION_FOLDER = "/etc/ld.so.conf.d"

DRIVER_LIBRARIES = ("libascend_hal.so", "libc_sec.so", "libdrvdsmi_host.so", "libdcmi.so")
CANN_LIBRARIES = (
    "libascendcl.so",
    "libhccl.so",
    "libruntime.so",
    "libge_runner.so",
    "libgraph.so",
    "libacl_op_compiler.so",
    "libacl_tdt_channel.so",
    "libprofapi.so",
    "libopapi.so",
)
ATB_LIBRARIES = ("libatb.so", "libmki.so")
LIBRARIES = frozenset(DRIVER_LIBRARIES + CANN_LIBRARIES + ATB_LIBRARIES)
"""The libraries that a missing or wrong folder is noticed by."""

CACHE_MARKS = (b"ld.so-1.7.0", b"glibc-ld.so.cache")
"""How an ld.so.cache begins: of old, and since glibc 2.32 (ldconfig -c new)."""

STUB_FOLDERS = frozenset({"devlib", "stub", "stubs"})
LINK_STEPS = 40


@dataclass(frozen=True)
class Folder:
    """An entry of LD_LIBRARY_PATH. Only one of form absolute can be looked at: the others depend on who reads them.

    ``form``: absolute, relative (so is ``~/lib``, which no loader expands), empty (the current folder), or token
    ($ORIGIN, $LIB, $PLATFORM). ``type``: dir, or what else stands there; absent where nothing does. ``real_path``:
    links resolved. ``libraries``: those of LIBRARIES that it holds. ``stub``: a folder of libraries to link with, which
    do nothing when called.
    """

    text: str
    form: str
    path: str
    type: str | Missing
    real_path: str | Missing
    libraries: tuple[str, ...] | Missing
    stub: bool


@dataclass(frozen=True)
class LibraryPath:
    """``cached``: files of LIBRARIES that ld.so.cache names; ``configured``: folders of the loader's configuration."""

    entries: tuple[Folder, ...] | Missing
    cached: tuple[str, ...] | Missing
    configured: tuple[str, ...] | Missing


def split_path(text: str) -> Shown[tuple[tuple[str, str, str], ...] | Missing]:
    """(text, form, normalised path) of each entry; no entry at all where the variable is set to nothing."""
    entries = tuple((entry, form_of(entry), normalised(entry)) for entry in re.split("[:;]", text)) if text else ()
    shown = {f"[{index}]": entry or "(an empty entry)" for index, (entry, _, _) in enumerate(entries)}
    return Shown(entries, {"": text, **shown})


def form_of(entry: str) -> str:
    """absolute, relative, empty or token."""
    if not entry:
        return "empty"
    if "$" in entry:
        return "token"
    return "absolute" if entry.startswith("/") else "relative"


def normalised(entry: str) -> str:
    """Without doubled and trailing slashes and ``.``; ``..`` stays, since it follows links."""
    parts = [part for part in entry.split("/") if part not in ("", ".")]
    return ("/" if entry.startswith("/") else "") + "/".join(parts)


def is_stub(path: str) -> bool:
    """By the folder names that CANN uses: devlib, lib64/stub."""
    return not STUB_FOLDERS.isdisjoint(path.split("/"))


def cached_libraries(data: bytes) -> Shown[tuple[str, ...] | Missing]:
    """The paths in an ld.so.cache whose file is one of LIBRARIES; the cache keeps its strings ended by NUL."""
    if not data.startswith(CACHE_MARKS):
        why = "does not begin like a loader cache"
        return Shown(Missing(Reason.FAILED, why), {"": why})
    paths = {path.decode(errors="replace") for path in re.findall(rb"(/[^\0\n]*/lib[^/\0\n]*\.so)(?=\0)", data)}
    found = tuple(sorted(path for path in paths if posixpath.basename(path) in LIBRARIES))
    return Shown(found, {"": ", ".join(found) or "none of the Ascend libraries"})


def configured_folders(data: bytes) -> tuple[str, ...]:
    """The folders that a file of ldconfig's configuration names; its ``include`` lines are not followed."""
    lines = (line.partition("#")[0].strip() for line in decoded(data).splitlines())
    return tuple(normalised(line) for line in lines if line.startswith("/"))


def resolved(host: Host, path: str) -> str | Missing:
    """Where a path leads through links; absent where a part of it does not exist."""
    done: list[str] = []
    ahead = path.split("/")[::-1]
    steps = 0
    while ahead:
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = done[:-1]
            continue
        target = host.link("/" + "/".join([*done, part])).value
        if isinstance(target, str):
            steps += 1
            if steps > LINK_STEPS:
                return Missing(Reason.FAILED, f"more than {LINK_STEPS} links")
            done = [] if target.startswith("/") else done
            ahead.extend(target.split("/")[::-1])
        elif target.reason is Reason.UNSUPPORTED:
            done.append(part)
        else:
            return target
    return "/" + "/".join(done)


def collect(host: Host) -> Collected[LibraryPath]:
    """Lists each folder of the path once and reads the loader's cache and configuration; starts nothing."""
    area = Area("library_path")
    split: tuple[tuple[str, str, str], ...] | Missing = area.take("entries", parsed(host.env(VARIABLE), split_path))
    cached: tuple[str, ...] | Missing = area.take("cached", parsed(host.read(CACHE), cached_libraries))
    return area.of(
        LibraryPath(
            entries=split if isinstance(split, Missing) else tuple(_folder(host, *entry) for entry in split),
            cached=cached,
            configured=_configured(host, area),
        )
    )


def _folder(host: Host, text: str, form: str, path: str) -> Folder:
    if form != "absolute":
        unseen = Missing(Reason.UNSUPPORTED, f"{text or 'an empty entry'} depends on the process that reads it")
        return Folder(text, form, path, unseen, unseen, unseen, is_stub(path))
    stat = host.stat(path).value
    kind = stat if isinstance(stat, Missing) else stat.type
    libraries: tuple[str, ...] | Missing = ()
    if isinstance(kind, Missing):
        libraries = kind
    elif kind == "dir":
        names = host.list(path).value
        libraries = names if isinstance(names, Missing) else tuple(name for name in names if name in LIBRARIES)
    real_path = kind if isinstance(kind, Missing) else resolved(host, path)
    stub = is_stub(path) or (isinstance(real_path, str) and is_stub(real_path))
    return Folder(text, form, path, kind, real_path, libraries, stub)


def _configured(host: Host, area: Area) -> tuple[str, ...] | Missing:
    """Of /etc/ld.so.conf and all of its folder; Missing as a whole where one of them could not be read."""
    names = host.list(CONFIGURATION_FOLDER).value
    if isinstance(names, Missing):
        if names.reason is not Reason.ABSENT:
            return names
        names = ()
    folders: list[str] = []
    for path in (CONFIGURATION, *(f"{CONFIGURATION_FOLDER}/{name}" for name in names if name.endswith(".conf"))):
        found = area.take("configured", parsed(host.read(path), configured_folders))
        if isinstance(found, Missing):
            if found.reason is Reason.ABSENT:
                continue
            return found
        folders.extend(found)
    return tuple(dict.fromkeys(folders))
