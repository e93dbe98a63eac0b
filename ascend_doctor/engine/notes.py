"""What there is to say about a run beside its findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from ascend_doctor import __version__
from ascend_doctor.engine.findings import Finding, Note
from ascend_doctor.engine.rulebook import Rulebook
from ascend_doctor.engine.situation import Situation
from ascend_doctor.host import Host, Missing, Reason
from ascend_doctor.knowledge.limits import Limits
from ascend_doctor.knowledge.notes import note_text
from ascend_doctor.knowledge.reading import load_yaml
from ascend_doctor.records import dataclass

ROOT = 0
NAMED_PATHS = 3
"""So many denied paths are named; the findings have them all."""


@dataclass(frozen=True)
class Noter:
    """Says what a reader has to know about a run: by which rules, from where, and what stayed closed to it."""

    rulebook: Rulebook

    def notes(self, situation: Situation, findings: Sequence[Finding], host: Host) -> Iterator[Note]:
        """In the order in which they are read."""
        if self.rulebook.pack is not None:
            yield self._note("rules-pack", pack=self.rulebook.pack, version=__version__)
        yield from self._age(host)
        for detail in situation.broken:
            yield self._note("broken", detail=detail)
        limits = situation.part("limits")
        for change in limits.replaced if isinstance(limits, Limits) else ():
            yield self._note(
                "limit-replaced", place=change.place, name=change.name, value=change.value, shipped=change.shipped
            )
        yield from self._container(situation)
        yield from self._root(findings, host)

    def _age(self, host: Host) -> Iterator[Note]:
        pack = load_yaml(self.rulebook.rules[0] / "pack.yaml")
        days = (host.now().date() - date.fromisoformat(pack["date"])).days
        if days > pack["maximum_age_days"]:
            yield self._note("rules-old", date=pack["date"], days=days)

    def _container(self, situation: Situation) -> Iterator[Note]:
        container = situation.facts("container")
        if getattr(container, "inside", False) is True:
            kind = getattr(container, "kind", "")
            yield self._note("in-container", runtime=kind if isinstance(kind, str) and kind else "container")

    def _root(self, findings: Sequence[Finding], host: Host) -> Iterator[Note]:
        uid = host.identity.uid
        if isinstance(uid, Missing) or uid == ROOT:
            return
        denied = [f for f in findings if f.verdict == "unknown" and any(_is_denied(m) for m in f.missing)]
        paths = list(dict.fromkeys(m.path for f in denied for m in f.missing if _is_denied(m)))
        if denied:
            more = ", …" if len(paths) > NAMED_PATHS else ""
            yield self._note("as-root", count=len(denied), paths=", ".join(paths[:NAMED_PATHS]) + more)

    def _note(self, kind: str, **values: object) -> Note:
        return Note(kind, note_text(self.rulebook.rules, kind, values))


def _is_denied(missing: Missing) -> bool:
    return missing.reason is Reason.DENIED
