"""What a verb starts from: a host, the rules, and errors in words with the right exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_doctor.cli.options import DEEP, HOST_ROOT
from ascend_doctor.paths import data_folder

if TYPE_CHECKING:
    from ascend_doctor.engine.checks import Check
    from ascend_doctor.engine.rulebook import Rulebook
    from ascend_doctor.host import Host
    from ascend_doctor.knowledge.profile import Profile

BAD_INPUT, OUR_FAULT = 2, 4


class SessionError(click.ClickException):
    """An error for the user: what, where, what to do."""

    exit_code = BAD_INPUT


class BrokenRules(SessionError):
    """A shipped rule file that cannot be used: our own fault."""

    exit_code = OUR_FAULT


def chosen_host(snapshot: str | None, python: str | None, timeout: float, book: Rulebook) -> Host:
    """The snapshot that was named, the host at ``--host-root``, or this machine. Raises SessionError."""
    meta = click.get_current_context().meta
    root, deep = meta.get(HOST_ROOT), bool(meta.get(DEEP))
    if root is not None:
        return _rooted_host(root, snapshot, python, timeout, deep)
    if snapshot is None:
        from ascend_doctor.host.live import KnownEnv, LiveHost
        from ascend_doctor.knowledge.environment import known_env

        with rule_errors(book):
            names, prefixes = known_env(book.rules)
        return LiveHost(KnownEnv(frozenset(names), tuple(prefixes)), timeout=timeout, python=python, deep=deep)
    from ascend_doctor.host.members import SnapshotError
    from ascend_doctor.host.snapshot import open_snapshot

    path = data_folder("reports") / "example" if snapshot == "example" else Path(snapshot)
    try:
        return open_snapshot(path)
    except SnapshotError as error:
        raise SessionError(str(error)) from None


def _rooted_host(root: Path, snapshot: str | None, python: str | None, timeout: float, deep: bool) -> Host:
    from ascend_doctor.host.rooted import RootedHost, RootError

    if snapshot is not None:
        raise SessionError("--host-root and --snapshot are two hosts; give one of them")
    try:
        return RootedHost(root, timeout=timeout, python=python, deep=deep)
    except RootError as error:
        raise SessionError(str(error)) from None


def chosen_rules(rules: Sequence[Path] = (), rules_pack: Path | None = None, waivers: Sequence[Path] = ()) -> Rulebook:
    """The shipped rules with what the user adds or puts in their place. Raises SessionError."""
    from ascend_doctor.engine.rulebook import rulebook
    from ascend_doctor.knowledge.reading import RuleError

    pack = rules_pack
    if pack is not None and not pack.is_dir():
        from ascend_doctor.host.unpacking import PackError, unpacked

        try:
            pack = unpacked(pack)
        except PackError as error:
            raise SessionError(str(error)) from None
    try:
        return rulebook(rules, pack, waivers)
    except RuleError as error:
        raise SessionError(str(error)) from None


@contextmanager
def rule_errors(book: Rulebook) -> Iterator[None]:
    """What is wrong with a rule file: exit code 4 where it is one of ours, 2 where it is the user's."""
    from ascend_doctor.knowledge.reading import RuleError

    try:
        yield
    except RuleError as error:
        raise (BrokenRules if book.is_shipped(str(error)) else SessionError)(str(error)) from None


def chosen_checks(book: Rulebook, only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[Check, ...]:
    """The checks of the rules that the globs leave. Raises SessionError where none is left or a file is broken."""
    from ascend_doctor.engine.checks import keeps, load_checks

    with rule_errors(book):
        checks = load_checks(book.checks)
    chosen = tuple(check for check in checks if keeps(check.id, only, skip))
    if not chosen:
        from ascend_doctor.knowledge.reading import nearest

        hint = nearest(only[0], [check.id for check in checks]) if only else ""
        raise SessionError(f"no check is left by {' '.join(['--only', *only] if only else ['--skip', *skip])}{hint}")
    return chosen


def chosen_profile(name: str | None, book: Rulebook) -> Profile:
    """The profile of that name or file; none: nothing is expected. Raises SessionError."""
    from ascend_doctor.knowledge.profile import Profile, profile

    if name is None:
        return Profile()
    from ascend_doctor.knowledge.reading import RuleError

    try:
        return profile(name, book.rules)
    except RuleError as error:
        raise SessionError(str(error)) from None


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """What is printed to a reader that has gone is dropped; files and the exit code are still wanted.

    Raises SessionError where stdout cannot be written for another reason.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich ends the process on a closed pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SessionError(f"stdout cannot be written: {error.strerror}") from None


def say(message: str, quiet: bool = False) -> None:
    """Progress and messages go to stderr; stdout is only what was asked for."""
    if not quiet:
        print(message, file=sys.stderr)
