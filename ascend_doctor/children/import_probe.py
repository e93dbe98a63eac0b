"""Imports one module and tells how that went: ``import_probe.py FOLDER SECONDS MODULE``, with FOLDER to be in.

What is printed meanwhile, an end by a signal and none within SECONDS are for the starter to see.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.util
import json
import os
import sys
import time

ANSWER = 3
LONGEST = 4000
MOST = 20


def main() -> None:
    os.set_inheritable(ANSWER, False)
    folder, seconds, module = sys.argv[1:4]
    faulthandler.enable()
    faulthandler.dump_traceback_later(0.9 * float(seconds))
    os.chdir(folder)
    del sys.path[0]  # the folder of this script
    errors = []
    imported, version, begun = False, "", time.time()
    there = found(module)
    if there:
        try:
            version = str(getattr(importlib.import_module(module), "__version__", ""))[:LONGEST]
            imported = True
        except BaseException as error:  # a module may raise anything, SystemExit too
            errors = chain(error)
    answer = {"found": there, "imported": imported, "version": version, "errors": errors}
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    write(json.dumps({**answer, "seconds": round(time.time() - begun, 3)}).encode())
    os._exit(0)  # what modules do at the end of a process is not asked


def found(module: str) -> bool:
    """Whether there is such a module, told without running it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return True  # the import will tell


def chain(error: BaseException | None) -> list[dict[str, str]]:
    """The exception and those that it came from, the first one last."""
    told: list[dict[str, str]] = []
    seen = set()
    while error is not None and id(error) not in seen and len(told) < MOST:
        seen.add(id(error))
        told.append({"type": type(error).__name__, "text": text_of(error), "where": where(error)})
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return told


def text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as worse:
        text = f"(no text: {type(worse).__name__})"
    return text.encode("utf-8", "backslashreplace").decode()[:LONGEST]


def where(error: BaseException) -> str:
    """File and line of the innermost frame."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""


def write(data: bytes) -> None:
    while data:
        data = data[os.write(ANSWER, data) :]


if __name__ == "__main__":
    main()
