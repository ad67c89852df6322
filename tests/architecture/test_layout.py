"""The shape of the code that reviewers would otherwise have to watch."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "muster"
PACKAGES = sorted(path.parent for path in SOURCE.glob("*/__init__.py"))
MODULES = sorted(SOURCE.rglob("*.py"))
BANNED = {"utils", "util", "common", "helpers", "helper", "base", "manager", "service", "misc"}
MAX_LINES = 600
MAX_README_LINES = 60


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_every_package_says_in_one_screen_what_it_is_for(package: Path) -> None:
    readme = package / "README.md"
    assert readme.is_file(), f"{name(package)} has no README.md"
    lines = readme.read_text().splitlines()
    assert lines[0] == f"# {package.name}"
    assert len(lines) <= MAX_README_LINES
    assert "import" in readme.read_text(), "says what the package may import"


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_no_module_is_longer_than_can_be_read_in_one_go(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= MAX_LINES


def test_no_package_or_module_has_a_name_that_says_nothing() -> None:
    names = {part.removesuffix(".py") for module in MODULES for part in module.relative_to(SOURCE).parts}
    assert not names & BANNED


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_nothing_is_left_to_be_done(module: Path) -> None:
    text = module.read_text()
    for mark in ("TODO", "FIXME", "XXX", "NotImplementedError"):
        assert mark not in text


@pytest.mark.parametrize("module", [path for path in MODULES if path.name != "__init__.py"], ids=name)
def test_every_module_begins_with_what_it_is_for(module: Path) -> None:
    if module.name == "__main__.py":
        return
    assert ast.get_docstring(ast.parse(module.read_text())), f"{name(module)} has no docstring"
