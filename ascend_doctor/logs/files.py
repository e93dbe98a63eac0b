"""What a log is before it is read: its name, a way to open it, and what the name says of its records."""

from __future__ import annotations

import re
from typing import BinaryIO, Callable, NoReturn

from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Hint:
    """What the name of a file says about all of its records."""

    pid: int | None = None
    device: int | None = None
    rank: int | None = None


@dataclass(frozen=True)
class LogFile:
    """A file, a member of an archive (``bundle.tar.gz!plog/x.log``) or what a command printed (``command:dmesg``).

    ``open`` gives a new stream and raises OSError, which says why there is nothing to read. ``real``: the path of a
    plain file that can be read in parts.
    """

    path: str
    open: Callable[[], BinaryIO]
    hint: Hint = Hint()
    modified: float | None = None
    size: int | None = None
    real: str = ""


_PID = re.compile(r"(?:plog|device|device-app|mindie-\w{1,20}|pid)[-_](\d{1,10})(?=[_.])")
_DEVICE = re.compile(r"/device-(\d{1,4})/")
_RANK = re.compile(r"(?:^|[/_.-])(?:local_)?rank[_-]?(\d{1,6})(?=[/_.-]|$)", re.I)


def hint_of(path: str) -> Hint:
    """``plog-4711_2025.log`` is of process 4711; ``device-3/`` of device 3; ``rank1/`` of rank 1."""
    pid, device, rank = _PID.search(path.rpartition("/")[2]), _DEVICE.search(path), _RANK.search(path)
    return Hint(int(pid[1]) if pid else None, int(device[1]) if device else None, int(rank[1]) if rank else None)


def unreadable(path: str, why: str) -> LogFile:
    """Stands in the coverage with its reason."""

    def opener() -> NoReturn:
        raise OSError(why)

    return LogFile(path, opener)
