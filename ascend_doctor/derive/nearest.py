"""The nearest set that fits: of all rows of the tables the one that keeps most of what is installed.

A change of CANN, Python or driver costs more than one of a Python package, because it costs an administrator more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ascend_doctor.derive.hdk_fit import fit
from ascend_doctor.derive.pair import step
from ascend_doctor.derive.parts import meets, ordered, release
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.compatibility import Compatibility
from ascend_doctor.knowledge.pairs import Pairs
from ascend_doctor.knowledge.reading import NEVER_AN_ERROR
from ascend_doctor.knowledge.remedies import RemedyStep
from ascend_doctor.knowledge.torch_npu_table import TorchNpuTable
from ascend_doctor.knowledge.vllm_ascend_table import Stack, VllmAscendTable
from ascend_doctor.records import dataclass
from ascend_doctor.versions import covers

PRICE = {"driver": 5, "python": 4, "cann": 3, "vllm_ascend": 2}
"""Of a change; any other part costs 1."""

PACKAGES = ("torch", "torch_npu", "vllm_ascend", "triton_ascend")
"""What one call of pip installs; vLLM goes before, alone."""

LAST_TORCH_PLUS_CPU = (2, 11)


@dataclass(frozen=True)
class Change:
    """``wanted``: part -> version, of the parts that have to change; empty where the set fits already."""

    wanted: Mapping[str, str]

    def __str__(self) -> str:
        return ", ".join(f"{name} {version}" for name, version in self.wanted.items())


@dataclass(frozen=True)
class Tables:
    """The tables that a search goes through."""

    torch_npu: TorchNpuTable
    vllm_ascend: VllmAscendTable
    compatibility: Compatibility


def nearest(installed: Mapping[str, str], tables: Tables, is_310p: bool = False) -> Change | None:
    """``installed``: part -> version of what is here and known; None where no row helps."""
    candidates = _stacks(installed, tables, is_310p) if "vllm_ascend" in installed else _builds(installed, tables)
    priced = [(_price(wanted, tables, installed), -number, wanted) for number, wanted in enumerate(candidates)]
    return Change(min(priced, key=lambda one: one[:2])[2]) if priced else None


def _price(wanted: Mapping[str, str], tables: Tables, installed: Mapping[str, str]) -> float:
    price = float(sum(PRICE.get(name, 1) for name in wanted))
    if "vllm_ascend" in wanted and "rc" in wanted["vllm_ascend"]:
        price += 0.5  # of two that cost the same, the release
    if "cann" in wanted and "driver" in installed:
        served = fit(tables.compatibility, wanted["cann"], installed["driver"], False, Missing(Reason.ABSENT))
        if isinstance(served, Missing) or served.severity in ("error", "warning"):
            price += PRICE["driver"]
    return price


def _stacks(installed: Mapping[str, str], tables: Tables, is_310p: bool) -> Iterator[dict[str, str]]:
    for stack in tables.vllm_ascend.releases:
        if stack.torch_npu:
            yield dict(_of_stack(stack, installed, is_310p))


def _of_stack(stack: Stack, installed: Mapping[str, str], is_310p: bool) -> Iterator[tuple[str, str]]:
    """What this release needs and the host has not."""
    here = installed.get
    if ordered("vllm_ascend", here("vllm_ascend", ""), stack.version) != 0:
        yield "vllm_ascend", stack.version
    if "vllm" not in installed or not any(release(installed["vllm"]) == release(v) for v in stack.vllm):
        yield "vllm", stack.vllm[-1]
    if release(here("torch", "")) != release(stack.torch):
        yield "torch", stack.torch
    builds = (stack.torch_npu, stack.wheel_torch_npu or stack.torch_npu)
    if not any(ordered("torch_npu", here("torch_npu", ""), build) == 0 for build in builds):
        yield "torch_npu", stack.torch_npu
    triton = "" if is_310p else stack.triton_ascend
    if triton and release(here("triton_ascend", "")) != release(triton):
        yield "triton_ascend", triton
    cann = (is_310p and stack.cann_310p) or stack.cann
    if "cann" in installed and not covers("cann", cann, installed["cann"]):
        yield "cann", cann
    if "python" in installed and stack.python and meets("python", stack.python, installed["python"]) is False:
        yield "python", stack.python


def _builds(installed: Mapping[str, str], tables: Tables) -> Iterator[dict[str, str]]:
    for builds in reversed(tables.torch_npu.builds):
        if not builds.cann or all(source.confidence in NEVER_AN_ERROR for source in builds.sources):
            continue
        for build in builds.torch_npu:
            wanted = {}
            torch = ".".join(map(str, release(build)))
            if release(installed.get("torch", "")) != release(build):
                wanted["torch"] = torch
            if ordered("torch_npu", installed.get("torch_npu", ""), build) != 0:
                wanted["torch_npu"] = build
            shipped = [cann for name, cann in tables.torch_npu.shipped if name == build]
            if "cann" in installed and not any(covers("cann", c, installed["cann"]) for c in (*builds.cann, *shipped)):
                wanted["cann"] = next((c for c in builds.cann if not c.endswith("X")), f"{builds.cann[0][:-1]}0")
            if "python" in installed and _python(build, builds.python_up_to, tables) is not None:
                fits = meets("python", str(_python(build, builds.python_up_to, tables)), installed["python"])
                if fits is False:
                    wanted["python"] = str(_python(build, builds.python_up_to, tables))
            yield wanted


def _python(build: str, newest: str, tables: Tables) -> str | None:
    """``>=3.9,<3.12``: the Pythons that have a wheel of the build."""
    wheels = [w for w in tables.torch_npu.wheels if release(w.torch_from) <= release(build)]
    if not wheels or not newest:
        return None
    major, minor = newest.split(".")
    return f">={wheels[-1].python_from},<{major}.{int(minor) + 1}"


def steps(change: Change | None, pairs: Pairs, python: str, arch: str | Missing) -> tuple[RemedyStep, ...]:
    """What to type to get there."""
    if change is None or not change.wanted:
        return ()
    wanted = change.wanted
    found = []
    if "python" in wanted:
        found.append(step(pairs, "python", version=wanted["python"]))
    if "cann" in wanted:
        found.append(step(pairs, "cann", version=wanted["cann"]))
    if "vllm" in wanted:
        found.append(step(pairs, "vllm", python=python, version=wanted["vllm"]))
    packages = [f"{name.replace('_', '-')}=={wanted[name]}" for name in PACKAGES if name in wanted]
    if packages:
        named = " ".join([*packages, *_indexes(wanted, pairs, arch)])
        found.append(step(pairs, "pip", quote=False, python=python, set=str(change), packages=named))
    return tuple(found)


def _indexes(wanted: Mapping[str, str], pairs: Pairs, arch: str | Missing) -> list[str]:
    """Where pip finds what PyPI lacks."""
    found = []
    if "torch_npu" in wanted or "triton_ascend" in wanted:
        found.append(pairs.indexes["vendor"])
    if "torch" in wanted and arch == "x86_64" and release(wanted["torch"])[:2] <= LAST_TORCH_PLUS_CPU:
        found.append(pairs.indexes["cpu"])
    return [f"--extra-index-url {url}" for url in found]
