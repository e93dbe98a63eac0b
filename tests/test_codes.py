"""Error codes: every spelling that logs use finds its code, and a look-up stays small."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.cli.explain import command
from ascend_doctor.engine.lint_codes import LARGEST, lint
from ascend_doctor.knowledge import codes, signatures
from ascend_doctor.knowledge.codes import FAMILIES, spelled
from ascend_doctor.knowledge.reading import RuleError
from ascend_doctor.report.explain_code import hidden_by

RULES = [Path(__file__).parents[1] / "rules"]
CODES = codes.load(RULES)


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ("507015", "507015", "ACL_ERROR_RT_AICORE_EXCEPTION"),
        ("runtime result = 507033.", "507033", "ACL_ERROR_RT_DEV_SETUP_ERROR"),
        ("507001", "507001", "ACL_ERROR_RT_TS_ERROR"),  # not "invalid value", as some notes say
        ("0x7020010", "0x7020010", "RT_ERROR_DRV_ERR"),  # its leading zero is dropped
        ("0x07020010", "0x7020010", "RT_ERROR_DRV_ERR"),
        ("117571600", "0x7020010", "RT_ERROR_DRV_ERR"),  # the same in decimal
        ("InnerCode=0x711000e", "0x711000e", "RT_ERROR_MEMORY_ALLOCATION"),
        ("retCode=0x31", "retCode:0x31", "TS_ERROR_VECTOR_CORE_EXCEPTION"),  # small: the task scheduler's
        ("error code=0x26", "retCode:0x26", "TS_ERROR_AICORE_EXCEPTION"),
        ("retCode:0x20b", "retCode:0x20b", "TS_ERROR_SDMA_ERROR"),
        ("retCode=0x7020010", "0x7020010", "RT_ERROR_DRV_ERR"),  # large: the runtime's
        ("drvRetCode=17", "drvRetCode:17", "DRV_ERROR_IOCRL_FAIL"),
        ("drv_ret_code=33", "drvRetCode:33", "DRV_ERROR_BUS_DOWN"),
        ("errNo[0x0000000005000004]", "hccl:4", "HCCL_E_INTERNAL"),
        ("0x0000000005010009", "hccl:9", "HCCL_E_TIMEOUT"),
        ("call trace: hcclRet -> 9", "hccl:9", "HCCL_E_TIMEOUT"),
        ("ret[7]", "hccl:7", "HCCL_E_UNAVAIL"),
        ("EI0006", "EI0006", "Communication_Error_Get_Socket"),
        ("Communication_Error_Get_Socket(EI0006): Getting", "EI0006", "Communication_Error_Get_Socket"),
        ("ez9999", "EZ9999", "Inner_Error"),
        ("E19999: Inner Error!", "E19999", "Inner_Error"),
        ("ERR00100 PTA call acl api failed", "ERR00100", "PTA call acl api failed"),
        ("0x80e01801", "0x80E01801", "HBM"),
        ("80E01801", "0x80E01801", "HBM"),
        ("event_id:  [0x80E18400]", "0x80E18400", "HBM"),
        ("0xb4060007", "0xB4060007", "TS"),
        ("40f84e00", "0x40F84E00", "OS"),
        ("ret is -8020", "dcmi:-8020", "DCMI_ERR_CODE_RESOURCE_OCCUPIED"),
        ("-8005", "dcmi:-8005", "DCMI_ERR_CODE_INNER_ERR"),
        ("ACL_ERROR_RT_TS_ERROR", "507001", "ACL_ERROR_RT_TS_ERROR"),
        ("HCCL_E_TIMEOUT", "hccl:9", "HCCL_E_TIMEOUT"),
        ("[0x00f103b0,155907,na,na]", "[0x00f103b0,155907,na,na]", "Separate"),
    ],
)
def test_every_spelling_finds_its_code(text: str, code: str, name: str) -> None:
    found = CODES.of(text)
    assert found is not None
    assert (found.code, found.name) == (code, name)
    assert set(found.meaning) == {"en", "zh"}
    assert CODES.of(found.code) == found  # what we print, we also read


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ERR00100", [("00", "PTA"), ("100", "ACL call failed")]),
        ("ERR02011", [("02", "DIST"), ("011", "timeout")]),
        ("0x80E18008", [("0x70", "HBM"), ("0xC0", "hardware error (RAS)"), ("0x8", "multi-bit ECC")]),
        ("0x80FA4E00", [("0x7D", "TS"), ("0x27", "heartbeat"), ("0x0", "")]),
        ("A419321C", [("0xC", "LPM")]),
        ("107002", [("1", "the caller or its environment")]),
        ("EJ0001", [("EJ", "HCCP")]),
    ],
)
def test_the_fields_of_a_code_are_decoded(text: str, parts: list[tuple[str, str]]) -> None:
    found = CODES.explained(text)
    assert found is not None
    assert [(part.value, part.meaning.get("en", "")) for part in found.parts] == parts


def test_what_is_not_listed_is_decoded_only_when_asked_for() -> None:
    assert CODES.of("0x80E1802A") is None
    found = CODES.explained("0x80E1802A")
    assert found is not None
    assert (found.name, found.parts[0].meaning["en"]) == ("", "HBM")


@pytest.mark.parametrize("text", ["", "foo", "9", "123", "999999", "numa.free-memory", "0x", "2025-08-05", "v8.2.RC1"])
def test_what_is_no_code_is_none(text: str) -> None:
    assert CODES.of(text) is None


def test_all_listed_codes_are_found_by_their_own_spelling() -> None:
    count = 0
    for family in FAMILIES:
        for code in CODES.every(family):
            known = CODES.listed(family, code)
            assert known is not None, (family, code)
            again = CODES.of(known.code)
            assert again is not None, known.code
            assert again.code == known.code
            count += 1
    assert count >= 1_500


def test_a_lookup_reads_one_small_file() -> None:
    assert list(lint(RULES)) == []
    sizes = {p.name: p.stat().st_size for p in (RULES[0] / "codes").glob("*.yaml") if p.name.split(".")[0] in FAMILIES}
    assert max(sizes.values()) <= LARGEST


def test_an_inner_code_says_what_callers_see() -> None:
    found = CODES.of("0x711000e")
    assert found is not None
    assert found.surfaces_as == "207001"


def test_a_code_that_hides_others_names_them() -> None:
    book = signatures.load(RULES)
    hidden = {one.cause for one in hidden_by("507011", book)}
    assert {"vector-core-exception", "aicore-exception"} <= hidden


def test_a_users_folder_adds_codes_and_wins(tmp_path: Path) -> None:
    (tmp_path / "codes").mkdir()
    (tmp_path / "codes" / "acl.900.yaml").write_text(
        "family: acl\nlayer: runtime\nwhat: {en: ours}\nsources:\n"
        "  s1: {title: t, url: '', confidence: field-report}\nbecause: {}\nentries:\n"
        '  "500999": {name: "OURS", role: root, source: s1, en: "mine"}\n'
    )
    (tmp_path / "codes" / "acl.500.yaml").write_text((tmp_path / "codes" / "acl.900.yaml").read_text())
    found = codes.load([*RULES, tmp_path]).of("500999")
    assert found is not None
    assert found.name == "OURS"
    assert codes.load([*RULES, tmp_path]).of("500001") is not None


@pytest.mark.parametrize("entry", ['  "500999": {name: [', '  "500999": {name: x, source: nowhere}'])
def test_a_broken_entry_names_its_file(tmp_path: Path, entry: str) -> None:
    (tmp_path / "codes").mkdir()
    (tmp_path / "codes" / "acl.500.yaml").write_text(f"family: acl\nentries:\n{entry}\n")
    with pytest.raises(RuleError, match=r"acl\.500\.yaml"):
        codes.load([tmp_path]).of("500999")


@given(st.text(max_size=200))
def test_any_text_gives_a_code_or_none(text: str) -> None:
    for family, code in spelled(text):
        assert family
        assert code
    assert CODES.explained(text) is None or CODES.explained(text) is not None


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("507015", "AI Core"),
        ("EI0006", "often behind it"),
        ("0x80E01801", "health event"),
        ("0x7020010", "507899"),
        ("ERR00100", "PTA"),
        ("retCode=0x31", "task scheduler"),
        ("hccl.socket-timeout", "Collect debug and run plog"),
    ],
)
def test_explain_tells_of_codes_and_signatures(word: str, said: str) -> None:
    result = CliRunner().invoke(command, [word, "--lang", "en"])
    assert result.exit_code == 0, result.output
    assert said in result.output


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_word_of_the_page_is_in_both_languages(lang: str) -> None:
    result = CliRunner().invoke(command, ["507033", "--lang", lang])
    assert result.exit_code == 0
    assert ("处理办法" in result.output) is (lang == "zh")
