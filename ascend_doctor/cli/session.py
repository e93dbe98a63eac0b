"""What a verb starts from: a host, the rules, and errors in words with the right exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import click

from ascend_doctor.cli.options import EXTENT, HOST_ROOT, HOSTS
from ascend_doctor.paths import data_folder

if TYPE_CHECKING:
    from ascend_doctor.engine.checks import Check
    from ascend_doctor.engine.rulebook import Rulebook
    from ascend_doctor.host import Extent, Host
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
    host = _host(meta, snapshot, python, timeout, book)
    meta.setdefault(HOSTS, []).append(host)
    return host


def _host(meta: Mapping[str, Any], snapshot: str | None, python: str | None, timeout: float, book: Rulebook) -> Host:
    root = meta.get(HOST_ROOT)
    if root is not None:
        return _rooted_host(root, snapshot, python, timeout, _extent(meta))
    if snapshot is None:
        from ascend_doctor.host.live import KnownEnv, LiveHost
        from ascend_doctor.knowledge.environment import known_env

        with rule_errors(book):
            names, prefixes = known_env(book.rules)
        known = KnownEnv(frozenset(names), tuple(prefixes))
        return LiveHost(known, timeout=timeout, python=python, extent=_extent(meta))
    from ascend_doctor.host.members import SnapshotError
    from ascend_doctor.host.snapshot import open_snapshot

    path = data_folder("reports") / "example" if snapshot == "example" else Path(snapshot)
    try:
        return open_snapshot(path)
    except SnapshotError as error:
        raise SessionError(str(error)) from None


def _extent(meta: Mapping[str, Any]) -> Extent:
    """What the options say, libraries by their whole paths."""
    from ascend_doctor.host import Extent

    given = meta.get(EXTENT, {})
    libraries = tuple(os.path.abspath(path) for path in given.get("libraries", ()))
    return Extent(bool(given.get("deep")), bool(given.get("imports")), libraries, bool(given.get("smoke")))


def _rooted_host(root: Path, snapshot: str | None, python: str | None, timeout: float, extent: Extent) -> Host:
    from ascend_doctor.host.rooted import RootedHost, RootError

    if snapshot is not None:
        raise SessionError("--host-root and --snapshot are two hosts; give one of them")
    try:
        return RootedHost(root, timeout=timeout, python=python, extent=extent)
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


def chosen_checks(
    book: Rulebook, only: Sequence[str] = (), skip: Sequence[str] = (), requested: Sequence[str] = ()
) -> tuple[Check, ...]:
    """The checks of the rules that the globs leave. Raises SessionError where none is left or a file is broken.

    ``requested``: globs of those that are asked only on request, and are asked now.
    """
    from ascend_doctor.engine.checks import keeps, listed_ids, load_checks

    folders = (*book.checks, *book.requested) if requested else book.checks
    wanted = (lambda name: keeps(name, only, skip)) if only or skip or requested else None
    if requested:
        apart = {name for names in listed_ids(book.requested).values() for name in names}
        wanted = lambda name: keeps(name, only, skip) and (name not in apart or keeps(name, requested, ()))  # noqa: E731
    with rule_errors(book):
        chosen = load_checks(folders, wanted)
    if not chosen:
        from ascend_doctor.knowledge.reading import nearest

        known = [name for names in listed_ids(folders).values() for name in names]
        hint = nearest(only[0], known) if only else ""
        raise SessionError(f"no check is left by {' '.join(['--only', *only] if only else ['--skip', *skip])}{hint}")
    return chosen


def requested_checks(book: Rulebook, only: Sequence[str]) -> tuple[Check, ...]:
    """Of the checks that only a verb of their own asks. Raises SessionError."""
    from ascend_doctor.engine.checks import keeps, load_checks

    with rule_errors(book):
        return load_checks((*book.checks, *book.requested), lambda name: keeps(name, only, ()))


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


@contextmanager
def progress(quiet: bool, lang: str) -> Iterator[None]:
    """Shows on a terminal which command is waited for, while it is; elsewhere nothing."""
    if not _is_watched(quiet):
        yield
        return
    from ascend_doctor.cli.progress import Commands

    with Commands(sys.stderr, lang):
        yield


@contextmanager
def reading(quiet: bool, lang: str) -> Iterator[Callable[[str, int | None], None]]:
    """Gives what shows on a terminal which file of which size is read now; elsewhere it does nothing.

    Without a thread: a large log is read by processes that are forked, which no other thread may see.
    """
    if not _is_watched(quiet):
        yield lambda name, size: None
        return
    from ascend_doctor.cli.progress import Files

    with Files(sys.stderr, lang) as files:
        yield files.reads


def _is_watched(quiet: bool) -> bool:
    return not quiet and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def say(message: str, quiet: bool = False) -> None:
    """Progress and messages go to stderr; stdout is only what was asked for."""
    if not quiet:
        print(message, file=sys.stderr)
