"""``ascend-doctor explain``: what a check asks and what to do, or what an environment variable does."""

from __future__ import annotations

import click

from ascend_doctor.cli.options import language_option
from ascend_doctor.cli.session import SessionError, chosen_checks, chosen_rules, rule_errors


@click.command("explain")
@language_option
@click.argument("word")
def command(word: str, lang: str) -> int:
    """Explain a check, such as numa.free-memory, or an environment variable, such as HCCL_BUFFSIZE."""
    from ascend_doctor.knowledge.environment import load
    from ascend_doctor.report.explain import check_text, variable_text

    book = chosen_rules()
    with rule_errors(book):
        environment = load(book.rules)
        variable = environment.of(word) or environment.of(word.upper())
        if variable is not None:
            click.echo(variable_text(variable, environment, lang), nl=False)
            return 0
    checks = {check.id: check for check in chosen_checks(book)}
    if word not in checks:
        from ascend_doctor.knowledge.reading import nearest

        raise SessionError(f"nothing is known of {word}{nearest(word, (*checks, *sorted(environment.names())))}")
    click.echo(check_text(checks[word], lang), nl=False)
    return 0
