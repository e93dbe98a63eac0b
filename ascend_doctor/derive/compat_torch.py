"""torch_npu: with CANN, and with torch and what else is compiled for one torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ascend_doctor.derive import rows
from ascend_doctor.derive.nearest import LAST_TORCH_PLUS_CPU, Tables, nearest, steps
from ascend_doctor.derive.pair import FITS, Judged, Pair, pair
from ascend_doctor.derive.parts import Part, cann_in_use, executable, interpreter, ordered, package, release
from ascend_doctor.facts.cann import Cann
from ascend_doctor.facts.driver import Driver
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.compatibility import Compatibility
from ascend_doctor.knowledge.pairs import Pairs
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.torch_npu_table import Builds, TorchNpuTable
from ascend_doctor.knowledge.vllm_ascend_table import VllmAscendTable
from ascend_doctor.versions import covers, parse, release_of

NIGHTLY = "2.5.1.dev"
NIGHTLY_NOT_ON = "8.0.RC3"
NVIDIA = "nvidia_"


@rows("compat.cann_torch_npu")
def cann_torch_npu(
    cann: Cann,
    python: TargetPython,
    driver: Driver,
    torch_npu_table: TorchNpuTable,
    vllm_ascend_table: VllmAscendTable,
    compatibility: Compatibility,
    pairs: Pairs,
) -> tuple[Pair, ...] | Missing:
    """One row where torch_npu is installed and a CANN is selected."""
    if isinstance(python.packages, Missing):
        return python.packages
    torch_npu = package(python, "torch_npu")
    if torch_npu is None:
        return ()
    root = cann_in_use(cann)
    if isinstance(root, Missing):
        return root
    row = pair([root, torch_npu], _build_on(torch_npu_table, root, torch_npu), pairs)
    if row.severity not in ("error", "warning"):
        return (row,)
    tables = Tables(torch_npu_table, vllm_ascend_table, compatibility)
    change = nearest(installed(python, root, driver.version), tables)
    return (replace(row, remedy=steps(change, pairs, executable(python), python.machine)),)


def installed(python: TargetPython, cann: Part | Missing, driver: str | Missing) -> Mapping[str, str]:
    """Part -> version, of those that are here and known."""
    names = ("vllm_ascend", "vllm", "torch", "torch_npu", "triton_ascend")
    parts = [*(package(python, name) for name in names), interpreter(python), Part("driver", driver, "", "")]
    if isinstance(cann, Part):
        parts.append(cann)
    return {part.name: part.version for part in parts if part is not None and isinstance(part.version, str)}


def builds_of(table: TorchNpuTable, version: str) -> Builds | None:
    """The row that has this very build, local labels aside."""
    return next(
        (row for row in table.builds if any(ordered("torch_npu", b, version) == 0 for b in row.torch_npu)), None
    )


def _build_on(table: TorchNpuTable, root: Part, torch_npu: Part) -> Judged | Missing:
    if isinstance(root.version, Missing) or isinstance(torch_npu.version, Missing):
        return Judged(FITS, "")
    build, found = torch_npu.version, parse("cann", root.version)
    if found is None:
        return Missing(Reason.FAILED, f"{root.version} is no CANN version", root.path)
    cann = release_of(found) or root.version
    shipped = [listed for name, listed in table.shipped if ordered("torch_npu", name, build) == 0]
    row = builds_of(table, build)
    matched = [*(row.cann if row else ()), *shipped]
    sources = (*(row.sources if row else ()), *((table.shipped_source,) if shipped else ()))
    wanted = f"torch_npu {build}: CANN {', '.join(dict.fromkeys(matched))}"
    if build.startswith(NIGHTLY) and covers("cann", NIGHTLY_NOT_ON, cann):
        return Judged("cann-nightly", "error", "CANN 8.0.0, 8.1.RC1")
    if not matched:
        return Judged("build-unlisted", "info", sources=sources)
    if any(covers("cann", listed, cann) for listed in matched):
        return Judged(FITS, "", wanted, sources)
    return _beside(table, row, cann, matched, wanted, sources)


def _beside(
    table: TorchNpuTable, row: Builds | None, cann: str, matched: list[str], wanted: str, sources: tuple[Source, ...]
) -> Judged:
    """A CANN that the build is not matched with: marked by the vendor, older or newer."""
    marked = [m for m in table.marked if row and any(covers("cann", r, row.release) for r in m.releases if row.release)]
    for entry in marked:
        if any(covers("cann", listed, cann) for listed in entry.cann):
            return Judged("cann-marked", "info", wanted, entry.sources)
    orders = {ordered("cann", cann, listed.replace("X", "0")) for listed in matched}
    if orders == {-1}:
        relation, severity = ("cann-older", "error") if marked else ("cann-older-unstated", "warning")
        return Judged(relation, severity, wanted, sources)
    if orders == {1}:
        return Judged("cann-newer", "warning", wanted, sources)
    return Judged("cann-marked", "info", wanted, sources)


@rows("compat.torch_npu_torch")
def torch_npu_torch(
    cann: Cann,
    python: TargetPython,
    driver: Driver,
    torch_npu_table: TorchNpuTable,
    vllm_ascend_table: VllmAscendTable,
    compatibility: Compatibility,
    pairs: Pairs,
) -> tuple[Pair, ...] | Missing:
    """torch with torch_npu, and torch with torchaudio where that is installed."""
    if isinstance(python.packages, Missing):
        return python.packages
    torch, torch_npu, audio = (package(python, name) for name in ("torch", "torch_npu", "torchaudio"))
    found = []
    if torch and torch_npu:
        row = pair([torch, torch_npu], _torch(python, torch_npu_table, torch, torch_npu), pairs)
        if row.severity == "error":
            tables = Tables(torch_npu_table, vllm_ascend_table, compatibility)
            change = nearest(installed(python, cann_in_use(cann), driver.version), tables)
            row = replace(row, remedy=steps(change, pairs, executable(python), python.machine))
        found.append(replace(row, reads=(*row.reads, "python.machine", "python.packages")))
    if torch and audio:
        found.append(pair([torch, audio], _audio(torch, audio), pairs))
    return tuple(found)


def _torch(python: TargetPython, table: TorchNpuTable, torch: Part, torch_npu: Part) -> Judged | Missing:
    if isinstance(torch.version, Missing) or isinstance(torch_npu.version, Missing):
        return Judged(FITS, "")
    wanted = _of_release("torch", torch_npu.version)
    if release(torch.version) != release(torch_npu.version):
        return Judged("torch-other", "error", wanted, (table.pair,))
    assert not isinstance(python.packages, Missing)
    if "+cu" in torch.version or any(name.startswith(NVIDIA) for name in python.packages):
        return Judged("torch-cuda", "warning", f"{wanted}+cpu")
    if release(torch_npu.version)[:2] > LAST_TORCH_PLUS_CPU or "+" in torch.version:
        return Judged(FITS, "", wanted)
    if isinstance(python.machine, Missing):
        return python.machine
    return (
        Judged("torch-plain-x86", "info", f"{wanted}+cpu") if python.machine == "x86_64" else Judged(FITS, "", wanted)
    )


def _audio(torch: Part, audio: Part) -> Judged:
    if isinstance(torch.version, Missing) or isinstance(audio.version, Missing):
        return Judged(FITS, "")
    if release(torch.version) == release(audio.version):
        return Judged(FITS, "")
    return Judged("torch-companion", "warning", _of_release("torchaudio", torch.version))


def _of_release(name: str, version: str) -> str:
    return f"{name} {'.'.join(map(str, release(version)))}"
