"""A run as JUnit XML, as Jenkins and GitLab show it: a suite for each layer, a case for each check and subject.

Elements and attributes are those of Jenkins' junit-10.xsd (jenkinsci/xunit-plugin). GitLab names a case by its
classname and name, which is why the check stands in the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.gate import fails
from ascend_doctor.engine.run import Run
from ascend_doctor.report.console import printable
from ascend_doctor.report.words import Words, words


def as_text(run: Run, lang: str) -> str:
    """A failure is what the gate counts; lesser findings, skips and what is not known are skipped cases."""
    return "\n".join(_lines(run, words(lang))) + "\n"


def _lines(run: Run, words: Words) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    total, failures, _ = _counted(run, run.findings)
    sums = f'tests="{total}" failures="{failures}" errors="0" time="{run.seconds:.3f}"'
    yield f'<testsuites name="ascend-doctor {run.kind}" {sums}>'
    by_layer: dict[str, list[Finding]] = {}
    for finding in run.findings:
        by_layer.setdefault(finding.layer, []).append(finding)
    for layer, findings in by_layer.items():
        total, failures, skipped = _counted(run, findings)
        sums = f'tests="{total}" failures="{failures}" errors="0" skipped="{skipped}" time="0"'
        host = _attribute(str(run.host.get("hostname") or ""))
        yield f'  <testsuite name="{layer}" {sums} hostname={host} timestamp={_attribute(run.started)}>'
        for finding in findings:
            yield from _case(run, finding, words)
        yield "  </testsuite>"
    yield "</testsuites>"


def _counted(run: Run, findings: Sequence[Finding]) -> tuple[int, int, int]:
    failures = sum(fails(f, run.gate) for f in findings)
    passes = sum(f.verdict == "pass" for f in findings)
    return len(findings), failures, len(findings) - failures - passes


def _case(run: Run, finding: Finding, words: Words) -> Iterator[str]:
    name = finding.check if finding.subject == "host" else f"{finding.check} {finding.subject}"
    names = f"classname={_attribute(f'{run.kind}.{finding.layer}')} name={_attribute(name)}"
    if finding.verdict == "pass":
        yield f'    <testcase {names} time="0"/>'
        return
    yield f'    <testcase {names} time="0">'
    if fails(finding, run.gate):
        message = finding.found[words.language] if finding.found else finding.title[words.language]
        head = f'<failure type="{finding.severity}" message={_attribute(message)}>'
        yield f"      {head}{_body(finding, words)}</failure>"
    else:
        yield f"      <skipped message={_attribute(_why_not(finding, words))}/>"
    yield "    </testcase>"


def _why_not(finding: Finding, words: Words) -> str:
    if finding.verdict in ("fail", "waived"):
        text = finding.found[words.language] if finding.found else finding.title[words.language]
        waived = f"{words.waiver(finding.waiver)}; " if finding.waiver else ""
        return f"{waived}{words.after(words[finding.severity or 'info'], text)}"
    if finding.verdict == "skip":
        return finding.reason or words["skip"]
    return "; ".join(f"{m.path}: {words[f'reason_{m.reason.value}']}" for m in finding.missing) or words["unknown"]


def _body(finding: Finding, words: Words) -> str:
    parts = [finding.title[words.language]]
    for name, texts in (("found", finding.found), ("expected", finding.expected), ("why", finding.why)):
        parts += [words.after(words[name], texts[words.language])] if texts else []
    for step in finding.remedy:
        parts.append(f"- {step.text[words.language]}{f': {step.command}' if step.command else ''}")
    parts += [f"{e.source}\n{e.text}" for e in finding.evidence]
    return escape(printable("\n".join(parts)))


def _attribute(text: str) -> str:
    return quoteattr(printable(text))
