"""``ascend-doctor smoke``: does the DeepSeek-V4 architecture compute right on a card, and where does it break?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_doctor.cli.options import EXTENT, gate_options, host_options, report_options, rule_folder_options
from ascend_doctor.cli.session import SessionError, chosen_host, chosen_rules, requested_checks, rule_errors, say

if TYPE_CHECKING:
    from ascend_doctor.engine.rulebook import Rulebook
    from ascend_doctor.host import Collected, Host
    from ascend_doctor.smoke.plan import Planned, Wishes

MANY = click.IntRange(1, 1 << 20)
ALWAYS = ("smoke.*",)
OF_NPUS = ("smoke.*", "ascend.present", "npu.answers", "loading.*")
"""With what explains why an NPU cannot be opened."""


@click.command("smoke")
@host_options
@rule_folder_options
@gate_options
@report_options
@click.option(
    "--device", default="auto", show_default=True, metavar="auto|cpu|cuda|npu|npu:N", help="Where to compute."
)
@click.option("--each", is_flag=True, help="All devices of the kind, one by one.")
@click.option("--ranks", type=click.IntRange(2, 64), metavar="N", help="Instead: N devices of this host together.")
@click.option(
    "--size", default="default", show_default=True, metavar="NAME", help="tiny, default, flash-width, pro-width."
)
@click.option("--layers", type=MANY, help="[default: of the size]")
@click.option("--experts", type=MANY, help="[default: of the size]")
@click.option("--dtype", metavar="bf16|fp16|fp32", help="[default: bf16, fp16 where the device has no bf16]")
@click.option("--seq", type=MANY, metavar="TOKENS", help="Of the prompt. [default: of the size]")
@click.option("--decode", type=MANY, metavar="TOKENS", help="Made after it, one by one. [default: of the size]")
@click.option("--seed", type=click.IntRange(0, 1 << 31), default=7, show_default=True, help="Of weights and tokens.")
@click.option(
    "--step-timeout", type=click.FloatRange(0.1), metavar="SECONDS", help="For each step. [default: by rules]"
)
@click.option("--force", is_flag=True, help="Also on an NPU that is held, or with less free memory than predicted.")
@click.option("--plan", is_flag=True, help="Say what would be done, and end.")
def command(
    snapshot: str | None,
    python: str | None,
    timeout: float,
    rules: Sequence[Path],
    rules_pack: Path | None,
    fail_on: str,
    strict: bool,
    outputs: Sequence[Path],
    format_: str,
    lang: str,
    quiet: bool,
    verbose: bool,
    device: str,
    each: bool,
    ranks: int | None,
    size: str,
    layers: int | None,
    experts: int | None,
    dtype: str | None,
    seq: int | None,
    decode: int | None,
    seed: int,
    step_timeout: float | None,
    force: bool,
    plan: bool,
) -> int:
    """Compute a reduced model of the DeepSeek-V4 architecture on one card, and compare it with the CPU, stage by stage.

    Weights are random, from a seed. It does not show that DeepSeek-V4-Pro runs: that takes many cards. An NPU that
    another process holds is left alone.

    Exit codes: 0 all stages passed, 1 one failed, 3 not run or not to be judged, 2 bad call.
    """
    from ascend_doctor.cli.reports import tell
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.run import Asked, preflight
    from ascend_doctor.report.smoke_answer import ROWS, answered
    from ascend_doctor.smoke.plan import Wishes

    click.get_current_context().meta.setdefault(EXTENT, {})["smoke"] = True
    book = chosen_rules(rules, rules_pack)
    host = chosen_host(snapshot, python, timeout, book)
    wishes = Wishes(device, size, each, force, layers, experts, dtype, seq, decode, seed, ranks or 0, step_timeout)
    given: tuple[Collected[Any], ...] = ()
    chosen: tuple[str, ...] = OF_NPUS
    if snapshot:
        has_a_run(host, snapshot)
    else:
        planned = planned_run(host, wishes, book)
        if plan:
            click.echo(told_plan(planned, host, lang), nl=False)
            return 0
        given = (run_of(host, planned, quiet),)
        chosen = OF_NPUS if any(target.kind == "npu" for target in planned.targets) else ALWAYS
    with rule_errors(book):
        run = preflight(
            host,
            Asked(
                requested_checks(book, _stages(chosen, bool(ranks))),
                book,
                gate=Gate(fail_on, strict),
                given=given,
                rows=(ROWS,),
            ),
        )
    run = answered(run, "smoke")
    tell(run, format_, outputs, lang, quiet, verbose)
    return run.exit_code


SINGLE = ("libraries", "import", "device", "operators", "layers", "forced", "free", "decode", "latency", "memory")
"""The stages of one device; those of several are another run."""


def _stages(chosen: Sequence[str], ranks: bool) -> list[str]:
    """The checks that are asked."""
    if ranks:
        return ["smoke.ranks", *(name for name in chosen if name not in ("smoke.*", "loading.*"))]
    return [*(f"smoke.{stage}" for stage in SINGLE), *(name for name in chosen if name != "smoke.*")]


def given_by_smoke(
    host: Host, size: str, snapshot: str | None, book: Rulebook, quiet: bool
) -> tuple[Collected[Any], ...]:
    """A run on a free device, for a verb that tells more than it; of a snapshot the one that is in it."""
    from ascend_doctor.smoke.plan import Wishes

    if snapshot:
        has_a_run(host, snapshot)
        return ()
    return (run_of(host, planned_run(host, Wishes(size=size), book), quiet),)


def has_a_run(host: Host, snapshot: str) -> None:
    """Raises SessionError for a snapshot without one, where nothing could be said."""
    if not host.extent.smoke:
        raise SessionError(
            f"{snapshot}: this snapshot has no smoke run; ascend-doctor smoke runs on the machine itself"
        )


def planned_run(host: Host, wishes: Wishes, book: Rulebook) -> Planned:
    """Raises SessionError for a call that makes no run."""
    from ascend_doctor.smoke.plan import SmokeError, planned

    try:
        with rule_errors(book):
            return planned(host, wishes, book.rules)
    except SmokeError as error:
        raise SessionError(str(error)) from None


def run_of(host: Host, planned: Planned, quiet: bool) -> Collected[Any]:
    """Starts the children; says each stage on a terminal."""
    from ascend_doctor.smoke.running import run

    return run(host, planned, lambda text: say(text, quiet or not sys.stderr.isatty()))


def told_plan(planned: Planned, host: Host, lang: str) -> str:
    """What would be started where, and the memory that it takes."""
    from ascend_doctor.cli.smoke_plan import lines

    return "".join(f"{line}\n" for line in lines(planned, host, lang))
