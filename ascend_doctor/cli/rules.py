"""``ascend-doctor rules``: the knowledge: listed, linted, tried on hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_doctor.cli.options import language_option, rule_folder_options
from ascend_doctor.cli.session import SessionError, chosen_checks, chosen_rules, rule_errors
from ascend_doctor.paths import data_folder

if TYPE_CHECKING:
    from ascend_doctor.engine.checks import Check
    from ascend_doctor.engine.rulebook import Rulebook


@click.group("rules")
def command() -> None:
    """List, lint or test what the doctor asks and knows."""


@command.command("list")
@rule_folder_options
@language_option
def list_(rules: Sequence[Path], rules_pack: Path | None, lang: str) -> int:
    """One line for each check: layer, name, title."""
    from ascend_doctor.report.explain import title_text

    for check in sorted(chosen_checks(chosen_rules(rules, rules_pack), requested=("*",)), key=lambda c: c.id):
        click.echo(f"{check.layer:9}  {check.id:32}  {title_text(check, lang)}")
    return 0


@command.command("lint")
@rule_folder_options
def lint(rules: Sequence[Path], rules_pack: Path | None) -> int:
    """Find what loads but should not be so: lacking sources, translations, hosts; unquoted versions.

    With --rules only your own are looked at, and one language is enough.
    """
    from dataclasses import replace

    from ascend_doctor.engine import lint_codes, lint_signatures, lint_triage
    from ascend_doctor.engine.lint import lint as linted
    from ascend_doctor.engine.waivers import load_waivers
    from ascend_doctor.paths import data_folder
    from ascend_doctor.report import words_lint

    book = chosen_rules(rules, rules_pack)
    own = _own(book, rules)
    with rule_errors(book):
        load_waivers(book.waivers)
        looked_at = replace(book, rules=book.rules[1:]) if rules else book
        complaints = list(linted(own, looked_at, bilingual=not rules))
        complaints += lint_signatures.lint(book.rules, looked_at.rules, bilingual=not rules)
        complaints += lint_codes.lint(looked_at.rules, bilingual=not rules)
        complaints += lint_triage.lint(book) if not rules else ()
        complaints += words_lint.lint(data_folder("reports")) if not rules else ()
    for complaint in complaints:
        click.echo(complaint)
    click.echo(f"{len(own)} checks, {len(complaints)} complaints", err=True)
    return 1 if complaints else 0


@command.command("test")
@rule_folder_options
@click.option(
    "--hosts",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Folders of test hosts [default: tests/hosts of a checkout, hosts/ of each --rules].",
)
def test(rules: Sequence[Path], rules_pack: Path | None, hosts: Sequence[Path]) -> int:
    """Try the checks on hosts: each as pass, fail and unknown, each way to fail; prints the coverage."""
    from ascend_doctor.engine.rule_tests import tried
    from ascend_doctor.host.members import SnapshotError

    book = chosen_rules(rules, rules_pack)
    shipped = data_folder("checks").parent / "tests" / "hosts"
    usual = [folder / "hosts" for folder in rules] or [shipped]
    folders = list(hosts) or [folder for folder in usual if folder.is_dir()]
    if not folders:
        raise SessionError(f"no hosts to try the rules on: {usual[0]} is not there; name a folder with --hosts")
    own = _own(book, rules)
    try:
        with rule_errors(book):
            coverage = tried(own, book.rules, folders)
    except SnapshotError as error:
        raise SessionError(str(error)) from None
    for lack in coverage.lacking:
        click.echo(lack)
    percent = 100 * coverage.reached // max(1, coverage.goals)
    reached = f"{coverage.reached} of {coverage.goals} goals reached, {percent} %"
    click.echo(f"{len(own)} checks on {coverage.hosts} hosts: {reached}")
    return 1 if coverage.lacking else 0


def _own(book: Rulebook, rules: Sequence[Path]) -> tuple[Check, ...]:
    """The user's checks where there are any folders of the user's, all else."""
    checks = chosen_checks(book, requested=("*",))
    return tuple(c for c in checks if c.place.file.parent in book.checks[1:]) if rules else checks
