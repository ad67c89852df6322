"""The whole demo, as a pipe sees it."""

from __future__ import annotations

import re
import time

import pytest

from muster.cli.app import run
from muster.cli.demo import cast


@pytest.fixture(scope="module")
def told() -> tuple[int, str, float]:
    """Exit code, output and seconds of one run."""
    import contextlib
    import io

    out = io.StringIO()
    began = time.monotonic()
    with contextlib.redirect_stdout(out):
        code = run(["demo"])
    return code, out.getvalue(), time.monotonic() - began


def test_it_ends_well_and_in_under_a_minute(told: tuple[int, str, float]) -> None:
    code, text, seconds = told
    assert code == 0, text
    assert seconds < 60


def test_the_training_job_is_placed_at_once_on_1024_accelerators(told: tuple[int, str, float]) -> None:
    assert "128 pods x 8 accelerators = 1,024 placed all at once" in told[1]


def test_what_cannot_fit_waits_with_its_reason(told: tuple[int, str, float]) -> None:
    assert re.search(
        r"PodGroup default/too-big waits: it needs 32 members at once, 14 can be placed, 18 short", told[1]
    )


def test_a_gang_is_introduced_before_its_verdict_and_a_job_goes_by_its_own_name(told: tuple[int, str, float]) -> None:
    text = told[1]
    assert text.index("gang too-big asks for 32 pods x 8 accelerators") < text.index("PodGroup default/too-big waits")
    assert re.search(r"Job training waits: it needs 128 members at once, 112 run", text)
    assert "training-pgt" not in text


def test_the_summary_speaks_of_what_is_free_in_the_end(told: tuple[int, str, float]) -> None:
    summary = told[1].partition("What waits, and why")[2]
    assert re.search(r"too-big waits: it needs 32 members at once, 0 can be placed, 32 short", summary)
    assert max(map(len, summary.splitlines())) <= 104


def test_a_rack_is_lost_and_the_survivors_are_untouched(told: tuple[int, str, float]) -> None:
    survivors = re.search(r"(\d+) of (\d+) surviving pods have the same uid and restart count", told[1])
    assert survivors is not None
    assert survivors[1] == survivors[2] == str(cast.SMALLER)
    goes_on = re.search(r"the job goes on with (\d+) of 128 pods", told[1])
    assert goes_on is not None and cast.SMALLER < int(goes_on[1]) < cast.TRAINERS


def test_the_table_accounts_for_every_accelerator(told: tuple[int, str, float]) -> None:
    rows = re.findall(r"^z\d-r\d +(\d+)/128 +(\S+) +(\S+) +(\S+)", told[1], re.MULTILINE)
    assert len(rows) == cast.FLEET.zones * cast.FLEET.racks
    totals = [sum(int(cell) for cell in column if cell != "-") for column in zip(*rows, strict=True)]
    training = int(re.search(r"goes on with (\d+)", told[1])[1])  # type: ignore[index]
    assert totals[1:] == [training, cast.LEARNERS + cast.ACTORS + cast.LOADERS, cast.FILLERS]
    assert totals[0] == training * 8 + cast.LEARNERS * 8 + cast.ACTORS * 4 + cast.FILLERS
