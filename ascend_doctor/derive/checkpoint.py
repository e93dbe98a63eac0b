"""The checkpoint that a launch names, against the program, the chips and the Python that are to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ascend_doctor.derive import rows
from ascend_doctor.derive.launch import SERVERS, whole
from ascend_doctor.derive.parts import chip_families, package, release
from ascend_doctor.facts.checkpoint import BROKEN, CUT, DESCRIPTION, GONE, IS_POINTER, Checkpoint, Shard
from ascend_doctor.facts.command_line import MINDIE, VLLM
from ascend_doctor.facts.launch import Launch
from ascend_doctor.facts.npu import Npu
from ascend_doctor.facts.pci import Pci
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.chips import Chips
from ascend_doctor.knowledge.models import Models
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.records import dataclass

NAMED = 3
"""Files that a finding names; the rest is a number."""


@dataclass(frozen=True)
class Files:
    """The model's folder and its weight files; texts name some of the bad ones, "" where there is none."""

    folder: str
    there: bool | Missing
    count: int | Missing
    gone: str | Missing
    cut: str | Missing
    pointers: str | Missing
    broken: str | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """What a quantised checkpoint is read by; ``near``: a file whose name is almost right."""

    folder: str
    there: bool | Missing
    near: str | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """``newer``: the file was written by a later release of transformers than the one here."""

    architecture: str
    wanted: str | Missing
    here: str | Missing
    newer: bool | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Known:
    """The architecture against the first transformers that knows it; ``older``: the one here does not."""

    model_type: str
    first: str
    here: str | Missing
    older: bool | Missing
    sources: tuple[Source, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Quantisation:
    """``method``: by the command or by config.json, "" for none; ``mxfp``: schemes whose numbers only a 950 computes.

    ``family``: of the chips, "" for several; ``unsaid``: a description is there and the command does not name it.
    """

    folder: str
    method: str | Missing
    said_by: str
    program: str
    family: str | Missing
    mxfp: str | Missing
    unsaid: bool | Missing
    missing: str | Missing
    missing_count: int | Missing
    reads: tuple[str, ...]


@rows("checkpoint.files")
def files(launch: Launch, checkpoint: Checkpoint) -> tuple[Files, ...] | Missing:
    """One row where the command names a folder."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program not in (*SERVERS, MINDIE):
        return ()
    if isinstance(checkpoint.folder, Missing):
        return checkpoint.folder
    shards = whole(checkpoint.shards)
    if isinstance(shards, Missing):
        nothing = shards if shards.reason is not Reason.ABSENT else None
        none: str | Missing = nothing or ""
        count: int | Missing = nothing or 0
        return (Files(checkpoint.folder, checkpoint.there, count, none, none, none, none, ("checkpoint",)),)
    return (
        Files(
            folder=checkpoint.folder,
            there=checkpoint.there,
            count=len(shards),
            gone=_named(shards, GONE, lambda s: ""),
            cut=_named(shards, CUT, lambda s: f" ({s.size_bytes} of {s.wanted_bytes or '?'} bytes)"),
            pointers=_named(shards, IS_POINTER, lambda s: f" ({s.size_bytes} bytes)"),
            broken=_named(shards, BROKEN, lambda s: f" ({s.detail})"),
            reads=("checkpoint.shards", "checkpoint.descriptions"),
        ),
    )


def _named(shards: Sequence[Shard], problem: str, more: Callable[[Shard], str]) -> str | Missing:
    """The first few with that problem; a file that could not be read leaves open whether there are others."""
    found = [shard for shard in shards if shard.problem == problem]
    if not found:
        return next((shard.problem for shard in shards if isinstance(shard.problem, Missing)), "")
    text = ", ".join(f"{shard.name}{more(shard)}" for shard in found[:NAMED])
    return text + (f", … ({len(found)})" if len(found) > NAMED else "")


@rows("checkpoint.description")
def description(launch: Launch, checkpoint: Checkpoint) -> tuple[Description, ...] | Missing:
    """One row where a folder is served by vllm-ascend's own way of quantisation."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program != VLLM or launch.quantization != "ascend" or isinstance(checkpoint.folder, Missing):
        unsaid = launch.quantization if isinstance(launch.quantization, Missing) else None
        return unsaid if unsaid and unsaid.reason is not Reason.ABSENT else ()
    names = whole(checkpoint.descriptions)
    reads = ("launch.quantization", "checkpoint.descriptions")
    if isinstance(names, Missing):
        gone = names.reason is Reason.ABSENT
        return () if gone else (Description(checkpoint.folder, names, names, reads),)
    exact = f"{DESCRIPTION}.json"
    return (Description(checkpoint.folder, exact in names, ", ".join(n for n in names if n != exact), reads),)


@rows("checkpoint.written")
def written(launch: Launch, checkpoint: Checkpoint, python: TargetPython) -> tuple[Written, ...] | Missing:
    """One row where config.json tells which transformers wrote it."""
    if isinstance(launch.program, Missing):
        return launch.program
    wanted, kind = checkpoint.transformers, checkpoint.architecture
    if isinstance(wanted, Missing):
        return wanted
    if isinstance(python.packages, Missing):
        return python.packages
    part = package(python, "transformers")
    if part is None:
        return ()
    here = part.version
    newer = here if isinstance(here, Missing) else release(wanted)[:2] > release(here)[:2]
    name = kind if isinstance(kind, str) else "?"
    return (Written(name, wanted, here, newer, ("checkpoint.transformers", part.path)),)


@rows("checkpoint.known")
def known(launch: Launch, checkpoint: Checkpoint, python: TargetPython, models: Models) -> tuple[Known, ...] | Missing:
    """One row for an architecture that the rules know and that brings no code of its own."""
    if isinstance(launch.program, Missing):
        return launch.program
    kind = checkpoint.model_type
    if isinstance(kind, Missing):
        return kind
    found = models.architecture(kind)
    if launch.program not in SERVERS or found is None or not found.transformers or checkpoint.own_code is True:
        return ()
    if isinstance(python.packages, Missing):
        return python.packages
    part = package(python, "transformers")
    if part is None:
        return ()
    here = part.version
    older = here if isinstance(here, Missing) else release(here) < release(found.transformers)
    reads = ("checkpoint.model_type", part.path)
    return (Known(kind, found.transformers, here, older, found.sources, reads),)


@rows("checkpoint.quantisation")
def quantisation(
    launch: Launch, checkpoint: Checkpoint, npu: Npu, pci: Pci, chips: Chips
) -> tuple[Quantisation, ...] | Missing:
    """One row for a command that serves a model."""
    if isinstance(launch.program, Missing):
        return launch.program
    if launch.program not in SERVERS:
        return ()
    method, said_by = launch.quantization, "--quantization"
    if isinstance(method, Missing) and method.reason is Reason.ABSENT:
        method, said_by = checkpoint.quantised_by, "config.json"
        if isinstance(method, Missing) and method.reason in (Reason.ABSENT, Reason.UNSUPPORTED):
            method = ""
    families = chip_families(npu, pci, chips)
    family: str | Missing = families if isinstance(families, Missing) else ""
    if not isinstance(families, Missing) and len(families) == 1:
        family = families[0].family
    schemes = whole(checkpoint.schemes)
    mxfp: str | Missing = ""
    if isinstance(schemes, Missing):
        mxfp = "" if schemes.reason in (Reason.ABSENT, Reason.UNSUPPORTED) else schemes
    else:
        mxfp = ", ".join(scheme for scheme in schemes if "MXFP" in scheme)
    lacking = whole(checkpoint.undescribed)
    if isinstance(lacking, Missing) and lacking.reason in (Reason.ABSENT, Reason.UNSUPPORTED):
        lacking = ()
    unsaid: bool | Missing = method == "" and not isinstance(schemes, Missing) and bool(schemes)
    folder = checkpoint.folder if isinstance(checkpoint.folder, str) else ""
    return (
        Quantisation(
            folder=folder,
            method=method.lower() if isinstance(method, str) else method,
            said_by=said_by,
            program=launch.program,
            family=family,
            mxfp=mxfp,
            unsaid=method if isinstance(method, Missing) else unsaid,
            missing=lacking if isinstance(lacking, Missing) else ", ".join(lacking[:NAMED]),
            missing_count=lacking if isinstance(lacking, Missing) else len(lacking),
            reads=("launch.quantization", "checkpoint.quantised_by", "checkpoint.schemes", "npu.chips"),
        ),
    )
