"""Who shares a node with whom: a search through one list of fillings, two members at a time.

The linear program says how far two members are together in what it takes. The two that nearly are, but not quite, are
put together, and all fillings that hold one of them without the other are struck out; where that leads nowhere they
are kept apart, and the fillings that hold both are struck out (Ryan and Foster). Little is decided at a time, so a
wrong turn costs little, which matters where a list has hardly any placement in it.
"""

from __future__ import annotations

import numpy as np

from muster.engine.relaxation import Relaxation

_NEARLY = 1e-6


def by_pairs(relaxation: Relaxation, counts: np.ndarray, drop: int, limit: int) -> np.ndarray | None:
    """int64[P]: how often each filling is taken, so that no more than `drop` are left out; None: none was found.

    Stops when the relaxation has spent `limit` expansions. Only classes of one member are paired; what is found is
    rounded, so it is yet to be checked.
    """
    holds = relaxation.pool.counts > 0
    single = counts == 1
    waiting = [np.ones(len(holds), dtype=bool)]
    while waiting and relaxation.spent < limit:
        allowed = waiting.pop()
        relaxation.only(allowed)
        answer = relaxation.solve(limit)
        if answer is None:
            return None
        out, taken = answer
        if out > drop + _NEARLY:
            continue
        used = np.flatnonzero(taken > _NEARLY)
        often, rows = taken[used], relaxation.columns[used]
        if bool((np.abs(often - np.rint(often)) < _NEARLY).all()):
            found = np.zeros(len(holds), dtype=np.int64)
            found[rows] = np.rint(often).astype(np.int64)
            return found
        pair = _nearest(holds[rows][:, single], often)
        if pair is None:
            return None
        one, other = (holds[:, np.flatnonzero(single)[place]] for place in pair)
        waiting += [allowed & ~(one & other), allowed & (one == other)]
    return None


def _nearest(holds: np.ndarray, often: np.ndarray) -> tuple[int, int] | None:
    """The two members that are together most of all that are not together altogether."""
    inside = holds.astype(np.float64)
    together = np.triu((inside * often[:, None]).T @ inside, 1)
    together[together > 1 - _NEARLY] = 0
    if not together.size or float(together.max()) <= _NEARLY:
        return None
    first, second = divmod(int(together.argmax()), together.shape[1])
    return first, second
