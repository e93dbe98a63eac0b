"""``ascend-doctor collect``: a snapshot of this host, to be judged elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_doctor.cli.options import EXTENT, host_options, locale_language, redaction_options
from ascend_doctor.cli.session import SessionError, chosen_host, chosen_rules, progress, say
from ascend_doctor.facts import AREAS

if TYPE_CHECKING:
    from ascend_doctor.host import Collected


@click.command("collect")
@host_options
@click.option(
    "--smoke",
    is_flag=False,
    flag_value="default",
    metavar="[SIZE]",
    help="With a smoke run on a free device, as the verb smoke makes it.",
)
@redaction_options
@click.option("-q", "--quiet", is_flag=True, help="Say nothing.")
@click.argument("path", type=click.Path(path_type=Path))
def command(
    snapshot: str | None, python: str | None, timeout: float, smoke: str | None, quiet: bool, path: Path
) -> int:
    """Write what `preflight` would ask, with the answers, to a new folder or .tar.gz.

    Hosts, users, addresses and serial numbers are replaced by pseudonyms that judge alike; --no-redact keeps them and
    says so in the name. Secrets are always taken out. With --snapshot another snapshot is written anew. Nothing that
    exists is overwritten.
    """
    from ascend_doctor.cli.redaction import Redaction
    from ascend_doctor.engine.situation import Situation
    from ascend_doctor.host.recorder import Recorder, RecordError

    redaction = Redaction()
    path = redaction.place(path)
    redaction.check_map(path)
    if smoke:
        click.get_current_context().meta.setdefault(EXTENT, {})["smoke"] = True
    book = chosen_rules()
    recorder = Recorder(chosen_host(snapshot, python, timeout, book))
    try:
        given: tuple[Collected[Any], ...] = ()
        if smoke and not snapshot:
            from ascend_doctor.cli.smoke import given_by_smoke

            given = given_by_smoke(recorder, smoke, snapshot, book, quiet)
        situation = Situation(recorder, book.rules, given=given)
        with progress(quiet, locale_language()):
            situation.collect(AREAS)
        recorder.save(path, redaction.hiding())
    except RecordError as error:
        raise SessionError(str(error)) from None
    for detail in situation.broken:
        say(detail)
    say(f"written: {path}\njudge it anywhere: ascend-doctor preflight --snapshot {path}", quiet)
    redaction.save_map(quiet)
    return 4 if situation.broken else 0
