"""``ascend-doctor facts``: what was found, without an opinion."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from ascend_doctor.cli.options import host_options
from ascend_doctor.cli.session import SessionError, chosen_host, chosen_rules, reader_may_leave
from ascend_doctor.facts import AREAS


@click.command("facts")
@host_options
@click.option(
    "--format", "format_", type=click.Choice(["console", "json"]), default="console", help="What stdout gets."
)
@click.argument("areas", nargs=-1, metavar="[AREA...]")
def command(snapshot: str | None, python: str | None, timeout: float, format_: str, areas: Sequence[str]) -> int:
    """Show what is known of a host, area by area; `facts npu -` reads a pasted npu-smi table.

    What is not known is null, with its reason under "missing".
    """
    from ascend_doctor.facts.tree import facts_as_json
    from ascend_doctor.report.facts import fact_lines

    pasted = "-" in areas
    chosen = [area for area in areas if area != "-"] or (["npu"] if pasted else list(AREAS))
    for area in chosen:
        if area not in AREAS:
            raise SessionError(f"there is no area {area}; known: {', '.join(AREAS)}")
    if pasted:
        if chosen != ["npu"] or snapshot:
            raise SessionError("only npu can be read from stdin: ascend-doctor facts npu -")
        from ascend_doctor.facts.npu import npu_smi_info

        facts: dict[str, object] = {"npu": npu_smi_info(sys.stdin.buffer.read()).value}
    else:
        host = chosen_host(snapshot, python, timeout, chosen_rules())
        facts = {area: import_module(f"ascend_doctor.facts.{area}").collect(host).facts for area in chosen}
    with reader_may_leave():
        if format_ == "json":
            sys.stdout.write(json.dumps(facts_as_json(facts), ensure_ascii=False, indent=1) + "\n")
        else:
            for area, value in facts.items():
                sys.stdout.writelines(f"{line}\n" for line in fact_lines(value, area))
    return 0
