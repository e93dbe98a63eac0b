"""What every report says first: the verdict in a sentence, the counts, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from ascend_doctor.engine.findings import Finding, RemedyStep
from ascend_doctor.engine.run import Run
from ascend_doctor.records import dataclass
from ascend_doctor.report.words import Words

FIRST_STEPS = 3


@dataclass(frozen=True)
class FirstStep:
    """A step to take first, the finding that it is for, and how many findings it clears with it."""

    step: RemedyStep
    finding: Finding
    clears: int


def headline(run: Run, words: Words) -> str:
    """One sentence: fit, not fit, or cannot say, and why in figures."""
    if run.kind == "triage":
        from ascend_doctor.report.triage import triage_headline

        return triage_headline(run, words)
    if run.logs is not None:
        from ascend_doctor.report.logs import log_headline

        return log_headline(run.logs, words)
    if run.verdict == "undecided":
        unknown = [f for f in run.findings if f.verdict == "unknown" and (f.required or run.gate.strict)]
        begin = _verdict("cannot_say", run, words)
        return words.after(begin, f"{unknown[0].title[words.language]}{words['question']}") if unknown else begin
    counted = [
        words.count(name, run.counts[key])
        for key, name in (("error", "errors"), ("warning", "warnings"))
        if run.counts[key]
    ]
    if run.verdict == "pass" and run.counts["unknown"]:
        counted.append(words.count("unknowns", run.counts["unknown"]))
    if run.verdict == "fail" and not counted:
        counted.append(words.count("infos", run.counts["info"]))
    verdict = _verdict("fit" if run.verdict == "pass" else "not_fit", run, words)
    return words.after(verdict, words["comma"].join(counted)) if counted else verdict


def healthy_line(run: Run, words: Words) -> str:
    """All that there is to say of a host on which nothing was found and nothing stayed open; "" where there is more."""
    counts = run.counts
    if (
        run.kind != "preflight"
        or run.verdict != "pass"
        or any(counts[name] for name in counts if name not in ("pass", "skip"))
    ):
        return ""
    verdicts: dict[str, set[str]] = {}
    for finding in run.findings:
        verdicts.setdefault(finding.check, set()).add(finding.verdict)
    passed = sum("pass" in found for found in verdicts.values())
    counted = [words.count("checks_passed", passed)] if passed else []
    counted += [words.count("checks_skipped", len(verdicts) - passed)] if len(verdicts) > passed else []
    return words.after(headline(run, words), words["comma"].join(counted)) if counted else headline(run, words)


def host_line(run: Run) -> str:
    """Which host, seen by whom, when."""
    host = run.host
    known = [str(host[name]) for name in ("hostname", "arch", "kernel") if host.get(name)]
    user = [] if host.get("uid") is None else [f"uid {host['uid']}"]
    return " · ".join([*known, *user, run.started])


def _verdict(name: str, run: Run, words: Words) -> str:
    """What a verb calls it where it judges something else than a host."""
    return str(words.table.get(f"{run.kind}_{name}", words[name]))


def count_words(run: Run, words: Words) -> list[tuple[str, str]]:
    """(verdict or severity, ``3 warnings``) for each count that is not nothing."""
    names = {
        "error": "errors",
        "warning": "warnings",
        "info": "infos",
        "explained": "explaineds",
        "unknown": "unknowns",
        "waived": "waiveds",
        "skip": "skipped",
        "pass": "passed",
    }
    return [(key, words.count(name, run.counts[key])) for key, name in names.items() if run.counts[key]]


def first_steps(run: Run) -> list[FirstStep]:
    """The first step of each of the gravest causes, errors before warnings; none for mere notes."""
    found: dict[str, FirstStep] = {}
    for finding in run.findings:
        if finding.verdict != "fail" or finding.because or finding.severity == "info" or not finding.remedy:
            continue
        step = finding.remedy[0]
        key = step.command or step.text.get("en", "")
        cleared = 1 + len(consequences(finding, run.findings))
        known = found.get(key)
        found[key] = FirstStep(step, known.finding if known else finding, cleared + (known.clears if known else 0))
    return list(found.values())[:FIRST_STEPS]


def consequences(cause: Finding, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that a finding explains, directly or through another."""
    direct = [f for f in findings if f.because == cause.check and f is not cause]
    own = [f for f in direct if cause.subject in (f.subject, "host") or f.subject == "host"]
    return [g for f in own for g in (f, *(consequences(f, findings) if f.verdict == "fail" else ()))]


def gravity(finding: Finding) -> str:
    """What a finding is marked with: its severity for a fail, its verdict else."""
    return str(finding.severity) if finding.verdict == "fail" else finding.verdict


def by_missing(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """Unknown findings folded by what they lack: (path or paths, the findings)."""
    folded: dict[str, list[Finding]] = {}
    for finding in findings:
        lacking = ", ".join(dict.fromkeys(m.path for m in finding.missing)) or "?"
        folded.setdefault(lacking, []).append(finding)
    return list(folded.items())
