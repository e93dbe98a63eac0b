"""``ascend-doctor preflight``: is this host fit to deploy on?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ascend_doctor.cli.options import (
    check_options,
    config_option,
    gate_options,
    host_options,
    report_options,
    rule_options,
)
from ascend_doctor.cli.session import chosen_checks, chosen_host, chosen_profile, chosen_rules, rule_errors


@click.command("preflight")
@config_option
@host_options
@check_options
@rule_options
@gate_options
@report_options
@click.option("--facts", "with_facts", is_flag=True, help="Put all facts into the JSON report.")
@click.option("--plan", is_flag=True, help="List what would be read and run, and end.")
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
    with_facts: bool,
    plan: bool,
) -> int:
    """Judge this host, or a snapshot, before a deployment.

    Exit codes: 0 fit, 1 not fit, 3 cannot say, 2 bad call or input, 4 a fault of ascend-doctor.
    """
    from ascend_doctor.cli.reports import tell
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.run import Asked, preflight
    from ascend_doctor.engine.situation import WORKERS
    from ascend_doctor.engine.waivers import load_waivers

    book = chosen_rules(rules, rules_pack, waivers)
    host = chosen_host(snapshot, python, timeout, book)
    chosen = chosen_profile(profile, book)
    checks = chosen_checks(book, [*only, *(() if only else chosen.only)], [*skip, *chosen.skip])
    if plan:
        from ascend_doctor.report.plan import print_plan

        print_plan(host, checks, book, lang)
        return 0
    with rule_errors(book):
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
            ),
        )
    tell(run, format_, outputs, lang, quiet, verbose)
    return run.exit_code
