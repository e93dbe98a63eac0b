"""Options that only one serving program has: rules/programs.yaml."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import RuleError, Source
from ascend_doctor.knowledge.rule_file import RuleFile, text, texts
from ascend_doctor.records import dataclass

FILE = "programs.yaml"


@dataclass(frozen=True)
class Program:
    """``only``: names of options, without dashes in front; ``without``: families of chips that it does not run on.

    ``built_for``: the word of its build -> family of chips.
    """

    name: str
    only: tuple[str, ...]
    without: tuple[str, ...]
    built_for: Mapping[str, str]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Programs:
    programs: tuple[Program, ...]

    def named(self, name: str) -> Program | None:
        return next((program for program in self.programs if program.name == name), None)

    def foreign(self, name: str, options: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Each option that another program alone has, with that program; none for a program that is not known."""
        own = self.named(name)
        if own is None or not own.only:
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
                name, built = text(entry, "program", where), entry.get("built_for", {})
                only, without = texts(entry, "only", where), texts(entry, "without", where)
                if not isinstance(built, Mapping):
                    raise RuleError(f"{where}: built_for has to be a mapping")
                words = {str(word): str(family) for word, family in built.items()}
                found.append(Program(name, only, without, words, rules.named(entry, where)))
    return Programs(tuple(found))
