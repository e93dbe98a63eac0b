"""The kernel's own log, record by record: for hosts and containers that have no dmesg.

Source: Linux kernel documentation, ABI/testing/dev-kmsg: one record a read, EAGAIN behind the last one, EPIPE where
records were overwritten meanwhile.
"""

from __future__ import annotations

import os
import stat

from ascend_doctor.host import READ_LIMIT, Missing, Reason

PATH = "/dev/kmsg"
_NUMBER = os.makedev(1, 11)
_LONGEST_RECORD = 8192


def records() -> bytes | Missing:
    """All records that are kept now, the newest last. Raises OSError where it may not be read.

    Some containers have a file, or /dev/null, under this name: Missing.
    """
    status = os.stat(PATH)
    if not stat.S_ISCHR(status.st_mode) or status.st_rdev != _NUMBER:
        return Missing(Reason.ABSENT, "not the kernel's log")
    descriptor = os.open(PATH, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    parts: list[bytes] = []
    size = 0
    try:
        while size < READ_LIMIT:
            try:
                parts.append(os.read(descriptor, _LONGEST_RECORD))
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue
            size += len(parts[-1])
    finally:
        os.close(descriptor)
    return b"".join(parts)
