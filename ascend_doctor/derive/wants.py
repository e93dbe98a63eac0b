"""What a part wants of the others, by the tables; the release need not be installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ascend_doctor.derive.compat_python import need_of, stack_of
from ascend_doctor.derive.compat_torch import builds_of
from ascend_doctor.derive.nearest import Tables
from ascend_doctor.derive.parts import ordered, release
from ascend_doctor.knowledge.cann_needs import CannNeeds
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.records import dataclass
from ascend_doctor.versions import compare, covers, parse, release_of


@dataclass(frozen=True)
class Want:
    """``part`` in one of these versions, or in a range."""

    part: str
    versions: tuple[str, ...]
    sources: tuple[Source, ...]

    def __str__(self) -> str:
        return f"{self.part} {' | '.join(self.versions)}"


def wants(part: str, version: str, tables: Tables, needs: CannNeeds) -> tuple[Want, ...]:
    """Nothing where no table knows this version."""
    if part in needs.users:
        return tuple(_user(part, version, needs))
    found = _WANTS.get(part)
    return tuple(found(version, tables, needs)) if found else ()


def known(part: str, tables: Tables, needs: CannNeeds) -> tuple[str, ...]:
    """The versions that the tables know, oldest first; empty for a part that they do not."""
    if part in needs.users:
        return tuple(user.version for user in needs.users[part])
    listed: Mapping[str, Callable[[], Iterator[str]]] = {
        "vllm_ascend": lambda: (stack.version for stack in tables.vllm_ascend.releases),
        "torch_npu": lambda: (build for row in tables.torch_npu.builds for build in row.torch_npu),
        "cann": lambda: (row.cann for row in tables.compatibility.releases),
    }
    return tuple(listed[part]()) if part in listed else ()


def _vllm_ascend(version: str, tables: Tables, needs: CannNeeds) -> Iterator[Want]:
    stack = stack_of(tables.vllm_ascend, version)
    if stack is None:
        return
    builds = (stack.torch_npu, stack.wheel_torch_npu)
    stated = (
        ("vllm", stack.vllm),
        ("torch", (stack.torch,)),
        ("torch_npu", builds),
        ("cann", (stack.cann,)),
        ("triton_ascend", (stack.triton_ascend,)),
        ("python", (stack.python,)),
        ("transformers", (stack.transformers,)),
        ("driver", (stack.driver,)),
    )
    for part, versions in stated:
        named = tuple(filter(None, versions))
        if named:
            yield Want(part, named, stack.sources)
    if not stack.driver:
        yield from (want for want in _cann(stack.cann, tables, needs) if want.part == "driver")


def _torch_npu(version: str, tables: Tables, needs: CannNeeds) -> Iterator[Want]:
    row = builds_of(tables.torch_npu, version)
    shipped = [cann for build, cann in tables.torch_npu.shipped if ordered("torch_npu", build, version) == 0]
    if row is None and not shipped:
        return
    yield Want("torch", (".".join(map(str, release(version))),), (tables.torch_npu.pair,))
    sources = (*(row.sources if row else ()), *((tables.torch_npu.shipped_source,) if shipped else ()))
    named = tuple(dict.fromkeys((*(row.cann if row else ()), *shipped)))
    if named:
        yield Want("cann", named, sources)


def _cann(version: str, tables: Tables, needs: CannNeeds) -> Iterator[Want]:
    found = parse("cann", version)
    name = (release_of(found) or version) if found else version
    row = next((r for r in tables.compatibility.releases if compare("cann", r.cann, name) == 0), None)
    if row and (row.recommended or row.compatible):
        yield Want("driver", tuple(dict.fromkeys((*row.recommended, *row.compatible))), row.sources)
    need = need_of(needs, name) if row else None
    if need:
        yield Want("python", (need.python,), need.sources)
        yield Want("numpy", (need.numpy,), need.sources)


def _driver(version: str, tables: Tables, needs: CannNeeds) -> Iterator[Want]:
    number = parse("driver", version)
    packages = [p for p in tables.compatibility.packages if number and covers("driver", p.driver, version)]
    if packages:
        own = next((p for p in packages if compare("driver", p.driver, version) == 0), packages[0])
        yield Want("firmware", own.firmware, (own.source,))


def _user(part: str, version: str, needs: CannNeeds) -> Iterator[Want]:
    user = next((u for u in needs.users[part] if ordered(part, u.version, version) == 0), None)
    if user:
        yield Want("cann", user.cann, user.sources)


_WANTS: Mapping[str, Callable[[str, Tables, CannNeeds], Iterator[Want]]] = {
    "vllm_ascend": _vllm_ascend,
    "torch_npu": _torch_npu,
    "cann": _cann,
    "driver": _driver,
}
