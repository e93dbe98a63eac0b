"""What is waited for, on one line of a terminal that is gone when the answer comes."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from typing import TextIO

from rich.cells import set_cell_size

from ascend_doctor.host.commands import Waiting, waiting
from ascend_doctor.report.console import printable
from ascend_doctor.report.words import Words, words

PATIENCE, STEP = 0.4, 0.2
"""Seconds before the first line and between two: what is quick is not shown."""

LARGE = 16 << 20
"""Bytes of a file that takes a while."""

CLEAR = "\r\x1b[K"


class Line:
    """One line at the bottom of a terminal, which is taken away in the end."""

    def __init__(self, stream: TextIO, lang: str) -> None:
        self._stream, self.words = stream, words(lang)
        self._shown = self._gone = False

    def show(self, text: str) -> None:
        """ "": nothing."""
        if self._gone or not (text or self._shown):
            return
        width = shutil.get_terminal_size().columns - 1
        try:
            self._stream.write(CLEAR + (set_cell_size(text, width).rstrip() if text else ""))
            self._stream.flush()
        except (OSError, ValueError):  # the terminal has gone
            self._gone = True
        self._shown = bool(text)


class Commands:
    """``with Commands(sys.stderr, "en"):`` draws until the block ends, however it ends."""

    def __init__(self, stream: TextIO, lang: str) -> None:
        self._line, self._ended = Line(stream, lang), threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Commands:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(1)

    def _draw(self) -> None:
        wait = PATIENCE
        while not self._ended.wait(wait):
            self._line.show(of_commands(waiting(), time.monotonic(), self._line.words))
            wait = STEP
        self._line.show("")


class Files:
    """Draws as each file is begun; small ones that follow each other quickly are passed over."""

    def __init__(self, stream: TextIO, lang: str) -> None:
        self._line, self._last = Line(stream, lang), time.monotonic()

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.show("")

    def reads(self, name: str, size: int | None) -> None:
        now = time.monotonic()
        if now - self._last >= STEP or (size or 0) >= LARGE:
            self._last = now
            self._line.show(of_file(name, size, self._line.words))


def of_commands(running: Sequence[Waiting], now: float, words: Words) -> str:
    """``npu-smi info (3 s of 10 s), and 2 more``; "" where nothing is waited for."""
    if not running:
        return ""
    first, *others = sorted(running, key=lambda one: one.began)
    seconds, limit = int(now - first.began), f"{first.seconds:.0f}"
    text = words["progress_command"].format(what=_on_one_line(first.command), seconds=seconds, limit=limit)
    return words["progress_more"].format(what=text, n=len(others)) if others else text


def of_file(name: str, size: int | None, words: Words) -> str:
    """``plog/plog-7.log (1204 MiB)``."""
    text = _on_one_line(name)
    return words["progress_file"].format(what=text, mib=size >> 20) if size and size >= LARGE else text


def _on_one_line(text: str) -> str:
    return printable(text).replace("\n", " ")
