"""`muster bench`: measures shapes, prints the report, and says by its exit code whether every target is reached."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from muster.bench import report
from muster.bench.cluster import Unfinished
from muster.bench.fleet import NODES
from muster.bench.measure import Figure, calmed, machine
from muster.bench.shapes import SHAPES, Shape

REPEATS = 3


class UnknownShape(ValueError):
    """A shape that does not exist; the message lists those that do."""


def run(
    shapes: Sequence[str] = (),
    nodes: int | None = None,
    as_json: bool = False,
    *,
    repeats: int = REPEATS,
    say: Callable[[str], None] = print,
) -> int:
    """Measures the named shapes (none: all) on so many nodes (None: 5,000), and reports through `say`.

    Progress goes to stderr.

    Returns:
        0 if the median of every figure reaches its target, 1 if one misses it or a shape did not finish.

    Raises:
        UnknownShape: a name that is no shape, before anything is measured.
        ValueError: fewer than one node or repeat.
    """
    nodes = NODES if nodes is None else nodes
    chosen = [_named(name) for name in shapes or SHAPES]
    for name, number in (("nodes", nodes), ("repeats", repeats)):
        if number < 1:
            raise ValueError(f"{name} is {number}; give 1 or more")
    rows, unfinished = [], []
    for shape in chosen:
        try:
            rows += [report.row(figure) for figure in measured(shape, nodes, repeats)]
        except Unfinished as why:
            unfinished.append(f"{shape.name}: {why}")
    say((report.as_json if as_json else report.as_table)(rows, machine(), nodes))
    for line in unfinished:
        print(f"did not finish: {line}", file=sys.stderr)
    return 0 if all(row["ok"] for row in rows) and not unfinished else 1


def measured(shape: Shape, nodes: int, repeats: int) -> list[Figure]:
    """The shape's figures with `repeats` values each."""
    figures = {target.name: Figure(target) for target in shape.targets}
    for repeat in range(repeats):
        print(f"{shape.name} {repeat + 1}/{repeats}", file=sys.stderr, flush=True)
        with calmed():
            values = shape.measure(nodes)
        for name, value in values.items():
            figures[name].values.append(value)
    return list(figures.values())


def _named(name: str) -> Shape:
    if name not in SHAPES:
        raise UnknownShape(f'no shape is called "{name}"; known: {", ".join(SHAPES)}')
    return SHAPES[name]
