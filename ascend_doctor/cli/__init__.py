"""The command line: one module for each verb, imported only when it is called."""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module

import click

VERBS = (
    *("preflight", "logs", "triage", "smoke", "versions", "memory", "numa", "facts", "collect", "diff", "explain"),
    *("report", "rules", "self"),
)
GARBAGE = 1_000_000
"""Objects between two searches for cycles."""
OUR_FAULT, INTERRUPTED, HUNG_UP, TERMINATED = 4, 130, 129, 143


class Verbs(click.Group):
    """Verbs are known by name; their modules are imported when one is called or all are listed."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = import_module(f"ascend_doctor.cli.{name}").command
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS:
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(VERBS)}"
            raise click.UsageError(f"there is no verb {args[0]}{hint}", context)
        return super().resolve_command(context, args)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="ascend-doctor", message="%(package)s %(version)s")
def cli() -> None:
    """Tells whether an Ascend NPU server can run a deployment, why not, and what to type."""


def run() -> int:
    """Runs the command line and gives its exit code; no traceback reaches a user."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # a run makes little garbage and ends soon; looking for it in all that rules hold costs a tenth of the time
    gc.set_threshold(GARBAGE)
    # by exit, so that what runs for us is ended with us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(HUNG_UP))
    try:
        code = cli.main(prog_name="ascend-doctor", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader has gone; what python flushes at its end must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("ASCEND_DOCTOR_DEBUG"):
            raise
        message = f"a fault of ascend-doctor: {type(error).__name__}: {error}"
        click.echo(f"{message}\nASCEND_DOCTOR_DEBUG=1 shows where; please report it", err=True)
        return OUR_FAULT
