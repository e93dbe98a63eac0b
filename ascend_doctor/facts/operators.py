"""The operators of the CANN in use: for which chips there are kernels, and which custom packages stand beside them.

Layout: <cann>/opp/built-in/op_impl/ai_core/tbe/kernel/{SOC,config/SOC}; <cann>/opp_kernel for a package of its own, up
to 8.3; <cann>/opp/vendors/config.ini with load_priority=a,b; ASCEND_CUSTOM_OPP_PATH names vendor folders anywhere.
Sources: https://github.com/vllm-project/vllm-ascend/issues/237, set_env.sh of CANN 8.1 to 9.1.
"""

from __future__ import annotations

import posixpath
import re

from ascend_doctor.facts.info_files import info_file
from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, decoded
from ascend_doctor.records import dataclass
from ascend_doctor.versions import CannVersion

BASE = "/usr/local/Ascend"
LINKS = (f"{BASE}/cann", f"{BASE}/ascend-toolkit/latest", f"{BASE}/nnae/latest")
TABLES = "built-in/op_impl/ai_core/tbe"
CUSTOM = "ASCEND_CUSTOM_OPP_PATH"


@dataclass(frozen=True)
class Vendor:
    """A custom operator package that is in use; ``named_by``: config.ini or the variable."""

    name: str
    path: str
    named_by: str
    there: bool | Missing
    socs: tuple[str, ...] | Missing


@dataclass(frozen=True)
class Operators:
    """``socs``: such as ascend910b; empty where there are tables but no kernels. ``release``: CANN of the package."""

    path: str | Missing
    socs: tuple[str, ...] | Missing
    release: CannVersion | Missing
    vendors: tuple[Vendor, ...] | Missing


def load_priority(data: bytes) -> tuple[str, ...]:
    """The names in ``load_priority=customize,other``."""
    found = re.search(r"(?m)^\s*load_priority\s*=\s*([^\n]{0,1000})", decoded(data))
    return tuple(filter(None, (name.strip() for name in found[1].split(",")))) if found else ()


def collect(host: Host) -> Collected[Operators]:
    """Lists some folders; starts nothing."""
    area = Area("operators")
    path = _path(host)
    if isinstance(path.value, Missing):
        nothing = area.take("path", path)
        assert isinstance(nothing, Missing)
        vendors = _custom(host)
        return area.of(Operators(nothing, nothing, nothing, area.take("vendors", vendors)))
    opp = area.take("path", path)
    return area.of(
        Operators(
            path=opp,
            socs=area.take("socs", _socs(host, path.value)),
            release=area.take("release", _release(host, posixpath.dirname(path.value))),
            vendors=area.take("vendors", _vendors(host, path.value)),
        )
    )


def _path(host: Host) -> Parsed[str | Missing]:
    """ASCEND_OPP_PATH, else opp of ASCEND_HOME_PATH, else of what the links lead to, else of the only version.

    Where nobody saw the variables, the links and the only version count too: set_env.sh would set just these.
    """
    unseen: Parsed[str | Missing] | None = None
    for name, below in (("ASCEND_OPP_PATH", ""), ("ASCEND_HOME_PATH", "/opp")):
        answer = host.env(name)
        if isinstance(answer.value, str) and answer.value.startswith("/"):
            return Parsed(answer.value.rstrip("/") + below, answer.source, {"": answer.value})
        if isinstance(answer.value, Missing) and answer.value.reason is not Reason.ABSENT:
            unseen = unseen or Parsed(answer.value, answer.source, {"": answer.value.reason.value})
    for folder in (*LINKS, *_only_version(host)):
        there = host.stat(f"{folder}/opp")
        if not isinstance(there.value, Missing):
            return Parsed(f"{folder}/opp", there.source, {"": f"{folder}/opp"})
        if there.value.reason is not Reason.ABSENT:
            return Parsed(there.value, there.source, {"": there.value.reason.value})
    nothing = Missing(Reason.ABSENT, "no opp of a CANN in use")
    return unseen or Parsed(nothing, "env:ASCEND_OPP_PATH", {"": "not set"})


def _only_version(host: Host) -> tuple[str, ...]:
    """The folder of the one version that is installed; nothing where there are several."""
    found = []
    for folder, pattern in ((BASE, r"cann-\d.*"), (f"{BASE}/ascend-toolkit", r"\d.*"), (f"{BASE}/nnae", r"\d.*")):
        names = host.list(folder).value
        found += [] if isinstance(names, Missing) else [f"{folder}/{n}" for n in names if re.fullmatch(pattern, n)]
    return tuple(found) if len(found) == 1 else ()


def _socs(host: Host, opp: str) -> Parsed[tuple[str, ...] | Missing]:
    """Absent where the folder is not one of a whole toolkit: then nothing can be said of its kernels."""
    kernel = f"{opp}/{TABLES}/kernel"
    tables = host.list(f"{opp}/{TABLES}")
    if isinstance(tables.value, Missing):
        return Parsed(tables.value, tables.source, {"": tables.value.reason.value})
    package = f"{posixpath.dirname(opp)}/opp_kernel"
    found: dict[str, str] = {}
    for folder in (kernel, f"{kernel}/config", f"{package}/{TABLES}/kernel"):
        names = host.list(folder)
        if not isinstance(names.value, Missing):
            found.update((name, folder) for name in names.value if name.lower().startswith("ascend"))
        elif names.value.reason is not Reason.ABSENT:
            return Parsed(names.value, names.source, {"": names.value.reason.value})
    if not found:
        other = host.stat(package)
        if not (isinstance(other.value, Missing) and other.value.reason is Reason.ABSENT):
            why = other.value if isinstance(other.value, Missing) else Missing(Reason.FAILED, f"{package} is not read")
            return Parsed(why, other.source, {"": why.detail})
    return Parsed(tuple(sorted(found)), f"file:{kernel}", {"": ", ".join(sorted(found)) or "no kernels"})


def _release(host: Host, root: str) -> Parsed[str | Missing]:
    """The CANN that the operator package names; its own number is no CANN."""
    for package in ("opp_kernel", "opp"):
        file = info_file(host.read(f"{root}/{package}/version.info"))
        if not file.absent:
            found = file.parsed("version_dir")
            name = found.value
            value = re.sub(r"^cann-", "", name) if isinstance(name, str) else name
            return Parsed(value, found.source, found.texts)
    return Parsed(Missing(Reason.ABSENT, "no version.info"), f"file:{root}/opp/version.info", {"": "no version.info"})


def _vendors(host: Host, opp: str) -> Parsed[tuple[Vendor, ...] | Missing]:
    """Those that config.ini names, then those of the variable."""
    file = f"{opp}/vendors/config.ini"
    answer = host.read(file)
    if isinstance(answer.value, Missing):
        if answer.value.reason is not Reason.ABSENT:
            return Parsed(answer.value, answer.source, {"": answer.value.reason.value})
        return _custom(host)
    named = load_priority(answer.value)
    found = tuple(_vendor(host, name, f"{opp}/vendors/{name}", file) for name in named)
    custom = _custom(host)
    if isinstance(custom.value, Missing):
        return custom if custom.value.reason is not Reason.ABSENT else Parsed(found, answer.source, {"": str(named)})
    return Parsed((*found, *custom.value), answer.source, {"": ", ".join(v.path for v in (*found, *custom.value))})


def _custom(host: Host) -> Parsed[tuple[Vendor, ...] | Missing]:
    answer = host.env(CUSTOM)
    if isinstance(answer.value, Missing):
        return Parsed(answer.value, answer.source, {"": answer.value.reason.value})
    paths = [path.rstrip("/") for path in answer.value.split(":") if path.startswith("/")]
    found = tuple(_vendor(host, posixpath.basename(path), path, CUSTOM) for path in paths)
    return Parsed(found, answer.source, {"": answer.value})


def _vendor(host: Host, name: str, path: str, named_by: str) -> Vendor:
    kernel = host.list(f"{path}/op_impl/ai_core/tbe/kernel")
    return Vendor(name, path, named_by, _there(host.list(path)), _socs_of(kernel))


def _there(answer: Answer[tuple[str, ...]]) -> bool | Missing:
    if not isinstance(answer.value, Missing):
        return True
    return False if answer.value.reason is Reason.ABSENT else answer.value


def _socs_of(answer: Answer[tuple[str, ...]]) -> tuple[str, ...] | Missing:
    if isinstance(answer.value, Missing):
        return answer.value
    return tuple(name for name in answer.value if name.lower().startswith("ascend"))
