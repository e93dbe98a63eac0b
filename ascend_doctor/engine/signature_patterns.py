"""What a regular expression implies: the literals that are in every line it finds, and whether it can be slow.

A signature is looked for by its anchors, and only lines with one of them meet its regex. So an anchor that the regex
does not imply would lose lines; this module proves that it does. And a regex must be quick on any line, since lines
come from strangers: repetition is bounded and never nested, and the worst lines that we can think of are tried.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as nodes  # type: ignore[attr-defined]
    from re import _parser as sre_parse  # type: ignore[attr-defined]
else:
    import sre_constants as nodes
    import sre_parse

IGNORES_CASE = "a regex that ignores case implies no anchor; write [Ff]ail"
MOST_ALTERNATIVES = 512
LONGEST_REPEAT = 500
LINE = 8_192
"""Characters of the lines that a regex is tried on."""
SECONDS = 0.05
"""For one such line: a sound pattern takes about a hundredth of it."""


def alternatives(regex: str) -> list[list[str]]:
    """The ways a line can be found, each as the literal texts that it must hold. Raises re.error, or ValueError."""
    parsed = sre_parse.parse(regex)
    if parsed.state.flags & re.IGNORECASE:
        raise ValueError(IGNORES_CASE)
    return [[run for run in _runs(one) if run] for one in _sequences(parsed)]


def implied(regex: str, anchors: Sequence[str]) -> bool:
    """Whether one of the anchors is in every text that the regex finds."""
    return all(any(anchor in run for anchor in anchors for run in runs) for runs in alternatives(regex))


def endless(regex: str) -> str:
    """What of it may repeat without end or too often, "" where nothing does."""
    return next(_endless(sre_parse.parse(regex), 0), "")


def slowest(regex: str, samples: Sequence[str] = ()) -> float:
    """Seconds of the processor for the worst of the hostile lines."""
    pattern = re.compile(regex)
    worst = 0.0
    for line in hostile_lines(regex, samples):
        start = time.process_time()
        pattern.search(line)
        worst = max(worst, time.process_time() - start)
        if worst > SECONDS:
            break
    return worst


def hostile_lines(regex: str, samples: Sequence[str] = ()) -> Iterator[str]:
    """Lines that begin as the regex wants and never end so: its literals, and parts of its samples, over and over."""
    ways = alternatives(regex)[:8]
    pieces = (
        {run for runs in ways for run in runs} | {"".join(runs) for runs in ways} | {" ".join(runs) for runs in ways}
    )
    for sample in samples:
        pieces |= {sample, sample[: len(sample) * 2 // 3], sample[: len(sample) // 3], sample[len(sample) // 3 :]}
    for piece in sorted(pieces | {"0", "a", " ", "[", "(", ":", "0x", "1.", "a."}):
        if piece:
            yield (piece * (LINE // len(piece) + 1))[:LINE]
            yield piece + "0" * LINE
            yield piece + " " * LINE
            yield piece + "a" * LINE


def _sequences(parsed: Any) -> list[list[str | None]]:
    """Each alternative as characters, with None where anything may stand."""
    found: list[list[str | None]] = [[]]
    for op, value in parsed:
        found = _joined(found, _expanded(op, value))
    return found


def _expanded(op: Any, value: Any) -> list[list[str | None]]:
    if op is nodes.LITERAL:
        return [[chr(value)]]
    if op is nodes.AT:
        return [[]]
    if op is nodes.SUBPATTERN:
        if value[1] & re.IGNORECASE:
            raise ValueError(IGNORES_CASE)
        return _sequences(value[3])
    if op is nodes.BRANCH:
        return [one for branch in value[1] for one in _sequences(branch)]
    if op is nodes.IN:
        return [[chr(code)] for code in _few(value)] or [[None]]
    if op in (nodes.MAX_REPEAT, nodes.MIN_REPEAT):
        return _repeated(*value)
    if op in (nodes.ASSERT, nodes.ASSERT_NOT):
        return [[None]]
    return [[None]]


def _repeated(least: int, most: int, body: Any) -> list[list[str | None]]:
    once = _sequences(body)
    if (least, most) == (0, 1) and len(once) <= 8:
        return [[], *once]
    if least == 0:
        return [[None]]
    exact = _joined(once, once) if least == 2 and len(once) == 1 else once
    return exact if least == most and least <= 2 else [[*one, None] for one in once]


def _few(members: Any) -> list[int]:
    """The characters of a class of at most four, or none."""
    codes = [value for op, value in members if op is nodes.LITERAL]
    return codes if len(codes) == len(members) <= 4 else []


def _joined(heads: list[list[str | None]], tails: list[list[str | None]]) -> list[list[str | None]]:
    if len(heads) * len(tails) > MOST_ALTERNATIVES:
        return [[*head, None] for head in heads]
    return [[*head, *tail] for head in heads for tail in tails]


def _runs(characters: Sequence[str | None]) -> list[str]:
    runs = [""]
    for character in characters:
        if character is None:
            runs.append("")
        else:
            runs[-1] += character
    return runs


def _endless(parsed: Any, depth: int) -> Iterator[str]:
    for op, value in parsed:
        if op in (nodes.MAX_REPEAT, nodes.MIN_REPEAT):
            least, most, body = value
            if most is nodes.MAXREPEAT or most > LONGEST_REPEAT:
                yield f"a repetition of {least} to {'any number' if most is nodes.MAXREPEAT else most}"
            if most > 1 and depth:
                yield "a repetition within a repetition"
            yield from _endless(body, depth + (most > 1))
        elif op is nodes.SUBPATTERN:
            yield from _endless(value[3], depth)
        elif op is nodes.BRANCH:
            for branch in value[1]:
                yield from _endless(branch, depth)
        elif op in (nodes.ASSERT, nodes.ASSERT_NOT):
            yield from _endless(value[1], depth)
