"""The C library of this system, or of this container.

Sources: getconf(1), GNU_LIBC_VERSION; where there is no getconf, the newest GLIBC_ that libc.so.6 defines.
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Output, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass
from ascend_doctor.versions import PythonVersion

COMMAND = ("getconf", "GNU_LIBC_VERSION")
PLACES = ("/lib/{arch}-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib/{arch}-linux-gnu")


@dataclass(frozen=True)
class Glibc:
    """``version`` as in 2.34."""

    version: PythonVersion | Missing


def said_version(output: Output) -> str | Missing:
    """``glibc 2.34``."""
    found = re.search(r"glibc (\d{1,3}\.\d{1,3})", decoded(output.stdout))
    return found[1] if found else Missing(Reason.FAILED, "getconf names no glibc")


def newest_symbol(data: bytes) -> Shown[str | Missing]:
    """The greatest ``GLIBC_2.xx`` in a library."""
    found = {(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d{1,3})\.(\d{1,3})\b", data)}
    if not found:
        return Shown(Missing(Reason.FAILED, "it defines no GLIBC_ version"), {"": "no GLIBC_"})
    version = "{}.{}".format(*max(found))
    return Shown(version, {"": f"GLIBC_{version}"})


def collect(host: Host) -> Collected[Glibc]:
    """Starts getconf; reads libc.so.6 only where there is no getconf."""
    area = Area("glibc")
    said: Parsed[str | Missing] = parsed(host.run(COMMAND), said_version)
    if isinstance(said.value, Missing) and said.value.reason is Reason.ABSENT:
        said = _of_library(host, said)
    return area.of(Glibc(area.take("version", said)))


def _of_library(host: Host, said: Parsed[str | Missing]) -> Parsed[str | Missing]:
    arch = host.identity.arch
    for place in PLACES:
        if "{arch}" in place and isinstance(arch, Missing):
            continue
        answer = host.read(f"{place.format(arch=arch)}/libc.so.6")
        if not isinstance(answer.value, Missing):
            return parsed(answer, newest_symbol)
        if answer.value.reason is not Reason.ABSENT:
            return Parsed(answer.value, answer.source, {"": answer.value.reason.value})
    return said
