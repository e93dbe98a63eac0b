"""A run as one HTML file in both languages: no network, no script but its own, whole without it.

The page has only what the run's document has, so a run that was read back gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import partial

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ascend_doctor.engine.run import Run, run_as_json
from ascend_doctor.paths import data_folder
from ascend_doctor.report import embedding
from ascend_doctor.report.bilingual import TAGS, Both, shown
from ascend_doctor.report.page import Page
from ascend_doctor.report.words import words

MARKS = ("error", "warning", "info", "pass", "unknown", "skip", "waived", "explained")
"""Classes that the style sheet knows; whatever else a run says is of the class ``other``."""

SYMBOLS = {"explained": "s-skip", "other": "s-skip"}


def page(run: Run, lang: str) -> str:
    """The whole page, ``lang`` first; never larger than embedding.LIMIT: what is cut for that is said in it."""
    text = ""
    for smaller in embedding.ever_smaller(run):
        text = _rendered(smaller, lang)
        if len(text) <= embedding.LIMIT // 4 or len(text.encode()) <= embedding.LIMIT:
            break
    return text


def _rendered(run: Run, lang: str) -> str:
    folder = data_folder("reports")
    style = (folder / "report.css").read_text(encoding="utf-8")
    script = (folder / "report.js").read_text(encoding="utf-8")
    print_style = _of_each_page(run)
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    both = Both(lang)
    environment.globals.update(
        t=both.text,
        w=both.word,
        n=both.count,
        say=both.say,
        each=lambda make, *given: both.each(partial(make, *given)),
        svg=_in_svg,
        symbol=lambda mark: f"s-{mark}" if mark in MARKS and mark not in SYMBOLS else SYMBOLS["other"],
        linked=lambda url: bool(re.match(r"https?://", url)),
        plain={language: words(language) for language in TAGS},
        **{"class": lambda mark: mark if mark in MARKS else "other"},
    )
    return environment.get_template("report.html.j2").render(
        **Page(run, both).parts(),
        lang=lang,
        tag=TAGS[lang],
        words=words(lang),
        style=Markup(style),
        print_style=Markup(print_style),
        script=Markup(script),
        policy=_policy((style, print_style), script),
        document=_embedded(run),
    )


def _in_svg(text: Markup) -> Markup:
    """Both languages as parts of one SVG text."""
    return Markup(str(text).replace("<span", "<tspan").replace("</span", "</tspan"))


def _of_each_page(run: Run) -> str:
    """Host and run at the foot of each printed page; in a style sheet only what can end neither text nor element."""
    name = re.sub(r"[^A-Za-z0-9._ -]", "?", str(run.host.get("hostname") or ""))[:60]
    text = " - ".join(filter(None, (name, re.sub(r"[^0-9TZ:+.-]", "", run.started), embedding.digest(run))))
    return f'@page{{@bottom-left{{content:"{text}"}}}}'


def _policy(styles: tuple[str, ...], script: str) -> str:
    allowed = " ".join(f"'{_hash(style)}'" for style in styles)
    return (
        f"default-src 'none'; style-src {allowed}; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _embedded(run: Run) -> Markup:
    """The run itself, for tools; nothing in it can end its element."""
    text = json.dumps(embedding.slim(run_as_json(run)), ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


__all__ = ["page"]
