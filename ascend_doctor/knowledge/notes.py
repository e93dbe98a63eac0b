"""The sentences of a run's notes, from rules/notes.yaml; read only when there is something to note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ascend_doctor.knowledge.reading import load_yaml


def note_text(folders: Sequence[Path], kind: str, values: Mapping[str, object]) -> Mapping[str, str]:
    """Language -> the sentence of that kind with its values."""
    texts = load_yaml(folders[0] / "notes.yaml")[kind]
    return {language: str(text).format(**values) for language, text in texts.items()}
