"""Predicting the real ``import torch_npu``: time and memory against a bare interpreter.

    python benchmarks/libraries.py /path/to/python   # an interpreter with torch 2.13.0 and torch-npu 2.13.0

Each round is a process of its own that imports the analysis, finds what libtorch_npu.so (97 MB) and torch need, links
them all and writes the result as JSON. Without a CANN there is one to name as missing; a second argument is a folder
with the libraries of one, so that all symbols are compared.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time

ROUNDS = 15
RATIO, MIB = 12.0, 40.0
PREDICT = """
import json, os, sys
from ascend_doctor.host.elf.analysis import Question, analyse
python, version, site, library_path = sys.argv[1:]
print(json.dumps(analyse(Question(os.uname().machine, library_path, "", python, version, (site,)))))
"""


def seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def peak_mib(command: list[str]) -> float:
    """Peak memory of the command alone, measured in a child of its own."""
    pid = os.fork()
    if pid == 0:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        os._exit(min(255, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(python: str, cann: str = "") -> int:
    code = "import sysconfig; print(sysconfig.get_python_version(), sysconfig.get_path('platlib'))"
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    bare, predict = [sys.executable, "-c", "pass"], [sys.executable, "-c", PREDICT, python, *asked, cann]
    pairs = [(seconds(bare), seconds(predict)) for _ in range(ROUNDS + 1)][1:]  # the first round warms the caches
    unit = statistics.median(pair[0] for pair in pairs)
    ratio = statistics.median(pair[1] for pair in pairs) / unit
    peak = peak_mib(predict)
    print(f"bare python -c pass    {unit * 1000:7.1f} ms")
    print(f"predict torch_npu      {unit * ratio * 1000:7.1f} ms  {ratio:5.2f} times bare (limit {RATIO:g})", end="")
    print(f"  {peak:.0f} MiB (limit {MIB:g})")
    return int(ratio > RATIO or peak > MIB)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
