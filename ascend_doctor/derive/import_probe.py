"""Why an import failed: its text or its end with what is known of such, and with what the libraries show."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from ascend_doctor.derive import rows
from ascend_doctor.facts.import_probe import Attempt, ImportProbe
from ascend_doctor.facts.libraries import Libraries
from ascend_doctor.facts.python import TargetPython
from ascend_doctor.host import Missing, Reason
from ascend_doctor.knowledge.import_errors import Cause, Faults, ImportErrors
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.knowledge.remedies import RemedyStep, Texts
from ascend_doctor.records import dataclass

PASSED = ("imported", "absent")
UNREADABLE = Missing(Reason.FAILED, "no rule tells what such an end means")


@dataclass(frozen=True)
class Import:
    """How the import of one package ended. ``cause``: of import-errors.yaml, empty where it passed."""

    module: str
    cause: str | Missing
    severity: str
    found: Texts
    why: Texts
    remedy: tuple[RemedyStep, ...]
    sources: tuple[Source, ...]
    reads: tuple[str, ...]


@rows("import_probe.torch")
def torch(
    import_probe: ImportProbe, libraries: Libraries, python: TargetPython, import_errors: ImportErrors
) -> tuple[Import, ...] | Missing:
    """One row where torch is installed."""
    return _rows("torch", import_probe, libraries, python, import_errors)


@rows("import_probe.torch_npu")
def torch_npu(
    import_probe: ImportProbe, libraries: Libraries, python: TargetPython, import_errors: ImportErrors
) -> tuple[Import, ...] | Missing:
    """One row where torch_npu is installed."""
    return _rows("torch_npu", import_probe, libraries, python, import_errors)


@rows("import_probe.vllm_ascend")
def vllm_ascend(
    import_probe: ImportProbe, libraries: Libraries, python: TargetPython, import_errors: ImportErrors
) -> tuple[Import, ...] | Missing:
    """One row where vllm_ascend is installed."""
    return _rows("vllm_ascend", import_probe, libraries, python, import_errors)


def _rows(
    module: str, probe: ImportProbe, libraries: Libraries, python: TargetPython, errors: ImportErrors
) -> tuple[Import, ...] | Missing:
    if isinstance(probe.attempts, Missing):
        return probe.attempts
    executable = "python3" if isinstance(python.executable, Missing) else python.executable
    found = []
    for index, attempt in enumerate(probe.attempts):
        if isinstance(attempt, Missing):
            return attempt
        if attempt.module == module and attempt.outcome != "absent":
            row = told_import(attempt, of_libraries(libraries), executable, errors)
            found.append(replace(row, reads=(f"import_probe.attempts[{index}]",)))
    return tuple(found)


def told_import(attempt: Attempt, faults: Faults, python: str, errors: ImportErrors) -> Import:
    """One attempt, in words; ``reads`` is for the caller to say."""
    row = Import(attempt.module, "", "info", {}, {}, (), (), ())
    outcome = attempt.outcome
    if isinstance(outcome, Missing):
        return replace(row, cause=outcome)
    unseen = next((error for error in attempt.errors if isinstance(error, Missing)), None)
    if outcome in PASSED or unseen is not None:
        return row if unseen is None else replace(row, cause=unseen)
    told = classified(outcome, attempt, faults, errors)
    if told is None:
        return replace(row, cause=UNREADABLE)
    cause, says, values = told
    words = {
        **dict.fromkeys(("library", "symbol", "version", "path", "name"), ""),
        "module": attempt.module,
        "says": says,
        "code": str(attempt.code),
        "signal": attempt.signal,
        "seconds": f"{attempt.seconds:.3g}",
        "last": attempt.library or "?",
        "state": attempt.state,
        "python": python,
        **values,
    }
    return replace(
        row,
        cause=cause.id,
        severity=cause.severity,
        found=_filled(cause.found, words),
        why=_filled(cause.why, words),
        remedy=tuple(_step(step, words) for step in cause.remedy),
        sources=cause.sources,
    )


def classified(
    outcome: str, attempt: Attempt, faults: Faults, errors: ImportErrors
) -> tuple[Cause, str, Mapping[str, str]] | None:
    """The cause of an end, what was said, and what a pattern found in that."""
    exceptions = [f"{error.type}: {error.text}" for error in attempt.errors]
    known = errors.of_exceptions(exceptions, faults)
    if known is not None:
        cause, exception, values = known
        return cause, _first_line(exception), values
    end = errors.of_end(outcome, attempt.signal)
    return None if end is None else (end, _first_line(exceptions[-1]) if exceptions else outcome, {})


def _first_line(exception: str) -> str:
    line = exception.strip().partition("\n")[0]
    return line if len(line) <= 300 else line[:299] + "…"


def of_libraries(libraries: Libraries) -> dict[str, set[str]]:
    """What the analysis found, to tell apart what the loader words alike; not known, nothing is told apart."""
    found: dict[str, set[str]] = {}
    for target in () if isinstance(libraries.targets, Missing) else libraries.targets:
        for fault in () if isinstance(target, Missing) or isinstance(target.faults, Missing) else target.faults:
            if not isinstance(fault, Missing) and isinstance(fault.library, str) and isinstance(fault.kind, str):
                found.setdefault(posixpath.basename(fault.library), set()).add(fault.kind)
    return found


def _filled(texts: Texts, words: Mapping[str, str]) -> Texts:
    return {language: _with(text, words) for language, text in texts.items()}


def _step(step: RemedyStep, words: Mapping[str, str]) -> RemedyStep:
    quoted = {name: shlex.quote(value) for name, value in words.items()}
    command = None if step.command is None else _with(step.command, quoted)
    return replace(step, text=_filled(step.text, words), command=command)


def _with(text: str, words: Mapping[str, str]) -> str:
    """Names in braces that are known; other braces are the shell's."""
    return re.sub(r"\{([a-z]+)\}", lambda found: words.get(found[1], found[0]), text)
