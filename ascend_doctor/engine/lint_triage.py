"""What the rules of ``triage`` and ``diff`` name is there: a glob of nothing joins nothing, and nobody notices."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from ascend_doctor.engine.checks import LAYERS, listed_ids
from ascend_doctor.engine.rulebook import Rulebook
from ascend_doctor.facts import AREAS
from ascend_doctor.knowledge import differences, signatures, triage
from ascend_doctor.logs import LAYERS as LOG_LAYERS


def lint(book: Rulebook) -> Iterator[str]:
    """A sentence for each thing that is wrong, with its file. Raises RuleError for a file that cannot be read."""
    folder = book.rules[0]
    if (folder / triage.FILE).is_file():
        yield from _triage(book)
    if (folder / differences.FILE).is_file():
        known = differences.load(book.rules)
        near = [glob for paths, _ in known.near for glob in paths.globs]
        for glob in (*known.ignored.globs, *known.between_hosts.globs, *near, *known.known_by):
            area = glob.lstrip("*").partition(".")[0].partition("[")[0]
            if area and area not in AREAS:
                yield f"{folder / differences.FILE}: {glob}: there is no area {area} of facts"


def _triage(book: Rulebook) -> Iterator[str]:
    file = book.rules[0] / triage.FILE
    known = triage.load(book.rules)
    checks = {name for names in listed_ids((*book.checks, *book.requested)).values() for name in names}
    named = signatures.load(book.rules).by_id
    for pair in known.same:
        yield from (f"{file}: {glob}: no check is called so" for glob in _idle(pair.checks, checks))
        yield from (f"{file}: {glob}: no signature is called so" for glob in _idle(pair.signatures, named))
    yield from (f"{file}: nothing_runs: {name}: no check is called so" for name in _idle(known.nothing_runs, checks))
    for layer, explained in known.explains.items():
        if layer not in LAYERS:
            yield f"{file}: explains: {layer} is no layer of findings"
        yield from (f"{file}: explains: {one} is no layer of logs" for one in explained if one not in LOG_LAYERS)


def _idle(globs: Collection[str], names: Collection[str]) -> list[str]:
    return [glob for glob in globs if not any(fnmatchcase(name, glob) for name in names)]
