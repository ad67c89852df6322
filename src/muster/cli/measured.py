"""`muster conformance` and `muster bench`: run the product and print what came out."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from muster.cli.failure import FAILED, USAGE, Failure, heed_interrupts


def conformance(
    paths: Sequence[Path],
    over: Literal["sim", "http"],
    area: str | None,
    needs: Collection[str] | None,
    target: str,
    as_json: bool,
    data: Path | None = None,
) -> int:
    """A line per case as it ends; fails if a case failed, or if none was selected."""
    from muster.conformance import report
    from muster.conformance.cases import CaseError
    from muster.conformance.run import run

    heed_interrupts()
    if data is not None:
        _check_data(data, over)
    results = []
    try:
        for result in run(paths, over=over, area=area, needs=needs, target=target, data=data):
            results.append(result)
            if not as_json:
                print("\n".join(report.lines(result)), flush=True)
    except CaseError as error:
        raise Failure(str(error), USAGE) from None
    if not results:
        raise Failure("no case was selected; check PATH, --area, --needs and --target", USAGE)
    print(json.dumps(report.as_json(results), indent=2) if as_json else report.closing(results))
    return FAILED if any(result.failed for result in results) else 0


def _check_data(data: Path, over: str) -> None:
    if over != "http":
        raise Failure("--data: only a server process keeps data; give --over http too", USAGE)
    try:
        data.mkdir(exist_ok=True)
        if any(data.iterdir()):
            raise Failure(f"--data: {data} is not empty; name an empty or a new directory", USAGE)
    except OSError as error:
        raise Failure(f"--data: {data}: {error.strerror}", USAGE) from None


def bench(shapes: Sequence[str], nodes: int | None, as_json: bool) -> int:
    """Prints each figure with its target; fails below one."""
    from muster import bench as benchmarks

    heed_interrupts()
    try:
        return benchmarks.run(shapes, nodes, as_json)
    except ValueError as error:
        raise Failure(str(error), USAGE) from None
