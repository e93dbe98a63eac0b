"""A run as one HTML file: no network, nothing run that is not named by its hash, readable without script."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ascend_doctor import __version__
from ascend_doctor.engine.findings import Finding
from ascend_doctor.engine.run import Run, run_as_json
from ascend_doctor.paths import data_folder
from ascend_doctor.report.summary import by_missing, consequences, count_words, first_steps, gravity, headline
from ascend_doctor.report.words import Words, words

TEXT_LIMIT = 4000
"""Characters of one piece of evidence; longer ones show their head and tail."""


def page(run: Run, lang: str) -> str:
    """The whole page. Every text of a host goes through the template's escaping."""
    folder = data_folder("reports")
    style = (folder / "report.css").read_text(encoding="utf-8")
    script = (folder / "report.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shortened"] = shortened
    said = words(lang)
    return environment.get_template("report.html.j2").render(
        run=run,
        lang=lang,
        words=said,
        headline=headline(run, said),
        counts=count_words(run, said),
        steps=first_steps(run),
        failed=[f for f in run.findings if f.verdict in ("fail", "waived") and not f.because],
        below=lambda finding: consequences(finding, run.findings),
        unknown=by_missing([f for f in run.findings if f.verdict == "unknown" and not f.because]),
        skipped=_by_layer(run.findings, "skip"),
        passed=_by_layer(run.findings, "pass"),
        gravity=gravity,
        anchor=anchor,
        version=__version__,
        style=style,
        script=script,
        policy=_policy(style, script),
        document=_embedded(run),
        **(_of_logs(run, said) if run.logs is not None else {"logs": None}),
        **_of_smoke(run),
    )


def _of_logs(run: Run, said: Words) -> dict[str, Any]:
    from ascend_doctor.report import logs

    assert run.logs is not None
    return {
        "logs": run.logs,
        "told": logs,
        "line": logs.time_line(run.logs, said),
        "base": logs.base_of(run.logs),
        "others": logs.others(run.logs),
    }


def _of_smoke(run: Run) -> dict[str, Any]:
    from ascend_doctor.report import smoke

    return {"smoke": smoke.summaries(run), "smoke_told": smoke}


def anchor(finding: Finding) -> str:
    """The finding's permalink in the page."""
    return f"{finding.check}@{finding.subject}"


def shortened(text: str) -> str:
    """Long evidence as head and tail."""
    if len(text) <= TEXT_LIMIT:
        return text
    half = TEXT_LIMIT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} …\n{text[-half:]}"


def _by_layer(findings: Sequence[Finding], verdict: str) -> list[tuple[str, list[Finding]]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.verdict == verdict:
            found.setdefault(finding.layer, []).append(finding)
    return list(found.items())


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _embedded(run: Run) -> str:
    """The run itself, for tools; nothing in it can end its element."""
    text = json.dumps(run_as_json(run), ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
