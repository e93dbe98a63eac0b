"""The options of a launch as they are written: values that are refused, JSON without quotes, options of others."""

from __future__ import annotations

from ascend_doctor.derive import rows
from ascend_doctor.derive.launch import flags_of, whole
from ascend_doctor.facts.launch import Launch
from ascend_doctor.host import Missing
from ascend_doctor.knowledge.programs import Programs
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Options:
    """Texts name the options as they are written, "" where there is none; ``belong``: whose the foreign ones are."""

    program: str
    unreadable: str | Missing
    no_json: str | Missing
    foreign: str | Missing
    belong: str
    reads: tuple[str, ...]


@rows("launch_options.written")
def written(launch: Launch, programs: Programs) -> tuple[Options, ...] | Missing:
    """One row for a program whose options are known."""
    if isinstance(launch.program, Missing):
        return launch.program
    flags, unreadable, no_json = flags_of(launch), whole(launch.unreadable), whole(launch.no_json)
    foreign = () if isinstance(flags, Missing) else programs.foreign(launch.program, flags)
    whose: str | Missing = flags if isinstance(flags, Missing) else ", ".join(f"--{name}" for name, _ in foreign)
    if not foreign and isinstance(unreadable, Missing):
        whose = unreadable  # the file of options is not seen
    return (
        Options(
            program=launch.program,
            unreadable=unreadable if isinstance(unreadable, Missing) else ", ".join(unreadable),
            no_json=no_json if isinstance(no_json, Missing) else "; ".join(no_json),
            foreign=whose,
            belong=", ".join(dict.fromkeys(owner for _, owner in foreign)),
            reads=("launch.flags",),
        ),
    )
