"""``ascend-doctor versions``: what is found, what fits, what is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from ascend_doctor.cli.options import gate_options, host_options, report_options, rule_options
from ascend_doctor.cli.session import SessionError, chosen_checks, chosen_host, chosen_rules, progress, rule_errors

CHECKS = ("compat.*", "cann.*", "driver.*", "ascend.present", "npu.answers")


@click.command("versions")
@host_options
@rule_options
@gate_options
@report_options
@click.option("--for", "wanted", metavar="PACKAGE", help="What a release wants, such as vllm-ascend==0.23.0")
def command(
    snapshot: str | None,
    python: str | None,
    timeout: float,
    rules: Sequence[Path],
    rules_pack: Path | None,
    waivers: Sequence[Path],
    fail_on: str,
    strict: bool,
    outputs: Sequence[Path],
    format_: str,
    lang: str,
    quiet: bool,
    verbose: bool,
    wanted: str | None,
    **_: object,
) -> int:
    """Show the versions of driver, CANN and Python packages, and whether they fit together."""
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.run import Asked, preflight
    from ascend_doctor.engine.situation import WORKERS
    from ascend_doctor.engine.waivers import load_waivers
    from ascend_doctor.report.versions import TABLES, as_json, lines, read_tables

    book = chosen_rules(rules, rules_pack, waivers)
    if wanted is not None:
        from ascend_doctor.report.wanted import UnknownReleaseError, wanted_json, wanted_text
        from ascend_doctor.report.words import words

        with rule_errors(book):
            known = read_tables(book.rules)
        try:
            click.echo(
                wanted_json(wanted, known) if format_ == "json" else wanted_text(wanted, known, words(lang)), nl=False
            )
        except UnknownReleaseError as error:
            raise SessionError(str(error)) from None
        return 0
    from ascend_doctor.cli.reports import tell

    host = chosen_host(snapshot, python, timeout, book)
    asked = Asked(
        chosen_checks(book, CHECKS),
        book,
        gate=Gate(fail_on, strict),
        waivers=load_waivers(book.waivers),
        with_facts=True,
        workers=1 if snapshot else WORKERS,
        parts=TABLES,
    )
    with rule_errors(book), progress(quiet, lang):
        run = preflight(host, asked)
    run = replace(run, kind="versions", facts={"versions": as_json(lines(run))})
    tell(run, format_, outputs, lang, quiet, verbose)
    return run.exit_code
