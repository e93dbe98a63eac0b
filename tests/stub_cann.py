"""A stub CANN, compiled with gcc: libraries under which the real ``import torch_npu`` passes, or fails as a test wants.

``Stub().build(folder)`` writes them all; ``Stub(without={"aclInit"})`` leaves functions out, ``library`` compiles one
library in any other way. How they behave when called: native/stub_cann.c.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

NATIVE = Path(__file__).parent / "native"
SOURCE = (NATIVE / "stub_cann.c").read_text(encoding="utf-8")

NEEDS = {
    "libascend_hal.so": (),
    "libprofapi.so": (),
    "libruntime.so": ("libascend_hal.so",),
    "libascendcl.so": ("libruntime.so", "libprofapi.so"),
    "libacl_op_compiler.so": (),
    "libge_runner.so": (),
    "libgraph.so": (),
    "libacl_tdt_channel.so": (),
    "libhccl.so": (),
}
"""Library -> what it needs, in an order in which they can be linked. libascend_hal.so is the driver's."""

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@dataclass(frozen=True)
class Function:
    """``linked``: torch_npu links it; else it looks the name up when it first calls the function."""

    library: str
    name: str
    linked: bool


def functions() -> list[Function]:
    """Those that torch_npu uses."""
    lines = (NATIVE / "stub_cann.txt").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if not line.startswith("#")]
    return [Function(library, name, how == "linked") for library, name, how in words]


@dataclass(frozen=True)
class Stub:
    """``without``: functions that are left out, as in a CANN that does not have them yet."""

    without: Collection[str] = ()

    def build(self, folder: Path, libraries: Collection[str] = tuple(NEEDS)) -> Path:
        """Compiles the libraries into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in NEEDS:
            if name in libraries:
                compiled(
                    folder / name,
                    self.source(name),
                    [folder / needed for needed in NEEDS[name]],
                    [f"-DSTUB_{name[3:-3]}"],
                )
        return folder

    def defines(self, library: str, function: str) -> bool:
        """Whether a function belongs to a library."""
        return any(f.library == library and f.name == function for f in functions())

    def source(self, library: str) -> str:
        """The special functions, then a plain one for each other name; a left out one is renamed."""
        plain = [
            f"int {f.name}(void) {{ return CALLED; }}"
            for f in functions()
            if f.library == library and f.name not in self.without and not re.search(rf"\b{f.name}\(", SOURCE)
        ]
        renamed = [f"#define {name} left_out_{name}" for name in sorted(self.without)]
        marker = f"int {library[:-3]}_is_a_stub(void) {{ return CALLED; }}"
        return "\n".join([*renamed, SOURCE, marker, *plain])


def compiled(path: Path, source: str, needs: Sequence[Path] = (), options: Sequence[str] = ()) -> Path:
    """A shared library of C source that needs the libraries in this order; its soname is its file name.

    ``options`` come last: -Wl,-soname gives it another soname.
    """
    with tempfile.TemporaryDirectory() as work:
        code = Path(work) / "library.c"
        code.write_text(source, encoding="utf-8")
        search = [f"-Wl,-rpath-link,{folder}" for folder in {needed.parent for needed in needs}]
        soname = f"-Wl,-soname,{path.name}"
        command = ["gcc", "-w", "-shared", "-fPIC", soname, *options, "-o", str(path), str(code)]
        command += ["-Wl,--no-as-needed", *map(str, needs), *search]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return path


OF_PROFILER = frozenset({"aclAppLog"})
OF_TENSORPIPE = frozenset({"aclGetRecentErrMsg", "aclrtGetDeviceCount"})
OF_TORCH = "_ZN5torch8autograd10deleteNodeEPNS0_4NodeE"


def python_packages(site: Path, cann: Path, tag: str, torch_symbol: str = OF_TORCH) -> Path:
    """A torch and a torch_npu in small, linked as the real ones are: which library needs which, and DT_RPATH.

    ``torch_symbol``: the function of torch that torch_npu wants.
    """
    torch, torch_npu = site / "torch", site / "torch_npu"
    for folder in (torch / "lib", torch_npu / "lib"):
        folder.mkdir(parents=True, exist_ok=True)
    modern = ["-Wl,--enable-new-dtags"]
    beside = [*modern, "-Wl,-rpath,$ORIGIN"]
    compiled(torch / "lib" / "libtorch_global_deps.so", "int only_deps;", (), beside)
    cpu = compiled(torch / "lib" / "libtorch_cpu.so", f"int {OF_TORCH}(void) {{ return 0; }}", (), beside)
    python = compiled(torch / "lib" / "libtorch_python.so", "int THPModule_init;", [cpu], beside)
    compiled(torch / f"_C.{tag}.so", "int PyInit__C;", [python], [*modern, "-Wl,-rpath,$ORIGIN/lib"])

    old = ["-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/lib/:$ORIGIN/"]
    linked = [f for f in functions() if f.linked]
    of_cann = [cann / name for name in ("libhccl.so", "libascendcl.so", "libacl_op_compiler.so")]
    of_cann += [cann / name for name in ("libge_runner.so", "libgraph.so")]
    profiler = compiled(torch_npu / "lib" / "libnpu_profiler.so", _user(OF_PROFILER), [cpu], old)
    tdt = cann / "libacl_tdt_channel.so"
    tensorpipe = compiled(torch_npu / "lib" / "libtensorpipe.so", _user(OF_TENSORPIPE), [*of_cann, tdt], old)
    names = ", ".join(f'"{f.name}"' for f in functions() if not f.linked)
    main = _user({f.name for f in linked} - OF_PROFILER - OF_TENSORPIPE | {torch_symbol})
    main += f"\nconst char *const looked_up[] = {{{names}}};"
    needs = [*of_cann, python, tensorpipe, profiler, cpu]
    library = compiled(torch_npu / "lib" / "libtorch_npu.so", main, needs, old)
    own = [old[0], "-Wl,-rpath,$ORIGIN/lib"]
    compiled(torch_npu / f"_C.{tag}.so", "int PyInit__C;", [library, cpu, python, cann / "libhccl.so"], own)
    return site


def _user(names: Collection[str]) -> str:
    """Source that refers to functions by name."""
    declared = "\n".join(f"int {name}(void);" for name in sorted(names))
    return f"{declared}\nvoid *const used[] = {{{', '.join(sorted(names))}}};"
