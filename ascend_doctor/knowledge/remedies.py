"""Steps of a remedy: how rules write them, and as findings have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.records import dataclass

Texts = Mapping[str, str]
"""Language -> text."""


@dataclass(frozen=True)
class RemedyStep:
    """``effect``: none, restart, reboot or data-loss. In rules, texts and commands may hold names in braces."""

    text: Texts
    command: str | None
    needs_root: bool
    effect: str
    undo: str | None = None


def step_of(step: Any, where: str) -> RemedyStep:
    """A step as rules write it. Raises RuleError."""
    if not isinstance(step, Mapping) or not isinstance(step.get("text"), Mapping) or not step["text"]:
        raise RuleError(f"{where}: a step of a remedy has a text in en and zh")
    for key in ("command", "undo"):
        if not isinstance(step.get(key, ""), str):
            raise RuleError(f"{where}: {key} has to be a text in quotes, not {step[key]!r}")
    return RemedyStep(
        text={str(language): str(words) for language, words in step["text"].items()},
        command=step.get("command"),
        needs_root=step.get("needs_root") is True,
        effect=str(step.get("effect", "none")),
        undo=step.get("undo"),
    )
