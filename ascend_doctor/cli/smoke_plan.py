"""What a smoke run would do: devices with their sums of memory, children with their stages and deadlines."""

from __future__ import annotations

from collections.abc import Iterator

from ascend_doctor.host import Host, Missing
from ascend_doctor.report.console import printable
from ascend_doctor.report.words import words
from ascend_doctor.smoke.plan import Planned
from ascend_doctor.smoke.running import RANKS, SCRIPT
from ascend_doctor.smoke.sums import told


def lines(planned: Planned, host: Host, lang: str) -> Iterator[str]:
    said = words(lang)
    size, config = planned.size, planned.size.config
    yield said["smoke_sentence"].format(
        size=size.name, layers=config.layers, hidden=config.hidden, experts=config.experts
    )
    python = host.python.value
    where = python.detail or python.reason.value if isinstance(python, Missing) else python.executable
    script = RANKS if planned.wishes.ranks else SCRIPT
    yield printable(said["smoke_would_start"].format(python=where, script=script))
    for stage in planned.stages:
        deadline = said["smoke_step_seconds"].format(seconds=f"{planned.seconds[stage.id]:g}")
        yield f"  {stage.number:>2} {stage.name[lang]}: {deadline}"
    yield printable(said["smoke_host_memory"].format(sum=told(planned.host_memory)))
    for target in planned.targets:
        name = f" ({target.name})" if target.name else ""
        free = "?" if isinstance(target.free_mib, Missing) else f"{target.free_mib} MiB"
        yield printable(said["smoke_would_take"].format(device=target.word + name, sum=told(target.memory), free=free))
        if target.refused:
            yield printable(f"  {said['smoke_refused'].format(why=target.refused)}")
