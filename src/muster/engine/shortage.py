"""What pods of a class lack, node by node: where they would fit most nearly, and what freeing there would do."""

from __future__ import annotations

import numpy as np

from muster.engine.extension import Nearest
from muster.engine.trial import Trial
from muster.model.diagnosis import Reason, Remedy, Shortfall

ROOM = (Reason.INSUFFICIENT, Reason.HOST_PORTS)
"""Limits of what a node has; pods that exclude each other are a limit too, but lack nothing that can be freed."""


def lacking(trial: Trial, cls: int, count: int) -> Shortfall | None:
    """What the nearest usable node lacks for one more pod; for several, what the nearest nodes lack in sum."""
    return _of_resources(trial, cls, count) or _otherwise(trial, cls)


def _of_resources(trial: Trial, cls: int, count: int) -> Shortfall | None:
    usable = np.flatnonzero(trial.state(cls).feasible.passes)
    rows, lack, share = _shortage(trial, cls, usable)
    if not len(usable) or not len(rows) or (share.sum(axis=0) == 0).all():
        return None
    nearest = np.argsort(share.sum(axis=0), kind="stable")[:count]
    wanting = np.where(_of_room(trial, rows), share[:, nearest].sum(axis=1), -1)
    row = int(wanting.argmax())
    if wanting[row] <= 0:
        return None
    name, asked = trial.details[int(rows[row])], int(trial.ledger.amounts[cls, rows[row]])
    most = int(trial.ledger.capacity[rows[row], usable].max())
    beyond = (asked, most) if asked > most else (0, 0)
    if len(nearest) == 1:
        further = (count - 1) * asked
        return Shortfall(
            name, int(lack[row, nearest[0]]) + further, trial.record(int(usable[nearest[0]])).name, 1, *beyond
        )
    further = (count - len(nearest)) * asked
    return Shortfall(name, int(lack[row, nearest].sum()) + further, domain_of(trial), len(nearest), *beyond)


def _otherwise(trial: Trial, cls: int) -> Shortfall | None:
    """What is lacking besides room, by the first plugin that can tell."""
    usable = np.zeros(len(trial.snapshot.nodes), dtype=bool)
    usable[slice(None) if trial.placement is None else trial.placement.nodes] = trial.state(cls).feasible.passes
    told = (
        plugin.nearest(trial.snapshot, trial.classes[cls], usable)
        for plugin in trial.profile.plugins
        if isinstance(plugin, Nearest)
    )
    return next((found for found in told if found is not None), None)


def domain_of(trial: Trial) -> str:
    """`rack r7`: the domain that this world is; "" for the whole cluster."""
    placement = trial.placement
    return "" if placement is None else f"{placement.key.rpartition('/')[2]} {placement.value}"


def freeing(trial: Trial, cls: int, count: int, ours: np.ndarray) -> Remedy | None:
    """The least of one resource that others would have to give up for `count` more pods, each on a node of its own.

    `ours` (int64[rows, N]) is what fellow members hold there: freeing that would help nobody. None if no single
    resource would do.
    """
    ledger = trial.ledger
    usable = np.flatnonzero(trial.state(cls).feasible.passes)
    rows, lack, share = _shortage(trial, cls, usable)
    if not len(rows):
        return None
    columns = np.ix_(rows, usable)
    possible = (ledger.amounts[cls, rows][:, None] <= ledger.capacity[columns] - ours[columns]).all(axis=0)
    best: tuple[float, Remedy] | None = None
    if trial.depends(cls):
        return None
    for row in np.flatnonzero(_of_room(trial, rows)).tolist():
        alone = np.flatnonzero(possible & (lack[row] > 0) & (np.delete(lack, row, axis=0) == 0).all(axis=0))
        if len(alone) < count:
            continue
        chosen = alone[np.argsort(share[row, alone], kind="stable")[:count]]
        where = trial.record(int(usable[chosen[0]])).name if count == 1 else f"{count} nodes"
        remedy = Remedy("free", int(lack[row, chosen].sum()), trial.details[int(rows[row])], where)
        cost = float(share[row, chosen].sum())
        if best is None or cost < best[0]:
            best = (cost, remedy)
    return best[1] if best else None


def _of_room(trial: Trial, rows: np.ndarray) -> np.ndarray:
    """bool[rows]: which of these limits are of things that a node has, and not of who is there."""
    return np.array([trial.owners[row] in ROOM for row in rows.tolist()], dtype=bool)


def _shortage(trial: Trial, cls: int, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows that the class asks for, int64[rows, M] what is lacking for one more, float[rows, M] that as a share)."""
    ledger = trial.ledger
    rows = np.flatnonzero(ledger.amounts[cls])
    asked = ledger.amounts[cls, rows][:, None]
    columns = np.ix_(rows, usable)
    lack = np.maximum(asked - (ledger.capacity[columns] - ledger.used[columns]), 0)
    # Shares only rank what is said, never what is done: they may be fractions.
    return rows, lack, lack / asked
