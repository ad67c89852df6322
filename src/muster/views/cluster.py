"""The cluster by domain: how much there is, how much is taken, and by whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from muster.model.records import PodRecord
from muster.model.snapshot import Snapshot
from muster.scheduler.machine import Scheduler

RACK = "topology.muster.dev/rack"
NOWHERE = "-"
"""Stands for nodes without the label."""


def cluster(scheduler: Scheduler, level: str = RACK) -> dict[str, Any]:
    """One row for each value of the label `level`, in order of values, and the total.

    Amounts are in model units (thousandths of a core, bytes, whole accelerators). `runs` counts pods by what they
    belong to: their group, else "pods" of their namespace; decided pods count before they are bound.
    """
    snapshot = scheduler.cache.snapshot()
    column = snapshot.nodes.label(level)
    runs = _running(scheduler)
    rows = []
    for code, value in [*enumerate(column.values), (-1, NOWHERE)]:
        nodes = np.flatnonzero(column.codes == code)
        if len(nodes):
            rows.append({"domain": value, **_figures(snapshot, nodes), "runs": _runs(snapshot, nodes, runs)})
    everything = np.arange(len(snapshot.nodes))
    total = {**_figures(snapshot, everything), "runs": _runs(snapshot, everything, runs)}
    return {"level": level, "domains": rows, "total": total}


def _figures(snapshot: Snapshot, nodes: np.ndarray) -> dict[str, Any]:
    has = snapshot.nodes.alloc[:, nodes].sum(axis=1).tolist()
    used = snapshot.used[:, nodes].sum(axis=1).tolist()
    return {
        "nodes": len(nodes),
        "unschedulable": int(snapshot.nodes.unschedulable[nodes].sum()),
        "pods": used[snapshot.axis.row["pods"]],
        "resources": {
            name: {"allocatable": has[row], "used": used[row]}
            for name, row in snapshot.axis.row.items()
            if has[row] or used[row]
        },
    }


def _runs(snapshot: Snapshot, nodes: np.ndarray, runs: Mapping[str, Counter[str]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for node in nodes.tolist():
        total.update(runs.get(snapshot.nodes.names[node], {}))
    return dict(sorted(total.items()))


def _running(scheduler: Scheduler) -> dict[str, Counter[str]]:
    """Pods by node and owner."""
    found: dict[str, Counter[str]] = {}
    for record, node in _placed(scheduler):
        who = f"{record.key.namespace}/{record.group}" if record.group else f"{record.key.namespace}/pods"
        found.setdefault(node, Counter())[who] += 1
    return found


def _placed(scheduler: Scheduler) -> Iterable[tuple[PodRecord, str]]:
    cache = scheduler.cache
    for record in cache.pods.values():
        node = record.node if record.holds_room else cache.assumed.get(record.uid)
        if node is not None:
            yield record, node
