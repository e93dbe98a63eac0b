"""What serves models: vllm-ascend with all that it is made for, MindIE and MindSpore with CANN, Triton."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ascend_doctor.derive import rows
from ascend_doctor.derive.compat_python import stack_of
from ascend_doctor.derive.compat_torch import installed
from ascend_doctor.derive.nearest import Tables, nearest, steps
from ascend_doctor.derive.pair import FITS, Judged, Pair, pair, step
from ascend_doctor.derive.parts import (
    Part,
    cann_in_use,
    chip_families,
    chip_part,
    executable,
    is_source_build,
    ordered,
    package,
    release,
)
from ascend_doctor.facts.cann import Cann
from ascend_doctor.facts.driver import Driver
from ascend_doctor.facts.mindie import MindIE
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.cann_needs import CannNeeds, User
from ascend_doctor.knowledge.chips import Chips, Family
from ascend_doctor.knowledge.compatibility import Compatibility
from ascend_doctor.knowledge.pairs import Pairs
from ascend_doctor.knowledge.torch_npu_table import TorchNpuTable
from ascend_doctor.knowledge.vllm_ascend_table import NEVER, Stack, VllmAscendTable
from ascend_doctor.versions import compare, covers, parse, release_of

PLUGIN = "vllm_ascend"
SMALL = "310p"


@rows("compat.vllm_ascend")
def vllm_ascend(
    cann: Cann,
    python: TargetPython,
    driver: Driver,
    npu: Npu,
    pci: Pci,
    chips: Chips,
    torch_npu_table: TorchNpuTable,
    vllm_ascend_table: VllmAscendTable,
    compatibility: Compatibility,
    pairs: Pairs,
) -> tuple[Pair, ...] | Missing:
    """vllm-ascend with the chip, vLLM, torch, torch_npu and the selected CANN, each where it is there."""
    if isinstance(python.packages, Missing):
        return python.packages
    plugin = package(python, PLUGIN)
    if plugin is None:
        return ()
    families = chip_families(npu, pci, chips)
    found = [_on_chip(chip_part(npu, pci, chips), families, plugin, vllm_ascend_table, pairs)]
    small = isinstance(families, tuple) and any(family.family == SMALL for family in families)
    root = cann_in_use(cann)
    change = None
    judged = list(_judged(plugin, vllm_ascend_table, python, root, families))
    if any(isinstance(one, Judged) and one.severity in ("error", "warning") for _, one in judged):
        tables = Tables(torch_npu_table, vllm_ascend_table, compatibility)
        change = nearest(installed(python, root, driver.version), tables, small)
    todo = steps(change, pairs, executable(python), python.machine)
    for part, one in judged:
        grave = isinstance(one, Judged) and one.severity in ("error", "warning")
        row = pair([part, plugin], one, pairs, todo if grave else ())
        found.append(replace(row, reads=(*row.reads, "npu.chips")) if part.name == "cann" else row)
    return tuple(found)


def _on_chip(
    chip: Part, families: tuple[Family, ...] | Missing, plugin: Part, table: VllmAscendTable, pairs: Pairs
) -> Pair:
    """Families that the plugin does not know, or knows from a later release on; a source build may know any."""
    todo = (step(pairs, "image"),)
    if isinstance(families, Missing):
        return pair([chip, plugin], families, pairs)
    for family in families:
        first = table.chips.get(family.family, "")
        if first == NEVER:
            return pair([chip, replace(plugin, version=_any(plugin))], Judged("chip-never", "error"), pairs)
        if isinstance(plugin.version, Missing) or not first or is_source_build(plugin.version):
            continue
        if ordered(PLUGIN, plugin.version, first) == -1:
            return pair([chip, plugin], Judged("chip-later", "error", f"{PLUGIN} {first}"), pairs, todo)
    return pair([chip, plugin], Judged(FITS, ""), pairs)


def _any(plugin: Part) -> str:
    """The generation is not supported by any release, so a version that nobody could read does not matter."""
    return "" if isinstance(plugin.version, Missing) else plugin.version


def _judged(
    plugin: Part,
    table: VllmAscendTable,
    python: TargetPython,
    root: Part | Missing,
    families: tuple[Family, ...] | Missing,
) -> list[tuple[Part, Judged | Missing]]:
    """Each other part that is here, with what the release table says of it."""
    others = [package(python, name) for name in ("vllm", "torch", "torch_npu")]
    here = [part for part in others if part]
    if isinstance(root, Part):
        here.append(root)
    if isinstance(plugin.version, Missing):
        return [(part, Judged(FITS, "")) for part in here]
    stack = None if is_source_build(plugin.version) else stack_of(table, plugin.version)
    if stack is None:
        relation = "stack-source-build" if is_source_build(plugin.version) else "stack-unlisted"
        return [(part, Judged(relation, "info" if part is here[0] else "")) for part in here]
    found: list[tuple[Part, Judged | Missing]] = [(part, _of_stack(stack, part)) for part in here if part is not root]
    if isinstance(root, Part):
        found.append((root, _cann(stack, root, families)))
    names = {part.name for part in here}
    for name, wanted in (("torch_npu", stack.torch_npu), ("vllm", stack.vllm[-1])):
        if name not in names and wanted:
            missing = Part(name, "-", "", "python.packages")
            relation = "stack-no-torch-npu" if name == "torch_npu" else "stack-no-vllm"
            found.append((missing, Judged(relation, "info", f"{name} {wanted}", stack.sources)))
    return found


def _of_stack(stack: Stack, part: Part) -> Judged:
    if isinstance(part.version, Missing):
        return Judged(FITS, "")
    version = part.version
    if part.name == "vllm":
        wanted = f"vllm {', '.join(stack.vllm)}"
        if any(release(version) == release(listed) for listed in stack.vllm):
            return Judged(FITS, "", wanted, stack.sources)
        same = any(release(version)[:2] == release(listed)[:2] for listed in stack.vllm)
        return Judged(*(("stack-vllm-patch", "warning") if same else ("stack-vllm", "error")), wanted, stack.sources)
    stated = stack.torch if part.name == "torch" else stack.torch_npu
    if not stated:
        return Judged(FITS, "")
    wanted = f"{part.name} {stated}"
    if release(version) != release(stated):
        relation = "stack-torch" if part.name == "torch" else "stack-torch-npu"
        return Judged(relation, "error", wanted, stack.sources)
    if part.name == "torch" or ordered("torch_npu", version, stated) == 0:
        return Judged(FITS, "", wanted, stack.sources)
    if stack.wheel_torch_npu and ordered("torch_npu", version, stack.wheel_torch_npu) == 0:
        return Judged("stack-pins", "info", wanted, stack.sources)
    if ordered("torch_npu", version, stack.wheel_torch_npu or stated) == -1 and "rc" in version:
        return Judged("stack-torch-npu", "error", wanted, stack.sources)  # a candidate of the release that is wanted
    return Judged("stack-build", "info", wanted, stack.sources)


def _cann(stack: Stack, root: Part, families: tuple[Family, ...] | Missing) -> Judged | Missing:
    if isinstance(root.version, Missing):
        return Judged(FITS, "")
    found, wanted = parse("cann", root.version), f"CANN {stack.cann}"
    if found is None:
        return Missing(Reason.FAILED, f"{root.version} is no CANN version", root.path)
    order = compare("cann", release_of(found) or root.version, stack.cann)
    if order == 0 or covers("cann", stack.cann, root.version):
        return Judged(FITS, "", wanted, stack.sources)
    if stack.cann_310p and compare("cann", root.version, stack.cann_310p) == 0:
        if isinstance(families, Missing):
            return families
        if any(family.family == SMALL for family in families):
            return Judged(FITS, "", f"CANN {stack.cann_310p}", stack.sources)
    if order == -1:
        return Judged("stack-cann-older", "error", wanted, stack.sources)
    return Judged("stack-cann-newer", "warning", wanted, stack.sources)


@rows("compat.mindie")
def mindie_rows(
    cann: Cann, mindie: MindIE, python: TargetPython, cann_needs: CannNeeds, pairs: Pairs
) -> tuple[Pair, ...] | Missing:
    """MindIE and MindSpore with the selected CANN, each where it is there."""
    users = []
    if not (isinstance(mindie.version, Missing) and mindie.version.reason is Reason.ABSENT):
        users.append(Part("mindie", mindie.version, mindie.file, "mindie.version"))
    if not isinstance(python.packages, Missing):
        mindspore = package(python, "mindspore")
        users += [mindspore] if mindspore else []
    if not users:
        return python.packages if isinstance(python.packages, Missing) else ()
    root = cann_in_use(cann)
    if isinstance(root, Missing):
        return root
    return tuple(_user(root, part, cann_needs.users.get(part.name, ()), pairs) for part in users)


def _user(root: Part, part: Part, table: Sequence[User], pairs: Pairs, severity: str = "warning") -> Pair:
    if isinstance(part.version, Missing) or isinstance(root.version, Missing):
        return pair([root, part], Judged(FITS, ""), pairs)
    row = next((u for u in table if ordered(part.name, u.version, part.version) == 0), None)
    if row is None:
        return pair([root, part], Judged(FITS, ""), pairs)
    wanted = f"{part.name} {part.version}: CANN {', '.join(row.cann)}"
    found = parse("cann", root.version)
    cann = (release_of(found) or root.version) if found else root.version
    if any(covers("cann", listed, cann) or covers("cann", listed, root.version) for listed in row.cann):
        return pair([root, part], Judged(FITS, "", wanted, row.sources), pairs)
    todo = (step(pairs, "cann", version=row.cann[-1]),)
    return pair([root, part], Judged("user-other", severity, wanted, row.sources), pairs, todo)


@rows("compat.triton")
def triton_rows(
    cann: Cann,
    python: TargetPython,
    npu: Npu,
    pci: Pci,
    chips: Chips,
    vllm_ascend_table: VllmAscendTable,
    cann_needs: CannNeeds,
    pairs: Pairs,
) -> tuple[Pair, ...] | Missing:
    """triton beside triton-ascend, either on a 310P, and triton-ascend with vllm-ascend and CANN."""
    if isinstance(python.packages, Missing):
        return python.packages
    triton, ascend, plugin = (package(python, name) for name in ("triton", "triton_ascend", PLUGIN))
    stack = _stack(vllm_ascend_table, plugin)
    found = []
    if triton and ascend:
        wanted = stack.triton_ascend if stack and stack.triton_ascend else ""
        packages = _with_index(f"triton-ascend=={wanted}" if wanted else "triton-ascend", pairs)
        todo = (step(pairs, "triton", quote=False, python=executable(python), packages=packages),)
        found.append(pair([triton, ascend], Judged("triton-both", "error", "triton-ascend"), pairs, todo))
    if (triton or ascend) and (plugin or ascend):
        part = ascend or triton
        assert part is not None
        found.append(_on_310p(chip_part(npu, pci, chips), chip_families(npu, pci, chips), part, python, pairs))
    if ascend:
        root = cann_in_use(cann)
        if plugin:
            found.append(pair([ascend, plugin], _triton_of(stack, ascend), pairs))
        elif isinstance(root, Part):
            found.append(_user(root, ascend, cann_needs.users["triton_ascend"], pairs, "info"))
    elif plugin and stack and stack.triton_ascend:
        nothing = Part("triton_ascend", "-", "", "python.packages")
        judged = Judged("triton-missing", "info", f"triton_ascend {stack.triton_ascend}", stack.sources)
        found.append(pair([nothing, plugin], judged, pairs))
    return tuple(found)


def _stack(table: VllmAscendTable, plugin: Part | None) -> Stack | None:
    if plugin is None or isinstance(plugin.version, Missing) or is_source_build(plugin.version):
        return None
    return stack_of(table, plugin.version)


def _with_index(packages: str, pairs: Pairs) -> str:
    return f"{packages} --extra-index-url {pairs.indexes['vendor']}"


def _on_310p(
    chip: Part, families: tuple[Family, ...] | Missing, triton: Part, python: TargetPython, pairs: Pairs
) -> Pair:
    if isinstance(families, Missing):
        return pair([chip, triton], families, pairs)
    if any(family.family == SMALL for family in families):
        todo = (step(pairs, "triton-remove", python=executable(python)),)
        return pair([chip, triton], Judged("triton-310p", "error"), pairs, todo)
    return pair([chip, triton], Judged(FITS, ""), pairs)


def _triton_of(stack: Stack | None, ascend: Part) -> Judged:
    if stack is None or not stack.triton_ascend or isinstance(ascend.version, Missing):
        return Judged(FITS, "")
    wanted = f"triton_ascend {stack.triton_ascend}"
    if release(ascend.version) == release(stack.triton_ascend):
        return Judged(FITS, "", wanted, stack.sources)
    return Judged("triton-stack", "warning", wanted, stack.sources)
