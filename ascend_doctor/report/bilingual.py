"""Both languages side by side: each text of ours twice, of which the page's switch shows one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable

from markupsafe import Markup, escape

from ascend_doctor.report.visible import visible
from ascend_doctor.report.words import Words, words

TAGS = {"en": "en", "zh": "zh-CN"}
"""Language -> its tag in HTML."""

TEXT_LIMIT = 2000
"""Characters of one text; longer ones show their head and tail."""


def shortened(text: str, limit: int = TEXT_LIMIT) -> str:
    """Long text as head and tail, and how many characters were cut."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    return f"{text[:head]}\n[… {len(text) - head - tail} …]\n{text[-tail:]}"


def shown(value: object) -> Markup:
    """A value from outside as markup: cut, without control characters, escaped; Markup passes through."""
    if isinstance(value, Markup):
        return value
    return escape(visible(shortened("" if value is None else str(value))))


class Both:
    """Texts in both languages; ``lang`` is shown first, the other one is hidden until the reader switches."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self._words = {language: words(language) for language in TAGS}
        self._open = {
            language: Markup('<span lang="{}"{}>').format(tag, Markup("" if language == lang else " hidden"))
            for language, tag in TAGS.items()
        }

    def pair(self, texts: Mapping[str, object]) -> Markup:
        """One text once where it is the same in both languages."""
        en, zh = (shown(texts[language]) for language in TAGS)
        if en == zh:
            return en
        end = Markup("</span>")
        return self._open["en"] + en + end + self._open["zh"] + zh + end

    def text(self, texts: Mapping[str, str] | None) -> Markup:
        """A text of a check or rule; a user's rule may have one language only."""
        if not texts:
            return Markup("")
        other = next(iter(texts.values()))
        return self.pair({language: texts.get(language, other) for language in TAGS})

    def word(self, name: str) -> Markup:
        """A word of words.yaml; a name that is none, such as a severity of a later version, stands for itself."""
        return self.pair({language: said.table.get(name, name) for language, said in self._words.items()})

    def say(self, name: str, **values: object) -> Markup:
        """A word with its ``{places}`` filled in."""
        filled = {key: shown(value) for key, value in values.items()}
        return self.pair({language: escape(said[name]).format(**filled) for language, said in self._words.items()})

    def count(self, name: str, number: int) -> Markup:
        """``3 errors``."""
        return self.pair({language: said.count(name, number) for language, said in self._words.items()})

    def each(self, make: Callable[[Words], str]) -> Markup:
        """What ``make(words)`` says in each language."""
        return self.pair({language: make(said) for language, said in self._words.items()})
