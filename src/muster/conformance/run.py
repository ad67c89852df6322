"""Runs case files, one result each."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from muster.api.gates import TARGETS
from muster.conformance.building import build_differences
from muster.conformance.capabilities import BUILT, missing
from muster.conformance.cases import AREAS, Case, CaseError, find, load
from muster.conformance.drivers import Driver, SimDriver
from muster.conformance.http import Server
from muster.conformance.report import Outcome, Result
from muster.conformance.steps import Run, Unmet

TARGET = TARGETS[0]


def select(
    paths: Iterable[Path | str], *, area: str | None = None, needs: Collection[str] | None = None, target: str = TARGET
) -> list[Case]:
    """The cases below these paths that count for the target release, of one area, with `needs` among the named ones.

    Raises:
        CaseError: a path, a file, the area or a need is wrong.
    """
    if target not in TARGETS:
        raise CaseError(f"unknown target {target!r}; known: {', '.join(TARGETS)}")
    if area is not None and area not in AREAS:
        raise CaseError(f"unknown area {area!r}; known areas: {', '.join(AREAS)}")
    for need in needs or ():
        if need not in BUILT:
            raise CaseError(f"unknown need {need!r}; known needs: {', '.join(sorted(BUILT))}")
    cases = [load(path) for path in find(paths)]
    for case in cases:
        unknown = sorted(case.needs - BUILT.keys())
        if unknown:
            raise CaseError(f"{case.path}: unknown need {unknown[0]!r}; known needs: {', '.join(sorted(BUILT))}")
    return [
        case
        for case in cases
        if case.counts_for(target) and area in (None, case.area) and (needs is None or case.needs <= set(needs))
    ]


def run(
    paths: Iterable[Path | str],
    *,
    over: Literal["sim", "http"] = "sim",
    area: str | None = None,
    needs: Collection[str] | None = None,
    target: str = TARGET,
    stopwatch: Callable[[], float] = time.perf_counter,
    data: Path | None = None,
) -> Iterator[Result]:
    """Runs the selected cases and yields each result as it comes. One server process serves all cases over HTTP.

    With `data` (only over HTTP), it keeps each case's cluster in a new directory in there.

    Raises:
        CaseError: see `select`; raised before the first case runs.
    """
    if over not in ("sim", "http"):
        raise CaseError(f"unknown driver {over!r}; want sim or http")
    return _results(select(paths, area=area, needs=needs, target=target), over, stopwatch, target, data)


def _results(
    cases: Iterable[Case], over: str, stopwatch: Callable[[], float], target: str, data: Path | None
) -> Iterator[Result]:
    with ExitStack() as stack:
        server: Server | None = None
        for case in cases:
            lacking = missing(case)
            if lacking:
                yield Result(case, Outcome.SKIPPED, (f"not built: {', '.join(lacking)}",))
            elif case.area == "builder":
                yield run_builder(case)
            elif over == "sim":
                yield run_case(case, lambda case=case: SimDriver(case, stopwatch, target))  # type: ignore[misc]
            else:
                server = server or stack.enter_context(Server.started(data))
                yield run_case(case, lambda case=case, server=server: server.driver(case, target))  # type: ignore[misc]


def run_case(case: Case, make: Callable[[], Driver]) -> Result:
    """One case with steps, on a fresh cluster. A crash of any part is a failure of the case."""
    driver: Driver | None = None
    outcome = Outcome.FAILED
    sentences: tuple[str, ...] = ()
    try:
        driver = make()
        Run(case, driver).steps()
        outcome = Outcome.PASSED
    except Unmet as unmet:
        sentences = unmet.args
    except CaseError as error:
        sentences = (str(error),)
    except Exception as error:  # whatever broke, the other cases still run
        sentences = (f"crashed: {_short(error)}",)
    times = driver.decision_times() if driver is not None else ()
    return Result(case, outcome, sentences, len(times), sum(times), max(times, default=0.0))


def run_builder(case: Case) -> Result:
    """One case of area builder."""
    try:
        found = build_differences(case)
    except CaseError as error:
        found = [f"{case.path}: {error}"]
    except Exception as error:
        found = [f"crashed: {_short(error)}"]
    return Result(case, Outcome.FAILED if found else Outcome.PASSED, tuple(found))


def _short(error: Exception) -> str:
    """The error and the innermost line of ours that it came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/muster/" in frame.filename]
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
