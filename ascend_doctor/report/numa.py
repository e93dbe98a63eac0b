"""Tables of the verb ``numa``: devices, a plan, a running service, a numactl line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ascend_doctor.derive.numa_plan import as_json
from ascend_doctor.engine.run import Run
from ascend_doctor.host import Reason
from ascend_doctor.report.console import printable
from ascend_doctor.report.fields import Field
from ascend_doctor.report.versions import aligned
from ascend_doctor.report.words import Words

NOTHING = "-"


def answered(run: Run, verb: str) -> Run:
    """The run as one of the verb ``numa``, with its rows under that name."""
    return replace(run, kind="numa", answer={"numa": {"verb": verb, **as_json(run.rows)}})


def table(run: Run, words: Words, verbose: bool = False) -> str:
    """For a terminal; what could not be seen is told with its reason."""
    found = Field(run.answer or {})["numa"]
    verb = found["verb"].one_of(tuple(_TABLES))
    return "".join(printable(line) for line in _TABLES[verb](found, words))


def _rows(found: Field, name: str) -> list[Field]:
    rows = found[name]
    return [] if rows.value is None else list(rows.items())


def _why(found: Field, name: str, words: Words) -> Iterator[str]:
    why = found["missing"][name]
    if why.value is not None:
        reason = words[f"reason_{why['reason'].one_of([reason.value for reason in Reason])}"]
        detail = why["detail"].text()
        yield f"{why['path'].text() or name}: {reason}{f' ({detail})' if detail else ''}\n"


def _devices(found: Field, words: Words) -> Iterator[str]:
    yield from _why(found, "devices", words)
    rows = _rows(found, "devices")
    heads = [words[f"numa_{name}"] for name in ("device", "npu", "node", "free", "cpus")]
    cells = [[*_texts(row, "device", "npu", "nodes"), _mib(row["free_mib"]), *_texts(row, "cpus")] for row in rows]
    if rows:
        yield aligned([heads, *cells])


def _plan(found: Field, words: Words) -> Iterator[str]:
    yield from _why(found, "services", words)
    if found["services"].value is None:
        yield from _why(found, "workers", words)
    for service in _rows(found, "services"):
        nodes, cpus, count, command = _texts(service, "nodes", "cpus", "count", "command")
        yield words["numa_service"].format(nodes=nodes, cpus=cpus, count=count) + "\n"
        yield f"{words['numa_one_node']}\n" if service["one_node"].flag() else f"  {command}\n"
    rows = _rows(found, "workers")
    heads = [words[f"numa_{name}"] for name in ("device", "npu", "node", "cpus", "start")]
    if rows:
        yield aligned([heads, *(_texts(row, "device", "npu", "nodes", "cpus", "command") for row in rows)])


def _workers(found: Field, words: Words) -> Iterator[str]:
    yield from _why(found, "workers", words)
    rows = _rows(found, "workers")
    heads = [words[f"numa_{name}"] for name in ("pid", "program", "npu", "threads", "cpus", "memory", "moves")]
    names = ("pid", "name", "npus", "threads", "cpus", "memory", "migrations")
    if rows:
        yield aligned([heads, *(_texts(row, *names) for row in rows)])


def _lines(found: Field, words: Words) -> Iterator[str]:
    yield from _why(found, "lines", words)
    for row in _rows(found, "lines"):
        cpus, nodes, memory = _texts(row, "cpus", "nodes", "memory_nodes")
        yield words["numa_line"].format(cpus=cpus, nodes=nodes, memory=memory) + "\n"


_TABLES = {"show": _devices, "plan": _plan, "check": _workers, "lint": _lines}


def _texts(row: Field, *names: str) -> list[str]:
    return [NOTHING if value is None or value == "" else str(value) for value in (row[name].value for name in names)]


def _mib(field: Field) -> str:
    size = field.or_none(Field.whole)
    return NOTHING if size is None else f"{size} MiB"
