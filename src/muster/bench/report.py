"""Figures as rows, as a table, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from muster.bench.measure import Figure

Row = dict[str, Any]


def row(figure: Figure) -> Row:
    """One figure as plain data."""
    target = figure.target
    return {
        "shape": target.name,
        "unit": target.unit,
        "median": figure.median,
        "min": min(figure.values),
        "max": max(figure.values),
        "repeats": len(figure.values),
        "target": target.bound,
        "better": "less" if target.at_most else "more",
        "margin": None if figure.margin == float("inf") else figure.margin,
        "ok": figure.ok,
    }


def as_json(rows: Sequence[Row], machine: Mapping[str, Any], nodes: int) -> str:
    return json.dumps({"nodes": nodes, "machine": dict(machine), "figures": list(rows)}, indent=2)


HEADER = ("shape", "median", "min", "max", "target", "", "margin", "")


def as_table(rows: Sequence[Row], machine: Mapping[str, Any], nodes: int) -> str:
    """Lines for a terminal: the machine, one line a figure, and how many reached their target."""
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    table = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
    reached = sum(row["ok"] for row in rows)
    return "\n".join([_setting(machine, nodes), "", *table, "", f"{reached} of {len(rows)} figures reach their target"])


def _setting(machine: Mapping[str, Any], nodes: int) -> str:
    return f"{nodes} nodes; {machine['processor']}, Python {machine['python']}, numpy {machine['numpy']}"


def _cells(row: Row) -> tuple[str, ...]:
    bound = f"{'<=' if row['better'] == 'less' else '>='} {amount(row['target'])}"
    margin = "" if row["margin"] is None else f"{row['margin']:.1f}x"
    values = (amount(row[key]) for key in ("median", "min", "max"))
    return (row["shape"], *values, bound, row["unit"], margin, "ok" if row["ok"] else "MISSED")


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Words to the left, numbers to the right."""
    words = (0, 5, 7)
    return [
        cell.ljust(width) if column in words else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def amount(value: float) -> str:
    """Three significant digits, thousands apart."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
