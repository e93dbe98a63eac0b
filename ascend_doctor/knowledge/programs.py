"""Options that only one serving program has: rules/programs.yaml."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.rule_file import RuleFile, text, texts
from ascend_doctor.records import dataclass

FILE = "programs.yaml"


@dataclass(frozen=True)
class Program:
    """``only``: names of options, without dashes in front."""

    name: str
    only: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Programs:
    programs: tuple[Program, ...]

    def foreign(self, name: str, options: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Each option that another program alone has, with that program; none for a program that is not known."""
        if not any(program.name == name for program in self.programs):
            return ()
        others = (program for program in self.programs if program.name != name)
        return tuple((option, program.name) for program in others for option in program.only if option in options)


def load(folders: Sequence[Path]) -> Programs:
    """All folders together. Raises RuleError, naming file and entry."""
    found: list[Program] = []
    for folder in folders:
        if (folder / FILE).is_file():
            rules = RuleFile(folder / FILE)
            for entry, where in rules.entries("programs"):
                only = texts(entry, "only", where)
                found.append(Program(text(entry, "program", where), only, rules.named(entry, where)))
    return Programs(tuple(found))
