"""NNAL, the package that has ATB: which versions are installed, and which of them the environment selects.

Layout: /usr/local/Ascend/nnal/atb/<version>/ with version.info and atb/cxx_abi_{0,1}; ``latest`` beside it. set_env.sh
sets ATB_HOME_PATH=.../atb/cxx_abi_N, N as the torch that is installed then was compiled.
Source: version.info and set_env.sh of NNAL 8.0 to 8.5 as pasted in public issues (vllm-ascend 1144, 451).
"""

from __future__ import annotations

import posixpath
import re

from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, keyed, parsed
from ascend_doctor.records import dataclass
from ascend_doctor.versions import CannVersion

BASE = "/usr/local/Ascend/nnal/atb"
VARIABLE = "ATB_HOME_PATH"


@dataclass(frozen=True)
class Installation:
    """``version`` is the CANN release that it belongs to; ``abis``: the C++ ABIs that it has libraries for."""

    path: str
    version: CannVersion | Missing
    abis: tuple[int, ...] | Missing
    selected: bool | Missing


@dataclass(frozen=True)
class Nnal:
    """``selected_abi``: the end of ATB_HOME_PATH; absent where that is not set."""

    installations: tuple[Installation, ...] | Missing
    selected_abi: int | Missing


def release(data: bytes) -> Shown[str | Missing]:
    """The version in ``Ascend-cann-atb : 8.1.RC1``, without the build that other lines give."""
    text = decoded(data)
    found = re.search(r"(?im)^\s*Ascend-cann-(?:atb|nnal)(?:[ \t]+Version)?[ \t]*:[ \t]*(\S{1,60})", text)
    if not found:
        return Shown(Missing(Reason.FAILED, "version.info names no Ascend-cann-atb"), {"": text[:80]})
    return Shown(re.sub(r"(?i)\.B\d{1,6}$", "", found[1]), {"": found[0].strip()})


def collect(host: Host) -> Collected[Nnal]:
    """Lists the usual place and what the environment names; starts nothing."""
    area = Area("nnal")
    home = host.env(VARIABLE)
    places = host.list(BASE)
    chosen = _chosen(host, home)
    return area.of(
        Nnal(
            installations=_installations(host, area, places, home, chosen),
            selected_abi=area.take("selected_abi", parsed(home, _abi)),
        )
    )


def _abi(path: str) -> int | Missing:
    found = re.search(r"cxx_abi_([01])/*$", path)
    return int(found[1]) if found else Missing(Reason.UNSUPPORTED, f"{path} ends with no cxx_abi_N")


def _chosen(host: Host, home: Answer[str]) -> str | Missing:
    """The folder of the version that ATB_HOME_PATH points into, ``latest`` followed; empty where it is not set."""
    if isinstance(home.value, Missing):
        return "" if home.value.reason is Reason.ABSENT else home.value
    path = re.sub(r"/atb(?:/cxx_abi_[01])?/*$", "", home.value.rstrip("/"))
    target = host.link(path).value
    return path if isinstance(target, Missing) else posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _installations(
    host: Host, area: Area, places: Answer[tuple[str, ...]], home: Answer[str], chosen: str | Missing
) -> tuple[Installation, ...] | Missing:
    names: tuple[str, ...] = ()
    if not isinstance(places.value, Missing):
        names = places.value
    elif places.value.reason is not Reason.ABSENT:
        return area.take("installations", Parsed(places.value, places.source, {"": places.value.reason.value}))
    paths = [f"{BASE}/{name}" for name in names if re.match(r"\d", name)]
    if isinstance(chosen, str) and chosen and chosen not in paths:
        paths.append(chosen)
    if not paths and "latest" in names:
        paths.append(f"{BASE}/latest")
    found: list[Installation] = []
    for path in paths:
        where = keyed("installations", len(found))
        version: Parsed[str | Missing] = parsed(host.read(f"{path}/version.info"), release)
        if path == chosen and _is_absent(version.value) and _is_absent(host.list(path).value):
            continue  # ATB_HOME_PATH points to nothing
        selected = chosen if isinstance(chosen, Missing) else path == chosen
        abis = _abis(host.list(f"{path}/atb"))
        found.append(Installation(path, area.take(f"{where}.version", version), abis, selected))
    area.take(
        "installations", Parsed((), places.source, {"": ", ".join(i.path for i in found) or f"nothing in {BASE}"})
    )
    if found:
        return tuple(found)
    return chosen if isinstance(chosen, Missing) else Missing(Reason.ABSENT, f"no NNAL in {BASE}")


def _is_absent(value: object) -> bool:
    return isinstance(value, Missing) and value.reason is Reason.ABSENT


def _abis(names: Answer[tuple[str, ...]]) -> tuple[int, ...] | Missing:
    if isinstance(names.value, Missing):
        return names.value
    return tuple(int(name[-1]) for name in names.value if re.fullmatch(r"cxx_abi_[01]", name))
