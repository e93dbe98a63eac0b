from __future__ import annotations

import re
from pathlib import Path

import pytest
from hosts import host

from ascend_doctor.derive.env import fits
from ascend_doctor.facts import AREAS
from ascend_doctor.facts.env import NAMES
from ascend_doctor.host import Answer
from ascend_doctor.host.live import KnownEnv
from ascend_doctor.knowledge.environment import CONFLICTS, JUDGED, known_env, load
from ascend_doctor.knowledge.reading import RuleError, load_yaml
from ascend_doctor.paths import data_folder

RULES = [data_folder("rules")]
KNOWN = KnownEnv(*known_env(RULES))
ENVIRONMENT = load(RULES)
CATALOGUE = {name: ENVIRONMENT.of(name) for name in sorted(ENVIRONMENT.names())}
FORMS = load_yaml(data_folder("rules") / "environment" / "forms.yaml")
VARIABLES = [variable for variable in CATALOGUE.values() if variable]


def test_every_variable_that_is_named_may_be_read() -> None:
    assert not [name for name in {*NAMES, *CATALOGUE} if name not in KNOWN]


def test_every_variable_that_is_read_is_in_the_catalogue() -> None:
    assert not {*NAMES, *KNOWN.names} - set(CATALOGUE)


class AskedHost:
    """A host that keeps the names of the variables that were asked for."""

    def __init__(self, name: str) -> None:
        self._host, self.names = host(name), set[str]()

    def env(self, name: str) -> Answer[str]:
        self.names.add(name)
        return self._host.env(name)

    def __getattr__(self, name: str) -> object:
        return getattr(self._host, name)


@pytest.mark.parametrize("name", ["a2-healthy", "a2-container-healthy"])
def test_every_variable_that_facts_ask_for_is_known_to_the_rules(name: str) -> None:
    from importlib import import_module

    asked = AskedHost(name)
    for area in AREAS:
        import_module(f"ascend_doctor.facts.{area}").collect(asked)
    assert asked.names
    assert not {name for name in asked.names if name not in KNOWN}
    assert not asked.names - set(CATALOGUE)


@pytest.mark.parametrize(
    "name", ["ASCEND_API_TOKEN", "MINDIE_TLS_KEY", "MIES_PASSWORD", "VLLM_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY"]
)
def test_a_name_that_tells_of_a_secret_is_never_read(name: str) -> None:
    assert name not in KNOWN


@pytest.mark.parametrize("name", ["HOME", "USER", "SSH_CONNECTION", "HTTP_PROXY"])
def test_what_no_rule_names_is_not_read(name: str) -> None:
    assert name not in KNOWN


def test_a_variable_is_explained_in_both_languages_with_its_source() -> None:
    for variable in VARIABLES:
        texts = [variable.meaning, *variable.advice]
        keys = [variable.source, *(advice["source"] for advice in variable.advice)]
        sources = [ENVIRONMENT.source(key, variable.name) for key in keys]
        assert all(text["en"] and text["zh"] for text in texts), variable.name
        for source in sources:
            assert source.title, variable.name
            assert source.url.startswith("https://"), variable.name
            assert "{" not in source.url, variable.name


def test_the_form_of_a_value_can_be_told_and_judged() -> None:
    for variable in VARIABLES:
        values, name = variable.values, variable.name
        assert values.get("form", "text") in FORMS["forms"], name
        assert set(ENVIRONMENT.described(values)) == {"en", "zh"}, name
        if values.get("form") in JUDGED:
            assert not variable.default or fits(values, variable.default), name
            assert not fits(values, "no such value"), name
        if "pattern" in values:
            assert fits(values, values["such_as"]), name
        assert set(values.get("chips", {})) | set(variable.only_on) <= set(FORMS["chips"]), name


def test_what_fits_a_chip_fits_at_all() -> None:
    for variable in VARIABLES:
        for own in variable.values.get("chips", {}).values():
            chosen = {**variable.values, **own}
            ends = (str(chosen[end]) for end in ("min", "max") if end in chosen)
            assert all(fits(variable.values, value) for value in (*chosen.get("of", ()), *ends)), variable.name


def test_only_a_vendor_says_that_a_wrong_value_ends_a_program() -> None:
    for variable in VARIABLES:
        if variable.refused:
            assert ENVIRONMENT.source(variable.source, variable.name).confidence in ("vendor-doc", "vendor-file"), (
                variable.name
            )
            assert variable.values["form"] in JUDGED, variable.name


def test_the_catalogue_covers_every_family() -> None:
    families = {variable.family for variable in VARIABLES}
    assert families >= {"cann", "hccl", "torch-npu", "vllm-ascend", "mindie", "atb", "mindspore", "containers"}
    assert len(CATALOGUE) > 400


def test_only_the_variable_that_a_check_warns_of_has_no_reader() -> None:
    assert [variable.name for variable in VARIABLES if not variable.read_by] == ["ASCEND_MEM_SIZE"]


@pytest.mark.parametrize("conflict", list(ENVIRONMENT.conflicts(CATALOGUE)), ids=lambda c: "+".join(c.when))
def test_a_conflict_is_of_known_variables_and_says_what_is_wanted(conflict) -> None:  # type: ignore[no-untyped-def]
    assert set(conflict.when) <= set(CATALOGUE)
    assert set(conflict.chips) <= set(FORMS["chips"])
    assert conflict.severity in ("warning", "info")
    for text in (conflict.found, conflict.expected):
        assert text["en"]
        assert text["zh"]
    assert ENVIRONMENT.source(conflict.source, next(iter(conflict.when))).title
    for like in conflict.when.values():
        assert like is None or re.compile(like)


def test_every_conflict_is_found_by_the_variables_that_it_names() -> None:
    written = load_yaml(data_folder("rules") / "environment" / CONFLICTS)
    assert len(list(ENVIRONMENT.conflicts(CATALOGUE))) == len(written)
    assert not list(ENVIRONMENT.conflicts(["PATH"]))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("910B3", "a2"),
        ("910B4-1", "a2"),
        ("Ascend910", "a3"),
        ("910_9391", "a3"),
        ("910", "910"),
        ("910B", "910"),
        ("910ProA", "910"),
        ("310P3", "310p"),
        ("310B4", "310b"),
        ("310", "310"),
        ("Ascend950PR", "950"),
        ("H200", ""),
    ],
)
def test_a_chip_is_known_by_its_name(name: str, kind: str) -> None:
    assert ENVIRONMENT.chip(name) == kind


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("ASCEND_RT_VISIBLE_DEVICE", "ASCEND_RT_VISIBLE_DEVICES"),
        ("HCCL_BUFFERSIZE", "HCCL_BUFFSIZE"),
        ("HCCL_CONECT_TIMEOUT", "HCCL_CONNECT_TIMEOUT"),
        ("VLLM_ASCEND_ENABLE_QUANTUM", ""),
        ("ASCEND_SOMETHING_ELSE", ""),
        ("X", ""),
    ],
)
def test_a_name_is_likened_by_its_end(name: str, like: str) -> None:
    assert ENVIRONMENT.near(name) == like


def test_a_users_folder_adds_names_and_variables(tmp_path: Path) -> None:
    own = tmp_path / "environment"
    own.mkdir()
    (own / "known.yaml").write_text("names: [SITE_CLUSTER]\n")
    (own / "site.yaml").write_text(
        "- {name: SITE_CLUSTER, read_by: [site], meaning: {en: Its name},\n"
        "   source: {title: Site guide, url: '', confidence: field-report}}\n"
    )
    assert "SITE_CLUSTER" in KnownEnv(*known_env([*RULES, tmp_path]))
    assert "ASCEND_HOME_PATH" in KnownEnv(*known_env([*RULES, tmp_path]))
    found = load([*RULES, tmp_path]).of("SITE_CLUSTER")
    assert found is not None
    assert found.family == "site"


def test_a_users_entry_goes_before_ours(tmp_path: Path) -> None:
    own = tmp_path / "environment"
    own.mkdir()
    (own / "site.yaml").write_text(
        "- name: HCCL_BUFFSIZE\n  read_by: [hccl]\n  meaning: {en: Ours}\n"
        "  values: {form: integer, min: 200}\n  source: hccl\n"
    )
    found = load([*RULES, tmp_path]).of("HCCL_BUFFSIZE")
    assert found is not None
    assert found.values["min"] == 200
    assert load([*RULES, tmp_path]).source(found.source, found.name).title == "HCCL user guide: HCCL_BUFFSIZE"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("known.yaml", "names: ASCEND_HOME_PATH\n"),
        ("known.yaml", "- ASCEND_HOME_PATH\n"),
        ("known.yaml", "prefixes: ['']\n"),
        ("site.yaml", "- {read_by: [site]}\n"),
        ("site.yaml", "- {name: A, read_by: site, meaning: {en: a}, source: {}}\n"),
        ("site.yaml", "- {name: A, read_by: [site], meaning: {en: a}, source: {title: b, confidence: rumour}}\n"),
        ("site.yaml", "- name: A\n  read_by: [site\n"),
        ("site.yaml", "- name: A\n  read_by: [s]\n  meaning: {en: a}\n  values: 0 or 1\n  source: {}\n"),
    ],
)
def test_a_broken_rule_names_its_file(tmp_path: Path, file: str, text: str) -> None:
    own = tmp_path / "environment"
    own.mkdir()
    (own / file).write_text(text)
    with pytest.raises(RuleError, match=file):
        known_env([tmp_path]) if file == "known.yaml" else load([tmp_path]).of("A")


def test_a_source_that_no_file_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"A: sources\.yaml has no source no-such-source"):
        load([tmp_path]).source("no-such-source", "A")
