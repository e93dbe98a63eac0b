"""The members of a snapshot on disk: a folder or a .tar.gz, the same bytes for the same members."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from ascend_doctor.host.archive import EXPANSION, SMALL_ARCHIVE_BYTES
from ascend_doctor.host.members import DOCUMENT

_ARCHIVES = (".tar.gz", ".tgz")
_OTHER_ARCHIVES = (".tar", ".gz", ".zip", ".xz", ".bz2", ".zst")
_AROUND = "snapshot"
"""The folder that unpacking an archive makes."""

_USUAL_LEVEL, _STORED = 6, 0


class RecordError(Exception):
    """A snapshot that cannot be written: where, why, what to do."""


def write_snapshot(path: Path, members: Mapping[str, bytes], taken_at: datetime) -> None:
    """Raises RecordError. Only the user may read it: it tells much about the machine."""
    try:
        if path.name.endswith(_ARCHIVES):
            _write_archive(path, members, int(taken_at.timestamp()))
        elif path.name.endswith(_OTHER_ARCHIVES):
            raise RecordError(f"{path}: give a folder or a name that ends in .tar.gz")
        else:
            _write_folder(path, members)
    except OSError as error:
        raise RecordError(f"{error.filename or path}: {error.strerror or error}; choose another place") from None


def _write_folder(path: Path, members: Mapping[str, bytes]) -> None:
    if path.is_dir():
        if any(path.iterdir()):
            raise RecordError(f"{path}: not empty; choose a new folder, nothing is overwritten")
    elif path.exists() or path.is_symlink():
        raise RecordError(f"{path}: already there; choose a new folder, nothing is overwritten")
    else:
        path.mkdir(mode=0o700)
    for name in sorted(members):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        with open(path / name, "xb") as file:
            file.write(members[name])


def _write_archive(path: Path, members: Mapping[str, bytes], taken_at: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise RecordError(f"{path}: already there; choose a new name, nothing is overwritten") from None
    with os.fdopen(descriptor, "wb") as file:
        try:
            size = _pack(file, members, taken_at, _USUAL_LEVEL)
            if size > max(EXPANSION * file.tell(), SMALL_ARCHIVE_BYTES):
                file.seek(0)  # so well compressed that readers would take it for a bomb
                file.truncate()
                _pack(file, members, taken_at, _STORED)
        except BaseException:
            os.unlink(path)
            raise


def _pack(file: io.BufferedWriter, members: Mapping[str, bytes], taken_at: int, level: int) -> int:
    """The bytes before compression."""
    order = sorted(members, key=lambda name: (name != DOCUMENT, name))
    with gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=file, mtime=taken_at) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name in order:
                entry = tarfile.TarInfo(f"{_AROUND}/{name}")
                entry.size, entry.mtime, entry.mode = len(members[name]), taken_at, 0o644
                archive.addfile(entry, io.BytesIO(members[name]))
        size = packed.tell()
    file.flush()
    return size
