"""Start-up and memory, as ratios to a bare interpreter in the same run: ``python benchmarks/start_up.py``.

Runs alternate, so that a machine whose speed drifts slows all of them; medians are compared. Exit code 1 where a
figure is over its limit.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 25
HOSTS = Path(__file__).parent.parent / "tests" / "hosts"
SNAPSHOT, CONTAINER = HOSTS / "a2-healthy", HOSTS / "a2-container-healthy"


@dataclass(frozen=True)
class Case:
    name: str
    command: list[str]
    ratio: float
    mib: float | None = None


def cases() -> list[Case]:
    script = shutil.which("ascend-doctor", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    module = [sys.executable, "-m", "ascend_doctor"]
    found = [
        Case("python -m ascend_doctor --version", [*module, "--version"], 1.5),
        Case(
            "preflight --format json", [*module, "preflight", "--snapshot", str(SNAPSHOT), "--format", "json"], 28, 80
        ),
        Case("explain 507015", [*module, "explain", "507015"], 15),
        Case("versions", [*module, "versions", "--snapshot", str(CONTAINER)], 20),
    ]
    return [*found, Case("ascend-doctor --version", [script, "--version"], 1.8)] if script else found


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""An installed package has its byte code beside it; a measurement without it would be of the compiler."""


def seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env=ENVIRONMENT)
    return time.perf_counter() - begun


def peak_mib(command: list[str]) -> float:
    """Peak memory of the command alone, measured in a child of its own."""
    pid = os.fork()
    if pid == 0:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        os._exit(min(255, peak // 1024))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> int:
    bare = [sys.executable, "-c", "pass"]
    measured = cases()
    times: dict[str, list[float]] = {case.name: [] for case in measured}
    base: list[float] = []
    for number in range(ROUNDS + 1):
        rounds = [(base, seconds(bare))] + [(times[case.name], seconds(case.command)) for case in measured]
        if number:  # the first round warms the caches
            for bucket, value in rounds:
                bucket.append(value)
    wrong = 0
    unit = statistics.median(base)
    print(f"{'bare python -c pass':40} {unit * 1000:7.1f} ms")
    for case in measured:
        ratio = statistics.median(times[case.name]) / unit
        line = f"{case.name:40} {ratio * unit * 1000:7.1f} ms  {ratio:5.2f} times bare (limit {case.ratio:g})"
        over = ratio > case.ratio
        if case.mib:
            peak = peak_mib(case.command)
            line += f"  {peak:.0f} MiB (limit {case.mib:g})"
            over |= peak > case.mib
        print(line + ("  OVER" if over else ""))
        wrong |= over
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
