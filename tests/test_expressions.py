"""Conditions: three answers, closed syntax, and what was read."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.engine.comparisons import ExpressionError
from ascend_doctor.engine.expressions import compiled
from ascend_doctor.engine.scope import Scope, Unknown
from ascend_doctor.engine.types import Listed, Versioned
from ascend_doctor.facts.thp import Thp
from ascend_doctor.host import Missing, Reason


@dataclass(frozen=True)
class Card:
    """A small stand-in for a row, with one field of each kind."""

    name: str
    number: int
    size: float | Missing
    busy: bool | Missing


CARDS = (Card("a", 0, 1.5, True), Card("b", 1, Missing(Reason.TIMEOUT, "10 s", "cards[1].size"), False))
VARIABLES: dict[str, Any] = {"card": Card, "cards": Listed(Card), "v": Versioned("cann")}
THP = Thp(enabled="madvise", defrag="always", khugepaged=Missing(Reason.ABSENT, "", "thp.khugepaged"))


def scope(**bound: Any) -> Scope:
    values = {"card": CARDS[0], "cards": CARDS, "v": "8.1.RC1", **bound}
    return Scope(lambda area: {"thp": THP}[area], lambda name: (), {k: (v, k) for k, v in values.items()})


def value(text: str, **bound: Any) -> Any:
    return compiled(text, VARIABLES).value(scope(**bound))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('thp.defrag == "always"', True),
        ('thp.defrag in ("madvise", "never")', False),
        ("card.number + 2 * 3 - 1", 5),
        ("1 < card.size <= 1.5", True),
        ("not card.busy", False),
        ('lower("ABC") == "abc"', True),
        ('startswith(card.name, "a") and matches(card.name, "^[a-c]$")', True),
        ("len(cards)", 2),
        ("sum(c.number for c in cards)", 1),
        ("max(c.number for c in cards) == 1", True),
        ('any(c.name == "b" for c in cards)', True),
        ("all(c.number < 2 for c in cards if c.name != 'z')", True),
        ("cards[1].number", 1),
        ("thp.khugepaged is absent", True),
        ("thp.defrag is present", True),
        ('v < "8.1.0" and v >= "8.0.RC3"', True),
        ('v == "8.1.rc1"', True),
    ],
)
def test_an_expression_has_the_value_that_it_reads_as(text: str, answer: Any) -> None:
    assert value(text) == answer


def test_a_missing_leaf_is_unknown_with_its_path_and_reason() -> None:
    assert value("cards[1].size > 1.0") == Unknown((Missing(Reason.TIMEOUT, "10 s", "cards[1].size"),))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("cards[1].size > 1.0 and False", False),
        ("cards[1].size > 1.0 or True", True),
        ("any(c.size > 1.0 for c in cards)", True),
        ("all(c.size > 2.0 for c in cards)", False),
    ],
)
def test_what_decides_is_enough_though_something_is_unknown(text: str, answer: bool) -> None:
    assert value(text) is answer


@pytest.mark.parametrize(
    "text",
    [
        "cards[1].size > 1.0 and True",
        "not cards[1].size > 1.0",
        "all(c.size > 1.0 for c in cards)",
        "min(c.size for c in cards) > 0",
        "cards[1].size is absent",
        'v < "no version"',
        "1 / (card.number * 1) > 0",
        "cards[7].number == 0",
    ],
)
def test_what_does_not_decide_leaves_it_unknown(text: str) -> None:
    assert isinstance(value(text), Unknown)


def test_only_what_decides_is_evidence() -> None:
    here = scope()
    compiled("any(c.busy for c in cards) or card.number == 5", VARIABLES).value(here)
    assert list(here.read) == ["cards", "cards[0].busy"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("thp.defrg == 'x'", "unknown fact thp.defrg; did you mean defrag?"),
        ("tph.defrag == 'x'", "unknown name tph; did you mean thp?"),
        ("lenght(cards) > 1", "unknown function lenght; did you mean len?"),
        ("card.name > 3", "cannot be compared"),
        ("card.name < 'b'", "texts have no order"),
        ("card.number and card.busy", "is a number, not a condition"),
        ("card.name + 1", "is a text, not a number"),
        ("card.size is None", "write `X is absent`"),
        ("card.size == None", "use `is absent`"),
        ("card.__class__", "unknown fact"),
        ("card.name.upper()", "unknown function"),
        ("().__class__", "has no parts"),
        ("lambda: 1", "not allowed"),
        ("[c for c in cards]", "not allowed"),
        ("any(any(d.busy for d in cards) for c in cards)", "no `for` inside a `for`"),
        ("2 ** 9", "not allowed"),
        ("'a' * 9", "not a number"),
        ("f'{card}'", "not allowed"),
        ("card.number = 1", "no expression"),
        ("matches(card.name, '(')", "is no pattern"),
        ("len(cards, cards)", "takes one argument"),
        ("v < 8.1", "not a version in quotes"),
        ("-" * 3000 + "1", "longer than"),
        ("(" * 300 + "1" + ")" * 300, ""),
        ("not " * 60 + "card.busy", "nested deeper"),
    ],
)
def test_what_is_no_condition_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        compiled(text, VARIABLES)
    assert says in str(refused.value)


@given(st.text(max_size=60) | st.sampled_from(["card", "cards", "thp"]).map(lambda n: f"{n}.x[0].y"))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        compiled(text, VARIABLES)


BOOLEANS = st.sampled_from([True, False, Missing(Reason.NOT_COLLECTED, "", "x")])


@given(BOOLEANS, BOOLEANS, st.sampled_from(["a.busy and b.busy", "a.busy or b.busy", "not a.busy or b.busy"]))
def test_removing_a_fact_never_turns_an_answer_round(a: Any, b: Any, text: str) -> None:
    expression = compiled(text, {"a": Card, "b": Card})
    both = {"a": replace(CARDS[0], busy=a), "b": replace(CARDS[0], busy=b)}

    def answer(cards: dict[str, Card]) -> Any:
        return expression.value(Scope(lambda _: None, lambda _: None, {k: (v, k) for k, v in cards.items()}))

    whole = answer(both)
    for name in both:
        less = answer({**both, name: replace(both[name], busy=Missing(Reason.NOT_COLLECTED, "", name))})
        assert isinstance(less, Unknown) or less is whole
