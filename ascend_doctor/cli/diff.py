"""``ascend-doctor diff``: two runs or snapshots, and what got worse, better or changed between them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_doctor.cli.options import check_options, config_option, gate_options, report_options, rule_options
from ascend_doctor.cli.session import (
    SessionError,
    chosen_checks,
    chosen_host,
    chosen_profile,
    chosen_rules,
    rule_errors,
)

if TYPE_CHECKING:
    from ascend_doctor.engine.checks import Check
    from ascend_doctor.engine.rulebook import Rulebook
    from ascend_doctor.engine.run import Run
    from ascend_doctor.knowledge.profile import Profile

ARCHIVES = (".tar.gz", ".tgz", ".tar")
SECONDS = 60.0


@click.command("diff")
@config_option
@check_options
@rule_options
@gate_options
@report_options
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
def command(
    before: str,
    after: str,
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
    """Compare two looks at a host, or two hosts: what got worse, what better, what changed, and which facts differ.

    BEFORE and AFTER: a run (.json or .html), or a snapshot (folder or .tar.gz), which is judged first.

    Exit codes: 0 nothing got worse, 1 something did (at or above --fail-on), 3 a question that must be answered cannot
    be any more, 2 bad call or input.
    """
    from ascend_doctor.cli.reports import tell
    from ascend_doctor.engine.differences import NotComparableError, Side, diff
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.knowledge.differences import load

    book = chosen_rules(rules, rules_pack, waivers)
    chosen = chosen_profile(profile, book)
    checks = chosen_checks(book, [*only, *(() if only else chosen.only)], [*skip, *chosen.skip])
    areas = {check.id: check.areas for check in checks}

    def areas_of(name: str) -> Collection[str]:
        return areas.get(name, ())

    one, other = (Side(path, _run(path, book, checks, chosen)) for path in (before, after))
    try:
        with rule_errors(book):
            run = diff(one, other, load(book.rules), book.rules, Gate(fail_on, strict), areas_of)
    except NotComparableError as error:
        raise SessionError(str(error)) from None
    tell(run, format_, outputs, lang, quiet, verbose)
    return run.exit_code


def _run(path: str, book: Rulebook, checks: tuple[Check, ...], profile: Profile) -> Run:
    """A stored run as it is; a snapshot judged. Raises SessionError."""
    if path != "example" and not Path(path).is_dir() and not path.lower().endswith(ARCHIVES):
        from ascend_doctor.cli.report import stored_run

        return stored_run(path)
    from ascend_doctor.engine.run import Asked, preflight
    from ascend_doctor.engine.waivers import load_waivers

    with rule_errors(book):
        asked = Asked(checks, book, profile=profile, waivers=load_waivers(book.waivers), with_facts=True, workers=1)
        return preflight(chosen_host(path, None, SECONDS, book), asked)
