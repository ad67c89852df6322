"""Static filters of a profile, asked once per class and node columns: who may run where, and why not elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from muster.engine.extension import Filter, Relaxation, View
from muster.engine.profile import Profile
from muster.model.diagnosis import Reason
from muster.model.records import PodClass
from muster.model.snapshot import NodeColumns

MAX_CACHED = 4096
"""Entries kept on one set of node columns; beyond it they are made anew."""


class Feasible(NamedTuple):
    """Columns over all nodes; read only."""

    passes: np.ndarray
    """bool[N]"""
    reasons: np.ndarray
    """uint8[N]: the first filter that said no, as a Reason; 0 where none did."""


def static_view(nodes: NodeColumns, feasible: np.ndarray) -> View:
    """What a static filter or score sees: the nodes, and no usage."""
    nothing = np.zeros((0, len(nodes)), dtype=np.int64)
    return View(nodes, {}, nothing, nothing, feasible)


def feasible_nodes(nodes: NodeColumns, pod_class: PodClass, profile: Profile) -> Feasible:
    """The verdict of all static filters together, kept on the node columns."""
    asked = [(plugin, plugin.filter_key(pod_class)) for plugin in profile.filters]
    key = ("static", *((plugin.name, plugin, part) for plugin, part in asked if part is not None))
    known = nodes.cache.get(key)
    if isinstance(known, Feasible):
        return known
    reasons = np.zeros(len(nodes), dtype=np.uint8)
    for plugin, part in asked:
        if part is not None:
            rejected = ~filter_column(nodes, plugin, part, pod_class)
            reasons[rejected & (reasons == 0)] = plugin.reason
    passes = reasons == 0
    passes.flags.writeable = reasons.flags.writeable = False
    if len(nodes.cache) > MAX_CACHED:
        nodes.cache.clear()
    made = nodes.cache[key] = Feasible(passes, reasons)
    return made


def filter_column(nodes: NodeColumns, plugin: Filter, part: Hashable, pod_class: PodClass) -> np.ndarray:
    """bool[N] of one filter for one class, kept on the node columns by the part of the class that it looks at."""
    key = ("filter", plugin, part)
    known = nodes.cache.get(key)
    if isinstance(known, np.ndarray):
        return known
    column = plugin.filter(pod_class, static_view(nodes, np.ones(len(nodes), dtype=bool)))
    nodes.cache[key] = column
    return column


def static_rejections(
    nodes: NodeColumns, pod_class: PodClass, profile: Profile, among: np.ndarray | None = None
) -> Iterable[tuple[Reason, str, int]]:
    """(reason, detail, nodes) for every static rejection; each node counts under its first reason only.

    `among`: only these nodes (indices) are counted.
    """
    every = slice(None) if among is None else among
    reasons = feasible_nodes(nodes, pod_class, profile).reasons[every]
    view = static_view(nodes, np.ones(len(nodes), dtype=bool))
    for plugin in profile.filters:
        mine = reasons == plugin.reason
        if not mine.any():
            continue
        for detail, column in plugin.details(pod_class, view):
            column = column[every]
            count = int(np.count_nonzero(mine & column))
            mine = mine & ~column
            if count:
                yield plugin.reason, detail, count
        rest = int(np.count_nonzero(mine))
        if rest:
            yield plugin.reason, "", rest


def relaxed(nodes: NodeColumns, pod_class: PodClass, profile: Profile) -> Iterable[Relaxation]:
    """Single changes, each with the nodes (bool[N]) that the class could use after it and cannot use now."""
    view = static_view(nodes, np.ones(len(nodes), dtype=bool))
    passes = feasible_nodes(nodes, pod_class, profile).passes
    columns: list[np.ndarray] = []
    lifted: dict[tuple[str, str], list[np.ndarray]] = {}
    for plugin in profile.filters:
        part = plugin.filter_key(pod_class)
        if part is None:
            continue
        for action, detail, column in plugin.relaxations(pod_class, view):
            earlier = lifted.setdefault((action, detail), list(columns))
            earlier.append(filter_column(nodes, plugin, part, pod_class) | column)
        columns.append(filter_column(nodes, plugin, part, pod_class))
        for some in lifted.values():
            some.extend(columns[len(some) :])
    for (action, detail), some in lifted.items():
        gained = np.logical_and.reduce(some) & ~passes
        if gained.any():
            yield Relaxation(action, detail, gained)
