"""Weighted scores of a profile: the part that stays with the node columns, and the part that follows usage."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from muster.engine.extension import Score, View
from muster.engine.feasibility import Feasible, static_view
from muster.engine.profile import Profile
from muster.model.records import PodClass
from muster.model.resources import is_accelerator
from muster.model.snapshot import NodeColumns


def static_scores(nodes: NodeColumns, pod_class: PodClass, profile: Profile, feasible: Feasible) -> np.ndarray:
    """int64[N]: weighted sum of the static scores, kept on the node columns.

    Where a policy compares nodes it does so among those that pass the static filters, full ones included: a node that
    fills up must not change how two others compare.
    """
    asked = [
        (plugin, weight, key)
        for plugin, weight in profile.scores
        if not plugin.dynamic and (key := plugin.score_key(pod_class)) is not None
    ]
    total = np.zeros(len(nodes), dtype=np.int64)
    if not asked:
        return total
    cache_key = ("scores", id(feasible.passes), *((plugin, weight, key) for plugin, weight, key in asked))
    known = nodes.cache.get(cache_key)
    if isinstance(known, tuple) and known[0] is feasible.passes:
        return np.asarray(known[1])
    view = static_view(nodes, feasible.passes)
    for plugin, weight, _ in asked:
        total += weight * plugin.score(pod_class, view)
    total.flags.writeable = False
    nodes.cache[cache_key] = (feasible.passes, total)
    return total


def dynamic_plugins(pod_class: PodClass, profile: Profile) -> tuple[tuple[Score, int], ...]:
    """The scores that follow usage and have an opinion of this class."""
    return tuple(
        (plugin, weight)
        for plugin, weight in profile.scores
        if plugin.dynamic and plugin.score_key(pod_class) is not None
    )


class Layout:
    """Where a dynamic score finds what in the columns; one for all views of a decision."""

    __slots__ = ("accelerators", "nodes", "row")

    def __init__(self, nodes: NodeColumns, row: Mapping[str, int]) -> None:
        self.nodes = nodes
        self.row = row
        self.accelerators = tuple(r for name, r in row.items() if is_accelerator(name))


def dynamic_scores(
    plugins: tuple[tuple[Score, int], ...],
    pod_class: PodClass,
    layout: Layout,
    alloc: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """int64[M]: their weighted sum for `M` columns of capacity and usage."""
    total = np.zeros(alloc.shape[1], dtype=np.int64)
    if plugins:
        everywhere = _all_true(alloc.shape[1])
        view = View(layout.nodes, layout.row, alloc, used, everywhere, layout.accelerators)
        for plugin, weight in plugins:
            score = plugin.score(pod_class, view)
            total += score if weight == 1 else weight * score
    return total


_TRUE = np.ones(1 << 16, dtype=bool)
_TRUE.flags.writeable = False


def _all_true(count: int) -> np.ndarray:
    return _TRUE[:count] if count <= len(_TRUE) else np.ones(count, dtype=bool)
