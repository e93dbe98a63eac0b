"""The page of 200 findings against a bare interpreter: ``python benchmarks/report.py [--rounds 9]``.

A process that imports what the page needs and renders it once, judging aside, against one that does nothing; both take
turns, and what counts is processor time. Exit code 1 where the ratio is over its limit.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

LIMIT = 50
RENDER = """
import sys, pickle
sys.path.insert(0, sys.argv[1])
run = pickle.load(open(sys.argv[2], "rb"))
from ascend_doctor.report.html import page
text = page(run, "en")
"""
READ = "import sys, pickle\nsys.path.insert(0, sys.argv[1])\nrun = pickle.load(open(sys.argv[2], 'rb'))\n"
BARE = "pass"


def seconds(code: str, *arguments: str) -> float:
    """Processor time of an interpreter that runs the code."""
    pid = os.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", code, *arguments])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, status = os.waitpid(pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status:
        raise SystemExit(f"the child ended with {status}")
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    from report_runs import crowded

    from ascend_doctor.report.html import page

    run = crowded()
    grave = sum(finding.verdict in ("fail", "unknown") for finding in run.findings)
    print(f"{grave} findings, {len(run.findings)} with those that passed: {len(page(run, 'en').encode()) // 1000} KB")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.pickle")
        path.write_bytes(pickle.dumps(run))
        codes = {"bare": BARE, "read": READ, "render": RENDER}
        taken: dict[str, list[float]] = {name: [] for name in codes}
        for _ in range(rounds):
            for name, code in codes.items():
                taken[name].append(seconds(code, str(ROOT), str(path)))
    bare, read, render = (statistics.median(taken[name]) for name in codes)
    ratio = (render - read + bare) / bare
    print(f"bare interpreter {bare * 1000:.0f} ms, rendering {(render - read) * 1000:.0f} ms: {ratio:.0f} times")
    print(f"(limit {LIMIT} times){'  TOO SLOW' * (ratio > LIMIT)}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
