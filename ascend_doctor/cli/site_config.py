"""Site defaults: a file whose keys are the long names of options, such as ``fail-on: warning``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ascend_doctor.cli.session import SessionError
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.knowledge.yaml_nodes import Place, composed

LISTS = ("rules", "waivers", "only", "skip", "library")
NEVER = ("config", "snapshot", "output", "format", "help", "redact-map")
"""What belongs to one call and not to a site."""
ALL_VERBS = (
    "lang",
    "timeout",
    "python",
    "rules",
    "rules-pack",
    "profile",
    "waivers",
    "only",
    "skip",
    "fail-on",
    "strict",
    "redact",
    "redact-key",
)
FLAGS = ("strict", "redact")


def site_defaults(path: Path, command: click.Command) -> dict[str, Any]:
    """Parameter name -> default, for the options that this command has. Raises SessionError with file and place."""
    names = {
        option.lstrip("-"): parameter
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--")
    }
    try:
        root = composed(path)
        given = root.mapping(sorted({*ALL_VERBS, *names} - set(NEVER))) if root else {}
        return {str(names[key].name): _value(key, place) for key, place in given.items() if key in names}
    except RuleError as error:
        raise SessionError(str(error)) from None


def _value(key: str, place: Place) -> Any:
    if key in LISTS:
        return [item.text() for item in place.items()]
    if key in FLAGS:
        return place.flag()
    return place.number() if key == "timeout" else place.text()
