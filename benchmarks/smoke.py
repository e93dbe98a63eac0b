"""A whole smoke run on the CPU, as a ratio to ``python -c 'import torch'`` in the same rounds.

    python benchmarks/smoke.py /path/to/python    # an interpreter with torch; default: this one

Runs alternate, so that a machine whose speed drifts slows all of them; medians are compared. Peak: of the largest
process, which is the child with both models. Exit code 1 where a figure is over its limit; a run that fails ends it.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    size: str
    rounds: int
    ratio: float
    mib: float


CASES = (Case("tiny", 5, 6, 1024), Case("default", 3, 40, 2560))


def seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def peak_mib(command: list[str]) -> float:
    """Peak memory of the largest process of the command, measured in a child of its own."""
    pipe, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        os.write(end, str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return int(os.read(pipe, 32)) / 1024


def main(python: str = sys.executable) -> int:
    over = 0
    imported = [python, "-c", "import torch"]
    for case in CASES:
        command = [sys.executable, "-m", "ascend_doctor", "smoke", "--device", "cpu", "--size", case.size]
        command += ["--python", python, "--format", "json"]
        peak = peak_mib(command)
        pairs = [(seconds(imported), seconds(command)) for _ in range(case.rounds)]
        unit = statistics.median(pair[0] for pair in pairs)
        whole = statistics.median(pair[1] for pair in pairs)
        over += whole / unit > case.ratio or peak > case.mib
        print(
            f"smoke --size {case.size}: {whole:.1f} s, {whole / unit:.1f} times import torch ({unit:.2f} s; limit "
            f"{case.ratio:g}), {peak:.0f} MiB (limit {case.mib:g})"
        )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
