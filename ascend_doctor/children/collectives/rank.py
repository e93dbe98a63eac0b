"""One rank: goes through a step when the launcher names it on stdin, and says when it waits for the others and after.

Each rank gives what depends on its number, in whole numbers that every type holds exactly: a wrong sum is wrong in any
order, and of gathered parts it shows whose part is wrong.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import faulthandler
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any, Callable

from ..stages.protocol import chain

SMALL, LARGE = 1 << 16, 1 << 24
"""Elements: on the CPU, and on a device."""
MOST_IN_FP16 = 2048
"""Up to here it holds each whole number."""
PARENT_DIES = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def run(plan: Mapping[str, Any], rank: int, descriptor: int) -> None:
    """Ends when stdin does. ``plan``: kind, devices, seconds."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PARENT_DIES, signal.SIGKILL)
    faulthandler.register(signal.SIGUSR1, all_threads=True)

    def tell(**entry: object) -> None:
        os.write(descriptor, json.dumps(entry).encode() + b"\n")

    work = Work(plan, rank, tell)
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        try:
            measures = work.step(order["step"], order)
            tell(step=order["step"], event="left", measures=measures)
        except BaseException as error:  # what is tried may raise anything, SystemExit too
            tell(step=order["step"], event="raised", errors=chain(error))


class Work:
    """The steps of a rank."""

    def __init__(self, plan: Mapping[str, Any], rank: int, tell: Callable[..., None]) -> None:
        self._kind, self._rank, self._count = str(plan["kind"]), rank, len(plan["devices"])
        self._device, self._seconds = str(plan["devices"][rank]), float(plan["seconds"])
        self._tell, self._step = tell, ""
        self._torch: Any = None

    def step(self, name: str, order: Mapping[str, Any]) -> dict[str, object]:
        self._step = name
        operator, _, dtype = name.partition(".")
        if operator == "start":
            return self._start()
        if operator == "connect":
            return self._connect(int(order.get("port", 0)))
        return self._all_reduce(dtype) if operator == "all_reduce" else self._all_gather(dtype)

    def _entered(self, **entry: object) -> None:
        """From here on this rank waits for the others."""
        self._tell(step=self._step, event="entered", **entry)

    def _start(self) -> dict[str, object]:
        """Rank 0 also opens the store that the others find each other by, on a port of loopback that is free."""
        self._torch = torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        if self._kind == "npu":
            importlib.import_module("torch_npu").npu.set_device(self._device)
        elif self._kind == "cuda":
            torch.cuda.set_device(self._device)
        distributed = importlib.import_module("torch.distributed")
        if self._rank == 0:
            self._store = self._opened(distributed, 0)
            self._entered(port=self._store.port)
        else:
            self._entered()
        return {}

    def _opened(self, distributed: Any, port: int) -> Any:
        limit = datetime.timedelta(seconds=self._seconds)
        first = self._rank == 0
        return distributed.TCPStore("127.0.0.1", port, self._count, first, limit, wait_for_workers=False)

    def _connect(self, port: int) -> dict[str, object]:
        """The group, and a first sum of one number: backends connect when they are first used."""
        distributed = self._torch.distributed
        if self._rank:
            self._store = self._opened(distributed, port)
        backend = {"npu": "hccl", "cuda": "nccl"}.get(self._kind, "gloo")
        limit = datetime.timedelta(seconds=self._seconds)
        self._entered()
        distributed.init_process_group(
            backend, store=self._store, rank=self._rank, world_size=self._count, timeout=limit
        )
        number = self._torch.ones(1, device=self._device)
        distributed.all_reduce(number)
        return {"backend": backend, "wrong": int(number.cpu().item() != self._count)}

    def _all_reduce(self, dtype: str) -> dict[str, object]:
        """A sum over all ranks, checked whole; the second of two runs is timed."""
        index = self._torch.arange(self._elements())
        wanted = sum(self._numbers(index, rank) for rank in range(self._count))
        seconds, wrong = 0.0, 0
        for turn in range(2):
            mine = self._numbers(index, self._rank).to(self._dtype(dtype)).to(self._device)
            self._wait()
            if turn == 0:
                self._entered()
            begun = time.perf_counter()
            self._torch.distributed.all_reduce(mine)
            self._wait()
            seconds = time.perf_counter() - begun
            wrong = max(wrong, int((mine.cpu().long() != wanted).sum()))
        size = mine.numel() * mine.element_size()
        return {"wrong": wrong, "of": mine.numel(), "bytes": size, "took": seconds}

    def _all_gather(self, dtype: str) -> dict[str, object]:
        """The parts of all ranks; ``senders``: those whose part is not what it should be here."""
        index = self._torch.arange(self._elements() // self._count)
        mine = self._numbers(index, self._rank).to(self._dtype(dtype)).to(self._device)
        parts = [self._torch.zeros_like(mine) for _ in range(self._count)]
        self._wait()
        self._entered()
        begun = time.perf_counter()
        self._torch.distributed.all_gather(parts, mine)
        self._wait()
        seconds = time.perf_counter() - begun
        wrong = [int((part.cpu().long() != self._numbers(index, rank)).sum()) for rank, part in enumerate(parts)]
        return {
            "wrong": sum(wrong),
            "of": mine.numel() * self._count,
            "senders": [rank for rank, count in enumerate(wrong) if count],
            "bytes": mine.numel() * mine.element_size() * self._count,
            "took": seconds,
        }

    def _elements(self) -> int:
        return SMALL if self._kind == "cpu" else LARGE

    def _dtype(self, word: str) -> Any:
        return {"fp32": self._torch.float32, "fp16": self._torch.float16}[word]

    def _numbers(self, index: Any, rank: int) -> Any:
        """Another row for each rank, so small that all together sum up to what fp16 holds exactly."""
        return (index * (2 * rank + 3) + rank) % min(16, MOST_IN_FP16 // self._count)

    def _wait(self) -> None:
        if self._kind != "cpu":
            getattr(self._torch, self._kind).synchronize()
