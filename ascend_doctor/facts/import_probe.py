"""Whether torch, torch_npu and vllm_ascend can be imported: tried, in the target interpreter, where the user wants it.

Each is imported by a process of its own (children/import_probe.py), in this order; after one that hangs, no other is
started.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, decoded, keyed
from ascend_doctor.records import dataclass

T = TypeVar("T")

MODULES = ("torch", "torch_npu", "vllm_ascend")
SECONDS = 120.0
"""For each of them: from a cold disk the import of torch and torch_npu takes well below half a minute."""
PRINTED_LIMIT = 4000
"""Characters kept of the end of each stream."""

HUNG = ("deadline", "stuck")

NOT_WANTED = Missing(Reason.UNSUPPORTED, "only with --import")
WRONG_SHAPE = Missing(Reason.FAILED, "not in the form of an import probe")


@dataclass(frozen=True)
class Raised:
    """An exception; ``where``: file and line."""

    type: str
    text: str
    where: str


@dataclass(frozen=True)
class Attempt:
    """``outcome``: imported, absent, raised, signal, exit (the module ended the process), deadline, flood or stuck.

    Stuck: no signal ends the process, so it is left behind; ``state`` is its letter, D where it is in the kernel.
    ``errors``: the exception and those that it came from, the first one last. ``library``: the last one that the loader
    named before the end.
    """

    module: str
    outcome: str | Missing
    version: str
    seconds: float
    code: int
    signal: str
    errors: tuple[Raised, ...]
    stdout: str
    stderr: str
    library: str
    state: str


@dataclass(frozen=True)
class ImportProbe:
    attempts: tuple[Attempt, ...] | Missing


def collect(host: Host) -> Collected[ImportProbe]:
    """Starts nothing unless it is wanted."""
    area = Area("import_probe")
    if not host.extent.imports:
        return area.of(ImportProbe(NOT_WANTED))
    answer = host.observed("import_probe", lambda: measured(host))
    found = answer.value if isinstance(answer.value, Missing) else attempts(answer.value)
    if not isinstance(found, Missing):
        for index, attempt in enumerate(found):
            area.take(keyed("attempts", index), Parsed(None, answer.source, {"": _line(attempt)}))
    shown = {"": found.reason.value if isinstance(found, Missing) else f"{len(found)} imports"}
    area.take("attempts", Parsed(None, answer.source, shown))
    return area.of(ImportProbe(found))


def measured(host: Host, modules: Sequence[str] = MODULES, seconds: float = SECONDS) -> object:
    """The attempts as plain values, or why there is none."""
    python = host.python.value
    if isinstance(python, Missing):
        return python
    found: list[Mapping[str, object]] = []
    for module in modules:
        if any(attempt["outcome"] in HUNG for attempt in found):
            found.append({"module": module, "outcome": "not_started"})
            continue
        attempt = _attempt(python.executable, module, seconds)
        if isinstance(attempt, Missing):
            return attempt
        found.append(attempt)
    return {"attempts": found}


def _attempt(python: str, module: str, seconds: float) -> Mapping[str, object] | Missing:
    from ascend_doctor.host.children import child

    ended = child(python, "import_probe.py", [f"{seconds:g}", module], seconds)
    if isinstance(ended, Missing):
        return ended
    answer = _answer(ended.answer)
    outcome = "stuck" if ended.state else ended.how
    if answer:
        outcome = "imported" if answer["imported"] else "raised" if answer["found"] else "absent"
    return {
        "module": module,
        "outcome": outcome,
        "version": answer.get("version", ""),
        "seconds": answer.get("seconds", ended.seconds),
        "code": ended.code,
        "signal": ended.signal,
        "errors": answer.get("errors", []),
        "stdout": decoded(ended.stdout)[-PRINTED_LIMIT:],
        "stderr": decoded(ended.stderr)[-PRINTED_LIMIT:],
        "library": "" if answer else ended.library,
        "state": ended.state,
    }


def _answer(data: bytes) -> Mapping[str, Any]:
    """What the child wrote; empty where that is no whole answer."""
    try:
        answer = json.loads(data)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) and {"found", "imported"} <= set(answer) else {}


def attempts(value: object) -> tuple[Attempt, ...] | Missing:
    """The attempts of an observation; Missing(failed) for any value of another form."""
    try:
        entries = _of(_of(value, dict)["attempts"], list)
        hung = next((str(e["module"]) for e in entries if isinstance(e, dict) and e.get("outcome") in HUNG), "")
        return tuple(_attempt_of(_of(entry, dict), hung) for entry in entries)
    except (KeyError, TypeError, RecursionError):
        return WRONG_SHAPE


def _attempt_of(entry: Mapping[str, Any], hung: str) -> Attempt:
    outcome: str | Missing = _of(entry["outcome"], str)
    if outcome == "not_started":
        outcome = Missing(Reason.TIMEOUT, f"not started: import {hung or 'of another one'} hung")
    text = {key: _of(entry.get(key, ""), str) for key in ("version", "signal", "stdout", "stderr", "library", "state")}
    seconds, code = entry.get("seconds", 0), entry.get("code", 0)
    errors = _of(entry.get("errors", []), list)
    return Attempt(
        module=_of(entry["module"], str),
        outcome=outcome,
        seconds=float(_of(seconds, int) if isinstance(seconds, int) else _of(seconds, float)),
        code=_of(code, int),
        errors=tuple(Raised(*(_of(_of(e, dict)[key], str) for key in ("type", "text", "where"))) for e in errors),
        **text,
    )


def _of(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(kind)
    return value


def _line(attempt: Attempt) -> str:
    """How it went, in a line or two."""
    if isinstance(attempt.outcome, Missing):
        return attempt.outcome.detail
    words = [f"import {attempt.module}: {attempt.outcome}", attempt.signal, attempt.version]
    words += [f"{error.type}: {error.text.strip()} ({error.where})" for error in attempt.errors[:1]]
    if attempt.library:
        words.append(f"last library: {attempt.library}")
    return " ".join(word for word in words if word)[:600]
