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


def said(told: tuple[int, str, float]) -> str:
    """The output with lines of the story put together again."""
    return re.sub(r"\n +", " ", told[1])


def test_it_ends_well_and_in_under_a_minute(told: tuple[int, str, float]) -> None:
    code, text, seconds = told
    assert code == 0, text
    assert seconds < 60


def test_the_training_job_is_placed_at_once_on_1024_accelerators(told: tuple[int, str, float]) -> None:
    assert "128 pods x 8 accelerators = 1,024 placed all at once" in told[1]


def test_every_line_fits_on_eighty_columns(told: tuple[int, str, float]) -> None:
    assert max(map(len, told[1].splitlines())) <= 80


def test_the_model_server_is_shown_with_the_domain_of_each_level(told: tuple[int, str, float]) -> None:
    zone = re.search(r"serving +2 groups +2 of 2 +zone (z\d)$", told[1], re.MULTILINE)
    prefill = re.search(r"serving-prefill +4 pods +4 of 4 +rack (z\d)-r\d$", told[1], re.MULTILINE)
    decode = re.search(r"serving-decode +8 pods +8 of 8 +rack (z\d)-r\d$", told[1], re.MULTILINE)
    assert zone is not None and prefill is not None and decode is not None
    assert zone[1] == prefill[1] == decode[1]


def test_what_cannot_fit_waits_with_its_reason(told: tuple[int, str, float]) -> None:
    assert re.search(
        r"PodGroup default/too-big waits: it needs 32 members at once, 10 can be placed, 22 short", said(told)
    )


def test_a_gang_is_introduced_before_its_verdict_and_a_job_goes_by_its_own_name(told: tuple[int, str, float]) -> None:
    text = said(told)
    assert text.index("gang too-big asks for 32 pods x 8 accelerators") < text.index("PodGroup default/too-big waits")
    assert re.search(r"Job training: running 112 of 128, 16 members wait: it needs 128 members at once", text)
    assert "training-pgt" not in text


def test_the_summary_speaks_of_what_is_free_in_the_end(told: tuple[int, str, float]) -> None:
    summary = said(told).partition("What waits, and why")[2]
    assert re.search(r"too-big waits: it needs 32 members at once, 0 can be placed, 32 short", summary)


def test_an_urgent_gang_clears_exactly_one_rack_and_says_whom_it_evicts_and_why(told: tuple[int, str, float]) -> None:
    text = said(told)
    assert "To place 16 pods, 128 pods of 544 of lower priority are evicted: default/filler-" in text
    assert "none of them can be spared, highest priority -10" in text
    gone = re.search(r"evicted, 128 pods of priority -10, all of rack (z\d-r\d): ([^ ]+( filler-[^ ]+)*)", text)
    assert gone is not None
    evicted = [
        range(int(first), int(last or first) + 1) for first, last in re.findall(r"-(\d+)(?:\.\.(\d+))?", gone[2])
    ]
    assert sum(map(len, evicted)) == cast.FLEET.nodes * cast.FLEET.gpus
    assert re.search(rf"^{gone[1]} +128/128 +- +- +- +- +16$", told[1], re.MULTILINE)


def test_a_pod_grows_in_place_and_makes_its_own_room(told: tuple[int, str, float]) -> None:
    grows = r"pod rescue-0 grows in place from 8 to 24 cpu, and beside is evicted for it \(.*\): same uid, no restart"
    assert re.search(grows, said(told))


def test_a_rack_is_lost_and_the_survivors_are_untouched(told: tuple[int, str, float]) -> None:
    survivors = re.search(r"(\d+) of (\d+) surviving pods have the same uid and restart count", said(told))
    assert survivors is not None
    assert survivors[1] == survivors[2] == str(cast.SMALLER)
    goes_on = re.search(r"the job goes on with (\d+) of 128 pods", told[1])
    assert goes_on is not None and cast.SMALLER < int(goes_on[1]) < cast.TRAINERS


def test_the_table_accounts_for_every_accelerator(told: tuple[int, str, float]) -> None:
    rows = re.findall(r"^z\d-r\d +(\d+)/128 +(\S+) +(\S+) +(\S+) +(\S+) +(\S+)", told[1], re.MULTILINE)
    assert len(rows) == cast.FLEET.zones * cast.FLEET.racks
    totals = [sum(int(cell) for cell in column if cell != "-") for column in zip(*rows, strict=True)]
    training = int(re.search(r"goes on with (\d+)", told[1])[1])  # type: ignore[index]
    serving, left = cast.PREFILL + cast.DECODE, cast.FILLERS - cast.FLEET.nodes * cast.FLEET.gpus
    assert totals[1:] == [training, serving, cast.LEARNERS + cast.ACTORS + cast.LOADERS, left, cast.RESCUERS]
    served = cast.RESCUERS * 8 + cast.PREFILL * 4 + cast.DECODE * 2
    assert totals[0] == training * 8 + served + cast.LEARNERS * 8 + cast.ACTORS * 4 + left
