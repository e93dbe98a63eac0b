"""``ascend-doctor preflight``: is this host fit to deploy on?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_doctor.cli import launching
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
    SessionError,
    chosen_checks,
    chosen_host,
    chosen_profile,
    chosen_rules,
    progress,
    rule_errors,
)

if TYPE_CHECKING:
    from ascend_doctor.engine.launching import Command
    from ascend_doctor.host import Collected, Host

RANK_TABLES = ("RANK_TABLE_FILE", "RANKTABLEFILE")


@click.command("preflight")
@config_option
@host_options
@check_options
@rule_options
@gate_options
@report_options
@click.option(
    "--smoke",
    is_flag=False,
    flag_value="default",
    metavar="[SIZE]",
    help="Compute a reduced model on a free device as well; see the verb smoke.",
)
@click.option("--facts", "with_facts", is_flag=True, help="Put all facts into the JSON report.")
@click.option("--plan", is_flag=True, help="List what would be read and run, and end.")
@click.option("--exec", "execute", is_flag=True, help="Become the command behind -- when the gate lets it pass.")
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def command(
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
    smoke: str | None,
    with_facts: bool,
    plan: bool,
    execute: bool,
    command_line: Sequence[str],
) -> int:
    """Judge this host, or a snapshot, before a deployment; with a launch command behind --, that launch as well.

    With --exec the command takes the place of this process on 0 and 3, with --strict on 0 alone; reports then go to
    stderr and to files.

    Exit codes: 0 fit, 1 not fit, 3 cannot say, 2 bad call or input, 4 a fault of ascend-doctor.
    """
    from ascend_doctor.cli.reports import tell
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.run import Asked, preflight
    from ascend_doctor.engine.situation import WORKERS
    from ascend_doctor.engine.waivers import load_waivers

    if execute:
        launching.heed_signals()
    book = chosen_rules(rules, rules_pack, waivers)
    if smoke:
        click.get_current_context().meta.setdefault(EXTENT, {})["smoke"] = True
    launch = _launch(command_line, execute, snapshot, plan)
    if launch is not None and python is None and not snapshot:
        python = launching.python_of(launch)
    host = chosen_host(snapshot, python, timeout, book)
    chosen = chosen_profile(profile, book)
    requested = _by_environment(host)
    passed_over: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    if launch is not None:
        from ascend_doctor.engine.launching import command_of, launched
        from ascend_doctor.engine.launching import given as given_by
        from ascend_doctor.knowledge.environment import known_env

        launch = command_of(command_line, host, "" if snapshot else os.getcwd()) or launch
        with rule_errors(book):
            host = launched(host, launch, *known_env(book.rules))
        requested, passed_over = (*launch.requested, *_by_environment(host)), launch.passed_over(host)
    if smoke:
        from ascend_doctor.cli.smoke import SINGLE
        from ascend_doctor.report.smoke_answer import ROWS

        requested, rows = (*requested, *(f"smoke.{stage}" for stage in SINGLE)), (ROWS,)
    checks = chosen_checks(
        book, [*only, *(() if only else chosen.only)], [*skip, *chosen.skip, *passed_over], requested
    )
    if plan:
        from ascend_doctor.report.plan import print_plan

        print_plan(host, checks, book, lang)
        return 0
    given: tuple[Collected[Any], ...] = ()
    if launch is not None:
        given = given_by(host, launch, None if snapshot else launching.folder_of(launch))
    if smoke:
        from ascend_doctor.cli.smoke import given_by_smoke

        given = (*given, *given_by_smoke(host, smoke, snapshot, book, quiet))
    with rule_errors(book), progress(quiet, lang):
        run = preflight(
            host,
            Asked(
                checks,
                book,
                gate=Gate(fail_on, strict),
                profile=chosen,
                waivers=load_waivers(book.waivers),
                with_facts=with_facts,
                workers=1 if snapshot else WORKERS,
                given=given,
                rows=rows,
            ),
        )
    if smoke:
        from ascend_doctor.report.smoke_answer import answered

        run = answered(run, run.kind)
    if launch is None or not execute:
        tell(run, format_, outputs, lang, quiet, verbose)
        return run.exit_code
    with redirect_stdout(sys.stderr):
        tell(run, format_, outputs, lang, quiet, verbose)
    if launching.starts(run.exit_code, run.gate):
        launching.start(launch)
    return run.exit_code


def _by_environment(host: Host) -> tuple[str, ...]:
    """What a variable asks for; its module is imported only then."""
    if not any(host.env(name).value for name in RANK_TABLES if isinstance(host.env(name).value, str)):
        return ()
    from ascend_doctor.engine.launching import by_environment

    return by_environment(host)


def _launch(line: Sequence[str], execute: bool, snapshot: str | None, plan: bool) -> Command | None:
    """Raises SessionError for what does not go together."""
    if execute and (not line or snapshot or plan):
        raise SessionError(
            "--exec starts a command on this machine: preflight --exec -- COMMAND..., without --snapshot"
        )
    if not line:
        return None
    from ascend_doctor.engine.launching import command_of

    return command_of(line)
