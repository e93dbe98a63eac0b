"""The HTML report: one file, safe against what hosts say, the same without script and without network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hosts import host
from log_runs import run_of_texts
from report_runs import HOSTILE, crowded, example, judged, logs, many_logs, of_host, plain, with_findings

from ascend_doctor.engine.findings import Evidence, Finding, WaiverUsed
from ascend_doctor.engine.run import Run
from ascend_doctor.knowledge.reading import Source
from ascend_doctor.paths import data_folder
from ascend_doctor.report import embedding
from ascend_doctor.report.html import page
from ascend_doctor.report.stored import run_of_bytes

PAGES = {
    "example": example,
    "healthy": lambda: of_host("a2-healthy"),
    "crowded": crowded,
    "logs": logs,
    "no npu-smi": lambda: of_host("a2-npu-smi-hangs"),
    "no hardware": lambda: of_host("bare-linux"),
}


@cache
def shown(name: str, lang: str = "en") -> str:
    return page(PAGES[name](), lang)


TEMPLATES = sorted(data_folder("reports").glob("*.j2"))


class Tags(HTMLParser):
    """Every element with its attributes, and the texts between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def embedded(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="run">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def section(text: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', text, re.DOTALL)
    return found[0] if found else ""


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_loads_nothing_and_runs_only_what_its_policy_names(name: str, lang: str) -> None:
    tags = Tags(shown(name, lang)).found
    assert not [tag for tag, _ in tags if tag in ("link", "img", "iframe", "object", "embed", "base", "form")]
    assert not [a for _, a in tags if "src" in a or "style" in a or any(key.startswith("on") for key in a)]


def test_the_policy_names_the_hashes_of_style_and_script_and_nothing_else() -> None:
    text = shown("example")
    policy = next(a["content"] or "" for tag, a in Tags(text).found if a.get("http-equiv"))
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (*styles, *scripts)]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert re.sub(r"'sha256-[^']+'", "HASH", policy) == (
        "default-src 'none'; style-src HASH HASH; script-src HASH; img-src data:; base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("name", PAGES)
def test_the_same_run_gives_the_same_bytes(name: str) -> None:
    assert page(PAGES[name](), "en") == shown(name)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_carries_the_run_for_programs_but_for_the_evidence_of_what_passed(name: str) -> None:
    document = plain(PAGES[name]())
    for finding in document["findings"]:
        finding["evidence"] = [] if finding["verdict"] == "pass" else finding["evidence"]
    assert embedded(shown(name)) == document


@pytest.mark.parametrize("name", PAGES)
def test_links_inside_the_page_lead_somewhere_and_names_are_given_once(name: str) -> None:
    tags = Tags(shown(name)).found
    names = [a["id"] for _, a in tags if "id" in a]
    assert len(names) == len(set(names))
    wanted = {a["href"][1:] for _, a in tags if (a.get("href") or "").startswith("#")}  # type: ignore[index]
    assert wanted <= set(names)


@pytest.mark.parametrize("name", PAGES)
def test_each_finding_is_in_the_page_when_it_is_loaded(name: str) -> None:
    texts = set(Tags(shown(name)).texts)
    for finding in PAGES[name]().findings:
        assert finding.check in texts
        assert finding.subject in texts or finding.subject == "host"


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_number_of_texts(name: str) -> None:
    tags = Tags(shown(name)).found
    inside = [a.get("lang") for tag, a in tags if tag in ("span", "tspan")]
    assert inside.count("en") == inside.count("zh-CN") > 40


def test_without_style_only_the_chosen_language_is_seen() -> None:
    tags = Tags(shown("example", "zh")).found
    assert {"hidden" in a for tag, a in tags if tag == "span" and a.get("lang") == "en"} == {True}
    assert {"hidden" in a for tag, a in tags if tag == "span" and a.get("lang") == "zh-CN"} == {False}
    assert next(a for tag, a in tags if tag == "html")["lang"] == "zh-CN"


def test_headings_begin_with_one_h1_and_leave_no_level_out() -> None:
    levels = [int(tag[1]) for tag, _ in Tags(shown("example")).found if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:]))


def test_what_a_host_says_is_text() -> None:
    asked = host("a2-healthy", set={"env": {"LD_LIBRARY_PATH": f"/x/{HOSTILE}"}})
    text = page(judged(asked), "en")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert len(re.findall("<script", text)) == 2
    assert "/x/" in text


def test_control_and_direction_characters_are_shown_and_not_obeyed() -> None:
    texts = Tags(page(with_hostile_finding(), "en").split('<script type="application/json"')[0]).texts
    assert not [one for one in texts if re.search("[\u202a-\u202e\u2066-\u2069\x1b]", one)]
    assert any("\\x202e" in one for one in texts)


TEXTS = (HOSTILE, "x" * 10_000, "\u202e" * 300, "</style><script>alert(1)</script>", "{{ 7*7 }}")


def with_hostile_finding(word: str = "error", text: str = HOSTILE) -> Run:
    run = example()
    first = run.findings[0]
    both = {"en": text, "zh": text}
    bad = replace(
        first,
        severity=word,
        subject=text,
        title=both,
        found=both,
        expected=both,
        why=both,
        evidence=(Evidence(text, text),),
        remedy=tuple(replace(step, text=both, command=text, undo=text) for step in first.remedy),
        verify=text,
        sources=(Source(text, "javascript:alert(1)", text),),
        waiver=WaiverUsed(text, text, "2026-12-01", 3),
    )
    return replace(run, findings=(bad, *run.findings[1:]), host={**run.host, "hostname": text})


@pytest.mark.parametrize("word", ["error", "catastrophic"])
@pytest.mark.parametrize("text", TEXTS)
def test_any_text_in_any_place_of_a_finding_stays_text(word: str, text: str) -> None:
    made = page(with_hostile_finding(word, text), "en")
    tags = Tags(made).found
    assert len([tag for tag, _ in tags if tag == "script"]) == 2
    assert len([tag for tag, _ in tags if tag == "style"]) == 2
    assert not [a for _, a in tags if (a.get("href") or "").startswith("javascript:")]
    assert not [a for _, a in tags if "style" in a or any(key.startswith("on") for key in a)]
    assert "{{" not in text or "49" not in section(made, "findings")


def test_a_machine_from_anywhere_breaks_no_picture() -> None:
    odd: list[Any] = [None, "x", 3, [None, "x", {}], {"npu": "0"}, {"npu": 1, "holders": 3, "link": [], "nodes": "4"}]
    for value in odd:
        machine = {"npus": [value], "nodes": [value, {"node": 0}], "fabric": [value], "versions": [value, value]}
        assert "<h1" in page(replace(example(), machine=machine), "en")
        assert "<h1" in page(replace(example(), machine={"npus": value, "nodes": value}), "en")


def test_what_a_log_says_is_text(tmp_path: Path) -> None:
    line = f"[ERROR] HCCL(7,x):2026-01-01-00:00:01.000.001 [a.cc:1]7 {HOSTILE}\n".replace("\x1b[31m", "")
    run = run_of_texts(
        tmp_path, {"<img src=x>.log": line + line.replace(":01.000", ":02.000").replace("[a.cc:1]", "[b]")}
    )
    text = page(run, "en")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert len(re.findall("<script", text)) == 2
    assert not [a for _, a in Tags(text).found if "style" in a or any(name.startswith("on") for name in a)]


def test_a_typical_page_is_small() -> None:
    assert len(shown("example").encode()) < 250_000
    assert len(shown("logs").encode()) < 300_000


def test_style_and_script_are_small() -> None:
    size = sum((data_folder("reports") / name).stat().st_size for name in ("report.css", "report.js"))
    assert size < 40_000


def test_five_thousand_incidents_fit(tmp_path: Path) -> None:
    assert len(page(many_logs(tmp_path), "en").encode()) <= embedding.LIMIT


def test_a_page_never_grows_over_its_limit_and_says_what_was_cut() -> None:
    long = Evidence("file:/var/log/x", "line of a log\n" * 40_000)
    findings = [replace(f, evidence=(long,)) for f in crowded().findings[:200]]
    text = page(with_findings(crowded(), findings), "en")
    assert len(text.encode()) <= embedding.LIMIT
    assert re.search(r"[\d]+ characters were left out", text)
    assert "evidence-cut" in [note["kind"] for note in embedded(text)["notes"]]


def test_a_cut_page_gives_itself_again() -> None:
    long = Evidence("file:/var/log/x", "line of a log\n" * 200_000)
    text = page(with_findings(example(), [replace(f, evidence=(long,)) for f in example().findings[:20]]), "en")
    assert page(run_of_bytes(text.encode()), "en") == text


def test_no_template_marks_text_as_safe() -> None:
    assert not [path.name for path in TEMPLATES if re.search(r"\|\s*safe|autoescape", path.read_text(encoding="utf-8"))]


def test_only_web_addresses_become_links() -> None:
    found = [a["href"] or "" for tag, a in Tags(shown("crowded")).found if tag == "a"]
    assert {href.partition(":")[0] for href in found if not href.startswith("#")} <= {"http", "https"}


def test_unknown_findings_under_another_are_said_to_be_unjudged() -> None:
    run = of_host("a2-npu-smi-hangs")
    number = sum(finding.verdict == "unknown" for finding in run.findings)
    text = section(shown("no npu-smi"), "unknown")
    assert number > 5
    assert f"{number} checks could not be judged because of another finding" in text
    assert "everything that was asked could be judged" not in shown("no npu-smi")


def test_waivers_are_listed_with_the_days_that_are_left() -> None:
    run = example()
    waived = replace(run.findings[0], verdict="waived", waiver=WaiverUsed("known", "ops", "2026-12-12", 12))
    text = section(page(with_findings(run, [waived, *run.findings[1:]]), "en"), "waivers")
    assert "12 days left" in text
    assert "剩余 12 天" in text
    assert "ops" in text


def finding(check: str, verdict: str) -> Finding:
    return Finding(check, "host", verdict, "error" if verdict == "fail" else None, "driver", {"en": "good", "zh": "好"})


def test_a_text_of_one_language_is_shown_in_both() -> None:
    only = replace(finding("user.own", "fail"), title={"zh": "仅中文"})
    assert "仅中文" in section(page(with_findings(example(), [only]), "en"), "findings")
