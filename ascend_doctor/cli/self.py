"""``ascend-doctor self``: what this tool is, which rules it has, and what it can use here."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import click

from ascend_doctor import __version__
from ascend_doctor.cli.session import chosen_checks, chosen_rules

OPTIONAL = {"fleet": ("ClusterShell",), "fast": ("hyperscan", "isal")}
"""Extra -> the modules that it brings."""


@click.command("self")
def command() -> int:
    """Tell the version, the rules with their date and fingerprint, and the extras that are installed."""
    from ascend_doctor.knowledge.reading import load_yaml

    book = chosen_rules()
    click.echo(f"ascend-doctor  {__version__}")
    click.echo(f"python         {sys.version.split()[0]} {sys.executable}")
    click.echo(f"rules          {book.rules[0]}")
    click.echo(f"               of {load_yaml(book.rules[0] / 'pack.yaml')['date']}, {book.fingerprint()}")
    click.echo(f"checks         {len(chosen_checks(book))}")
    click.echo("redaction      of names, addresses and serial numbers in files and snapshots; of secrets everywhere")
    for extra, modules in OPTIONAL.items():
        there = all(find_spec(module) for module in modules)
        click.echo(f"extra {extra:8} {'installed' if there else 'not installed'}")
    return 0
