"""Tells a run: to stdout in the format that was asked for, and to files by their suffix."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_doctor.cli.options import FORMATS
from ascend_doctor.cli.redaction import Redaction
from ascend_doctor.cli.session import SessionError, reader_may_leave, say

if TYPE_CHECKING:
    from ascend_doctor.engine.run import Run


def tell(run: Run, format_: str, outputs: Sequence[Path], lang: str, quiet: bool, verbose: bool) -> None:
    """Prints first, so that a file that cannot be written loses nothing. Raises SessionError for such a file.

    Secrets are hidden everywhere; hosts, users and addresses in files, and on stdout where the user asks for it.
    """
    redaction = Redaction()
    with reader_may_leave():
        printed = redaction.printed(run)
        if format_ == "console":
            from ascend_doctor.report.console import print_run

            print_run(printed, sys.stdout, lang, quiet=quiet, verbose=verbose)
        else:
            sys.stdout.write(rendered(printed, format_, lang))
    written = redaction.written(run) if outputs else run
    by_suffix = {suffix: name for name, suffix in FORMATS.items()}
    failed = []
    for path in map(redaction.place, outputs):
        text = rendered(written, by_suffix[path.suffix.lower()], lang)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            failed.append(f"{path}: cannot be written: {error.strerror}")
        else:
            say(f"written: {path}", quiet)
    redaction.save_map(quiet)
    if failed:
        raise SessionError("\n".join(failed))


def rendered(run: Run, format_: str, lang: str) -> str:
    """A whole report as text."""
    if format_ == "json":
        from ascend_doctor.report.json_report import as_text

        return as_text(run)
    if format_ == "html":
        from ascend_doctor.report.html import page

        return page(run, lang)
    if format_ == "markdown":
        from ascend_doctor.report import markdown

        return markdown.as_text(run, lang)
    if format_ == "junit":
        from ascend_doctor.report import junit

        return junit.as_text(run, lang)
    from ascend_doctor.report.console import plain_text

    return plain_text(run, lang)
