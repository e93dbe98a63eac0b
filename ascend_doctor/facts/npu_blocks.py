"""Blocks of ``key : value`` that ``npu-smi info -t TYPE`` prints, one or more for each chip of a card.

Sources: https://github.com/hicann/driver (Ascend_950_npu-smi); https://github.com/Ascend/mind-cluster, docs, faultdiag,
collecting logs; tests/captures/npu-smi-details. A chip's id stands before its values or behind them, a card's own
controller (mcu) has a block too, a 950 prints one block without a chip id; pasted ones are squeezed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ascend_doctor.facts.npu_cells import NOTHING, is_count
from ascend_doctor.host import Missing, Output, Reason, decoded

Block = Mapping[str, str]

NO_LINE = Missing(Reason.UNSUPPORTED, "npu-smi prints no such line for this chip")
CONTROLLER = "mcu"
_PAIR = re.compile(r"\s*([A-Za-z][^:\n]{0,59}?)(?: ?\([^():\n]{1,12}\))?\s*:\s*(.*)")
_OF_CARD = ("npu id", "chip count")


def text_of(output: Output) -> str:
    """npu-smi answers on either stream."""
    return f"{decoded(output.stdout)}\n{decoded(output.stderr)}"


def blocks(text: str) -> tuple[Block, ...]:
    """Keys in small letters without their unit. A blank line, a key that is there already or the mcu begins a block."""
    found: list[dict[str, str]] = [{}]
    for line in text.split("\n"):
        match = _PAIR.fullmatch(line.rstrip())
        if not match:
            if not line.strip():
                found.append({})
            continue
        key, value = " ".join(match[1].lower().split()), match[2].strip()
        if key in found[-1] or (key, value.lower()) == ("chip name", CONTROLLER):
            found.append({})
        found[-1][key] = value
    return tuple(block for block in found if block)


def card(text: str) -> Block | Missing:
    """What is said of the card as a whole: all blocks in one, a key's first value counting."""
    whole: dict[str, str] = {}
    for block in reversed(blocks(text)):
        whole.update(block)
    return whole or refusal(text)


def chip(text: str, chip_id: int | Missing) -> Block | Missing:
    """The block of one chip; the only one where none has a chip id."""
    found = [block for block in blocks(text) if any(key not in (*_OF_CARD, "chip id") for key in block)]
    found = [block for block in found if not _is_controller(block)]
    if not found:
        return refusal(text)
    for block in found:
        if isinstance(chip_id, int) and block.get("chip id") == str(chip_id):
            return block
    if len(found) == 1 and "chip id" not in found[0]:
        return found[0]
    return Missing(Reason.FAILED, f"npu-smi printed no block of chip {_shown(chip_id)}")


def controller(text: str) -> Block | Missing:
    """The block of the card's own controller."""
    return next(filter(_is_controller, blocks(text)), NO_LINE)


def refusal(text: str) -> Missing:
    """Why a text has nothing in it: the chip does not support it, or npu-smi failed."""
    line = next((line.strip() for line in text.split("\n") if line.strip()), "npu-smi printed nothing")
    return Missing(Reason.UNSUPPORTED if "not support" in line.lower() else Reason.FAILED, line[:200])


def word(block: Block | Missing, key: str) -> str | Missing:
    if isinstance(block, Missing):
        return block
    text = block.get(key)
    if text is None:
        return NO_LINE
    return Missing(Reason.UNSUPPORTED, text or "blank") if text in NOTHING else text


def whole_number(block: Block | Missing, key: str) -> int | Missing:
    text = word(block, key)
    if isinstance(text, Missing):
        return text
    return int(text) if is_count(text) else Missing(Reason.FAILED, f"not understood: {text[:40]}")


def number(block: Block | Missing, key: str) -> float | Missing:
    text = word(block, key)
    if isinstance(text, Missing):
        return text
    if not re.fullmatch(r"-?\d{1,9}(?:\.\d{1,6})?", text, re.ASCII):
        return Missing(Reason.FAILED, f"not understood: {text[:40]}")
    return float(text)


def _is_controller(block: Block) -> bool:
    return block.get("chip name", "").lower() == CONTROLLER


def _shown(chip_id: int | Missing) -> str:
    return "?" if isinstance(chip_id, Missing) else str(chip_id)
