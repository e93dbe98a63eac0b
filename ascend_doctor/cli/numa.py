"""``ascend-doctor numa``: the CPUs and the memory near each NPU; it plans and checks, and never binds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_doctor.cli.options import gate_options, host_options, report_options, rule_folder_options
from ascend_doctor.cli.session import SessionError, chosen_host, chosen_rules, requested_checks, rule_errors

if TYPE_CHECKING:
    from ascend_doctor.host import Collected, Host

MOST_DEVICES = 1024


class WithDefault(click.Group):
    """``numa`` alone, or with options only, shows what is there."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["show", *args]
        return super().parse_args(context, args)


@click.group("numa", cls=WithDefault)
def command() -> None:
    """CPUs and memory near each NPU: what is there, a plan, a running service, a numactl line.

    Nothing is bound: lines are printed for you to run.
    """


@command.command("show")
@host_options
@rule_folder_options
@gate_options
@report_options
def show(**options: Any) -> int:
    """For each device: its node, the CPUs near it, and the memory that is free there."""
    return _told("show", (), ("numa_plan.devices",), lambda host: (), options)


@command.command("plan")
@host_options
@rule_folder_options
@gate_options
@report_options
@click.option(
    "--devices", metavar="LIST", help="Such as 0-3 or 0,2; places in the list of npu-smi info [default: all]."
)
@click.option("--per-worker", type=click.IntRange(1, 4096), metavar="N", help="CPUs for each [default: even shares].")
def plan(devices: str | None, per_worker: int | None, **options: Any) -> int:
    """Print the numactl line of a deployment, and of each worker."""
    chosen = None if devices is None else _numbers(devices)

    def given(host: Host) -> tuple[Collected[Any], ...]:
        from ascend_doctor.facts.placement import placement

        return (placement(chosen, per_worker),)

    rows = ("numa_plan.services", "numa_plan.workers", "numa_plan.nodes")
    return _told("plan", ("placement.*",), rows, given, options)


@command.command("check")
@host_options
@rule_folder_options
@gate_options
@report_options
@click.option("--pid", type=click.IntRange(1, 1 << 30), help="A service, with all its workers [default: on the NPUs].")
def check(pid: int | None, **options: Any) -> int:
    """Say where a running service runs and keeps its memory, and what is bound wrong."""

    def given(host: Host) -> tuple[Collected[Any], ...]:
        from ascend_doctor.facts.processes import of_process
        from ascend_doctor.host import Missing

        if pid is None:
            return ()
        found = of_process(host, pid)
        if isinstance(found.facts.running, Missing):
            raise SessionError(f"--pid {pid}: {found.facts.running.detail or found.facts.running.reason.value}")
        return (found,)

    return _told("check", ("binding.*",), ("binding.workers",), given, options)


@command.command("lint")
@host_options
@rule_folder_options
@gate_options
@report_options
@click.argument("line", metavar="'numactl ...'")
def lint(line: str, **options: Any) -> int:
    """Say what a numactl line really does on this host."""
    from ascend_doctor.facts import numactl
    from ascend_doctor.host import Missing

    words = numactl.words(line)
    if isinstance(words, Missing):
        raise SessionError(
            f"{line}: {words.detail}; give the line in quotes, such as 'numactl --cpunodebind=0 COMMAND'"
        )
    return _told("lint", ("numactl.*",), ("numactl.lines",), lambda host: (numactl.line(line),), options)


def _numbers(text: str) -> tuple[int, ...]:
    from ascend_doctor.facts.numa import cpu_set
    from ascend_doctor.host import Missing

    found = cpu_set(text)
    if isinstance(found, Missing) or not found or len(found) > MOST_DEVICES:
        raise SessionError(f"--devices: {text} is no list of devices such as 0-3 or 0,2,4")
    return tuple(sorted(found))


def _told(verb: str, only: Sequence[str], rows: Sequence[str], given: Any, options: dict[str, Any]) -> int:
    from ascend_doctor.cli.reports import tell
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.run import Asked, preflight
    from ascend_doctor.report.numa import answered

    rules: Sequence[Path] = options["rules"]
    book = chosen_rules(rules, options["rules_pack"])
    host = chosen_host(options["snapshot"], options["python"], options["timeout"], book)
    checks = requested_checks(book, only) if only else ()
    with rule_errors(book):
        asked = Asked(
            checks, book, gate=Gate(options["fail_on"], options["strict"]), given=given(host), rows=tuple(rows)
        )
        run = answered(preflight(host, asked), verb)
    tell(run, options["format_"], options["outputs"], options["lang"], options["quiet"], options["verbose"])
    return run.exit_code
