"""The key of pseudonyms where the user gives none: nobody else knows it, and it is the same from run to run.

machine-id(5) asks for such a keyed hash in place of the number itself. The number of the boot goes in as well, since
images of containers may hand one machine-id to many. A snapshot's key comes from the snapshot.
"""

from __future__ import annotations

import hashlib
import os

from ascend_doctor.host import Host, Missing, files
from ascend_doctor.host.members import DOCUMENT
from ascend_doctor.host.snapshot import SnapshotHost, content

MACHINE_FILES = ("/etc/machine-id", "/proc/sys/kernel/random/boot_id")
_PURPOSE = b"ascend-doctor redaction 1\0"


def key_of(host: Host | None) -> bytes:
    """None: this machine. 32 random bytes where the machine has no number."""
    if isinstance(host, SnapshotHost):
        return hashlib.sha256(_PURPOSE + content(host.members, DOCUMENT)).digest()
    found = [files.read(path) if host is None else host.read(path).value for path in MACHINE_FILES]
    known = [data.strip() for data in found if not isinstance(data, Missing) and data.strip()]
    return hashlib.sha256(_PURPOSE + b"\0".join(known)).digest() if known else os.urandom(32)
