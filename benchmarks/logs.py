"""Log scanning against ripgrep, as ratios of medians in one run: ``python benchmarks/logs.py [--mib 1024]``.

A CANN log is generated for each share of errors. ripgrep (``rg -j1 -n``; Debian: ``apt-get install ripgrep``) gets the
same signatures: their anchors as fixed strings, at which it is fastest; with --regexes, which takes long, also their
patterns. Rounds alternate, so that a machine whose speed drifts slows all.
"scan" finds the lines and which anchors they hold; "whole" is reading, scanning, parsing and naming; "command" is
``ascend-doctor logs`` from its start to its report, kept to one processor. Memory is the peak of such a command. Exit
code 1 where a figure is over its limit.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).parent.parent))

from ascend_doctor.knowledge import signatures
from ascend_doctor.logs.reading import Lines, line_feeds
from ascend_doctor.logs.records import Records
from ascend_doctor.logs.scanning import Anchors, Scanner, scanner
from ascend_doctor.logs.sources import found

RULES = Path(__file__).parent.parent / "rules"
SHARES = (0.001, 0.01, 0.05)
COMMON = 0.01
LIMITS = {  # figure -> share of errors -> least ratio to ripgrep
    "scan fast": dict(zip(SHARES, (2.0, 1.2, 1.1))),
    "scan pure": dict(zip(SHARES, (0.6, 0.5, 0.35))),
    "gz fast": {0.01: 1.5},
    "command": {0.01: 0.3},
}
MEMORY_MIB = 120

MODULES = ["RUNTIME", "HCCL", "GE", "ASCENDCL", "DRV", "TDT", "FE", "HCCP", "PROFILING", "TEFUSION", "CCE"]
SOURCES = [
    "engine.cc",
    "stream.cc",
    "context.cc",
    "op_base.cc",
    "graph_manager.cc",
    "model_manager.cc",
    "npu_driver.cc",
    "api_impl.cc",
]
FUNCTIONS = [
    "LaunchKernel",
    "StreamCreate",
    "SendTask",
    "MemCopyAsync",
    "BuildGraph",
    "AllReduce",
    "LoadModel",
    "SubmitTask",
    "InitTransport",
]
QUIET = (
    "stream_id={a}, task_id={b}, taskType=13(KERNEL_AICORE), send task success",
    "alloc device mem success, addr=0x{a:012x}, size={b}",
    "tag[AllReduce_192.0.2.{b}] count[{a}] dataType[float16] linkTimeOut[120]",
    "kernel launch begin, kernel_name=te_matmulv2_{a}, blockDim={b}",
    "graph id:{a}, session id:{b} run graph success",
    "op[Conv2D_{a}] input dims 4D NC1HWC0 format, output size {b}",
    "notify id[{a}] offset[{b}] created",
)
PLAIN_ERRORS = ("plain failure on step {a} of {b}, giving up", "retry {a} of request {b} did not help")


def lines(share: float, loud: list[str], seed: int) -> Iterator[str]:
    """CANN records: ``share`` of them errors, 1 % warnings, 10 % events; half of the errors are known to signatures."""
    draw = random.Random(seed)
    micros = 1_740_830_400_000_000
    while True:
        micros += draw.randrange(20, 900)
        second, fraction = divmod(micros // 1, 1_000_000)
        chance = draw.random()
        level = (
            "ERROR" if chance < share else "WARNING" if chance < share + 0.01 else "EVENT" if chance < 0.16 else "INFO"
        )
        texts = QUIET if level != "ERROR" else loud if draw.random() < 0.5 else PLAIN_ERRORS
        text = draw.choice(texts)
        if texts is not loud:
            text = text.format(a=draw.randrange(1, 65000), b=draw.randrange(1, 4000))
        clock = f"{second % 86400 // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        stamp = f"2025-03-01-{clock}.{fraction // 1000:03}.{fraction % 1000:03}"
        place = f"[{draw.choice(SOURCES)}:{draw.randrange(50, 3000)}]{12345 + draw.randrange(64)}"
        module, function = draw.choice(MODULES), draw.choice(FUNCTIONS)
        yield f"[{level}] {module}(12345,python):{stamp} {place} {function}: {text}\n"


def generate(path: Path, mib: int, share: float, loud: list[str]) -> None:
    """A block of 32 MiB, turned at another line each time: generating is slower than reading."""
    made, size = [], 0
    for line in lines(share, loud, seed=5):
        made.append(line)
        size += len(line)
        if size > min(32, mib) << 20:
            break
    block = [line.encode() for line in made]
    left, turn = mib << 20, 0
    with path.open("wb") as out:
        while left > 0:
            at = len(block) * turn // 11 % len(block)
            out.write(b"".join(block[at:] + block[:at])[: left if left < size else None])
            left, turn = left - size, turn + 7


def scan(path: Path, engine: Scanner) -> int:
    hits = count = 0
    for file in found([str(path)]):
        with file.open() as stream:
            for chunk in Lines(stream):
                hits += len(engine.feed(chunk.data))
                count += line_feeds(chunk.data, 0, len(chunk.data))
    return hits


def whole(path: Path, engine: Scanner, book: signatures.Signatures) -> int:
    """Reading, scanning, parsing and naming, in this process."""
    named = 0
    for file in found([str(path)]):
        for record in Records(file, engine):
            named += bool(book.matching(record.text, record.kind, record.anchors))
    return named


def seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def ratios(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of each, the median of rounds in which all take turns; the first round warms the caches."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            taken[name] += [seconds(call)] if number else [] * bool(call())
    return {name: statistics.median(times) for name, times in taken.items()}


def command(path: Path) -> None:
    """The verb as a process that may use one processor: so a large file is not shared out."""
    run([sys.executable, "-m", "ascend_doctor", "logs", path, "--format", "json"], one_processor=True)


def peak_mib(call: Callable[[], object]) -> float:
    """The most memory that a process had which the call started."""
    pid = os.fork()
    if pid == 0:
        call()
        os._exit(min(255, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def regexes(book: signatures.Signatures) -> list[str]:
    """The signatures' own patterns, for ripgrep, whose engine has no look-around: there their anchors."""
    found = []
    for one in book.every:
        regex = re.sub(r"\(\?P<\w+>", "(?:", one.regex)
        plain = not re.search(r"\(\?<?[=!]", regex)
        found += [regex] if plain else [re.escape(anchor).replace("\\ ", " ") for anchor in one.anchors]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--regexes", action="store_true")
    given = parser.parse_args()
    book = signatures.load([RULES])
    anchors = Anchors(book.anchors())
    engines = {"pure": scanner(anchors, fast=False), "fast": scanner(anchors)}
    if engines["fast"].name == "pure":
        print("hyperscan is not installed: pip install 'ascend-doctor[fast]'")
        del engines["fast"]
    rg = shutil.which("rg")
    if not rg:
        print("ripgrep is not installed: nothing to compare with")
        return 2
    # what the signatures know; a glued second record would make two lines of one
    loud = [
        one.body and anchor
        for one in book.every
        for anchor in one.anchors
        if "\n" not in anchor and "[ERROR]" not in anchor
    ]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        literal, pattern = Path(folder, "anchors"), Path(folder, "patterns")
        literal.write_text("\n".join(["[ERROR]", *anchors.words]) + "\n")
        pattern.write_text("\n".join(regexes(book)) + "\n")
        for share in SHARES:
            log = Path(folder, "plog-12345_20250301000000000.log")
            generate(log, given.mib, share, loud)
            grep = [rg, "-j1", "--no-config", "--no-unicode", "-a", "-n"]
            calls: dict[str, Callable[[], object]] = {"rg": partial(run, [*grep, "-F", "-f", literal, log])}
            for name, engine in engines.items():
                calls[f"scan {name}"] = partial(scan, log, engine)
            if share == COMMON:
                packed = log.with_suffix(".log.gz")
                with log.open("rb") as plain, gzip.open(packed, "wb", 6) as out:
                    shutil.copyfileobj(plain, out, 1 << 20)
                if given.regexes:
                    calls["rg regexes"] = partial(run, [*grep, "-f", pattern, log])
                calls["rg -z"] = partial(run, [*grep, "-z", "-F", "-f", literal, packed])
                calls["command"] = partial(command, log)
                for name, engine in engines.items():
                    calls[f"whole {name}"] = partial(whole, log, engine, book)
                    calls[f"gz {name}"] = partial(scan, packed, engine)
            wrong += told(share, given.mib, ratios(calls, given.rounds))
        peak = peak_mib(partial(command, log))
        print(f"memory of the command: {peak:.0f} MiB (limit {MEMORY_MIB})")
    return int(wrong > 0 or peak > MEMORY_MIB)


def told(share: float, mib: int, times: dict[str, float]) -> int:
    """Prints the figures of one log; how many are over their limit."""
    wrong = 0
    for name, taken in times.items():
        ratio = times["rg -z" if name.startswith("gz") else "rg"] / taken
        limit = LIMITS.get(name, {}).get(share)
        bad = limit is not None and ratio < limit
        wrong += bad
        note = "" if limit is None else f"(limit {limit:g})" + "  TOO SLOW" * bad
        print(f"{share:6.1%}  {name:10} {mib * 1.048576 / taken:7.0f} MB/s {ratio:6.2f} times rg {note}")
    return wrong


def run(words: list[object], one_processor: bool = False) -> None:
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        preexec_fn=_keep_to_one_processor if one_processor else None,
        cwd=RULES.parent,
    )
    if done.returncode > 1:
        raise SystemExit(f"{words[0]}: {done.stderr[-200:].decode(errors='replace')}")


def _keep_to_one_processor() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


if __name__ == "__main__":
    sys.exit(main())
