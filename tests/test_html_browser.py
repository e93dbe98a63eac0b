"""The HTML report in a real browser: accessible, still, whole without script, on paper and on a telephone."""

from __future__ import annotations

import io
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts import host
from report_runs import HOSTILE, crowded, example, judged, logs, many_logs, of_host, with_findings
from test_html import with_hostile_finding

from ascend_doctor.engine.run import Run
from ascend_doctor.report.html import page

pytestmark = pytest.mark.browser

WIDTHS = (360, 768, 1280)
LOOKS = (("en", "light"), ("zh", "dark"), ("en", "dark"), ("zh", "light"))
SLIM = ("example", "healthy", "no npu-smi", "held")
"""Pages that are examined with everything open: of what passed two of an area, as the rest is of one template."""

NAMES = ("example", "healthy", "crowded", "logs", "many logs", "no npu-smi")
OPEN_ALL = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
OVERFLOW = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra `browser` is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python", reason="the extra `browser` is not installed")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    runs: dict[str, Run] = {
        "example": example(),
        "healthy": of_host("a2-healthy"),
        "crowded": crowded(),
        "logs": logs(),
        "many logs": many_logs(folder / "logs"),
        "no npu-smi": of_host("a2-npu-smi-hangs"),
        "held": judged(host("a2-hbm-held")),
    }
    runs.update({f"{name}, few that passed": slim(runs[name]) for name in SLIM})
    return {name: _written(folder / f"{name}.html", run) for name, run in runs.items()}


def _written(file: Path, run: Run) -> Path:
    file.write_text(page(run, "en"), encoding="utf-8")
    return file


def slim(run: Run) -> Run:
    seen: Counter[tuple[str, str]] = Counter()
    kept = []
    for finding in run.findings:
        seen[finding.verdict, finding.layer] += 1
        if finding.verdict not in ("pass", "skip") or seen[finding.verdict, finding.layer] <= 2:
            kept.append(finding)
    return with_findings(run, kept)


class Watched:
    """A page that is being looked at: what it asked for and what it said."""

    def __init__(self, context: Any, file: Path) -> None:
        self.tab, self.asked, self.said = context.new_page(), [], []  # type: ignore[var-annotated]
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.tab.goto(file.as_uri())
        assert self.asked == [file.as_uri()]


@pytest.fixture
def watch(browser: Any) -> Iterator[Any]:
    contexts = []

    def opened(file: Path, **how: Any) -> Watched:
        contexts.append(browser.new_context(**how))
        return Watched(contexts[-1], file)

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", [*(f"{name}, few that passed" for name in SLIM), "logs", "crowded", "many logs"])
def test_no_accessibility_violation(name: str, files: dict[str, Path], watch: Any, axe: str) -> None:
    # axe needs a script of its own in the page, which the policy rightly refuses
    seen = watch(files[name], bypass_csp=True, viewport={"width": 1280, "height": 900})
    large = name in ("crowded", "many logs")
    if not large:
        seen.tab.evaluate(OPEN_ALL)
    seen.tab.evaluate(axe)
    for lang, scheme in LOOKS[: 2 if large else 4]:
        seen.tab.emulate_media(color_scheme=scheme)
        seen.tab.check(f"#lang-{lang}")
        found = seen.tab.evaluate("axe.run(document, {rules: {'target-size': {enabled: true}}})")["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == [], (lang, scheme)


@pytest.mark.parametrize(("name", "script"), [*((name, True) for name in NAMES), ("example", False), ("logs", False)])
def test_it_asks_for_nothing_says_nothing_and_fits_any_width(
    name: str, script: bool, files: dict[str, Path], watch: Any
) -> None:
    seen = watch(files[name], java_script_enabled=script)
    seen.tab.evaluate(OPEN_ALL)
    for width in WIDTHS:
        seen.tab.set_viewport_size({"width": width, "height": 800})
        assert seen.tab.evaluate(OVERFLOW) <= width
    seen.tab.set_viewport_size({"width": WIDTHS[0], "height": 800})
    seen.tab.check("#lang-zh")
    assert seen.tab.evaluate(OVERFLOW) <= WIDTHS[0]
    assert len(seen.asked) == 1
    assert seen.said == []


@pytest.mark.parametrize("script", [True, False])
def test_the_switch_of_language_needs_no_script(script: bool, files: dict[str, Path], watch: Any) -> None:
    tab = watch(files["example"], java_script_enabled=script).tab
    assert tab.locator("h1").inner_text().strip().startswith("Not fit to deploy")
    tab.check("#lang-zh")
    assert tab.locator("h1").inner_text().strip().startswith("不能部署")
    assert tab.locator("#first").get_by_text("Do this first", exact=True).is_hidden()


def test_without_script_all_is_there_but_what_needs_it(files: dict[str, Path], watch: Any) -> None:
    tab = watch(files["example"], java_script_enabled=False).tab
    assert tab.locator("article.finding.error").count() == 3
    assert tab.locator("article.finding.error .pair").first.is_visible()
    assert tab.locator("svg.topology").is_visible()
    assert tab.locator("button:visible").count() == 0
    assert tab.locator("#filter").is_hidden()


def test_sixteen_chips_stand_in_one_row_and_in_two_on_a_tablet(files: dict[str, Path], watch: Any) -> None:
    tab = watch(files["crowded"]).tab
    for width, rows in ((1280, 1), (768, 2)):
        tab.set_viewport_size({"width": width, "height": 900})
        tops = {round(box["y"]) for box in (tile.bounding_box() for tile in tab.locator(".tile").all())}
        assert tab.locator(".tile").count() == 16
        assert len(tops) == rows, width


def test_a_tile_in_trouble_leads_to_its_finding(files: dict[str, Path], watch: Any) -> None:
    tab = watch(files["example"]).tab
    tab.locator(".tile.error").click()
    assert tab.locator("article:target .permalink").inner_text().endswith("npu.health npu:5/0")


def test_findings_are_found_by_text_severity_area_and_subject(files: dict[str, Path], watch: Any) -> None:
    tab = watch(files["example"], viewport={"width": 1280, "height": 900}).tab
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "f-text"
    tab.keyboard.type("multi-bit")
    assert tab.locator("article[data-n]:visible").count() == 1
    assert tab.locator("#f-count b:visible").inner_text() == "1"
    assert "q=multi-bit" in tab.url
    tab.click("#f-reset")
    tab.uncheck("#filter input[value=error]")
    assert tab.locator("article.finding.error:visible").count() == 0
    assert tab.locator("article.finding.warning:visible").count() == 3
    tab.click("#f-reset")
    tab.select_option("#f-subject", "node:6")
    assert tab.locator("article[data-n]:visible").count() == 1


def test_a_link_with_the_state_of_the_filter_gives_that_state(files: dict[str, Path], watch: Any) -> None:
    tab = watch(files["example"], viewport={"width": 1280, "height": 900}).tab
    tab.goto(files["example"].as_uri() + "#?q=devlib&s=info")
    tab.reload()
    assert tab.input_value("#f-text") == "devlib"
    assert not tab.is_checked("#filter input[value=info]")
    assert tab.locator("article[data-n]:visible").count() >= 1


def test_the_fragment_opens_what_it_names(files: dict[str, Path], watch: Any) -> None:
    tab = watch(files["example"]).tab
    folded = tab.locator("#passed li").first
    assert folded.is_hidden()
    tab.goto(f"{files['example'].as_uri()}#{folded.get_attribute('id')}")
    assert folded.is_visible()


def test_a_finding_is_copied_as_markdown_in_the_language_shown(files: dict[str, Path], browser: Any) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    tab = Watched(context, files["example"]).tab
    tab.check("#lang-zh")
    tab.locator(".as-markdown").first.click()
    copied = tab.evaluate("navigator.clipboard.readText()")
    tab.click("#copy-summary")
    summary = tab.evaluate("navigator.clipboard.readText()")
    context.close()
    assert copied.startswith("### error: 芯片健康状态正常")
    assert "```\nnpu-smi info -t health -i 5 -c 0\n```" in copied
    assert summary.startswith("## 不能部署")


def test_the_saved_run_is_the_embedded_one(files: dict[str, Path], watch: Any) -> None:
    tab = watch(files["example"], accept_downloads=True).tab
    with tab.expect_download() as waiting:
        tab.click("#save")
    saved = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert saved == tab.locator("#run").text_content()


@pytest.mark.parametrize("name", ["example", "crowded", "logs"])
def test_on_paper_no_card_is_cut_and_each_page_names_host_and_run(
    name: str, files: dict[str, Path], watch: Any
) -> None:
    pypdf = pytest.importorskip("pypdf", reason="the extra `browser` is not installed")
    seen = watch(files[name], java_script_enabled=False)
    printed = seen.tab.pdf(prefer_css_page_size=True)
    pages = [one.extract_text() for one in pypdf.PdfReader(io.BytesIO(printed)).pages]
    assert pages
    for number, text in enumerate(pages, 1):
        begun, ended = (len(re.findall(mark, text)) for mark in (r"(?m)^# [a-z0-9-]+\.", r"sources:"))
        assert begun == ended, f"page {number} cuts a card"
        assert f"{number} / {len(pages)}" in text
        assert "2026-" in text


def test_on_paper_everything_is_open(files: dict[str, Path], watch: Any) -> None:
    pypdf = pytest.importorskip("pypdf", reason="the extra `browser` is not installed")
    printed = watch(files["example"], java_script_enabled=False).tab.pdf(prefer_css_page_size=True)
    text = "".join(one.extract_text() for one in pypdf.PdfReader(io.BytesIO(printed)).pages)
    assert "firmware-driver" in text.replace("\n", "")  # a check that passed, folded on the screen


@pytest.mark.parametrize("word", ["error", "catastrophic"])
@pytest.mark.parametrize("text", [HOSTILE, "M" * 10_000, "\u202eabc\u2067" * 50], ids=["script", "long", "turned"])
def test_no_text_of_a_host_breaks_the_layout_or_runs(word: str, text: str, tmp_path: Path, watch: Any) -> None:
    seen = watch(_written(tmp_path / "hostile.html", with_hostile_finding(word, text)))
    seen.tab.evaluate(OPEN_ALL)
    for width in WIDTHS:
        seen.tab.set_viewport_size({"width": width, "height": 800})
        assert seen.tab.evaluate(OVERFLOW) <= width
    assert seen.tab.locator("button.copy").count() > 3
    assert seen.said == []
    assert len(seen.asked) == 1
