"""Scripts that start a service, taken apart without being run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.cli.preflight import RANK_TABLES
from ascend_doctor.facts.rank_table import VARIABLES, table
from ascend_doctor.facts.shell import commands, open_to_the_shell, script_of
from ascend_doctor.host import Missing, Shown


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("a -tp 16 > log 2>&1 &", [("a", "-tp", "16")]),
        ("cd /x && exec a b; c | d || e", [("cd", "/x"), ("exec", "a", "b"), ("c",), ("d",), ("e",)]),
        ("# it's\na 'b # c' \"d\" x#y # z", [("a", "b # c", "d", "x#y")]),
        ("a \\\n  --b '{\"c\": 1}'", [("a", "--b", '{"c": 1}')]),
        ("X=1\nexport Y=$X\na ${X} $Z '$1'", [("a", "1", "$Z", "$1")]),
        ("if [ -n x ]; then\n a\nfi", [("[", "-n", "x", "]"), ("a",)]),
        ("a 'never closed", []),
    ],
)
def test_the_commands_of_a_script(script: str, words: list[tuple[str, ...]]) -> None:
    assert [simple.words for simple in commands(script)] == words


def test_what_lines_before_exported_is_known_and_what_was_unset_is_gone() -> None:
    (simple,) = commands("A=1\nexport B=2 C=$A\nexport A\nunset B\nrun")
    assert simple.exported == {"A": "1", "C": "1"}
    assert simple.unset == ("B",)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["-c", "text", "x"], ("text", None)),
        (["-lc", "text"], ("text", None)),
        (["-e", "-x", "file", "1"], (None, "file")),
        (["-o", "pipefail", "file"], (None, "file")),
        (["-c"], (None, None)),
        ([], (None, None)),
    ],
)
def test_what_a_shell_is_given(words: list[str], found: tuple[str | None, str | None]) -> None:
    assert script_of(words) == found


def test_a_word_that_only_a_shell_fills_in_is_known_by_its_signs() -> None:
    assert all(map(open_to_the_shell, ["$A", "${A:-4}", "$(nproc)", "`nproc`", "x$1", "$@"]))
    assert not any(map(open_to_the_shell, ["a", "5$", "{'a': 1}", "^x$"]))


@given(st.text(max_size=200))
def test_any_text_is_a_script(script: str) -> None:
    assert all(simple.words for simple in commands(script))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_rank_table_or_missing(data: bytes) -> None:
    assert isinstance(table(data), (Missing, Shown))


def test_the_gate_looks_for_the_variables_that_name_a_rank_table() -> None:
    assert RANK_TABLES == VARIABLES
