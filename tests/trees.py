"""Test hosts as folders: what a snapshot tells of files, laid out below a root, as the machine itself would have it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ascend_doctor.host.document import Place
from ascend_doctor.host.snapshot import SnapshotHost, content

KINDS = {"char": stat.S_IFCHR, "block": stat.S_IFBLK, "fifo": stat.S_IFIFO, "socket": stat.S_IFSOCK}


def planted(host: SnapshotHost, root: Path) -> Path:
    """The root, with all that is there; devices are /dev/null, and files where we may make no device."""
    places = host.document.places
    for path, place in sorted(places.items()):
        if place.target is not None:
            _make_room(root, path)
            os.symlink(place.target, f"{root}{path}")
    for name, member in host.members.index.items():
        if name.startswith("files/"):
            path = _at(root, name[len("files") :])
            path.parent.mkdir(parents=True, exist_ok=True)
            if member.target is None:
                path.write_bytes(content(host.members, name))
            elif not os.path.lexists(path):
                path.symlink_to(member.target)
    for path, place in sorted(places.items()):
        if place.is_there and place.target is None:
            _plant(_at(root, path), place)
    for path, place in sorted(places.items(), reverse=True):
        if place.stat and place.target is None:
            _give(_at(root, path), place)
    _identify(host, root)
    return root


def _identify(host: SnapshotHost, root: Path) -> None:
    """What a machine's files tell of itself and its first process, where the snapshot has no such file."""
    known = host.identity
    gids = known.gids if isinstance(known.gids, tuple) else ()
    groups = " ".join(map(str, gids))
    for path, text in {
        "/etc/hostname": f"{known.hostname}\n",
        "/proc/sys/kernel/osrelease": f"{known.kernel}\n",
        "/proc/1/status": f"Uid:\t{known.uid}\t0\t0\t0\nGid:\t{gids[0]}\t0\t0\t0\nGroups:\t{groups}\n",
    }.items():
        place = _at(root, path)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)


def _make_room(root: Path, path: str) -> None:
    _at(root, path).parent.mkdir(parents=True, exist_ok=True)


def _at(root: Path, path: str) -> Path:
    return Path(f"{root}{path}")


def _plant(path: Path, place: Place) -> None:
    if os.path.lexists(path):
        return
    if place.type == "dir" or (not place.type and isinstance(place.names, tuple)):
        path.mkdir(parents=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if place.type in KINDS:
        try:
            os.mknod(path, KINDS[place.type] | 0o600, os.makedev(1, 3))
            return
        except PermissionError:
            pass
    path.touch()


def _give(path: Path, place: Place) -> None:
    assert place.stat
    if os.getuid() == 0:
        os.chown(path, place.stat.uid, place.stat.gid)
    os.chmod(path, place.stat.mode)
