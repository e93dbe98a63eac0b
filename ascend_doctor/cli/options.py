"""Options that verbs share, each defined once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

LANGUAGES = ("en", "zh")
SITE_CONFIG = Path("/etc/ascend-doctor.yaml")
HOST_ROOT, EXTENT = "ascend_doctor.host_root", "ascend_doctor.extent"
HOSTS, REDACTION = "ascend_doctor.hosts", "ascend_doctor.redaction"
SHORTEST_KEY = 16
"""Bytes."""
FORMATS = {"console": ".txt", "json": ".json", "html": ".html", "markdown": ".md", "junit": ".xml"}
"""Format -> the suffix of its files."""


def host_options(function: F) -> F:
    """Which host: this one, or a snapshot of another."""
    for option in (
        click.option(
            "--timeout", type=float, default=60.0, show_default=True, help="Seconds for all commands together."
        ),
        click.option(
            "--deep",
            is_flag=True,
            expose_value=False,
            callback=_extent,
            help="Ask each chip and its network port for details; takes longer.",
        ),
        click.option(
            "--import",
            "imports",
            is_flag=True,
            expose_value=False,
            callback=_extent,
            help="Import torch, torch_npu and vllm_ascend in the target interpreter: runs their code.",
        ),
        click.option(
            "--library",
            "libraries",
            multiple=True,
            type=click.Path(),
            metavar="PATH",
            expose_value=False,
            callback=_extent,
            help="Tell whether this library would load, beside those of the deployment. Repeatable.",
        ),
        click.option("--python", metavar="EXE", help="The interpreter that the deployment runs."),
        click.option(
            "--host-root",
            type=click.Path(path_type=Path),
            metavar="DIR",
            expose_value=False,
            callback=_host_root,
            help="Judge the live host that is mounted at this folder, such as /host in a container.",
        ),
        click.option("--snapshot", metavar="PATH", help="Judge a snapshot (folder or .tar.gz); `example` is built in."),
    ):
        function = option(function)
    return function


def _host_root(context: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    """Verbs need not know of it: ``session.chosen_host`` looks here."""
    context.meta[HOST_ROOT] = value


def _extent(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """A part of ``host.Extent``, for live hosts; of a snapshot it was settled when it was taken."""
    context.meta.setdefault(EXTENT, {})[parameter.name] = value


def check_options(function: F) -> F:
    """Which checks."""
    for option in (
        click.option("--skip", multiple=True, metavar="GLOB", help="Leave out checks by name, such as thp.*"),
        click.option("--only", multiple=True, metavar="GLOB", help="Only checks of this name, such as npu.*"),
    ):
        function = option(function)
    return function


def rule_folder_options(function: F) -> F:
    """Rules of the user beside ours, or in their place."""
    for option in (
        click.option(
            "--rules-pack",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="Rules (folder or .tar.gz) in place of the shipped ones.",
        ),
        click.option(
            "--rules",
            multiple=True,
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Checks, limits and waivers of your own beside the shipped ones. Repeatable.",
        ),
    ):
        function = option(function)
    return function


def rule_options(function: F) -> F:
    """By which rules, and what is waived."""
    for option in (
        click.option(
            "--waivers",
            multiple=True,
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Findings that somebody answers for until a day. Repeatable.",
        ),
        click.option("--profile", metavar="NAME", help="Checks, limits and expected inventory of a kind of host."),
        rule_folder_options,
    ):
        function = option(function)
    return function


def config_option(function: F) -> F:
    """``--config``: defaults for the other options; /etc/ascend-doctor.yaml where it is there."""
    option = click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_site_defaults,
        help=f"Defaults for these options [default: {SITE_CONFIG} where it is there].",
    )
    return option(function)


def _site_defaults(context: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    path = value or SITE_CONFIG
    if value is None and not path.is_file():
        return
    from ascend_doctor.cli.site_config import site_defaults

    context.default_map = {**site_defaults(path, context.command), **(context.default_map or {})}


def gate_options(function: F) -> F:
    """What makes the exit code."""
    for option in (
        click.option("--strict", is_flag=True, help="What could not be judged is not fit either (exit code 3)."),
        click.option(
            "--fail-on",
            type=click.Choice(["error", "warning", "info", "never"]),
            default="error",
            show_default=True,
            help="The least severity that gives exit code 1.",
        ),
    ):
        function = option(function)
    return function


def report_options(function: F) -> F:
    """How it is told, and where it is written."""
    function = redaction_options(function)
    for option in (
        click.option("-v", "--verbose", is_flag=True, help="Evidence, reasons and what passed as well."),
        click.option("-q", "--quiet", is_flag=True, help="Only the verdict."),
        language_option,
        click.option(
            "--format", "format_", type=click.Choice(list(FORMATS)), default="console", help="What stdout gets."
        ),
        click.option(
            "-o",
            "--output",
            "outputs",
            multiple=True,
            type=click.Path(dir_okay=False, path_type=Path),
            callback=_known_suffixes,
            metavar="FILE",
            help=f"Write a report; its suffix chooses the format ({' '.join(FORMATS.values())}). Repeatable.",
        ),
    ):
        function = option(function)
    return function


def redaction_options(function: F) -> F:
    """Whether what is written names hosts, users and addresses, or pseudonyms."""
    for option in (
        click.option(
            "--redact-map",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            expose_value=False,
            callback=_redact_map,
            help="Write who stands behind each pseudonym, for you alone.",
        ),
        click.option(
            "--redact-key",
            type=click.Path(path_type=Path),
            metavar="FILE",
            expose_value=False,
            callback=_redact_key,
            help="The same key on several hosts gives the same pseudonyms [default: one of this machine].",
        ),
        click.option(
            "--redact/--no-redact",
            "redact",
            default=None,
            expose_value=False,
            callback=_redaction,
            help="Pseudonyms for hosts, users, addresses and serial numbers [default: in files, not on stdout].",
        ),
    ):
        function = option(function)
    return function


def _redaction(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Verbs need not know of it: ``redaction.Redaction`` looks here."""
    context.meta.setdefault(REDACTION, {})[parameter.name] = value


def _redact_key(context: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    if value is None:
        return
    try:
        with value.open("rb") as file:
            key = file.read(1 << 16).strip()
    except OSError as error:
        raise click.BadParameter(f"{value}: cannot be read: {error.strerror}") from None
    if len(key) < SHORTEST_KEY:
        raise click.BadParameter(
            f"{value}: a key has {SHORTEST_KEY} bytes or more; make one: head -c 32 /dev/urandom | base64 > {value}"
        )
    _redaction(context, parameter, key)


def _redact_map(context: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    if value is None:
        return
    if value.exists() or value.is_symlink():
        raise click.BadParameter(f"{value}: already there; choose a new name, nothing is overwritten")
    if not value.parent.is_dir():
        raise click.BadParameter(f"{value}: there is no folder {value.parent}")
    _redaction(context, parameter, value)


def language_option(function: F) -> F:
    """``--lang``; default: what the locale says."""
    option = click.option(
        "--lang", type=click.Choice(LANGUAGES), default=locale_language, help="Language of texts [default: by locale]."
    )
    return option(function)


def locale_language() -> str:
    """What the locale says; English where it names neither."""
    named = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    return "zh" if named.lower().startswith("zh") else "en"


def _known_suffixes(context: click.Context, parameter: click.Parameter, value: Sequence[Path]) -> Sequence[Path]:
    for path in value:
        if path.suffix.lower() not in FORMATS.values():
            raise click.BadParameter(f"{path}: unknown suffix; known are {' '.join(FORMATS.values())}")
        if not path.parent.is_dir():
            raise click.BadParameter(f"{path}: there is no folder {path.parent}")
    return value
