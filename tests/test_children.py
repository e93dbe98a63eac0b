"""What runs in the target interpreter: it may be old, and it has nothing of ours."""

from __future__ import annotations

import ast
import sys
import sysconfig
from pathlib import Path

import pytest

CHILDREN = Path(__file__).parent.parent / "ascend_doctor" / "children"
MODULES = sorted(CHILDREN.rglob("*.py"))
TORCH_FREE = ("deepseek_v4/__init__.py", "deepseek_v4/config.py", "deepseek_v4/shapes.py")


def standard_library() -> set[str]:
    """Python names its modules from 3.10 on; before, its folders do."""
    if sys.version_info >= (3, 10):
        return set(sys.stdlib_module_names)
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = {path.name.split(".")[0] for path in [*folder.iterdir(), *(folder / "lib-dynload").iterdir()]}
    return {*sys.builtin_module_names, *files} - {"site-packages"}


def imported(module: Path) -> set[str]:
    """First names of absolute imports; what is relative stays among the children."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(CHILDREN)))
def test_a_child_needs_the_standard_library_and_torch_alone(module: Path) -> None:
    assert imported(module) <= standard_library() | {"torch", "torch_npu"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(CHILDREN)))
def test_python_3_9_can_read_a_child(module: Path) -> None:
    ast.parse(module.read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("name", TORCH_FREE)
def test_what_plans_a_run_needs_no_torch(name: str) -> None:
    assert "torch" not in imported(CHILDREN / name)
