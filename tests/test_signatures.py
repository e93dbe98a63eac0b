"""Signatures of log lines: every one proves itself, and the lint refuses those that would lose or stall a run."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.engine.lint_signatures import faults
from ascend_doctor.engine.signature_patterns import SECONDS, alternatives, endless, implied, slowest
from ascend_doctor.knowledge import signatures
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.knowledge.signatures import Signature, load

RULES = [Path(__file__).parents[1] / "rules"]
BOOK = load(RULES)
WORDS = st.sampled_from([anchor for one in BOOK.every for anchor in one.anchors])

ENTRY = """\
- id: memory.fire
  kind: [plog]
  layer: hardware
  role: root
  severity: error
  codes: ["507015", EI0006]
  anchors: ["is burning"]
  regex: '(?P<what>\\w{1,20}) is burning(?:''s end)?'
  title: {en: "Fire", zh: "着火"}
  meaning: {en: "It burns.", zh: "着火了。"}
  remedy:
    - text: {en: "Leave", zh: "离开"}
  sources:
    - {title: "A book", url: "", confidence: vendor-doc}
  samples:
    match: ["card is burning", "a fan is burning's end"]
    no_match: ["is cold", "burning"]
"""


def book_of(folder: Path, text: str) -> signatures.Signatures:
    (folder / "signatures").mkdir(exist_ok=True)
    (folder / "signatures" / "fire.yaml").write_text(text)
    return load([folder])


def complaints(folder: Path, text: str) -> list[str]:
    book = book_of(folder, text)
    return list(faults(book.every[0], book))


@pytest.mark.parametrize("signature", BOOK.every, ids=lambda one: one.id)
def test_every_shipped_signature_is_whole_and_proves_itself(signature: Signature) -> None:
    assert list(faults(signature, BOOK, tried=False)) == []


def test_no_shipped_regex_is_slow_on_hostile_lines() -> None:
    slow = {one.id: slowest(one.regex, BOOK.told(one).match[:1]) for one in BOOK.every[:: 1 + len(BOOK.every) // 80]}
    assert max(slow.values()) < SECONDS, max(slow, key=lambda name: slow[name])


def test_all_parts_of_the_stack_have_signatures() -> None:
    layers = Counter(one.layer for one in BOOK.every)
    assert len(BOOK.every) >= 300
    assert min(layers[layer] for layer in ("hardware", "driver", "network", "compiler", "operator")) >= 15
    assert {one.role for one in BOOK.every} == {"root", "cascade", "detail", "symptom", "harmless"}


def test_what_a_run_needs_of_all_signatures_is_read_quickly() -> None:
    load(RULES)
    started = time.process_time()
    load(RULES)
    assert time.process_time() - started < 0.06


def test_a_line_is_known_by_its_signature_and_gives_its_parts() -> None:
    line = "NPU out of memory. Tried to allocate 5.03 GiB (NPU 3; 60.96 GiB total capacity; 49.47 GiB already allocated"
    [(signature, match)] = BOOK.matching(line, "framework")
    assert signature.cause == "device-out-of-memory"
    assert (match["device"], match["wanted"]) == ("3", "5.03 GiB")


def test_a_signature_is_asked_only_for_its_kinds_of_log() -> None:
    line = "Out of memory: Killed process 25315 (python3) total-vm:1kB"
    assert [one.id for one, _ in BOOK.matching(line, "kernel")] == ["kernel.oom-kill"]
    assert BOOK.matching(line, "plog") == []
    assert BOOK.matching(line, "unknown")


def test_given_anchors_find_what_searching_for_them_finds() -> None:
    for one in BOOK.every[::7]:
        for line in BOOK.told(one).match:
            present = [anchor for anchor in BOOK.anchors() if anchor in line]
            assert BOOK.matching(line, anchors=present) == BOOK.matching(line) or [
                found.id for found, _ in BOOK.matching(line, anchors=present)
            ] == [found.id for found, _ in BOOK.matching(line)]


@given(st.lists(st.one_of(WORDS, st.text(max_size=40)), max_size=8).map(" ".join))
def test_what_a_regex_finds_holds_an_anchor_of_its_signature(line: str) -> None:
    for one in BOOK.every[::5]:
        if one.pattern.search(line):
            assert any(anchor in line for anchor in one.anchors)


def test_a_head_in_our_form_and_in_free_yaml_says_the_same(tmp_path: Path) -> None:
    [quick] = book_of(tmp_path, ENTRY).every
    free = ENTRY.replace("kind: [plog]", "kind:\n    - plog").replace('["is burning"]', "['is burning']")
    [slow] = book_of(tmp_path, free).every
    assert (quick.kinds, quick.anchors, quick.codes, quick.regex) == (slow.kinds, slow.anchors, slow.codes, slow.regex)
    assert quick.codes == ("507015", "EI0006")
    assert quick.pattern.search("card is burning's end")


def test_a_sound_signature_has_no_complaints(tmp_path: Path) -> None:
    assert complaints(tmp_path, ENTRY) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('["is burning"]', '["is melting"]', "without any of its anchors"),
        ('["is burning"]', '["is"]', "shorter than 4"),
        ("is burning(", "is (?:burning|cold)(", "without any of its anchors"),
        ("\\w{1,20}", "\\w+", "any number"),
        ("(?P<what>\\w{1,20})", "(?P<what>(?:\\w{1,20}){1,20})", "repetition within"),
        ("is burning(", "(?i:is burning)(", "ignores case"),
        ('"is cold", "burning"', '"is cold", "it is burning"', "must not match"),
        ('"card is burning", ', "", "1 samples that must match"),
        ('zh: "着火"', 'fr: "feu"', "title is wanted in en and zh"),
        ("layer: hardware", "layer: kitchen", "layer is one of"),
        ("role: root", "role: hero", "role is one of"),
        ("kind: [plog]", "kind: [diary]", "kind is one of"),
        ('codes: ["507015", EI0006]', "explains: [nothing.known]", "nothing.known"),
        ("confidence: vendor-doc", "confidence: rumour", "confidence is rumour"),
        ('remedy:\n    - text: {en: "Leave", zh: "离开"}', "remedy: [no-such-step]", "no step no-such-step"),
    ],
)
def test_the_lint_refuses_a_signature_that_is_not_fit(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert old in ENTRY
    found = complaints(tmp_path, ENTRY.replace(old, new))
    assert any(complaint in one for one in found), found


def test_a_regex_that_is_slow_on_hostile_lines_is_refused() -> None:
    assert slowest(r"a{0,300}a{0,20}b burning", ["aab burning"]) > SECONDS


@pytest.mark.parametrize(
    "text",
    [
        ENTRY.replace("  layer: hardware\n", ""),
        ENTRY.replace("  layer: hardware\n", "  colour: red\n"),
        ENTRY.replace("is burning(", "is burning(("),
        ENTRY + ENTRY,
        "- [a, list]\n",
        "- id: x.y\n  kind: [\n",
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(RuleError, match=r"fire\.yaml"):
        book_of(tmp_path, text).every[0].checked()


@pytest.mark.parametrize(
    ("regex", "anchors", "holds"),
    [
        (r"device [Ll]ost (?:now|then)", ["ost now", "ost then"], True),
        (r"device [Ll]ost (?:now|then)", ["ost now"], False),
        (r"(?:one |two )?three", ["three"], True),
        (r"a{2}bcd", ["aabcd"], True),
        (r"abc.{0,9}def", ["abcdef"], False),
        (r"(?!abcd)efgh", ["abcd"], False),
        (r"abcd|efgh", ["abcd"], False),
        (r"err\[(?P<code>\d{4})\]: lost", ["]: lost"], True),
    ],
)
def test_what_a_regex_implies_is_known(regex: str, anchors: list[str], holds: bool) -> None:
    assert implied(regex, anchors) is holds


def test_repetition_without_end_is_found_wherever_it_hides() -> None:
    assert endless(r"abc(?:d|(?=e+))f")
    assert endless(r"(?:ab{1,3}){1,9}")
    assert not endless(r"(?:ab{1,3})?c{0,300}")
    assert alternatives(r"ab(?:c|d)?") == [["ab"], ["abc"], ["abd"]]
