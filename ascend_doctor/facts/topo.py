"""How the NPUs are joined and which CPUs are near each, as ``npu-smi info -t topo`` prints it.

Asked only where sysfs leaves the node of an NPU open: a chip behind UB, a virtual machine without a NUMA map.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ascend_doctor.facts.numa import cpu_set
from ascend_doctor.facts.pci import SYSFS, node_number, npu_ids
from ascend_doctor.host import Area, Collected, Host, Missing, Output, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

COMMAND = ("npu-smi", "info", "-t", "topo")
LINKS = ("X", "SYS", "PHB", "PIX", "PXB", "HCCS", "HCCS_SW", "SIO", "UB", "NA")


@dataclass(frozen=True)
class TopoRow:
    """``numbered``: ``NPU`` or ``Phy-ID``, what ``number`` counts; ``links``: one word for each NPU, in order.

    ``cpus`` is a list such as ``0-63,128-191``, absent where the column is empty or NA.
    """

    numbered: str
    number: int
    links: tuple[str, ...]
    cpus: str | Missing


@dataclass(frozen=True)
class Topo:
    """In the order of the table."""

    rows: tuple[TopoRow, ...] | Missing


def table(output: Output) -> Missing | Shown[tuple[TopoRow, ...]]:
    """The rows of the matrix; NICs and the legend are left out. Either stream, any exit status: the text decides."""
    text = decoded(output.stdout) + "\n" + decoded(output.stderr)
    rows: list[TopoRow] = []
    texts: dict[str, str] = {}
    for line in text.split("\n"):
        row = _row(line)
        if row is not None:
            texts[f"[{len(rows)}]"] = line.strip()
            rows.append(row)
    if rows:
        found = tuple(_without_affinity(row) if len(row.links) == len(rows) + 1 else row for row in rows)
        return Shown(found, {"": f"{len(rows)} NPUs", **texts})
    if re.search(r"does not support|not support", text, re.IGNORECASE):
        return Missing(Reason.UNSUPPORTED, "this npu-smi shows no topology")
    return Missing(Reason.FAILED, "no topology in what npu-smi printed")


def _row(line: str) -> TopoRow | None:
    words = line.split()
    head = re.fullmatch(r"(NPU|Phy-ID)(\d{1,5})", words[0], re.ASCII) if words else None
    links: list[str] = []
    for word in words[1:]:
        if word not in LINKS:
            break
        links.append(word)
    if head is None or not links:
        return None
    rest = words[1 + len(links) :]
    if len(rest) == 1 and not isinstance(cpu_set(rest[0]), Missing):
        cpus: str | Missing = rest[0]
    elif rest:
        cpus = Missing(Reason.FAILED, "no list of CPUs")
    else:
        cpus = Missing(Reason.ABSENT, "the CPU Affinity column names no CPU")
    return TopoRow(head[1], int(head[2]), tuple(links), cpus)


def _without_affinity(row: TopoRow) -> TopoRow:
    """An NA of the last column reads like one link too many."""
    return replace(row, links=row.links[:-1])


def not_needed(host: Host) -> Missing | None:
    """Why npu-smi need not be asked: sysfs knows each node, or could not be seen (then there is no second opinion)."""
    ids = npu_ids(host).value
    if isinstance(ids, Missing):
        return None if ids.reason is Reason.ABSENT else ids
    nodes = [parsed(host.read(f"{SYSFS}/{address}/numa_node"), node_number).value for address in ids]
    open_nodes = [node for node in nodes if isinstance(node, Missing)]
    if nodes and not open_nodes:
        return Missing(Reason.UNSUPPORTED, "not asked: sysfs names the node of each NPU")
    unseen = [node for node in open_nodes if node.reason is not Reason.ABSENT]
    return unseen[0] if unseen else None


def collect(host: Host) -> Collected[Topo]:
    """Starts npu-smi once, and only where ``not_needed`` finds no reason against it."""
    area = Area("topo")
    reason = not_needed(host)
    if reason is None:
        answer: Parsed[tuple[TopoRow, ...]] = parsed(host.run(COMMAND), table)
        rows = area.take("rows", answer)
        return area.of(Topo(rows))
    return area.of(Topo(rows=area.take("rows", Parsed(reason, f"folder:{SYSFS}", {"": reason.detail}))))
