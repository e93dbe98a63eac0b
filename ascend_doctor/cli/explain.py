"""``ascend-doctor explain``: a check, an environment variable, an error code or a signature of logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ascend_doctor.cli.options import language_option
from ascend_doctor.cli.session import SessionError, chosen_checks, chosen_rules, requested_checks, rule_errors

if TYPE_CHECKING:
    from ascend_doctor.engine.rulebook import Rulebook


@click.command("explain")
@language_option
@click.argument("word")
def command(word: str, lang: str) -> int:
    """Explain a check, an environment variable, an error code or a signature.

    Such as numa.free-memory, HCCL_BUFFSIZE, 507015, EI0006, 0x80E01801, retCode=0x31, hccl.socket-timeout.
    """
    book = chosen_rules()
    if _check(word, book, lang) or _variable(word, book, lang) or _code(word, book, lang):
        return 0
    from ascend_doctor.engine.checks import listed_ids
    from ascend_doctor.knowledge.environment import load
    from ascend_doctor.knowledge.reading import nearest

    known = sorted({name for names in listed_ids((*book.checks, *book.requested)).values() for name in names})
    raise SessionError(f"nothing is known of {word}{nearest(word, (*known, *sorted(load(book.rules).names())))}")


def _check(word: str, book: Rulebook, lang: str) -> bool:
    """Tells of a check; whether there is one. Only words with a dot can be one, and reading them all takes time."""
    if "." not in word:
        return False
    from ascend_doctor.engine.checks import listed_ids
    from ascend_doctor.report.explain import check_text

    for folders, chosen in ((book.checks, chosen_checks), (book.requested, requested_checks)):
        if word in {name for names in listed_ids(folders).values() for name in names}:
            click.echo("\n".join(check_text(check, lang) for check in chosen(book, [word])), nl=False)
            return True
    return False


def _variable(word: str, book: Rulebook, lang: str) -> bool:
    """Tells of an environment variable; whether there is one."""
    if not word.isidentifier():
        return False
    from ascend_doctor.knowledge.environment import load

    with rule_errors(book):
        environment = load(book.rules)
        variable = environment.of(word) or environment.of(word.upper())
        if variable is not None:
            from ascend_doctor.report.explain import variable_text

            click.echo(variable_text(variable, environment, lang), nl=False)
    return variable is not None


def _code(word: str, book: Rulebook, lang: str) -> bool:
    """Tells of a code or signature; whether there is one."""
    from ascend_doctor.knowledge import codes, signatures
    from ascend_doctor.report.explain_code import code_text, signature_text

    with rule_errors(book):
        known = signatures.load(book.rules)
        signature = known.of(word)
        code = None if signature else codes.load(book.rules).explained(word)
        if signature is not None:
            click.echo(signature_text(signature, known, lang), nl=False)
        elif code is not None:
            click.echo(code_text(code, known, lang), nl=False)
    return signature is not None or code is not None
