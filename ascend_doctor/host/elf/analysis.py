"""The libraries of a deployment: what the loader would make of them, as plain JSON values for facts/libraries.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from ascend_doctor.host.elf.loader import MACHINE_OF, Fault, Files, loader_of
from ascend_doctor.host.elf.process import Opening, Process, program_at, text_of
from ascend_doctor.host.elf.reader import Elf, ElfError, gnu_hash
from ascend_doctor.records import dataclass

CANN_LIBRARIES = ("libascendcl.so", "libhccl.so")
ATB_PLUGIN = "libop_plugin_atb.so"
MOST_LOOKUPS = 500
_FUNCTIONS = (re.compile(rb"\0(acl(?!nn)[a-z]*[A-Z]\w{2,80})(?=\0)"), re.compile(rb"\0(Hccl[A-Z]\w{2,80})(?=\0)"))


@dataclass(frozen=True)
class Question:
    """What is asked. ``python``: the target interpreter, with its version and folders of packages, "" and () if none.

    ``cann``: whether to open the libraries of CANN where torch_npu does not; ``libraries``: files to open besides;
    ``custom``: folders of custom operators; ``torch``: whether to open torch where there is no torch_npu.
    """

    arch: str
    library_path: str = ""
    preload: str = ""
    python: str = ""
    python_version: str = ""
    site: tuple[str, ...] = ()
    cann: bool = False
    custom: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    torch: bool = False
    root: str = "/"


def analyse(question: Question) -> dict[str, Any]:
    """Opens the libraries in the order in which a deployment does. Never raises for what files may be like."""
    analysis = _Analysis(question)
    try:
        return {"targets": [_plain(target) for target in analysis.targets()]}
    finally:
        analysis.close()


def _plain(value: Any) -> Any:
    """With marks in place of the bytes of file names that are no text."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


class _Analysis:
    def __init__(self, question: Question) -> None:
        self._question = question
        self._files = Files(question.root)
        self._processes: list[Process] = []

    def close(self) -> None:
        for process in self._processes:
            process.close()

    def targets(self) -> Iterator[dict[str, Any]]:
        torch_npu = self._package("torch_npu")
        others = [*self._custom(), *self._question.libraries]
        if torch_npu or others or self._question.torch:
            process = self._process(self._question.python)
            yield from self._of_python(process, torch_npu)
            yield from (self._target(path, path, process.open(path)) for path in others)
        if not torch_npu and self._question.cann:
            yield from self._of_cann(self._process(""))

    def _of_python(self, process: Process, torch_npu: str) -> Iterator[dict[str, Any]]:
        """torch, which is whole where its packages are, so its symbols are not compared; then what builds on it."""
        torch = self._package("torch")
        if torch:
            process.open(f"{torch}/lib/libtorch_global_deps.so", is_global=True, symbols=False)
            yield self._extension(process, "torch", torch, "_C", symbols=False)
        if torch_npu:
            yield self._extension(process, "torch_npu", torch_npu, "_C")
            if ATB_PLUGIN in self._files.names(f"{torch_npu}/lib"):
                plugin = f"{torch_npu}/lib/{ATB_PLUGIN}"
                yield self._target("torch_npu.atb", plugin, process.open(plugin))
        vllm_ascend = self._package("vllm_ascend")
        if vllm_ascend and any(name.startswith("vllm_ascend_C.") for name in self._files.names(vllm_ascend)):
            yield self._extension(process, "vllm_ascend", vllm_ascend, "vllm_ascend_C")

    def _of_cann(self, process: Process) -> Iterator[dict[str, Any]]:
        """What is in the loader's reach; a runtime without HCCL, or a driver without CANN, is no fault."""
        for name in CANN_LIBRARIES:
            opening = process.open(name)
            if opening.new or any(fault.kind != "not_found" for fault in opening.faults):
                yield self._target(name, name, opening)

    def _process(self, executable: str) -> Process:
        """A fresh process of the interpreter; of an unknown program where it is a script or not given."""
        machine = MACHINE_OF.get(self._question.arch, 0)
        path = self._files.real(executable) if executable else ""
        plain = loader_of(self._files, machine, "", path)
        program = program_at(plain, path) if path else None
        loader = loader_of(
            self._files,
            program.machine if program else machine,
            self._question.library_path,
            path,
            program.interpreter if program else "",
        )
        process = Process(loader, program)
        self._processes.append(process)
        for name in self._question.preload.replace(":", " ").split():
            process.open(name, is_global=True)
        return process

    def _package(self, name: str) -> str:
        """The folder of a Python package; empty where no folder of packages has it."""
        for site in self._question.site:
            if self._files.names(f"{site}/{name}"):
                return f"{site}/{name}"
        return ""

    def _extension(self, process: Process, name: str, folder: str, module: str, symbols: bool = True) -> dict[str, Any]:
        """An extension module, in the file that this version of Python imports."""
        there = [n for n in self._files.names(folder) if n.startswith(f"{module}.") and n.endswith(".so")]
        fitting = [n for n in there if self._fits(n[len(module) :])]
        if fitting:
            path = f"{folder}/{fitting[0]}"
            return self._target(name, path, process.open(path, symbols=symbols))
        opening = Opening()
        says = f"No module named '{name}.{module}'"
        kind = "other_python" if there else "no_extension"
        opening.fail(Fault(kind, f"{name}.{module}", f"{folder}/{module}", "", says, True, ", ".join(there)))
        return self._target(name, f"{folder}/{module}", opening)

    def _fits(self, suffix: str) -> bool:
        version = self._question.python_version
        if not version:
            return True
        tag = "".join(version.split(".")[:2])
        patterns = (f".cpython-{tag}-*.so", f".cpython-{tag}.so", f".cpython-{tag}[a-z]-*.so", ".abi3.so", ".so")
        return any(fnmatchcase(suffix, pattern) for pattern in patterns)

    def _custom(self) -> Iterator[str]:
        for folder in self._question.custom:
            if "libcust_opapi.so" in self._files.names(f"{folder}/op_api/lib"):
                yield f"{folder}/op_api/lib/libcust_opapi.so"

    def _target(self, name: str, path: str, opening: Opening) -> dict[str, Any]:
        return {
            "name": name,
            "path": path,
            "first_error": opening.first_error,
            "dies": opening.dies,
            "loaded": [{"name": lib.path.rpartition("/")[2], "path": lib.path} for lib in opening.new],
            "faults": [
                {
                    "kind": fault.kind,
                    "library": fault.library,
                    "path": fault.path,
                    "needed_by": fault.needed_by,
                    "detail": fault.detail,
                    "fatal": fault.fatal,
                }
                for fault in opening.faults
            ],
            "undefined": [
                {
                    "path": undefined.path,
                    "count": undefined.count,
                    "symbols": [text_of(symbol.name) for symbol in undefined.symbols],
                }
                for undefined in opening.undefined
            ],
            "lookups_missing": _lookups_missing(opening),
        }


def _lookups_missing(opening: Opening) -> list[str] | None:
    """Functions whose names libtorch_npu.so holds, to look them up when they are first used, and nothing defines.

    None where this was not established: there is no such library, or what would define them is not whole.
    """
    asker = next((lib.elf for lib in opening.scope if lib.path.endswith("/libtorch_npu.so")), None)
    if asker is None or opening.first_error or opening.dies:
        return None
    try:
        return sorted(_undefined_names(asker, opening))[:MOST_LOOKUPS]
    except (ElfError, OSError):
        return None


def _undefined_names(asker: Elf, opening: Opening) -> Iterator[str]:
    names = {name for part in asker.constant_strings() for one in _FUNCTIONS for name in one.findall(part)}
    for name in names:
        hashed = gnu_hash(name)
        if not any(library.elf.defines(name, hashed) for library in opening.scope):
            yield name.decode()
