"""What stands beside the CANN in use: NNAL, operators for the chips that are here, custom operators, architecture."""

from __future__ import annotations

from dataclasses import replace

from ascend_doctor.derive import rows
from ascend_doctor.derive.pair import FITS, Judged, Pair, pair, step
from ascend_doctor.derive.parts import Part, cann_in_use, chip_families, chip_part, meets, package, release
from ascend_doctor.facts.cann import Cann
from ascend_doctor.facts.nnal import VARIABLE, Installation, Nnal
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.operators import Operators, Vendor
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.facts.torch_build import TorchBuild
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.cann_needs import CannNeeds
from ascend_doctor.knowledge.chips import Chips, Family
from ascend_doctor.knowledge.pairs import Pairs
from ascend_doctor.versions import compare, covers, parse, release_of

GROUP_TOPK = ">=2.5.1.dev20250218,<=2.5.1"
"""Builds of torch_npu that reference an operator which the ATB before their CANN lacks."""

ARCHITECTURES = ("aarch64", "x86_64")


@rows("compat.nnal")
def nnal_rows(
    cann: Cann, nnal: Nnal, python: TargetPython, torch_build: TorchBuild, pairs: Pairs
) -> tuple[Pair, ...] | Missing:
    """NNAL where vllm-ascend needs it, with CANN where both are there, and its C++ ABI with torch's."""
    if isinstance(python.packages, Missing):
        return python.packages
    plugin, root = package(python, "vllm_ascend"), cann_in_use(cann)
    if isinstance(nnal.installations, Missing):
        if nnal.installations.reason is not Reason.ABSENT:
            return nnal.installations if plugin else ()
        return (_missing(plugin, root, pairs),) if plugin else ()
    chosen = _chosen(nnal.installations)
    if isinstance(chosen, Missing):
        return chosen
    number, installation = chosen
    part = Part("nnal", installation.version, installation.path, f"nnal.installations[{number}].version")
    found = []
    if plugin:
        found.append(pair([part], Judged(FITS, ""), pairs))
    if isinstance(root, Part):
        judged = _with_cann(root, part, package(python, "torch_npu"))
        version = root.version if isinstance(root.version, str) else ""
        found.append(pair([root, part], judged, pairs, (step(pairs, "nnal", version=version),)))
    if package(python, "torch_npu") and not _is_absent(nnal.selected_abi):
        found.append(_abi(part, nnal, torch_build, pairs))
    return tuple(found)


def _missing(plugin: Part, root: Part | Missing, pairs: Pairs) -> Pair:
    version = root.version if isinstance(root, Part) and isinstance(root.version, str) else "VERSION"
    nothing = Part("nnal", "-", "/usr/local/Ascend/nnal", "nnal.installations")
    todo = (step(pairs, "nnal", version=version),)
    row = pair([nothing], Judged("nnal-missing", "error", f"nnal {version}"), pairs, todo)
    return replace(row, reads=(*row.reads, plugin.path))


def _chosen(found: tuple[Installation, ...]) -> tuple[int, Installation] | Missing:
    """The one that ATB_HOME_PATH selects, else the last, which ``latest`` is."""
    for number, one in enumerate(found):
        if one.selected is True:
            return number, one
        if isinstance(one.selected, Missing) and len(found) > 1:
            return one.selected
    return len(found) - 1, found[-1]


def _with_cann(root: Part, nnal: Part, torch_npu: Part | None) -> Judged | Missing:
    if isinstance(root.version, Missing) or isinstance(nnal.version, Missing):
        return Judged(FITS, "")
    wanted = f"nnal {root.version}"
    order = compare("cann", nnal.version, root.version)
    if order is None:
        return Missing(Reason.FAILED, f"NNAL {nnal.version} and CANN {root.version} cannot be compared", nnal.path)
    if order == 0 or covers("cann", nnal.version, root.version):
        return Judged(FITS, "", wanted)
    build = torch_npu.version if torch_npu and isinstance(torch_npu.version, str) else ""
    if order == -1 and meets("torch_npu", GROUP_TOPK, build):
        return Judged("nnal-older-operator", "error", wanted)
    same = release(nnal.version)[:2] == release(root.version)[:2]
    return Judged("nnal-other", "info" if same else "warning", wanted)


def _abi(nnal: Part, facts: Nnal, torch_build: TorchBuild, pairs: Pairs) -> Pair:
    selected, compiled = facts.selected_abi, torch_build.cxx_abi
    reads = ("nnal.selected_abi", "torch_build.cxx_abi")
    parts = [
        Part("nnal", selected if isinstance(selected, Missing) else f"cxx_abi_{selected}", VARIABLE, reads[0]),
        Part("torch", compiled if isinstance(compiled, Missing) else f"cxx_abi_{compiled}", "", reads[1]),
    ]
    judged: Judged | Missing = Judged(FITS, "")
    if isinstance(compiled, Missing) and compiled.reason is Reason.ABSENT:
        judged = Missing(Reason.UNSUPPORTED, "torch does not say its C++ ABI", reads[1])
        parts[1] = replace(parts[1], version="-")
    elif selected != compiled:
        judged = Judged("nnal-abi", "error", f"ATB_HOME_PATH .../cxx_abi_{compiled}")
    return pair(parts, judged, pairs, (step(pairs, "abi", path=nnal.where.rsplit("/", 1)[0]),))


def _is_absent(value: object) -> bool:
    return isinstance(value, Missing) and value.reason in (Reason.ABSENT, Reason.UNSUPPORTED)


@rows("compat.operators")
def operators_rows(
    cann: Cann,
    operators: Operators,
    npu: Npu,
    pci: Pci,
    chips: Chips,
    cann_needs: CannNeeds,
    pairs: Pairs,
) -> tuple[Pair, ...] | Missing:
    """Kernels for the chips that are here, and the release of the operator package with the toolkit's."""
    if isinstance(operators.socs, Missing):
        return operators.socs
    root = cann_in_use(cann)
    version = root.version if isinstance(root, Part) and isinstance(root.version, str) else "VERSION"
    families, chip = chip_families(npu, pci, chips), chip_part(npu, pci, chips)
    path = operators.path if isinstance(operators.path, str) else ""
    kernels = Part("kernels", ", ".join(operators.socs) or "-", path, "operators.socs")
    lacking = _lacking(families, operators.socs)
    judged: Judged | Missing = Judged(FITS, "")
    todo = []
    if isinstance(lacking, Missing):
        judged = lacking
    elif lacking:
        wanted = ", ".join(name for family in lacking for name in family.kernels)
        judged = Judged("kernels-other" if operators.socs else "kernels-missing", "error", wanted)
        todo = [step(pairs, "kernels", quote=False, package=_package(lacking[0], version)), step(pairs, "image")]
    found = [pair([chip, kernels], judged, pairs, todo)]
    if isinstance(root, Part) and not _is_absent(operators.release):
        package_of = Part("kernels", operators.release, path, "operators.release")
        found.append(pair([root, package_of], _released(cann_needs, root, package_of), pairs))
    return tuple(found)


def _lacking(families: tuple[Family, ...] | Missing, socs: tuple[str, ...]) -> tuple[Family, ...] | Missing:
    if isinstance(families, Missing):
        return families
    there = {soc.lower() for soc in socs}
    return tuple(family for family in families if not there & set(family.kernels))


def _package(family: Family, version: str) -> str:
    """The file to run; from 8.5 on it has another name."""
    name = f"Ascend-cann-{family.package}-ops"
    if compare("cann", version, "8.5.0") == -1:
        name = f"Ascend-cann-kernels-{family.package}"
    return f'bash {name}_{version}_linux-"$(uname -m)".run --install'


def _released(table: CannNeeds, root: Part, kernels: Part) -> Judged:
    if isinstance(root.version, Missing) or isinstance(kernels.version, Missing):
        return Judged(FITS, "")
    found, package_of = parse("cann", root.version), parse("cann", kernels.version)
    if found is None or package_of is None:
        return Judged(FITS, "")
    toolkit, served = release_of(found) or root.version, release_of(package_of) or kernels.version
    if compare("cann", toolkit, served) == 0:
        return Judged(FITS, "")
    for row in table.operators:
        if any(covers("cann", o, served) for o in row.operators) and any(
            covers("cann", t, toolkit) for t in row.toolkit
        ):
            return Judged(FITS, "", sources=row.sources)
    return Judged("kernels-release", "warning", f"operators of CANN {root.version}", (table.inferred,))


@rows("compat.opp_vendors")
def opp_vendors(operators: Operators, npu: Npu, pci: Pci, chips: Chips, pairs: Pairs) -> tuple[Pair, ...] | Missing:
    """One row for each custom operator package that config.ini or the environment names."""
    if isinstance(operators.vendors, Missing):
        return operators.vendors
    families, chip = chip_families(npu, pci, chips), chip_part(npu, pci, chips)
    found = []
    for number, vendor in enumerate(operators.vendors):
        row = _vendor(vendor, f"operators.vendors[{number}]", families, chip, pairs)
        found.append(replace(row, name=vendor.path))
    return tuple(found)


def _vendor(vendor: Vendor, path: str, families: tuple[Family, ...] | Missing, chip: Part, pairs: Pairs) -> Pair:
    components = ("kernels", "opp_vendor")
    there = Part("opp_vendor", vendor.name, vendor.path, f"{path}.there")
    if isinstance(vendor.there, Missing):
        return pair([there], vendor.there, pairs, components=components)
    if not vendor.there:
        gone = Judged("vendor-missing", "warning", vendor.path)
        return pair([replace(there, where=f"{vendor.path}, {vendor.named_by}")], gone, pairs, components=components)
    kernels = Part("opp_vendor", vendor.name, vendor.path, f"{path}.socs")
    if _is_absent(vendor.socs):
        return pair([kernels], Judged(FITS, ""), pairs, components=components)
    if isinstance(vendor.socs, Missing):
        return pair([kernels], vendor.socs, pairs, components=components)
    kernels = replace(kernels, where=f"{vendor.path}: {', '.join(vendor.socs)}")
    lacking = _lacking(families, vendor.socs) if vendor.socs else ()
    if isinstance(lacking, Missing):
        return pair([chip, kernels], lacking, pairs, components=("chip", "opp_vendor"))
    judged = Judged("vendor-other", "warning", ", ".join(lacking[0].kernels)) if lacking else Judged(FITS, "")
    return pair([chip, kernels], judged, pairs, (step(pairs, "image"),), ("chip", "opp_vendor"))


@rows("compat.architecture")
def architecture(cann: Cann, python: TargetPython, pairs: Pairs) -> tuple[Pair, ...] | Missing:
    """The machine with the selected CANN."""
    root = cann_in_use(cann)
    if isinstance(root, Missing) or isinstance(cann.roots, Missing):
        return root if isinstance(root, Missing) else ()
    number = next(n for n, one in enumerate(cann.roots) if one.path == root.where)
    arch = cann.roots[number].arch
    if _is_absent(arch):
        return ()
    machine = Part("arch", python.machine, "", "python.machine")
    built = Part("cann", arch, root.where, f"cann.roots[{number}].arch")
    judged = Judged(FITS, "")
    if isinstance(arch, str) and isinstance(python.machine, str):
        if python.machine not in ARCHITECTURES:
            judged = Judged("arch-unsupported", "error", ", ".join(ARCHITECTURES))
        elif arch.replace("arm64", "aarch64") != python.machine:
            judged = Judged("arch-other", "error", python.machine)
    version = root.version if isinstance(root.version, str) else "VERSION"
    todo = (step(pairs, "cann", version=version),) if machine.version in ARCHITECTURES else ()
    return (pair([built, machine], judged, pairs, todo),)
