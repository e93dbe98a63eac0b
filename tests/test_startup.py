"""What is imported when: start-up time is kept by what is left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
HEAVY = {"asyncio", "jinja2", "jsonschema", "concurrent.futures", "importlib.metadata", "torch", "http", "ssl", "email"}


def imported(*arguments: str) -> set[str]:
    """The modules that a call of the tool imports."""
    code = (
        "import sys; from ascend_doctor.__main__ import main; sys.argv = ['ascend-doctor', *sys.argv[1:]]; main(); "
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_version_imports_nothing_but_the_package() -> None:
    ours = {name for name in imported("--version") if name.startswith("ascend_doctor")}
    assert ours == {"ascend_doctor", "ascend_doctor.__main__"}
    assert not imported("--version") & {"click", "yaml", "rich", "psutil", "re", "typing"}


@pytest.mark.parametrize("arguments", [["preflight", "--snapshot", "example", "--format", "json"]])
def test_preflight_imports_nothing_heavy(arguments: list[str]) -> None:
    modules = imported(*arguments)
    assert not modules & (HEAVY | {"rich", "psutil"})
    assert "ascend_doctor.host.live" not in modules


def test_a_report_on_the_console_needs_no_template_engine() -> None:
    assert not imported("preflight", "--snapshot", "example") & HEAVY
