"""The packages of the target Python, read from the names of its dist-info folders without running it.

Sources: https://packaging.python.org/en/latest/specifications/recording-installed-packages/ and /core-metadata/;
the older egg-info and egg-link of setuptools. A folder on PYTHONPATH is not looked at.
"""

from __future__ import annotations

import re

from ascend_doctor.host import (
    Answer,
    Area,
    Collected,
    Host,
    Missing,
    Parsed,
    Python,
    Reason,
    Shown,
    decoded,
    keyed,
    parsed,
)
from ascend_doctor.records import dataclass
from ascend_doctor.versions import PythonVersion

DESCRIBED = frozenset((
    *("torch", "torch_npu", "torchvision", "torchaudio", "numpy", "triton", "triton_ascend", "transformers"),
    *("vllm", "vllm_ascend", "sglang", "mindspore", "mindspeed", "mindie_llm", "deepspeed", "accelerate", "xgrammar"),
    *("compressed_tensors", "tokenizers", "llamafactory", "ms_swift", "lmdeploy", "paddlepaddle", "paddle_custom_npu"),
))  # fmt: skip
"""Those whose demands are read too."""

_FOLDER = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,200}?)-(\d[A-Za-z0-9._+!-]{0,80}?)(?:-py\d(?:\.\d{1,2})?)?\.(?:dist|egg)-info"
)


@dataclass(frozen=True)
class Package:
    """``version`` is Missing(unsupported) for a checkout that is linked in; ``also``: others in the same folder.

    ``requires``: the lines Requires-Dist, of the packages that a deployment is made of; unsupported of others.
    """

    name: str
    version: PythonVersion | Missing
    folder: str
    also: tuple[str, ...]
    requires: tuple[str, ...] | Missing


@dataclass(frozen=True)
class TargetPython:
    """By name in lower case with underscores: ``packages["torch_npu"]``. ``machine``: aarch64, x86_64."""

    executable: str | Missing
    version: PythonVersion | Missing
    machine: str | Missing
    packages: dict[str, Package] | Missing


def normal(name: str) -> str:
    """``Torch-NPU`` as ``torch_npu``."""
    return re.sub(r"[-_.]+", "_", name).lower()


def named(entry: str) -> tuple[str, str] | None:
    """Name and version of ``torch_npu-2.7.1.dist-info``; version "" of an egg-link; None for what is no package."""
    if entry.endswith(".egg-link"):
        return normal(entry[: -len(".egg-link")]), ""
    found = _FOLDER.fullmatch(entry)
    return (normal(found[1]), found[2]) if found else None


def requirements(data: bytes) -> Shown[tuple[str, ...] | Missing]:
    """The lines Requires-Dist of METADATA, up to the description."""
    head = decoded(data).split("\n\n", 1)[0]
    found = tuple(re.findall(r"(?mi)^Requires-Dist:[ \t]*(\S[^\n]{0,300})$", head))
    return Shown(found, {"": "\n".join(found[:40]) or "no Requires-Dist", **{f"[{n}]": r for n, r in enumerate(found)}})


def collect(host: Host) -> Collected[TargetPython]:
    """Lists the folders of packages and reads one file for each package that a deployment is made of."""
    area = Area("python")
    answer = host.python
    python = answer.value
    shown = {"": python.reason.value if isinstance(python, Missing) else f"{python.executable} {python.version}"}
    return area.of(
        TargetPython(
            executable=area.take("executable", Parsed(_of(python, "executable"), answer.source, shown)),
            version=area.take("version", Parsed(_of(python, "version"), answer.source, shown)),
            machine=area.take("machine", Parsed(host.identity.arch, "identity", {"": str(host.identity.arch)})),
            packages=_packages(host, area, python),
        )
    )


def _of(python: Python | Missing, field: str) -> str | Missing:
    if isinstance(python, Missing):
        return python
    value: str | Missing = getattr(python, field)
    return value


def _packages(host: Host, area: Area, python: Python | Missing) -> dict[str, Package] | Missing:
    """The first folder that has a package counts, as for the interpreter; all must have been seen."""
    if isinstance(python, Missing):
        return python
    if isinstance(python.site, Missing):
        return python.site
    found: dict[str, Package] = {}
    for folder in python.site:
        names = host.list(folder)
        if isinstance(names.value, Missing):
            if names.value.reason is Reason.ABSENT:
                continue
            return area.take("packages", Parsed(names.value, names.source, {"": names.value.reason.value}))
        for name, entries in _by_name(names.value).items():
            if name not in found:
                found[name] = _package(host, area, name, folder, entries)
    area.take("packages", Parsed(None, f"file:{', '.join(python.site)}", {"": f"{len(found)} packages"}))
    return found


def _by_name(entries: tuple[str, ...]) -> dict[str, list[tuple[str, str]]]:
    """Name -> (version, entry) of each of its entries."""
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in entries:
        package = named(entry)
        if package:
            found.setdefault(package[0], []).append((package[1], entry))
    return found


def _package(host: Host, area: Area, name: str, folder: str, entries: list[tuple[str, str]]) -> Package:
    versions = [version for version, _ in entries if version]
    version = versions[0] if versions else Missing(Reason.UNSUPPORTED, "linked in from a checkout")
    path, (_, entry) = keyed("packages", name), next((e for e in entries if e[0]), entries[0])
    area.take(path, Parsed(version, f"file:{folder}", {"": ", ".join(entry for _, entry in entries)}))
    requires: tuple[str, ...] | Missing = Missing(Reason.UNSUPPORTED, "only read of packages of a deployment")
    if name in DESCRIBED:
        requires = area.take(f"{path}.requires", parsed(_description(host, folder, entry), requirements))
    return Package(name, version, folder, tuple(versions[1:]), requires)


def _description(host: Host, folder: str, entry: str) -> Answer[bytes]:
    if entry.endswith(".egg-link"):
        why = Missing(Reason.UNSUPPORTED, "linked in from a checkout")
        return Answer(f"file:{folder}/{entry}", why)
    return host.read(f"{folder}/{entry}/{'METADATA' if entry.endswith('.dist-info') else 'PKG-INFO'}")
