"""The table of versions: what was found, whether it fits, what it wants, and who says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from ascend_doctor.derive.nearest import Tables
from ascend_doctor.derive.wants import Want, wants
from ascend_doctor.engine.run import Run
from ascend_doctor.knowledge.cann_needs import CannNeeds
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.records import dataclass
from ascend_doctor.report.console import printable
from ascend_doctor.report.fields import Field
from ascend_doctor.report.words import Words

PACKAGES = (
    *("torch", "torch_npu", "vllm", "vllm_ascend", "triton", "triton_ascend", "transformers", "numpy", "mindspore"),
)
GRAVITY = ("error", "warning", "unknown", "info", "pass")
NOTHING = "-"
TABLES = ("torch_npu_table", "vllm_ascend_table", "compatibility", "cann_needs")
"""Parts of the rules that a run has to bring along."""


@dataclass(frozen=True)
class Line:
    """One part. ``fits``: the gravest verdict on a pair that it is in, or "-" where no check judged it."""

    part: str
    found: str
    where: str
    fits: str
    wants: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Known:
    """The tables."""

    tables: Tables
    needs: CannNeeds


def read_tables(folders: Sequence[Path]) -> Known:
    """Raises RuleError."""
    return _known({name: import_module(f"ascend_doctor.knowledge.{name}").load(folders) for name in TABLES})


def _known(parts: Mapping[str, Any]) -> Known:
    *tables, needs = (parts[name] for name in TABLES)
    return Known(Tables(*tables), needs)


def lines(run: Run) -> tuple[Line, ...]:
    """From a run with facts and TABLES: each part that is there or that nobody could see."""
    assert run.facts is not None
    known = _known(run.parts)
    fits: dict[str, str] = {}
    for finding in run.findings:
        verdict = str(finding.severity) if finding.verdict == "fail" else finding.verdict
        for part in finding.components:
            if verdict in GRAVITY:
                fits[part] = min(fits.get(part, verdict), verdict, key=GRAVITY.index)
    found = []
    for part, version, where in parts(run.facts):
        asked = wants(part, version, known.tables, known.needs)
        found.append(Line(part, version, where, fits.get(part, NOTHING), _wanted(asked), _sources(asked)))
    return tuple(found)


def parts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Part, version and where it was read; a reason in parentheses where nobody could see it."""
    why = facts.get("missing", {})
    npu, driver, python = (facts.get(area) or {} for area in ("npu", "driver", "python"))
    names = dict.fromkeys(chip["name"] for chip in npu.get("chips") or () if chip["name"])
    yield from _part("chip", ", ".join(names) or None, "npu-smi info", why, "npu.chips")
    version, place = driver.get("version"), driver.get("version_file", "")
    if version is None and npu.get("driver_version"):
        version, place = npu["driver_version"], "npu-smi info"
    yield from _part("driver", version, place, why, "driver.version")
    yield from _part("firmware", driver.get("firmware_version"), "", why, "driver.firmware_version")
    for number, root in enumerate((facts.get("cann") or {}).get("roots") or ()):
        name = "cann" if root["selected"] is not False else "cann (not selected)"
        yield from _part(name, root["version"], root["path"], why, f"cann.roots[{number}].version")
    operators = facts.get("operators") or {}
    yield from _part("kernels", ", ".join(operators.get("socs") or ()) or None, operators.get("path") or "", why, "")
    for number, one in enumerate((facts.get("nnal") or {}).get("installations") or ()):
        yield from _part("nnal", one["version"], one["path"], why, f"nnal.installations[{number}].version")
    mindie = facts.get("mindie") or {}
    yield from _part("mindie", mindie.get("version"), mindie.get("file", ""), why, "mindie.version")
    yield from _part("python", python.get("version"), python.get("executable") or "", why, "python.version")
    packages = python.get("packages") or {}
    for name in PACKAGES:
        if name in packages:
            path = f'python.packages["{name}"].version'
            yield from _part(name, packages[name]["version"], packages[name]["folder"], why, path)
    yield from _part("glibc", (facts.get("glibc") or {}).get("version"), "", why, "glibc.version")


def _part(
    name: str, version: str | None, where: str, why: Mapping[str, Any], path: str
) -> Iterator[tuple[str, str, str]]:
    if version is not None:
        yield name, version, where
    elif path in why and why[path]["reason"] != "absent":
        yield name, f"({why[path]['reason']})", where


def _wanted(asked: Sequence[Want]) -> str:
    return "; ".join(map(str, asked)) or NOTHING


def _sources(asked: Sequence[Want]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(source for want in asked for source in want.sources if source.title))


def as_json(found: Sequence[Line]) -> list[dict[str, Any]]:
    """One object for each part, as ``facts.versions`` of a run has them."""
    return [
        {
            **{name: getattr(line, name) for name in ("part", "found", "where", "fits", "wants")},
            "sources": [{"title": s.title, "url": s.url, "confidence": s.confidence} for s in line.sources],
        }
        for line in found
    ]


def stored_lines(run: Run) -> tuple[Line, ...]:
    """Of a run of the verb ``versions``, from its document. Raises StoredError."""

    def source(field: Field) -> Source:
        return Source(field["title"].text(), field["url"].link(), field["confidence"].text())

    def line(field: Field) -> Line:
        part, found, where, fits, wanted = (field[name].text() for name in ("part", "found", "where", "fits", "wants"))
        return Line(part, found, where, fits, wanted, field["sources"].each(source))

    return Field(run.facts or {}, "facts")["versions"].each(line)


def table(run: Run, words: Words, verbose: bool = False) -> str:
    """Columns for a terminal, the sources by number below them; where a version was read only if asked for."""
    found = stored_lines(run)
    numbers = numbered(source for line in found for source in line.sources)
    heads = [words[f"versions_{name}"] for name in ("part", "found", "fits")]
    rows = [[line.part, line.found, _word(line.fits, words)] for line in found]
    if verbose:
        heads.append(words["versions_where"])
        rows = [[*row, line.where or NOTHING] for row, line in zip(rows, found)]
    heads += [words["sources"], words["versions_wants"]]
    rows = [[*row, marks(line.sources, numbers), line.wants] for row, line in zip(rows, found)]
    return printable(f"{aligned([heads, *rows])}\n{footnotes(numbers)}")


def _word(fits: str, words: Words) -> str:
    return words["versions_yes"] if fits == "pass" else str(words.table.get(fits, fits))


def numbered(sources: Iterable[Source]) -> dict[Source, int]:
    return {source: number for number, source in enumerate(dict.fromkeys(sources), 1)}


def marks(sources: Iterable[Source], numbers: Mapping[Source, int]) -> str:
    return "".join(f"[{numbers[source]}]" for source in sources if source in numbers) or NOTHING


def footnotes(numbers: Mapping[Source, int]) -> str:
    lines = [f"[{number}] {s.title} ({s.confidence}) {s.url}".rstrip() for s, number in numbers.items()]
    return "".join(f"{line}\n" for line in lines)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns; the last one is as long as it is."""
    widths = [max(cell_len(row[n]) for row in rows) for n in range(len(rows[0]) - 1)]
    out = []
    for row in rows:
        cells = [text + " " * (width - cell_len(text)) for text, width in zip(row, widths)]
        out.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(out) + "\n"
