"""The host as a drawing: sockets, their NUMA nodes with free memory, the links down to the NPUs, links among these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ascend_doctor.records import dataclass
from ascend_doctor.report.pictures.rows import Fabric, Link, Machine, Node, Npu
from ascend_doctor.report.pictures.tiles import gib, is_narrow, link_text, mark_of, trouble_of
from ascend_doctor.report.pictures.trouble import Trouble

SLOT, NARROW_SLOT, GAP, SOCKET_GAP = 72, 52, 8, 16
WIDE_SLOTS = 12
"""Slots that fit side by side in full width."""

MOST_NODES = 16
"""Nodes that are drawn though no NPU hangs on them."""

SOCKET_TOP, NODE_TOP, NODE_HEIGHT = 0, 28, 72
NPU_TOP, NPU_HEIGHT = 176, 40
FABRIC_TOP, FABRIC_STEP = 244, 26
BUS_TOP = NODE_TOP + NODE_HEIGHT + 8
LANES_FULL, THICKEST = 16, 6


@dataclass(frozen=True)
class SocketBox:
    x: float
    width: float
    height: float
    number: int | None


@dataclass(frozen=True)
class NodeBox:
    """``free``: the width of the free part of the bar, None where it is not known. ``number`` None: NPUs of no node."""

    x: float
    y: float
    width: float
    height: float
    number: int | None
    bar: float
    free: float | None
    free_gib: str | None
    total_gib: str | None
    mark: str
    target: str | None


@dataclass(frozen=True)
class NpuBox:
    """``health`` is empty where it is OK; ``lines``: what the link above says; ``thick`` None: no link is known."""

    x: float
    y: float
    width: float
    height: float
    number: str
    mark: str
    target: str | None
    health: str
    top: float
    thick: float | None
    lines: tuple[str, ...]
    narrow: bool


@dataclass(frozen=True)
class Frame:
    """Around the chips of one card."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Rail:
    """A link from chip to chip: a line below those that it joins, with a tick up to each."""

    word: str
    y: float
    left: float
    right: float
    ticks: tuple[float, ...]
    top: float


@dataclass(frozen=True)
class Topology:
    width: float
    height: float
    sockets: tuple[SocketBox, ...]
    nodes: tuple[NodeBox, ...]
    npus: tuple[NpuBox, ...]
    frames: tuple[Frame, ...]
    rails: tuple[Rail, ...]
    more_nodes: int


def topology(machine: Machine, troubles: Mapping[str, Trouble]) -> Topology | None:
    """None where neither nodes nor NPUs are known."""
    if not machine.nodes or not machine.npus:
        return None
    numbers = {node.node for node in machine.nodes}
    hang: dict[int | None, list[Npu]] = {}
    for npu in machine.npus:
        near = [number for number in npu.nodes or () if number in numbers]
        hang.setdefault(near[0] if near else None, []).append(npu)
    shown = [n for n in machine.nodes if len(machine.nodes) <= MOST_NODES or n.node in hang]
    if not shown:
        shown = list(machine.nodes[:MOST_NODES])
    shown.sort(key=lambda node: (node.socket is None, node.socket or 0, node.node))
    columns: list[tuple[Node | None, Sequence[Npu]]] = [(node, hang.get(node.node, ())) for node in shown]
    columns += [(None, hang[None])] if None in hang else []
    drawing = _Drawing(machine, troubles, sum(max(1, len(npus)) for _, npus in columns))
    drawing.draw(columns)
    return drawing.done(len(machine.nodes) - len(shown))


class _Drawing:
    def __init__(self, machine: Machine, troubles: Mapping[str, Trouble], slots: int) -> None:
        self.machine, self.troubles = machine, troubles
        self.slot = SLOT if slots <= WIDE_SLOTS else NARROW_SLOT
        self.x = 0.0
        self.sockets: list[SocketBox] = []
        self.nodes: list[NodeBox] = []
        self.npus: list[tuple[Npu, NpuBox]] = []

    def draw(self, columns: Sequence[tuple[Node | None, Sequence[Npu]]]) -> None:
        """Column by column; a socket ends where the next one begins."""
        begin, last = 0.0, columns[0][0]
        for node, npus in columns:
            if self.x and (node is None or last is None or node.socket != last.socket):
                self._socket(begin, last)
                begin = self.x = self.x + SOCKET_GAP - GAP
            last = node
            self._column(node, npus)
        self._socket(begin, last)

    def _socket(self, begin: float, node: Node | None) -> None:
        if node is not None and node.socket is not None:
            width = self.x - GAP - begin
            self.sockets.append(SocketBox(begin, width, NODE_TOP + NODE_HEIGHT + 8, node.socket))

    def _column(self, node: Node | None, npus: Sequence[Npu]) -> None:
        width = max(1, len(npus)) * self.slot
        self.nodes.append(self._node(node, self.x + 4, width - 8))
        for number, npu in enumerate(npus):
            self.npus.append((npu, self._npu(npu, self.x + number * self.slot)))
        self.x += width + GAP

    def _node(self, node: Node | None, x: float, width: float) -> NodeBox:
        if node is None:
            return NodeBox(x, NODE_TOP, width, NODE_HEIGHT, None, 0, None, None, None, "unknown", None)
        trouble = self.troubles.get(f"node:{node.node}")
        bar = width - 16
        free = None
        if node.free_mib is not None and node.total_mib:
            free = round(bar * min(1.0, node.free_mib / node.total_mib), 1)
        mark = trouble.mark if trouble else "pass"
        return NodeBox(
            x, NODE_TOP, width, NODE_HEIGHT, node.node, bar, free, gib(node.free_mib), gib(node.total_mib), mark,
            trouble.target if trouble else None,
        )  # fmt: skip

    def _npu(self, npu: Npu, x: float) -> NpuBox:
        trouble = trouble_of(npu, self.troubles, self.machine.single)
        text = link_text(npu.link) or ""
        lines = (text.partition(" of ")[0], f"of {text.partition(' of ')[2]}") if " of " in text else (text,)
        return NpuBox(
            x=x + 6,
            y=NPU_TOP,
            width=self.slot - 12,
            height=NPU_HEIGHT,
            number=str(npu.npu) if self.machine.single else npu.place,
            mark=mark_of(npu, trouble),
            target=trouble.target if trouble else None,
            health=npu.health if npu.health not in (None, "OK") else "",
            top=BUS_TOP,
            thick=_thick(npu.link),
            lines=lines if text else (),
            narrow=is_narrow(npu.link),
        )

    def done(self, more: int) -> Topology:
        rails = tuple(self._rails())
        return Topology(
            width=round(self.x - GAP, 1),
            height=FABRIC_TOP - 4 + FABRIC_STEP * (max((rail_row for rail_row, _ in rails), default=-1) + 1),
            sockets=tuple(self.sockets),
            nodes=tuple(self.nodes),
            npus=tuple(box for _, box in self.npus),
            frames=tuple(self._frames()),
            rails=tuple(rail for _, rail in rails),
            more_nodes=more,
        )

    def _frames(self) -> list[Frame]:
        """One around each run of chips of the same card."""
        runs: list[list[tuple[Npu, NpuBox]]] = []
        for npu, box in self.npus:
            if runs and runs[-1][-1][0].npu == npu.npu and box.x - runs[-1][-1][1].x <= self.slot:
                runs[-1].append((npu, box))
            else:
                runs.append([(npu, box)])
        return [
            Frame(run[0][1].x - 4, NPU_TOP - 4, run[-1][1].x + run[-1][1].width - run[0][1].x + 8, NPU_HEIGHT + 8)
            for run in runs
            if len(run) > 1
        ]

    def _rails(self) -> list[tuple[int, Rail]]:
        """Row and rail; groups that overlap stand below each other."""
        ends: list[float] = []
        found = []
        for group in self.machine.fabric:
            xs = sorted(self._centres(group))
            if len(xs) < 2:
                continue
            row = next((n for n, end in enumerate(ends) if end < xs[0] - GAP), len(ends))
            ends[row : row + 1] = [xs[-1]]
            y = FABRIC_TOP + row * FABRIC_STEP
            found.append((row, Rail(group.word, y, xs[0], xs[-1], tuple(xs), NPU_TOP + NPU_HEIGHT + 6)))
        return found

    def _centres(self, group: Fabric) -> list[float]:
        return [box.x + box.width / 2 for npu, box in self.npus if npu.npu in group.npus]


def _thick(link: Link | None) -> float | None:
    if link is None or link.width is None:
        return None
    return round(max(1.0, THICKEST * min(1.0, link.width / LANES_FULL)), 1)
