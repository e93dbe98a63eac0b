"""``ascend-doctor report``: a run that was written before, told again in any form."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_doctor.cli.options import report_options
from ascend_doctor.cli.session import SessionError

if TYPE_CHECKING:
    from ascend_doctor.engine.run import Run


@click.command("report")
@report_options
@click.argument("run", metavar="RUN|-")
def command(
    run: str,
    outputs: Sequence[Path],
    format_: str,
    lang: str,
    quiet: bool,
    verbose: bool,
) -> int:
    """Tell a run again that was written as .json, or as .html, which carries it.

    Nothing is judged again: verdict, findings and counts are those of the run. Exit codes: 0 told, 2 no such run.
    """
    from ascend_doctor.cli.reports import tell

    tell(stored_run(run), format_, outputs, lang, quiet, verbose)
    return 0


def stored_run(path: str) -> Run:
    """The run in a file, or on stdin. Raises SessionError."""
    from ascend_doctor.report.fields import StoredError
    from ascend_doctor.report.stored import LARGEST, run_of_bytes

    name = "stdin" if path == "-" else path
    try:
        if path == "-":
            content = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with open(path, "rb") as stream:
                content = stream.read(LARGEST + 1)
    except IsADirectoryError:
        raise SessionError(
            f"{path}: a folder; a snapshot is judged, not told: ascend-doctor preflight --snapshot {path}"
        ) from None
    except OSError as error:
        raise SessionError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise SessionError(f"{name}: larger than {LARGEST >> 20} MiB; no report is")
    try:
        return run_of_bytes(content)
    except StoredError as error:
        raise SessionError(f"{name}: {error}") from None
