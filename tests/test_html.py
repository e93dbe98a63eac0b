"""The HTML report: one file, safe against what hosts say, the same without script and without network."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hosts import host
from log_runs import run_of_texts

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.rulebook import rulebook
from ascend_doctor.engine.run import Asked, Run, preflight, run_as_json
from ascend_doctor.host import Host
from ascend_doctor.host.snapshot import open_snapshot
from ascend_doctor.paths import data_folder
from ascend_doctor.report.html import page

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}\u202e</pre></script>"


def run_of(asked: Host) -> Run:
    return preflight(asked, Asked(load_checks([data_folder("checks")]), rulebook()))


def example() -> Run:
    return run_of(open_snapshot(data_folder("reports") / "example"))


class Tags(HTMLParser):
    """Every element with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_loads_nothing_and_runs_only_what_its_policy_names(lang: str) -> None:
    text = page(example(), lang)
    tags = Tags(text).found
    assert not [tag for tag, _ in tags if tag in ("link", "img", "iframe", "object", "embed", "base", "form")]
    assert not [a for _, a in tags if "src" in a or "style" in a or any(name.startswith("on") for name in a)]
    policy = next(a["content"] for tag, a in tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_what_a_host_says_is_text() -> None:
    asked = host("a2-healthy", set={"env": {"LD_LIBRARY_PATH": f"/x/{HOSTILE}"}})
    text = page(run_of(asked), "en")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert len(re.findall("<script", text)) == 2


def test_what_a_log_says_is_text(tmp_path: Path) -> None:
    line = f"[ERROR] HCCL(7,x):2026-01-01-00:00:01.000.001 [a.cc:1]7 {HOSTILE}\n"
    run = run_of_texts(
        tmp_path, {"<img src=x>.log": line + line.replace(":01.000", ":02.000").replace("[a.cc:1]", "[b]")}
    )
    text = page(run, "en")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert len(re.findall("<script", text)) == 2
    assert not [a for _, a in Tags(text).found if "style" in a or any(name.startswith("on") for name in a)]


def test_the_page_carries_the_run_for_programs() -> None:
    run = example()
    found = re.search(r'<script type="application/json" id="run">(.*?)</script>', page(run, "en"), re.DOTALL)
    assert found
    assert json.loads(found[1]) == json.loads(json.dumps(run_as_json(run)))


@pytest.fixture
def browser() -> Any:
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra `browser` is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.mark.browser
@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_in_a_browser(browser: Any, tmp_path: Path, script: bool, width: int) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(example(), "en"), encoding="utf-8")
    tab = browser.new_page(java_script_enabled=script, viewport={"width": width, "height": 900})
    asked: list[str] = []
    said: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(file.as_uri())
    assert asked == [file.as_uri()]
    assert said == []
    assert tab.locator("h1").inner_text().strip().startswith("Not fit to deploy")
    assert tab.locator("article.finding.error").count() >= 2
    if script:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.locator("pre.command button").count() > 3
