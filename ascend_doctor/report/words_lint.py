"""What words.yaml and the templates must keep: every text of ours in both languages, with the same places in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Any

from ascend_doctor.engine.texts import LANGUAGES
from ascend_doctor.knowledge.reading import load_yaml
from ascend_doctor.knowledge.yaml_nodes import composed

_JINJA = re.compile(r"\{[{%#].*?[}%#]\}", re.DOTALL)
_TAG = re.compile(r"<[^>]*>", re.DOTALL)
_TEXT = re.compile(r"[A-Za-z\u4e00-\u9fff]{2,}")
_ATTRIBUTE = re.compile(r'\s(?:title|alt|placeholder|aria-label|aria-description)="([^"]*)"')
_WORD = re.compile(r"""\b(?:w|n|say)\("([a-z_-]+)"[,)]""")
SAME = ("ascend-doctor", "English", "中文", "NPU", "HBM", "PCIe", "OK", "GiB", "ms")
"""Names that stand in templates as they are: the same in every language."""


def lint(folder: Path) -> Iterator[str]:
    """Complaints about words.yaml and the templates in a folder, each ``FILE: what, and what to do``."""
    path = folder / "words.yaml"
    composed(path)  # raises RuleError for keys that stand twice
    tables = load_yaml(path)
    yield from (f"{path}: {wrong}" for wrong in words(tables))
    for template in sorted(folder.glob("*.j2")):
        text = template.read_text(encoding="utf-8")
        yield from (f"{template}: {wrong}" for wrong in bare_texts(text))
        unknown = sorted(set(_WORD.findall(text)) - set(tables[LANGUAGES[0]]))
        yield from (f"{template}: {name} is no word of words.yaml; add it in {_languages()}" for name in unknown)


def words(tables: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The same names in each language, none empty in one alone, the same places in braces, the same forms."""
    first, *others = LANGUAGES
    for language in others:
        for name in sorted(tables[first].keys() ^ tables[language].keys()):
            lacking = language if name in tables[first] else first
            yield f"{lacking}: {name} is missing; give it in {_languages()}"
        for name in tables[first].keys() & tables[language].keys():
            one, other = tables[first][name], tables[language][name]
            if isinstance(one, Mapping) != isinstance(other, Mapping):
                yield f"{name}: counted in one language only; give one and many in {_languages()}"
            elif bool(one) != bool(other):
                yield f"{name}: empty in one language only"
            elif _places(one) != _places(other):
                yield f"{name}: {first} and {language} do not name the same values in braces"


def _places(word: Any) -> frozenset[str]:
    texts = word.values() if isinstance(word, Mapping) else (word,)
    return frozenset(name for text in texts for _, name, _, _ in Formatter().parse(str(text)) if name) - {"n"}


def bare_texts(template: str) -> Iterator[str]:
    """Words of a language that stand in a template, where they would stay the same in the other."""
    text = re.sub(r"&\w+;", " ", _JINJA.sub(" ", template))
    places = [*_ATTRIBUTE.findall(text), re.sub(r"<(style|script|symbol)\b.*?</\1>", " ", text, flags=re.DOTALL)]
    for place in places:
        for name in SAME:
            place = place.replace(name, " ")
        for found in _TEXT.findall(_TAG.sub(" ", re.sub(r'\b[\w-]+="[^"]*"', " ", place))):
            yield f"{found!r} stands in the template itself; put it into words.yaml in {_languages()}"


def _languages() -> str:
    return " and ".join(LANGUAGES)
