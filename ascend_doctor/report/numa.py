"""Tables of the verb ``numa``: devices, a plan, a running service, a numactl line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ascend_doctor.derive.numa_plan import as_json
from ascend_doctor.engine.run import Run
from ascend_doctor.host import Missing
from ascend_doctor.report.console import printable
from ascend_doctor.report.versions import aligned
from ascend_doctor.report.words import Words

NOTHING = "-"


def answered(run: Run, verb: str) -> Run:
    """The run as one of the verb ``numa``, with its rows under that name."""
    return replace(run, kind="numa", answer={"numa": {"verb": verb, **as_json(run.rows)}})


def table(run: Run, verb: str, words: Words) -> str:
    """For a terminal; what could not be seen is told with its reason."""
    lines = {"show": _devices, "plan": _plan, "check": _workers, "lint": _lines}[verb](run, words)
    return "".join(printable(line) for line in lines)


def _rows(run: Run, name: str) -> tuple[Any, ...]:
    found = run.rows[name]
    return found if isinstance(found, tuple) else ()


def _why(run: Run, name: str, words: Words) -> Iterator[str]:
    found = run.rows[name]
    if isinstance(found, Missing):
        reason = words[f"reason_{found.reason.value}"]
        yield f"{found.path or name}: {reason}{f' ({found.detail})' if found.detail else ''}\n"


def _devices(run: Run, words: Words) -> Iterator[str]:
    yield from _why(run, "numa_plan.devices", words)
    found = _rows(run, "numa_plan.devices")
    heads = [words[f"numa_{name}"] for name in ("device", "npu", "node", "free", "cpus")]
    cells = [[str(d.device), *_texts(d.npu, d.nodes), _mib(d.free_mib), *_texts(d.cpus)] for d in found]
    if found:
        yield aligned([heads, *cells])


def _plan(run: Run, words: Words) -> Iterator[str]:
    for name in dict.fromkeys(("numa_plan.services", "numa_plan.workers")):
        if not isinstance(run.rows["numa_plan.services"], Missing) and name == "numa_plan.workers":
            continue
        yield from _why(run, name, words)
    for service in _rows(run, "numa_plan.services"):
        yield words["numa_service"].format(nodes=service.nodes, cpus=service.cpus, count=service.count) + "\n"
        yield f"{words['numa_one_node']}\n" if service.one_node else f"  {service.command}\n"
    found = _rows(run, "numa_plan.workers")
    heads = [words[f"numa_{name}"] for name in ("device", "npu", "node", "cpus", "start")]
    cells = [[str(w.device), *_texts(w.npu, w.nodes, w.cpus), w.command or NOTHING] for w in found]
    if found:
        yield aligned([heads, *cells])
    yield "\n"


def _workers(run: Run, words: Words) -> Iterator[str]:
    yield from _why(run, "binding.workers", words)
    found = _rows(run, "binding.workers")
    heads = [words[f"numa_{name}"] for name in ("pid", "program", "npu", "threads", "cpus", "memory", "moves")]
    cells = [[str(w.pid), *_texts(w.name, w.npus, w.threads, w.cpus, w.memory, w.migrations)] for w in found]
    if found:
        yield aligned([heads, *cells]) + "\n"


def _lines(run: Run, words: Words) -> Iterator[str]:
    yield from _why(run, "numactl.lines", words)
    for line in _rows(run, "numactl.lines"):
        cpus, nodes, memory = _texts(line.cpus, line.nodes, line.memory_nodes)
        yield words["numa_line"].format(cpus=cpus, nodes=nodes, memory=memory) + "\n\n"


def _texts(*values: object) -> Sequence[str]:
    return [NOTHING if isinstance(value, Missing) or value == "" else str(value) for value in values]


def _mib(value: object) -> str:
    return NOTHING if isinstance(value, Missing) else f"{value} MiB"
