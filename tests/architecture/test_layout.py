"""The shape of the code that reviewers would otherwise have to watch."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "muster"
PACKAGES = sorted(path.parent for path in SOURCE.glob("*/__init__.py"))
MODULES = sorted(SOURCE.rglob("*.py"))
BANNED = {"utils", "util", "common", "helpers", "helper", "base", "manager", "service", "misc"}
MAX_LINES = 600
MAX_README_LINES = 60
MAX_FUNCTION = 40


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_every_package_says_in_one_screen_what_it_is_for(package: Path) -> None:
    readme = package / "README.md"
    assert readme.is_file(), f"{name(package)} has no README.md"
    lines = readme.read_text().splitlines()
    assert lines[0].startswith("# ") and package.name in lines[0]
    assert len(lines) <= MAX_README_LINES
    assert "import" in readme.read_text(), "says what the package may import"


def test_no_module_is_longer_than_can_be_read_in_one_go() -> None:
    assert not [name(module) for module in MODULES if len(module.read_text().splitlines()) > MAX_LINES]


def test_no_package_or_module_has_a_name_that_says_nothing() -> None:
    names = {part.removesuffix(".py") for module in MODULES for part in module.relative_to(SOURCE).parts}
    assert not names & BANNED


def test_nothing_is_left_to_be_done() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "NotImplemented" + "Error")
    assert not [(name(module), mark) for module in MODULES for mark in marks if mark in module.read_text()]


def test_every_module_says_what_it_is_for() -> None:
    silent = [name(module) for module in MODULES if not ast.get_docstring(ast.parse(module.read_text()))]
    assert not [module for module in silent if not module.endswith(("__init__.py", "__main__.py"))]


def test_functions_are_short() -> None:
    lengths = sorted(length for module in MODULES for length in function_lengths(module))
    assert statistics.median(lengths) < 10
    assert lengths[-1] <= MAX_FUNCTION


def function_lengths(module: Path) -> list[int]:
    """Lines of each function, without its docstring."""
    found = []
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            found.append((node.end_lineno or 0) - first.lineno + 1)
    return found
