"""The target's Python with what is installed in it and with CANN: versions, numpy, transformers, glibc."""

from __future__ import annotations

from ascend_doctor.derive import rows
from ascend_doctor.derive.compat_torch import builds_of
from ascend_doctor.derive.pair import FITS, NOT_SAID, Judged, Pair, pair, step
from ascend_doctor.derive.parts import (
    Part,
    cann_in_use,
    executable,
    interpreter,
    is_source_build,
    meets,
    ordered,
    package,
    release,
)
from ascend_doctor.facts.cann import Cann
from ascend_doctor.facts.glibc import Glibc
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.cann_needs import CannNeeds, Need
from ascend_doctor.knowledge.pairs import Pairs
from ascend_doctor.knowledge.torch_npu_table import TorchNpuTable
from ascend_doctor.knowledge.vllm_ascend_table import Stack, VllmAscendTable
from ascend_doctor.versions import compare, parse, release_of

TRANSFORMERS_BEFORE = (4, 50, 0)
TORCH_FROM = (2, 5, 1)
REQUIRES = 'python.packages["vllm_ascend"].requires'


def stack_of(table: VllmAscendTable, version: str) -> Stack | None:
    """The release of the table that this version is."""
    return next((s for s in table.releases if ordered("vllm_ascend", s.version, version) == 0), None)


def need_of(table: CannNeeds, cann: str) -> Need | None:
    """What the release of this CANN asks for: the last entry that is not newer."""
    found = parse("cann", cann)
    name = (release_of(found) or cann) if found else cann
    return next((n for n in reversed(table.needs) if compare("cann", n.cann_from, name) in (-1, 0)), None)


@rows("compat.python")
def python_rows(
    cann: Cann,
    python: TargetPython,
    torch_npu_table: TorchNpuTable,
    vllm_ascend_table: VllmAscendTable,
    cann_needs: CannNeeds,
    pairs: Pairs,
) -> tuple[Pair, ...] | Missing:
    """Python with vllm-ascend, torch_npu and the selected CANN, each where it is there."""
    if isinstance(python.packages, Missing):
        return python.packages
    if not python.packages:
        return ()
    here = interpreter(python)
    found = []
    plugin, torch_npu, root = package(python, "vllm_ascend"), package(python, "torch_npu"), cann_in_use(cann)
    if plugin:
        judged = _with_plugin(vllm_ascend_table, here, plugin)
        todo = (step(pairs, "python", version=str(judged.wanted)),) if judged.severity else ()
        found.append(pair([here, plugin], judged, pairs, todo))
    if torch_npu:
        found.append(pair([here, torch_npu], _with_torch_npu(torch_npu_table, here, torch_npu), pairs))
    if isinstance(root, Part):
        found.append(pair([root, here], _with_cann(cann_needs, root, here), pairs))
    return tuple(found)


def _with_plugin(table: VllmAscendTable, python: Part, plugin: Part) -> Judged:
    if isinstance(python.version, Missing) or isinstance(plugin.version, Missing):
        return Judged(FITS, "")
    stack = stack_of(table, plugin.version)
    if stack is None or not stack.python:
        return Judged(FITS, "")
    lower, upper = stack.python.split(",")
    if meets("python", lower, python.version) is False:
        return Judged("python-below", "error", f"python {stack.python}", stack.sources)
    if meets("python", upper, python.version) is False:
        return Judged("python-above", "warning", f"python {stack.python}", stack.sources)
    return Judged(FITS, "", f"python {stack.python}", stack.sources)


def _with_torch_npu(table: TorchNpuTable, python: Part, torch_npu: Part) -> Judged:
    if isinstance(python.version, Missing) or isinstance(torch_npu.version, Missing):
        return Judged(FITS, "")
    row, wheels = builds_of(table, torch_npu.version), None
    for entry in table.wheels:
        wheels = entry if release(entry.torch_from) <= release(torch_npu.version) else wheels
    if row is None or not row.python_up_to or wheels is None:
        return Judged(FITS, "")
    wanted = f"python {wheels.python_from} - {row.python_up_to}"
    if wheels and release(wheels.python_from)[:2] <= release(python.version)[:2] <= release(row.python_up_to)[:2]:
        return Judged(FITS, "", wanted, row.sources)
    return Judged("python-wheel", "info", wanted, row.sources)


def _with_cann(table: CannNeeds, root: Part, python: Part) -> Judged:
    if isinstance(root.version, Missing) or isinstance(python.version, Missing):
        return Judged(FITS, "")
    need = need_of(table, root.version)
    if need is None or meets("python", need.python, python.version) is not False:
        return Judged(FITS, "", f"python {need.python}" if need else NOT_SAID)
    return Judged("python-cann", "info", f"python {need.python}", need.sources)


@rows("compat.numpy")
def numpy_rows(cann: Cann, python: TargetPython, cann_needs: CannNeeds, pairs: Pairs) -> tuple[Pair, ...] | Missing:
    """One row where numpy is installed and a CANN is selected."""
    if isinstance(python.packages, Missing):
        return python.packages
    numpy = package(python, "numpy")
    if numpy is None:
        return ()
    root = cann_in_use(cann)
    if isinstance(root, Missing):
        return root
    judged = _numpy(cann_needs, root, numpy, python.version)
    todo = (step(pairs, "numpy", python=executable(python)),)
    return (pair([root, numpy], judged, pairs, todo, reads=("python.version",)),)


def _numpy(table: CannNeeds, root: Part, numpy: Part, python: str | Missing) -> Judged | Missing:
    if isinstance(root.version, Missing) or isinstance(numpy.version, Missing):
        return Judged(FITS, "")
    need = need_of(table, root.version)
    if parse("cann", root.version) is None or need is None:
        return Missing(Reason.FAILED, f"nothing is known of CANN {root.version}", root.path)
    wanted = f"numpy {need.numpy}"
    if need.numpy_below and meets("numpy", f">={need.numpy_below}", numpy.version):
        if need.numpy_2_from_python:
            if isinstance(python, Missing):
                return python
            if meets("python", f">={need.numpy_2_from_python}", python):
                return Judged(FITS, "", wanted, need.sources)
        return Judged("numpy-2", "error", wanted, need.sources)
    if meets("numpy", need.numpy, numpy.version) is False:
        return Judged("numpy-advice", "info", wanted, need.sources)
    return Judged(FITS, "", wanted, need.sources)


@rows("compat.transformers")
def transformers_rows(
    python: TargetPython, vllm_ascend_table: VllmAscendTable, pairs: Pairs
) -> tuple[Pair, ...] | Missing:
    """transformers with torch, and with vllm-ascend where its own metadata is not there to be judged."""
    if isinstance(python.packages, Missing):
        return python.packages
    transformers, torch, plugin = (package(python, name) for name in ("transformers", "torch", "vllm_ascend"))
    if transformers is None:
        return ()
    found = []
    if torch and package(python, "torch_npu"):
        found.append(pair([torch, transformers], _with_torch(torch, transformers), pairs))
    if plugin:
        judged = _pinned(vllm_ascend_table, plugin, transformers, _requires(python))
        found += [pair([plugin, transformers], judged, pairs, reads=(REQUIRES,))] if judged else []
    return tuple(found)


def _requires(python: TargetPython) -> tuple[str, ...] | Missing:
    """What the plugin's own metadata asks for."""
    assert not isinstance(python.packages, Missing)
    plugin = python.packages["vllm_ascend"]
    return plugin if isinstance(plugin, Missing) else plugin.requires


def _with_torch(torch: Part, transformers: Part) -> Judged:
    if isinstance(torch.version, Missing) or isinstance(transformers.version, Missing):
        return Judged(FITS, "")
    old = release(torch.version) < TORCH_FROM and release(transformers.version) >= TRANSFORMERS_BEFORE
    return Judged("transformers-cuda", "warning", "torch 2.5.1, transformers 4.49") if old else Judged(FITS, "")


def _pinned(
    table: VllmAscendTable, plugin: Part, transformers: Part, requires: tuple[str, ...] | Missing
) -> Judged | Missing | None:
    """None where the plugin's own metadata pins it: then the checks of Python packages judge it."""
    if isinstance(requires, Missing):
        if requires.reason not in (Reason.ABSENT, Reason.UNSUPPORTED):
            return requires
    elif any(line.lower().startswith("transformers") for line in requires):
        return None
    if isinstance(plugin.version, Missing) or isinstance(transformers.version, Missing):
        return Judged(FITS, "")
    stack = None if is_source_build(plugin.version) else stack_of(table, plugin.version)
    if stack is None or not stack.transformers:
        return Judged(FITS, "")
    wanted = f"transformers {stack.transformers}"
    if meets("transformers", stack.transformers, transformers.version) is not False:
        return Judged(FITS, "", wanted, stack.sources)
    return Judged(
        "transformers-pin", "warning" if _is_newer(stack, transformers.version) else "info", wanted, stack.sources
    )


def _is_newer(stack: Stack, version: str) -> bool:
    """Above what is pinned by more than a patch."""
    named = [release(part.strip().lstrip("<>=!~")) for part in stack.transformers.split(",")]
    return release(version)[:2] > max(named)[:2] or any(
        part.strip().startswith("<") and release(version) >= release(part.strip().lstrip("<="))
        for part in stack.transformers.split(",")
    )


@rows("compat.glibc")
def glibc_rows(
    glibc: Glibc,
    python: TargetPython,
    torch_npu_table: TorchNpuTable,
    vllm_ascend_table: VllmAscendTable,
    pairs: Pairs,
) -> tuple[Pair, ...] | Missing:
    """glibc with torch_npu and vllm-ascend, each where it is installed."""
    if isinstance(python.packages, Missing):
        return python.packages
    library = Part("glibc", glibc.version, "", "glibc.version")
    todo = (step(pairs, "glibc"),)
    torch_npu, plugin = package(python, "torch_npu"), package(python, "vllm_ascend")
    found = []
    if torch_npu:
        found.append(pair([library, torch_npu], _glibc_of_torch(torch_npu_table, library, torch_npu), pairs, todo))
    if plugin:
        judged = _glibc_of_plugin(vllm_ascend_table, library, plugin, python.machine)
        found.append(pair([library, plugin], judged, pairs, todo, reads=("python.machine",)))
    return tuple(found)


def _glibc_of_torch(table: TorchNpuTable, glibc: Part, torch_npu: Part) -> Judged:
    if isinstance(glibc.version, Missing) or isinstance(torch_npu.version, Missing):
        return Judged(FITS, "")
    wheels = [w for w in table.wheels if release(w.torch_from) <= release(torch_npu.version)]
    if not wheels or meets("glibc", f">={wheels[-1].glibc}", glibc.version) is not False:
        return Judged(FITS, "")
    return Judged("glibc-torch", "warning", f"glibc {wheels[-1].glibc}", (table.wheels_source,))


def _glibc_of_plugin(table: VllmAscendTable, glibc: Part, plugin: Part, machine: str | Missing) -> Judged | Missing:
    if isinstance(glibc.version, Missing) or isinstance(plugin.version, Missing):
        return Judged(FITS, "")
    stack = stack_of(table, plugin.version)
    if stack is None or not stack.glibc:
        return Judged(FITS, "")
    if isinstance(machine, Missing):
        return machine
    wanted = stack.glibc.get(machine, "")
    if not wanted or meets("glibc", f">={wanted}", glibc.version) is not False:
        return Judged(FITS, "", sources=stack.sources)
    return Judged("glibc-vllm", "warning", f"glibc {wanted}", stack.sources)
