"""What a triage tells beside its findings: the cause and why it is named, and the block for an issue."""

from __future__ import annotations

from ascend_doctor.engine.log_findings import check_of
from ascend_doctor.engine.run import Run
from ascend_doctor.records import dataclass
from ascend_doctor.report.fields import Field
from ascend_doctor.report.words import Words

BEGINS = {"host-warning": "triage_gravest", "log-symptom": "triage_sign"}
"""How a headline begins where nothing shows that it is the cause."""


@dataclass(frozen=True)
class CauseLine:
    """The cause in words; ``of_logs``: whether the logs tell of it, so that their lines prove it."""

    text: str
    way: str
    why: str
    confidence: str
    check: str
    subject: str
    of_logs: bool


@dataclass(frozen=True)
class Section:
    """A part of the block for an issue."""

    title: str
    text: str


def cause_of(run: Run, words: Words) -> CauseLine | None:
    """Raises StoredError for a stored run whose answer is broken."""
    found = Field(run.answer or {})["triage"]["cause"]
    if found.value is None:
        return None
    checks = [found["check"].text(), *(one["check"].text() for one in found["with"].items())]
    root = run.logs.root if run.logs else None
    return CauseLine(
        text=found["text"].texts()[words.language],
        way=found["way"].text(),
        why=found["why"].texts()[words.language],
        confidence=words[f"confidence_{found['confidence'].one_of(('high', 'medium', 'low'))}"],
        check=checks[0],
        subject=found["subject"].text(),
        of_logs=root is not None and check_of(root) in checks,
    )


def block_of(run: Run, words: Words) -> list[Section]:
    """Raises StoredError."""
    sections = Field(run.answer or {})["triage"]["block"].items()
    return [Section(one["title"].texts()[words.language], one["text"].text()) for one in sections]


def triage_headline(run: Run, words: Words) -> str:
    """The cause in one line, or that there is none."""
    cause = cause_of(run, words)
    if cause is not None:
        return words.after(words[BEGINS.get(cause.way, "triage_cause")], cause.text)
    if run.verdict != "pass":
        return words["triage_open"]
    silent = run.logs is None or run.logs.analysis.verdict == "no-logs"
    return words["triage_no_logs" if silent else "triage_clean"]


def table(run: Run, words: Words, verbose: bool = False) -> str:
    """The block as plain text."""
    cause_of(run, words)
    return "\n".join(f"{section.title}\n{section.text}\n" for section in block_of(run, words))
