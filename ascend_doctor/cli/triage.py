"""``ascend-doctor triage``: something failed; this host and its recent logs in one answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_doctor.cli.logs import INTERRUPTED, clock_of, when
from ascend_doctor.cli.options import (
    EXTENT,
    check_options,
    config_option,
    gate_options,
    host_options,
    report_options,
    rule_options,
)
from ascend_doctor.cli.session import (
    chosen_checks,
    chosen_host,
    chosen_profile,
    chosen_rules,
    progress,
    reading,
    rule_errors,
)

if TYPE_CHECKING:
    from ascend_doctor.engine.run import Run
    from ascend_doctor.host import Host
    from ascend_doctor.logs.files import LogFile
    from ascend_doctor.logs.parts import PartedRecords
    from ascend_doctor.logs.records import Records

ZONES = timedelta(hours=14)
"""How far a log's local time may be from the UTC in which a snapshot says when it was taken."""


@click.command("triage")
@click.argument("paths", nargs=-1, metavar="[PATH|-]...")
@click.option(
    "--since",
    callback=when,
    metavar="TIME",
    help="Logs from then on: 2026-09-02 13:45, 13:45, 90m (ago) [default: a day ago; all of what is named].",
)
@click.option("--until", callback=when, metavar="TIME", help="Logs until then.")
@click.option("--command", "command_line", metavar="'COMMAND'", help="The launch command, for the block of an issue.")
@click.option(
    "--smoke",
    is_flag=False,
    flag_value="default",
    metavar="[SIZE]",
    help="Compute a reduced model on a free device as well, as the verb smoke does.",
)
@config_option
@host_options
@check_options
@rule_options
@gate_options
@report_options
def command(
    paths: Sequence[str],
    since: datetime | None,
    until: datetime | None,
    command_line: str | None,
    smoke: str | None,
    snapshot: str | None,
    python: str | None,
    timeout: float,
    only: Sequence[str],
    skip: Sequence[str],
    rules: Sequence[Path],
    rules_pack: Path | None,
    profile: str | None,
    waivers: Sequence[Path],
    fail_on: str,
    strict: bool,
    outputs: Sequence[Path],
    format_: str,
    lang: str,
    quiet: bool,
    verbose: bool,
) -> int:
    """Name the most probable cause of a failure, from this host as it is and from its recent logs, and the next step.

    PATH: logs as for `logs`: files, folders, globs, archives, or - for stdin; without one the places where this host
    keeps its logs. --format markdown gives a report for an issue, with what maintainers ask for, redacted.

    Exit codes: 0 nothing wrong, 1 something is, 3 cannot say, 2 bad call or input, 4 a fault of ascend-doctor.
    """
    from ascend_doctor.cli.reports import tell
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.issue_block import issue_block
    from ascend_doctor.engine.log_run import knowledge, log_run
    from ascend_doctor.engine.run import Asked, preflight
    from ascend_doctor.engine.situation import WORKERS
    from ascend_doctor.engine.triage import triage
    from ascend_doctor.engine.waivers import load_waivers
    from ascend_doctor.knowledge.triage import load
    from ascend_doctor.logs import sources
    from ascend_doctor.logs.analysis import Wanted
    from ascend_doctor.logs.flood import Flood
    from ascend_doctor.logs.records import records_of
    from ascend_doctor.logs.scanning import scanner

    book = chosen_rules(rules, rules_pack, waivers)
    requested: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    if smoke:
        from ascend_doctor.cli.smoke import SINGLE, given_by_smoke
        from ascend_doctor.report.smoke_answer import ROWS, answered

        click.get_current_context().meta.setdefault(EXTENT, {})["smoke"] = True
        requested, rows = tuple(f"smoke.{stage}" for stage in SINGLE), (ROWS,)
    host = chosen_host(snapshot, python, timeout, book)
    chosen = chosen_profile(profile, book)
    gate = Gate(fail_on, strict)
    checks = chosen_checks(book, [*only, *(() if only else chosen.only)], [*skip, *chosen.skip], requested)
    given = given_by_smoke(host, smoke, snapshot, book, quiet) if smoke else ()
    with rule_errors(book):
        known, log_knowledge = load(book.rules), knowledge(book)
        asked = Asked(
            checks,
            book,
            gate=gate,
            profile=chosen,
            waivers=load_waivers(book.waivers),
            with_facts=True,
            workers=1 if snapshot else WORKERS,
            given=given,
            rows=rows,
        )
        with progress(quiet, lang):
            now = preflight(host, asked)
        if smoke:
            now = answered(now, now.kind)
        scan, flood = scanner(log_knowledge.anchors()), Flood()
        with reading(quiet, lang) as reads:

            def read(file: LogFile) -> Records | PartedRecords:
                reads(file.path, file.size)
                return records_of(file, scan, flood)

            logs = log_run(
                host,
                sources.found(paths, host),
                read,
                log_knowledge,
                book,
                gate=gate,
                wanted=Wanted(since or (None if paths else _recent(host, known.recent_hours, snapshot is None)), until),
                live=None if paths else clock_of(host, is_here=snapshot is None),
                engine=scan.name,
                named=bool(paths),
            )
        run = triage(now, logs, known, gate, issue_block(host, now.facts or {}, command_line))
    tell(_to_paste(run) if format_ == "markdown" else run, format_, outputs, lang, quiet, verbose)
    assert run.logs is not None
    return INTERRUPTED if run.logs.analysis.interrupted else run.exit_code


def _recent(host: Host, hours: float, is_here: bool) -> datetime:
    """Of a snapshot some hours earlier, since the zone of its logs is not known."""
    if is_here:
        return datetime.now() - timedelta(hours=hours)
    return host.now().replace(tzinfo=None) - timedelta(hours=hours) - ZONES


def _to_paste(run: Run) -> Run:
    """What is pasted into an issue names nobody, unless the user says --no-redact."""
    from ascend_doctor.cli.redaction import Redaction
    from ascend_doctor.engine.hidden_run import hidden_run

    redaction = Redaction()
    return hidden_run(run, redaction.redactor()) if redaction.of_files else run
