"""Where an Ascend host keeps its logs, asked through the Host: environment variables first, then the usual places.

Sources: CANN log reference (hicann/runtime docs/zh/log_ref), MindIE service manual; homes of other users are read where
permitted.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, NoReturn

from ascend_doctor.host import Host, Missing, Output, Reason, decoded
from ascend_doctor.logs.archives import members
from ascend_doctor.logs.files import LogFile, hint_of, unreadable
from ascend_doctor.logs.sources import NO_LOG, rotation

IN_A_HOME = ("ascend/log", "mindie/log", "var/log/ascend_seclog")
FOLDERS = (
    "/var/log/npu",
    "/var/log/ascend_seclog",
    "/var/log/mindx-dl",
    "/usr/local/Ascend/mindie/latest/mindie-service/logs",
    "/tmp/ray/session_latest/logs",
)
SYSTEM = ("messages", "syslog", "kern.log", "vmcore_dmesg", "sysmonitor")
"""Beginnings of names in /var/log."""
COMMANDS = (("dmesg",), ("journalctl", "-k", "-b", "--no-pager", "-o", "short-iso-precise"))
RING = "/dev/kmsg"
CUT = 4 << 20
"""Bytes that a host keeps of what a command prints."""
MOST_FILES = 20_000
DEEPEST = 12


def live_files(host: Host) -> Iterator[LogFile]:
    """The logs of this host; a place that is not there is no news, one that is refused is."""
    yield _kernel_log(host)
    seen: set[str] = set()
    for folder in places(host):
        yield from _below(host, folder, 0, seen)
    yield from _system_logs(host, seen)


def places(host: Host) -> list[str]:
    """Folders, those that environment variables name first; without repetition."""
    folders = []
    for name, below in (("ASCEND_PROCESS_LOG_PATH", ""), ("ASCEND_WORK_PATH", "/log"), ("MINDIE_LOG_PATH", "")):
        value = host.env(name).value
        if isinstance(value, str):
            folders += [part.strip().rpartition(":")[2] + below for part in value.split(";") if "/" in part]
    homes = [f"/home/{name}" for name in _names(host, "/home")]
    own = host.env("HOME").value
    for home in dict.fromkeys([*([own] if isinstance(own, str) else []), "/root", *homes]):
        folders += [f"{home}/{inside}" for inside in IN_A_HOME]
    return list(dict.fromkeys([folder.rstrip("/") for folder in [*folders, *FOLDERS] if folder.startswith("/")]))


def _names(host: Host, folder: str) -> tuple[str, ...]:
    names = host.list(folder).value
    return () if isinstance(names, Missing) else names


def _below(host: Host, folder: str, depth: int, seen: set[str]) -> Iterator[LogFile]:
    names = host.list(folder).value
    if isinstance(names, Missing):
        if names.reason is not Reason.ABSENT:
            yield unreadable(folder, _said(names))
        return
    if depth > DEEPEST:
        yield unreadable(folder, f"folders deeper than {DEEPEST} are not read")
        return
    below = []
    for name in sorted(names, key=rotation):
        path = f"{folder}/{name}"
        status = host.stat(path).value
        if isinstance(status, Missing):
            if status.reason is not Reason.ABSENT:
                yield unreadable(path, _said(status))
        elif status.type == "dir":
            if isinstance(host.link(path).value, Missing):
                below.append(path)
        elif status.type == "file" and not NO_LOG.search(path):
            if path in seen:
                continue
            if len(seen) >= MOST_FILES:
                yield unreadable(folder, f"more than {MOST_FILES} files: the rest is not read")
                return
            seen.add(path)
            yield from members(_file(host, path))
    for path in below:
        yield from _below(host, path, depth + 1, seen)


def _system_logs(host: Host, seen: set[str]) -> Iterator[LogFile]:
    for name in sorted(_names(host, "/var/log"), key=rotation):
        path = f"/var/log/{name}"
        if name.startswith(SYSTEM) and path not in seen:
            status = host.stat(path).value
            if isinstance(status, Missing) or status.type == "file":
                yield from members(_file(host, path))


def _file(host: Host, path: str) -> LogFile:
    def opener() -> BinaryIO:
        stream = host.open(path).value
        if isinstance(stream, Missing):
            raise OSError(_said(stream))
        return stream

    return LogFile(path, opener, hint_of(path))


def _said(missing: Missing) -> str:
    return f"{missing.reason.value}: {missing.detail}" if missing.detail else missing.reason.value


def _kernel_log(host: Host) -> LogFile:
    """What the kernel has said, from the first command that tells it, or else from the kernel itself."""
    refused = []
    for argv in COMMANDS:
        answer = host.run(argv)
        name = f"command:{' '.join(argv)}"
        if isinstance(answer.value, Missing):
            refused.append(f"{argv[0]}: {_said(answer.value)}")
        elif answer.value.rc != 0 or not answer.value.stdout.strip():
            said = decoded(answer.value.stderr).strip()[:120]
            refused.append(f"{argv[0]}: {said or 'printed nothing'}")
        else:
            return LogFile(name, lambda output=answer.value: _Printed(output))  # type: ignore[misc]
    ring = host.read(RING).value
    if isinstance(ring, bytes) and ring:
        return LogFile(RING, lambda: io.BytesIO(ring), hint_of(RING))
    refused.append(f"{RING}: {_said(ring) if isinstance(ring, Missing) else 'empty'}")
    return unreadable("kernel log", "; ".join(refused))


class _Printed(io.BytesIO):
    """What a command printed; a host keeps only the first part of it, and then the end of the stream says so."""

    def __init__(self, output: Output) -> None:
        super().__init__(output.stdout)
        self._whole = len(output.stdout) < CUT

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data and not self._whole:
            self._cut()
        return data

    def _cut(self) -> NoReturn:
        raise OSError(f"only the first {CUT >> 20} MiB were kept")
