"""Every numbered rule that the code cites can be looked up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "rules.md"
LETTERED = re.compile(r"\b([MPVBRWD])(\d{1,2})\b(?:-[MPVBRWD]?(\d{1,2})\b)?")
STATEMENT = re.compile(r"\bstatements? (\d+(?:-\d+)?(?:(?:, | and )\d+(?:-\d+)?)*)")


def spread(first: str, last: str | None) -> range:
    return range(int(first), int(last or first) + 1)


def cited(text: str) -> Iterator[str]:
    """`V18`, `statement 28`; ranges one by one."""
    for letter, first, last in LETTERED.findall(text):
        yield from (f"{letter}{number}" for number in spread(first, last))
    for listed in STATEMENT.findall(text):
        for part in re.split(r", | and ", listed):
            first, _, last = part.partition("-")
            yield from (f"statement {number}" for number in spread(first, last))


def listed() -> set[str]:
    found: set[str] = set()
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| |"):
            names = line.split("|")[1].strip()
            found.update(cited(names if names[0].isalpha() else f"statements {names}"))
    return found


def test_every_rule_that_the_code_cites_is_in_the_reference() -> None:
    known = listed()
    unknown = {
        (str(path.relative_to(ROOT)), rule)
        for path in (ROOT / "src").rglob("*.py")
        for rule in cited(path.read_text())
        if rule not in known
    }
    assert not unknown, "list them in docs/reference/rules.md"


def test_lists_and_ranges_of_rules_are_read_one_by_one() -> None:
    text = "(statements 9, 13-15 and 20, M5; V18, P30-P32)"
    assert set(cited(text)) == {
        *(f"statement {number}" for number in (9, 13, 14, 15, 20)),
        *("M5", "V18", "P30", "P31", "P32"),
    }
