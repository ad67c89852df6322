"""The linear relaxation of "which fillings, how often": the only module that loads the solver, late.

One row for each class (all its members are in fillings, or left out at a price of one each) and one for each kind (no
more fillings than nodes). A filling may hold more of a class than there are: it then stands for the smaller ones, too.
Fillings become columns when their price says that they help, so the solver sees a few hundred of many thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muster.engine.fillings import Pool

_BATCH = 100
_ROUNDS = 200
_TOLERANCE = 1e-7
_SCALE = 1 << 20
"""Prices are whole numbers of this in a proof."""
_OPTIONS: dict[str, Any] = {"threads": 1, "random_seed": 1, "presolve": "off", "simplex_strategy": 4}
_INTEGER_OPTIONS: dict[str, Any] = {"presolve": "on", "simplex_strategy": 1, "mip_max_improving_sols": 1}
_CHEAPEST_OPTIONS: dict[str, Any] = {
    "presolve": "on",
    "simplex_strategy": 1,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.5,
}
ITERATIONS_PER_EXPANSION = 11
"""Steps of the simplex method that cost about as much as looking at one state of the search."""
_EXPANSIONS_PER_CALL = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """What the integer solver says of a list of fillings."""

    spent: int
    impossible: bool = False
    often: np.ndarray | None = None
    """int64[P]: how often to take each filling; rounded, so it is yet to be checked"""
    cheapest: bool = False
    """Whether no solution is cheaper; told only where that was asked."""


class Relaxation:
    """How many members must be left out at least, if fillings could be taken in part."""

    def __init__(self, pool: Pool, counts: np.ndarray, copies: np.ndarray) -> None:
        self.pool = pool
        self._classes, self._kinds = len(counts), len(copies)
        self._filling, self._class = np.nonzero(pool.counts)
        self._count = pool.counts[self._filling, self._class].astype(np.float64)
        self._inside = np.zeros(len(pool.kind), dtype=bool)
        self._struck = np.zeros(len(pool.kind), dtype=bool)
        self.columns = np.zeros(0, dtype=np.int64)
        """Which filling each column stands for."""
        self.spent = 0
        self._solver = new_solver()
        self._row_duals = np.zeros(self._classes + self._kinds)
        rows = self._classes + self._kinds
        none = np.zeros(0, dtype=np.int32)
        self._solver.addRows(rows, np.zeros(rows), np.zeros(rows), 0, np.zeros(rows, dtype=np.int32), none, np.zeros(0))
        each = np.arange(self._classes, dtype=np.int32)
        self._add(np.ones(self._classes), each, each, np.ones(self._classes))
        self.limit(counts, copies)

    def limit(self, counts: np.ndarray, copies: np.ndarray) -> None:
        """So many members are to be placed on so many nodes from now on."""
        low = np.concatenate((counts, np.zeros(self._kinds)))
        high = np.concatenate((np.full(self._classes, np.inf), copies))
        rows = np.arange(len(low), dtype=np.int32)
        self._solver.changeRowsBounds(len(rows), rows, low.astype(np.float64), high.astype(np.float64))

    def bar(self, columns: Sequence[int], most: float) -> None:
        """These columns may be taken so often at most."""
        which = np.array(columns, dtype=np.int32) + self._classes
        bounds = np.zeros(len(which)), np.full(len(which), most)
        self._solver.changeColsBounds(len(which), which, *bounds)

    def only(self, allowed: np.ndarray) -> None:
        """No other fillings than these (bool[P]) may be taken from now on."""
        self._struck = ~allowed
        which = np.arange(len(self.columns), dtype=np.int32) + self._classes
        most = np.where(allowed[self.columns], np.inf, 0.0)
        self._solver.changeColsBounds(len(which), which, np.zeros(len(which)), most)

    def solve(self, limit: int) -> tuple[float, np.ndarray] | None:
        """(members left out at least, float64 how often each column is taken); None if `limit` expansions are spent."""
        for _ in range(_ROUNDS):
            self._solver.run()
            info = self._solver.getInfo()
            self.spent += _EXPANSIONS_PER_CALL + info.simplex_iteration_count // ITERATIONS_PER_EXPANSION
            solution = self._solver.getSolution()
            self._row_duals = np.array(solution.row_dual)
            better = self._better()
            if not len(better):
                return info.objective_function_value, np.array(solution.col_value)[self._classes :]
            if self.spent >= limit:
                return None
            self._enter(better)
        return None

    def _better(self) -> np.ndarray:
        """Fillings outside that would leave fewer out, the best first; no more than a batch."""
        worth = self._count * self._row_duals[self._class]
        gain = self._row_duals[self._classes :][self.pool.kind]
        gain = gain + np.bincount(self._filling, weights=worth, minlength=len(gain))
        gain[self._inside | self._struck] = 0.0
        better = np.flatnonzero(gain > _TOLERANCE)
        order: np.ndarray = better[np.argsort(-gain[better], kind="stable")][:_BATCH]
        return order

    def _enter(self, which: np.ndarray) -> None:
        """Makes columns of these fillings."""
        self._inside[which] = True
        self.columns = np.concatenate((self.columns, which))
        counts = self.pool.counts[which]
        column, row = np.nonzero(counts)
        index = np.concatenate((row, self._classes + self.pool.kind[which]))
        value = np.concatenate((counts[column, row], np.ones(len(which))))
        column = np.concatenate((column, np.arange(len(which))))
        self._add(np.zeros(len(which)), column, index, value)

    def _add(self, cost: np.ndarray, column: np.ndarray, index: np.ndarray, value: np.ndarray) -> None:
        order = np.argsort(column, kind="stable")
        starts = np.searchsorted(column[order], np.arange(len(cost))).astype(np.int32)
        most = np.full(len(cost), np.inf)
        entries = index[order].astype(np.int32), value[order].astype(np.float64)
        self._solver.addCols(len(cost), cost, np.zeros(len(cost)), most, len(order), starts, *entries)

    def proves(self, counts: np.ndarray, copies: np.ndarray, drop: int) -> bool:
        """More than `drop` members are left out whatever is done: by whole numbers alone, for any prices.

        A member is worth at most 1, and a node no less than the dearest filling for it. Whoever is placed is paid for
        by nodes; what all members are worth together beyond what the nodes can pay for is left out.
        """
        if not self.pool.complete:
            return False
        worth = np.clip(np.rint(self._row_duals[: self._classes] * _SCALE), 0, _SCALE).astype(np.int64)
        dearest = np.zeros(self._kinds, dtype=np.int64)
        np.maximum.at(dearest, self.pool.kind, self.pool.counts.astype(np.int64) @ worth)
        return int(counts @ worth) - int(copies @ dearest) > drop * _SCALE

    def choose(self, counts: np.ndarray, drop: int, limit: int) -> Answer:
        """Takes whole fillings only; leaves this relaxation unusable. Ends after about `limit` expansions.

        "Impossible" is believed only of coefficients below 2^20, which floating point holds exactly with room to spare.
        """
        self._enter(np.flatnonzero(~self._inside))
        each = np.arange(self._classes, dtype=np.int32)
        columns = np.arange(self._classes + len(self.columns), dtype=np.int32)
        solver = self._solver
        solver.changeColsBounds(len(each), each, np.zeros(len(each)), np.minimum(counts, drop).astype(np.float64))
        solver.changeColsCost(len(each), each, np.zeros(len(each)))
        solver.addRow(-np.inf, float(drop), len(each), each, np.ones(len(each)))
        solver.changeColsIntegrality(len(columns), columns, np.ones(len(columns), dtype=np.uint8))
        steps = limit * ITERATIONS_PER_EXPANSION
        for name, value in _INTEGER_OPTIONS.items():
            solver.setOptionValue(name, value)
        solver.cbMipInterrupt += lambda event: _stop_after(event, steps)
        solver.run()
        spent = _EXPANSIONS_PER_CALL + max(solver.getInfo().simplex_iteration_count, 0) // ITERATIONS_PER_EXPANSION
        return self._answer(spent)

    def _answer(self, spent: int) -> Answer:
        import highspy

        if self._solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return Answer(spent, impossible=int(self.pool.counts.max(initial=0)) < _SCALE)
        if self._solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return Answer(spent)
        often = np.zeros(len(self.pool.kind), dtype=np.int64)
        often[self.columns] = np.rint(np.array(self._solver.getSolution().col_value)[self._classes :])
        return Answer(spent, often=often)


def whole_numbers(solver: Any, columns: int, limit: int, *, cheapest: bool = False) -> Answer:
    """Some solution of a program in which all these columns are whole; `often` is by column. Spends the solver.

    `cheapest`: the best one, if the limit allows; prices are whole numbers then.
    """
    import highspy

    which = np.arange(columns, dtype=np.int32)
    solver.changeColsIntegrality(columns, which, np.ones(columns, dtype=np.uint8))
    steps = limit * ITERATIONS_PER_EXPANSION
    for name, value in (_CHEAPEST_OPTIONS if cheapest else _INTEGER_OPTIONS).items():
        solver.setOptionValue(name, value)
    solver.cbMipInterrupt += lambda event: _stop_after(event, steps)
    solver.run()
    spent = _EXPANSIONS_PER_CALL + max(solver.getInfo().simplex_iteration_count, 0) // ITERATIONS_PER_EXPANSION
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return Answer(spent, impossible=True)
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Answer(spent)
    often = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64)
    ended = cheapest and solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Answer(spent, often=often, cheapest=ended)


def _stop_after(event: Any, steps: int) -> None:
    if event.data_out.simplex_iteration_count > steps:
        event.interrupt()


def new_solver() -> Any:
    """One thread, one seed, no word on the terminal."""
    import highspy

    class Silent(highspy.Highs):
        """Greets nobody: the greeting comes with the first callback, which the constructor sets up."""

        def enableCallbacks(self) -> None:
            self.silent()
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    solver = Silent()  # type: ignore[no-untyped-call]
    for name, value in _OPTIONS.items():
        solver.setOptionValue(name, value)
    return solver
