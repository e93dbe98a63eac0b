"""A command line of numactl: which CPUs and which memory it asks for. Given with a call, never found on a host.

Sources: numactl(8); numactl 2.0.16 run with these options. Its options are those of getopt_long: a short one may hold
its value, a long one may be cut as long as it is unique, and the first word that is no option begins the command.
"""

from __future__ import annotations

import shlex

from ascend_doctor.facts.shell import open_to_the_shell
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason
from ascend_doctor.records import dataclass

NOT_GIVEN = Missing(Reason.ABSENT, "no numactl line was given with the call")
FROM_SHELL = Missing(Reason.NOT_COLLECTED, "a shell fills in part of the line")
LINE_LIMIT = 16384
LONG = {
    "all": False,
    "balancing": False,
    "cpubind": True,
    "cpunodebind": True,
    "hardware": False,
    "help": False,
    "interleave": True,
    "localalloc": False,
    "membind": True,
    "physcpubind": True,
    "preferred": True,
    "preferred-many": True,
    "show": False,
    "version": False,
    "weighted-interleave": True,
}
"""Long option -> whether it takes a value."""
SHORT = {
    "a": "all",
    "b": "balancing",
    "c": "cpubind",
    "N": "cpunodebind",
    "H": "hardware",
    "h": "help",
    "i": "interleave",
    "l": "localalloc",
    "m": "membind",
    "C": "physcpubind",
    "p": "preferred",
    "P": "preferred-many",
    "s": "show",
    "w": "weighted-interleave",
}
OLD_NAMES = {"cpubind": "cpunodebind"}


@dataclass(frozen=True)
class Option:
    """``written``: as it stands in the line; ``name``: the long name of today."""

    name: str
    value: str
    written: str


@dataclass(frozen=True)
class Numactl:
    """``unknown``: words that look like options and are none of numactl; ``command``: what it is to start."""

    text: str | Missing
    options: tuple[Option, ...] | Missing
    unknown: tuple[str, ...] | Missing
    command: tuple[str, ...] | Missing


@dataclass(frozen=True)
class Words:
    """A line taken apart."""

    options: tuple[Option, ...]
    unknown: tuple[str, ...]
    command: tuple[str, ...]


def words(text: str) -> Words | Missing:
    """What stands before numactl (assignments, sudo, nohup) is passed over."""
    if len(text) > LINE_LIMIT:
        return Missing(Reason.FAILED, "too long for a command line")
    try:
        argv = shlex.split(text, comments=False)
    except ValueError as error:
        return Missing(Reason.FAILED, f"the line is not closed: {error}")
    start = next((n for n, word in enumerate(argv) if word.rpartition("/")[2] == "numactl"), None)
    if start is None:
        return Missing(Reason.FAILED, "there is no numactl in the line")
    return _options(argv[start + 1 :])


def _options(argv: list[str]) -> Words:
    options: list[Option] = []
    unknown: list[str] = []
    while argv and argv[0].startswith("-") and argv[0] != "-":
        word = argv.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            _take_long(word, argv, options, unknown)
        else:
            _take_short(word, argv, options, unknown)
    return Words(tuple(options), tuple(unknown), tuple(argv))


def _take_long(word: str, argv: list[str], options: list[Option], unknown: list[str]) -> None:
    given, equals, value = word[2:].partition("=")
    fitting = [given] if given in LONG else [name for name in LONG if given and name.startswith(given)]
    if len(fitting) != 1:
        unknown.append(word)
        return
    name = fitting[0]
    if LONG[name] and not equals:
        value = argv.pop(0) if argv else ""
        word = f"{word} {value}"
    options.append(Option(OLD_NAMES.get(name, name), value, word))


def _take_short(word: str, argv: list[str], options: list[Option], unknown: list[str]) -> None:
    """``-al``, ``-N4``, ``-N 4``."""
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        name = SHORT.get(letter)
        if name is None:
            unknown.append(f"-{letter}")
            return
        value, written = "", f"-{letter}"
        if LONG[name]:
            value = letters or (argv.pop(0) if argv else "")
            letters, written = "", f"-{letter} {value}"
        options.append(Option(OLD_NAMES.get(name, name), value, written))


def collect(host: Host) -> Collected[Numactl]:
    """Asks nothing: a host does not keep the line by which a process was started under numactl."""
    return Area("numactl").of(Numactl(NOT_GIVEN, NOT_GIVEN, NOT_GIVEN, NOT_GIVEN))


def line(text: str) -> Collected[Numactl]:
    """The facts of a line that somebody gave."""
    area = Area("numactl")
    area.take("", Parsed(None, "argument", {"": text[:400]}))
    found = words(text)
    if not isinstance(found, Missing) and any(open_to_the_shell(option.value) for option in found.options):
        found = FROM_SHELL
    if isinstance(found, Missing):
        return area.of(Numactl(text, found, found, found))
    return area.of(Numactl(text, found.options, found.unknown, found.command))
