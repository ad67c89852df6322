"""Packs pods that ask for accelerators, so that whole accelerator nodes stay whole for those who need them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import BEST, View
from muster.model.records import Amounts, PodClass
from muster.model.resources import is_accelerator

BEGUN = 90
"""A node that already gives accelerators away, and would keep one."""
WHOLE = 40
"""A node that would be broken."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Best is a node that is filled exactly, then a begun one, then a whole one; among alike, the fewest left over.

    Left over means accelerators, not a share of them: the hole that stays behind is what a later pod has to fit into
    (field report 044: small pods leave the large hole). A pod that asks for none goes by preference where none is free,
    so that it does not take the cpu and memory that accelerators need beside them.
    """

    name: str = "pack"
    dynamic: bool = True

    def score_key(self, pod_class: PodClass) -> Hashable | None:
        return accelerators(pod_class.requests)

    def score(self, pod_class: PodClass, view: View) -> np.ndarray:
        asked = accelerators(pod_class.requests)
        if not asked:
            return _without(view)
        total = np.zeros(view.alloc.shape[1], dtype=np.int64)
        for name, amount in asked:
            used = view.used[view.row[name]]
            left = view.alloc[view.row[name]] - used - amount
            room = np.where(used > 0, BEGUN, WHOLE) - np.minimum(left, WHOLE)
            total += np.where(left <= 0, BEST, room)
        return total // len(asked)


def _without(view: View) -> np.ndarray:
    """100 where no accelerator is free."""
    taken = np.ones(view.alloc.shape[1], dtype=bool)
    for row in view.accelerators:
        taken &= view.alloc[row] <= view.used[row]
    return taken * np.int64(BEST)


def accelerators(requests: Amounts) -> Amounts:
    """The accelerators among what a pod asks for."""
    return tuple((name, amount) for name, amount in requests if amount > 0 and is_accelerator(name))
