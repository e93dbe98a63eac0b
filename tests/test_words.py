"""The words of reports: both languages say the same, and no template says anything by itself."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_doctor.paths import data_folder
from ascend_doctor.report import words_lint


def test_every_word_of_reports_is_there_in_both_languages() -> None:
    assert list(words_lint.lint(data_folder("reports"))) == []


@pytest.mark.parametrize(
    ("en", "zh", "complaint"),
    [
        ({"a": "x", "b": "y"}, {"a": "x"}, "zh: b is missing"),
        ({"a": "x"}, {"a": "x", "b": "y"}, "en: b is missing"),
        ({"a": "x"}, {"a": ""}, "a: empty in one language only"),
        ({"a": "{x} y"}, {"a": "{z} y"}, "a: en and zh do not name the same values"),
        ({"a": {"one": "1 x", "many": "{n} x"}}, {"a": "x"}, "a: counted in one language only"),
    ],
)
def test_what_the_languages_do_not_share_is_told(en: dict[str, Any], zh: dict[str, Any], complaint: str) -> None:
    assert [one for one in words_lint.words({"en": en, "zh": zh}) if one.startswith(complaint)]


@pytest.mark.parametrize(
    ("template", "bare"),
    [
        ("<p>Findings {{ n }}</p>", ["Findings"]),
        ('<input placeholder="search">', ["search"]),
        ("<p>{{ w('findings') }} · ascend-doctor</p>", []),
        ("<style>body { color: red }</style><p>{# a note #}</p>", []),
        ("<p>检查</p>", ["检查"]),
    ],
)
def test_words_in_a_template_itself_are_found(template: str, bare: list[str]) -> None:
    assert [one.split("'")[1] for one in words_lint.bare_texts(template)] == bare
