"""A pack of rules from an archive, in a temporary folder that goes when the process ends."""

from __future__ import annotations

import atexit
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

MEMBER_COUNT = 2000
TOTAL_BYTES = 64 << 20


class PackError(Exception):
    """An archive that is no pack of rules: file, place, what to do."""


def unpacked(archive: Path) -> Path:
    """The folder with the archive's YAML files. Raises PackError for what is no archive, leaves it, or is too large."""
    folder = Path(tempfile.mkdtemp(prefix="ascend-doctor-rules-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        with tarfile.open(archive, "r:*") as opened:
            _unpack(opened, folder, str(archive))
    except (OSError, EOFError, tarfile.TarError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise PackError(f"{archive}: cannot be read as a pack of rules: {why}; give a folder or a .tar.gz") from None
    if not any(folder.iterdir()):
        raise PackError(f"{archive}: no rule files in it")
    tops = list(folder.iterdir())
    return tops[0] if len(tops) == 1 and (tops[0] / "checks").is_dir() else folder


def _unpack(opened: tarfile.TarFile, folder: Path, where: str) -> None:
    size = 0
    for count, member in enumerate(opened):
        size += member.size
        if count >= MEMBER_COUNT or size > TOTAL_BYTES:
            raise PackError(f"{where}: more than {MEMBER_COUNT} members or {TOTAL_BYTES >> 20} MiB; no pack of rules")
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise PackError(f"{where}: {member.name} leaves the archive; make it again with names below one folder")
        stream = opened.extractfile(member) if member.isfile() and name.suffix == ".yaml" else None
        if stream is None:
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(stream.read())
