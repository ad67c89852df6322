"""The builder's conformance cases, each a test of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.conformance.building import build_differences
from muster.conformance.cases import load

CASES = Path(__file__).parents[2] / "conformance" / "cases" / "builder"


@pytest.mark.parametrize("path", sorted(CASES.glob("*.yaml")), ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    assert build_differences(load(path)) == []
