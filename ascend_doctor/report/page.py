"""What the page of a run tells, in the order in which it is read: plain values for the templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup, escape

from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import Run
from ascend_doctor.records import dataclass
from ascend_doctor.report import embedding, smoke
from ascend_doctor.report.bilingual import TAGS, Both
from ascend_doctor.report.pictures import budget, chain, rows, tiles, topology, trouble
from ascend_doctor.report.pictures.latency import strip
from ascend_doctor.report.summary import by_missing, consequences, first_steps, gravity, headline
from ascend_doctor.report.visible import visible
from ascend_doctor.report.words import words

COUNTED = (
    ("error", "errors", "findings"), ("warning", "warnings", "findings"), ("info", "infos", "findings"),
    ("explained", "explaineds", "findings"), ("unknown", "unknowns", "unknown"), ("waived", "waiveds", "waivers"),
    ("skip", "skipped", "skipped"), ("pass", "passed", "passed"),
)  # fmt: skip
"""Count, its word, and the section that it is a link to."""

REDUCED = re.compile(r"[^A-Za-z0-9.:@/_-]+")
SUBJECTS = 400
SAID_ELSEWHERE = ("redacted", "unredacted")
"""Notes that the line below the verdict, or a banner, says."""

IN_TEXT = ("numa", "versions")
"""Kinds of runs whose answer is a table for a terminal."""


@dataclass(frozen=True)
class Item:
    """A finding in the page: its place in the run and in the page, what marks it, and what follows from it.

    ``struck``: its title is a good state that is not so; of a log it is the fault itself. ``quoted``: what was found is
    a line that stands among the evidence.
    """

    finding: Finding
    index: int
    anchor: str
    mark: str
    struck: bool
    quoted: bool
    below: tuple[Item, ...] = ()


@dataclass(frozen=True)
class AreaSum:
    """How many of an area's findings are of each kind."""

    layer: str
    fail: int
    unknown: int
    passed: int
    skip: int


class Page:
    def __init__(self, run: Run, both: Both) -> None:
        self.run, self.both = run, both
        self.machine = rows.machine(run.machine)
        self.items = tuple(self._items())
        self.by_id = {id(item.finding): item for item in self.items}

    def parts(self) -> dict[str, Any]:
        run = self.run
        known = [(item.finding, item.anchor) for item in self.items]
        troubles = trouble.troubles(known)
        cards = tiles.cards(self.machine, troubles)
        memory = (run.answer or {}).get("memory")
        bar = budget.budget(memory)
        unknown = self._unknown()
        passed, skipped = self._by_layer("pass"), self._by_layer("skip")
        parts: dict[str, Any] = {
            "run": run,
            "heads": {language: headline(run, words(language)) for language in TAGS},
            "headline": self.both.each(lambda said: headline(run, said)),
            "name": run.host.get("hostname") or words(self.both.lang)["host"],
            "verdict": {"pass": "pass", "fail": "error", "undecided": "unknown"}.get(run.verdict, "unknown"),
            "facts": list(self._facts(cards)),
            "unredacted": run.redacted != "identity",
            "notes": [note for note in run.notes if note.kind not in SAID_ELSEWHERE],
            "answer_text": self._answer_text(),
            "steps": first_steps(run),
            "anchor": lambda finding: self.by_id[id(finding)].anchor if id(finding) in self.by_id else "findings",
            "cards": cards,
            "names": ", ".join(dict.fromkeys(npu.name for npu in self.machine.npus if npu.name)),
            "near": {npu.place: ", ".join(map(str, npu.nodes)) if npu.nodes else None for npu in self.machine.npus},
            "counts": [(key, run.counts[key], word, target) for key, word, target in COUNTED if run.counts.get(key)],
            "items": self.items,
            "failed": self._cards(),
            "unknown": unknown,
            "explained": sum(f.verdict == "unknown" and f.because is not None for f in run.findings),
            "waivers": [item for item in self.items if item.finding.waiver],
            "waiver": lambda used: self.both.each(lambda said: said.waiver(used)),
            "passed": passed,
            "skipped": skipped,
            "areas": self._areas() if run.kind != "diff" and any(item.struck for item in self.items) else [],
            "sums": self._sums(),
            "reasons": self._reasons(),
            "topology": topology.topology(self.machine, troubles),
            "fabric": self.machine.fabric,
            "chain": chain.chain(self.machine.versions, known),
            "held": budget.held(self.machine),
            "budget": bar,
            "formulas": _formulas(memory) if bar else {},
            "marks": list(dict.fromkeys(item.mark for item in self.items)),
            "layers": list(dict.fromkeys(item.finding.layer for item in self.items)),
            "subjects": list(dict.fromkeys(item.finding.subject for item in self.items))[:SUBJECTS],
            "shown_slot": Markup('<b class="shown">{}</b>').format(len(self.items)),
            "all_slot": Markup('<span class="all">{}</span>').format(len(self.items)),
            "logs": None,
            "smoke": [(device, strip(device.samples_ms, device.latency)) for device in smoke.devices(run)],
            "smoke_told": smoke,
        }
        if run.logs is not None:
            parts.update(self._of_logs())
        parts["contents"] = list(self._contents(parts))
        return parts

    def _items(self) -> Iterator[Item]:
        taken: set[str] = set()
        for index, finding in enumerate(self.run.findings):
            texts = {evidence.text.strip() for evidence in finding.evidence}
            yield Item(
                finding,
                index,
                _anchor(finding, taken),
                gravity(finding),
                struck=not finding.check.startswith("logs."),
                quoted=finding.found is not None and set(finding.found.values()) <= texts,
            )

    def _cards(self) -> list[Item]:
        """What failed or is waived by itself, each with what follows from it; nothing that was found is left out."""
        own = [i for i in self.items if i.finding.verdict in ("fail", "waived") and not i.finding.because]
        below = {id(i.finding): [self.by_id[id(f)] for f in consequences(i.finding, self.run.findings)] for i in own}
        told = {id(item.finding) for items in below.values() for item in items}
        open_ = [i for i in self.items if i.finding.because and id(i.finding) not in told]
        open_ = [i for i in open_ if i.finding.verdict in ("fail", "unknown")]
        while open_:  # of another subject than its cause, such as a rank that waited for another
            owner = {one.finding.check: key for key, items in below.items() for one in items}
            owner.update({i.finding.check: id(i.finding) for i in reversed(own)})
            known = [item for item in open_ if item.finding.because in owner]
            if not known:
                return [replace(i, below=tuple(below.get(id(i.finding), ()))) for i in [*own, *open_]]
            for item in known:
                below[owner[str(item.finding.because)]].append(item)
            done = {id(item) for item in known}
            open_ = [item for item in open_ if id(item) not in done]
        return [replace(item, below=tuple(below[id(item.finding)])) for item in own]

    def _unknown(self) -> list[list[Item]]:
        open_ = [f for f in self.run.findings if f.verdict == "unknown" and not f.because]
        return [[self.by_id[id(finding)] for finding in group] for _, group in by_missing(open_)]

    def _by_layer(self, verdict: str) -> list[tuple[str, list[list[Item]]]]:
        """Layer by layer the findings of each check, all of its subjects together."""
        found: dict[str, dict[tuple[str, str | None], list[Item]]] = {}
        for item in self.items:
            one = item.finding
            if one.verdict == verdict:
                found.setdefault(one.layer, {}).setdefault((one.check, one.reason), []).append(item)
        return [(layer, list(groups.values())) for layer, groups in found.items()]

    def _facts(self, cards: Sequence[tiles.Card]) -> Iterator[Any]:
        """The muted line below the verdict."""
        run, both, host = self.run, self.both, self.run.host
        if host.get("hostname"):
            yield str(host["hostname"])
        yield both.word(f"kind_{run.kind}")
        yield from (str(host[name]) for name in ("arch", "kernel") if host.get(name))
        if self.machine.npus:
            yield both.count("chips", len(self.machine.npus))
        yield f"ascend-doctor {run.version}"
        if run.rules:
            yield both.say("rules_print", digest=run.rules.removeprefix("sha256:")[:12])
        yield Markup('<time datetime="{0}">{0}</time>').format(run.started)
        if host.get("origin") in ("live", "snapshot"):
            yield both.word(f"origin_{host['origin']}")
        if host.get("uid") is not None:
            yield both.word("is_root") if host["uid"] == 0 else both.say("not_root", uid=host["uid"])
        if host.get("container") is not None:
            yield both.say("inside", kind=host["container"]) if host["container"] else both.word("outside")
        yield both.word(f"redacted_{run.redacted}")
        yield both.say("run", digest=embedding.digest(run))

    def _answer_text(self) -> Markup | None:
        if self.run.kind not in IN_TEXT:
            return None
        from ascend_doctor.report.answers import answer_text

        return self.both.each(lambda said: escape(visible(answer_text(self.run, said, verbose=True))))

    def _areas(self) -> list[AreaSum]:
        found: dict[str, list[str]] = {}
        for item in self.items:
            found.setdefault(item.finding.layer, []).append(item.finding.verdict)
        return [
            AreaSum(layer, *(sum(verdict in names for verdict in verdicts) for names in _COLUMNS))
            for layer, verdicts in found.items()
        ]

    def _sums(self) -> Mapping[str, int]:
        verdicts = [finding.verdict for finding in self.run.findings]
        apart, unknown = verdicts.count("skip"), verdicts.count("unknown")
        asked = len(verdicts) - apart
        return {"asked": asked, "answered": asked - unknown, "apart": apart, "unknown": unknown}

    def _reasons(self) -> list[tuple[str, int]]:
        """Why findings are unknown, each finding by its first missing fact, the most frequent first."""
        found: dict[str, int] = {}
        for finding in self.run.findings:
            if finding.verdict == "unknown" and finding.missing:
                reason = finding.missing[0].reason.value
                found[reason] = found.get(reason, 0) + 1
        return sorted(found.items(), key=lambda one: -one[1])

    def _of_logs(self) -> dict[str, Any]:
        from ascend_doctor.report import logs
        from ascend_doctor.report.pictures import time_line

        assert self.run.logs is not None
        report = self.run.logs
        said = {language: logs.ranks_said(report, words(language)) for language in TAGS}
        return {
            "logs": report,
            "told": logs,
            "told_roles": time_line.ROLES,
            "told_ranks": [self.both.pair({"en": en, "zh": zh}) for en, zh in zip(said["en"], said["zh"])],
            "line": time_line.time_line(report),
            "base": logs.base_of(report),
            "others": logs.others(report),
        }

    def _contents(self, parts: Mapping[str, Any]) -> Iterator[tuple[str, Markup]]:
        """Sections that are there, in their order."""
        logs = parts["logs"]
        sections = (
            ("first", "do_first", parts["steps"]),
            ("diff", "kind_diff", self.run.kind == "diff"),
            ("cause", "triage_cause", self.run.kind == "triage" and (self.run.answer or {})["triage"].get("cause")),
            ("issue", "triage_block", self.run.kind == "triage"),
            ("answer", "log_proof", logs and logs.root),
            ("timeline", "log_timeline", logs and parts["line"]),
            ("followed", "log_chain", logs and logs.chain),
            ("smoke", "smoke_ladder", parts["smoke"]),
            ("table", f"kind_{self.run.kind}", parts["answer_text"]),
            ("budget", "budget", parts["budget"]),
            ("findings", "findings", True),
            ("unknown", "could_not_judge", parts["unknown"] or parts["areas"]),
            ("waivers", "waivers", parts["waivers"]),
            ("machine", "machine", parts["topology"] or parts["chain"] or parts["held"]),
            ("judged", "judged", parts["areas"]),
            ("passed", "passed_checks", parts["passed"]),
            ("skipped", "does_not_apply", parts["skipped"]),
            ("coverage", "log_coverage", logs),
            ("collection", "collection", self.run.collection),
        )
        for target, word, there in sections:
            if there:
                yield target, self.both.word(word)


_COLUMNS = (("fail", "waived"), ("unknown",), ("pass",), ("skip",))


def _anchor(finding: Finding, taken: set[str]) -> str:
    """The finding's permalink in the page, which is no other's."""
    name = REDUCED.sub("-", f"{finding.check}@{finding.subject}")[:120]
    anchor, number = name, 2
    while anchor in taken:
        anchor, number = f"{name}~{number}", number + 1
    taken.add(anchor)
    return anchor


def _formulas(memory: Any) -> dict[str, str]:
    found = {str(row.get("name")): str(row.get("formula", "")) for row in memory["rows"] if isinstance(row, Mapping)}
    return {**found, "held": str(memory.get("held_by") or ""), "free": ""}
