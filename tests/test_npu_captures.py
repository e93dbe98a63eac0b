"""The captures of ``npu-smi info`` that people published, and each of them as it may have been pasted."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_doctor.facts.npu import Npu, npu_smi_info
from ascend_doctor.host import Missing

CAPTURES = Path(__file__).parent / "captures" / "npu-smi"
LATER = CAPTURES.with_name("npu-smi-later")
NAMES = sorted(path.name[: -len(".txt")] for path in CAPTURES.glob("*.txt"))
TEXTS = {name: (CAPTURES / f"{name}.txt").read_bytes() for name in NAMES}
TABLES = [name for name in NAMES if not name.startswith("fail-")]
FAILURES = [name for name in NAMES if name.startswith("fail-")]


def plain(value: Any) -> Any:
    """As JSON shows it: a Missing is null."""
    if isinstance(value, Missing):
        return None
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return [plain(part) for part in value] if isinstance(value, tuple) else value


def read(data: bytes) -> Npu:
    npu = npu_smi_info(data).value
    assert isinstance(npu, Npu)
    return npu


def expected(name: str) -> dict[str, Any]:
    wanted: dict[str, Any] = json.loads((CAPTURES / f"{name}.expected.json").read_text(encoding="utf-8"))
    del wanted["layout"], wanted["complete"]  # they describe the capture, not the host
    if wanted["status"] == "error":
        wanted.update(chips=None, processes=None, idle_npus=None)  # npu-smi failed: not known, so not empty
    return wanted


def test_there_are_thirty_five_captures() -> None:
    assert len(NAMES) == 35


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_reads_as_it_was_written_down(name: str) -> None:
    found, wanted = plain(read(TEXTS[name])), expected(name)
    assert {key: json.dumps(found[key]) for key in wanted} == {key: json.dumps(wanted[key]) for key in wanted}


@pytest.mark.parametrize("path", sorted(LATER.glob("*.txt")), ids=lambda path: path.stem)
def test_a_capture_found_later_reads_as_it_was_written_down(path: Path) -> None:
    wanted = json.loads((LATER / f"{path.stem}.expected.json").read_text(encoding="utf-8"))
    found = plain(read(path.read_bytes()))
    assert {key: found[key] for key in wanted} == wanted


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_no_error_and_each_chip_is_shown_by_its_lines(name: str) -> None:
    shown = npu_smi_info(TEXTS[name])
    npu = shown.value
    assert isinstance(npu, Npu)
    assert isinstance(npu.error, Missing)
    assert npu.error.reason.value == "absent"
    assert isinstance(npu.chips, tuple)
    for n, chip in enumerate(npu.chips):
        first, second = shown.texts[f"chips[{n}]"].split("\n")
        assert f" {chip.npu_id} " in first
        assert str(chip.health) in first
        assert chip.bus_id in second if isinstance(chip.bus_id, str) else " NA " in second


def crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def narrow(text: str) -> str:
    """Every run of blanks is one: a page that squeezed them."""
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def wide(text: str) -> str:
    return text.replace("|", "   |     ").replace("+", "===+===")


def indented(text: str) -> str:
    return "\n".join("        " + line for line in text.split("\n"))


def quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


def logged(text: str) -> str:
    return "\n".join(f"2026-11-30 09:00:0{n % 10},123 - INFO - {line}" for n, line in enumerate(text.split("\n")))


def logged_with_bars(text: str) -> str:
    return "\n".join(f"2026-11-30 09:00:00 | INFO | probe:42 | {line}" for line in text.split("\n"))


def fenced(text: str) -> str:
    return f"Here is my machine:\n\n```shell\n(base) root@node-a:/workspace# npu-smi info\n{text}\n```\nThanks!\n"


def coloured(text: str) -> str:
    return text.replace("OK ", "\x1b[32mOK\x1b[0m ").replace("Alarm ", "\x1b[1;31mAlarm\x1b[0m ")


def spaced(text: str) -> str:
    return text.replace("\n", "\n\n")


def without_rules(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.startswith("+"))


def html(text: str) -> str:
    return text.replace("  ", "&nbsp; ")


def boxed(text: str) -> str:
    return text.replace("|", "│").replace("Version: ", "Version：")


def unbroken_blanks(text: str) -> str:
    return text.replace("  ", "\u00a0 ")


def warned(text: str) -> str:
    before = "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\n"
    after = "[WARNING]The driver package may not be completely installed, which may cause function abnormal.\n"
    return f"{before}{text}{after}"


def interrupted(text: str) -> str:
    """Kernel messages on the same terminal."""
    return text.replace("\n", "\n[ 4242.123456] docker0: port 1(veth0) entered forwarding state\n")


def glued(text: str) -> str:
    return text.replace("Version: ", "Version:").replace(" / ", "/")


def in_chinese(text: str) -> str:
    return f"执行命令，正常回显NPU卡信息：\n{text}\n说明：以上为芯片信息。\n"


WAYS = (
    crlf,
    narrow,
    wide,
    indented,
    quoted,
    logged,
    logged_with_bars,
    fenced,
    coloured,
    spaced,
    html,
    boxed,
    unbroken_blanks,
    warned,
    interrupted,
    glued,
    in_chinese,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_paste_reads_as_the_original(way: Any) -> None:
    for name in TABLES:
        assert read(way(TEXTS[name].decode()).encode()) == read(TEXTS[name]), name


def test_rules_may_be_missing_where_each_chip_has_its_two_lines() -> None:
    for name in TABLES:
        assert read(without_rules(TEXTS[name].decode()).encode()) == read(TEXTS[name]), name


def test_other_encodings_read_alike() -> None:
    for name in TABLES:
        for encoding in ("utf-16", "gb18030", "utf-8-sig"):
            text = TEXTS[name].decode() if encoding == "utf-16" else in_chinese(TEXTS[name].decode())
            assert read(text.encode(encoding)) == read(TEXTS[name]), (name, encoding)


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_reads_alike_however_it_was_pasted(name: str) -> None:
    for way in (crlf, indented, quoted, logged, fenced, coloured, in_chinese):
        assert read(way(TEXTS[name].decode()).encode()).error == read(TEXTS[name]).error, way


def test_a_cut_text_gives_no_other_chip_and_no_other_process() -> None:
    """Cut at any byte: what is there equals the whole's; nothing is invented, nothing half-read."""
    dice = random.Random(7)
    for name in TABLES:
        data = TEXTS[name]
        whole = plain(read(data))
        ends = range(len(data)) if name in ("a3-910c-25.2.0-4chips-1proc", "a5-950pr-25.7.rc1-alarm") else ()
        for end in ends or dice.sample(range(len(data)), 40):
            part = plain(read(data[:end]))
            for key in ("chips", "processes", "idle_npus"):
                assert (part[key] or []) == whole[key][: len(part[key] or [])], (name, end, key)
            for key in ("tool_version", "driver_version"):
                assert part[key] in (None, whole[key]), (name, end, key)
            assert part["status"] == ("ok" if part["chips"] else "error"), (name, end)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TABLES), st.data())
def test_a_line_cut_in_the_middle_of_the_text_gives_no_other_chip(name: str, data: st.DataObject) -> None:
    lines = TEXTS[name].decode().split("\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at] = lines[at][: data.draw(st.integers(0, max(len(lines[at]) - 2, 0)))]
    whole, part = plain(read(TEXTS[name])), plain(read("\n".join(lines).encode()))
    for chip in part["chips"] or []:
        same = [c for c in whole["chips"] if c["npu_id"] == chip["npu_id"]]
        assert any(all(chip[key] in (None, c[key]) for key in chip) for c in same), (chip, at)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_a_failure_or_a_table(data: bytes) -> None:
    assert read(data).status in ("ok", "error")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.integers(0, 4000), st.binary(min_size=1, max_size=12))
def test_bytes_thrown_into_a_capture_never_break_the_reader(name: str, at: int, junk: bytes) -> None:
    assert read(TEXTS[name][:at] + junk + TEXTS[name][at:]).status in ("ok", "error")
