"""Makes the pictures of README anew from what ships: ``python pictures/make.py`` (extra `browser`, chromium)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parent
LOG = "tests/captures/logs/multi-oom-then-hccl-cascade.log"
PICTURES = (  # name, arguments, width, height, colour scheme, language, what is shown
    ("report", ["preflight", "--snapshot", "example"], 1280, 780, "light", "en", ""),
    ("topology", ["preflight", "--snapshot", "example"], 1280, 900, "light", "en", "svg.topology"),
    ("logs", ["logs", LOG, "--snapshot", "example"], 1280, 930, "dark", "zh", ""),
)


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not installed")
        return 2
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, arguments, width, height, scheme, lang, part in PICTURES:
            page = Path(folder, f"{name}.html")
            call = [sys.executable, "-m", "ascend_doctor", *arguments, "--quiet", "-o", str(page)]
            subprocess.run(call, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            tab.goto(page.as_uri())
            tab.check(f"#lang-{lang}")
            file = str(HERE / f"{name}.png")
            if part:
                tab.locator(part).screenshot(path=file)
            else:
                tab.screenshot(path=file)
            tab.close()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
