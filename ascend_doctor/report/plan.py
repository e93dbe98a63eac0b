"""What a run would read and start, found by asking without starting anything."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ascend_doctor.engine.checks import Check
from ascend_doctor.engine.rulebook import Rulebook
from ascend_doctor.engine.situation import Situation
from ascend_doctor.host import Host
from ascend_doctor.host.planned import Planned
from ascend_doctor.report.console import printable
from ascend_doctor.report.words import words


def print_plan(host: Host, checks: Sequence[Check], book: Rulebook, lang: str) -> None:
    """Commands first, then variables, then files, each once. Files are read to find out; no command is started."""
    planned = Planned(host)
    situation = Situation(planned, book.rules, workers=1)
    situation.collect(sorted({area for check in checks for area in check.areas}))
    said = words(lang)
    for title, lines in (
        (said["would_run"], planned.commands()),
        (said["would_ask_variables"], planned.variables()),
        (said["would_read"], planned.files()),
    ):
        sys.stdout.write(f"{title} ({len(lines)})\n")
        for line in lines:
            sys.stdout.write(f"  {printable(line)}\n")
