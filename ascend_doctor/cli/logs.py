"""``ascend-doctor logs``: the root cause in a pile of logs, with the line that proves it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_doctor.cli.options import config_option, gate_options, host_options, report_options, rule_folder_options
from ascend_doctor.cli.session import chosen_host, chosen_rules, reading, rule_errors

if TYPE_CHECKING:
    from ascend_doctor.host import Host
    from ascend_doctor.logs.boot import BootFact
    from ascend_doctor.logs.files import LogFile
    from ascend_doctor.logs.parts import PartedRecords
    from ascend_doctor.logs.records import Records

INTERRUPTED = 130
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def when(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """``2026-09-02 13:45``, ``13:45`` (today), ``90m`` (before now): in the time of the logs."""
    if value is None:
        return None
    text, now = value.strip(), datetime.now()
    ago = re.fullmatch(r"(\d{1,6})([smhd])", text, re.ASCII)
    if ago:
        return now - timedelta(seconds=int(ago[1]) * SECONDS[ago[2]])
    if re.fullmatch(r"\d{1,2}:\d\d(?::\d\d)?", text, re.ASCII):
        text = f"{now.date()}T{text.zfill(5 if text.count(':') == 1 else 8)}"
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        raise click.BadParameter(f"{value}: write 2026-09-02 13:45, 13:45 or 90m (ago)") from None


@click.command("logs")
@click.argument("paths", nargs=-1, metavar="[PATH|-]...")
@click.option("--since", callback=when, metavar="TIME", help="Only from then on: 2026-09-02 13:45, 13:45, 90m (ago).")
@click.option("--until", callback=when, metavar="TIME", help="Only until then.")
@click.option("--pid", type=click.IntRange(0), help="Only of this process, and what names no process.")
@click.option("--rank", type=click.IntRange(0), help="Only of this rank, and what names no rank.")
@click.option("--device", type=click.IntRange(0), help="Only of this device, and what names no device.")
@config_option
@host_options
@rule_folder_options
@gate_options
@report_options
def command(
    paths: Sequence[str],
    since: datetime | None,
    until: datetime | None,
    pid: int | None,
    rank: int | None,
    device: int | None,
    snapshot: str | None,
    python: str | None,
    timeout: float,
    rules: Sequence[Path],
    rules_pack: Path | None,
    fail_on: str,
    strict: bool,
    outputs: Sequence[Path],
    format_: str,
    lang: str,
    quiet: bool,
    verbose: bool,
) -> int:
    """Find the root cause in plogs, device logs, kernel logs and what frameworks print.

    PATH: files, folders, globs, archives, or - for stdin; without one the places where this host keeps its logs.

    Exit codes: 0 no fault, 1 a fault, 3 the evidence is not here or there are no logs, 2 bad call or input.
    """
    from ascend_doctor.cli.reports import tell
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.log_run import knowledge, log_run
    from ascend_doctor.logs import sources
    from ascend_doctor.logs.analysis import Wanted
    from ascend_doctor.logs.flood import Flood
    from ascend_doctor.logs.records import records_of
    from ascend_doctor.logs.scanning import scanner

    book = chosen_rules(rules, rules_pack)
    host = chosen_host(snapshot, python, timeout, book)
    with rule_errors(book), reading(quiet, lang) as reads:
        known = knowledge(book)
        scan, flood = scanner(known.anchors()), Flood()

        def read(file: LogFile) -> Records | PartedRecords:
            reads(file.path, file.size)
            return records_of(file, scan, flood)

        run = log_run(
            host,
            sources.found(paths, host),
            read,
            known,
            book,
            gate=Gate(fail_on, strict),
            wanted=Wanted(since, until, pid, rank, device),
            live=None if paths else clock_of(host, is_here=snapshot is None),
            engine=scan.name,
            named=bool(paths),
        )
    tell(run, format_, outputs, lang, quiet, verbose)
    assert run.logs is not None
    return INTERRUPTED if run.logs.analysis.interrupted else run.exit_code


def clock_of(host: Host, is_here: bool) -> BootFact | None:
    """When its kernel started; of a snapshot in UTC, since its zone is not in it."""
    from ascend_doctor.host import Missing
    from ascend_doctor.logs.boot import BootFact, local_fact

    answer = host.read("/proc/uptime")
    if isinstance(answer.value, Missing):
        return None
    try:
        uptime = float(answer.value.split()[0])
    except (ValueError, IndexError):
        return None
    return (
        local_fact(host.now(), uptime) if is_here else BootFact(host.now().replace(tzinfo=None), uptime, None, "live")
    )
