"""Domains: the nodes of a cluster, or of a part of it, by the values of one label key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from muster.model.snapshot import NodeColumns

WELL_KNOWN_LEVELS: tuple[tuple[str, ...], ...] = (
    ("topology.kubernetes.io/region",),
    ("topology.kubernetes.io/zone",),
    (
        "cloud.google.com/gce-topology-block",
        "topology.k8s.aws/network-node-layer-1",
        "network.topology.nvidia.com/spine",
        "topology.muster.dev/block",
    ),
    (
        "cloud.google.com/gce-topology-subblock",
        "topology.k8s.aws/network-node-layer-2",
        "network.topology.nvidia.com/leaf",
        "topology.muster.dev/rack",
    ),
    ("topology.k8s.aws/network-node-layer-3", "network.topology.nvidia.com/accelerator"),
)
"""Label keys that say where a node stands, widest first; keys of one line are other people's words for one level."""


def detected_levels(labels: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """The well-known keys that any of the nodes carries, widest first: one for each level, the first that is there."""
    seen = set().union(*map(frozenset, labels))
    found = (next((key for key in keys if key in seen), None) for keys in WELL_KNOWN_LEVELS)
    return tuple(key for key in found if key is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """A candidate node set for a group: one domain of its parent's placement. `parent` None: of the whole cluster.

    Equal label values under different parents are different domains (statement 35): a domain is (parent, value).
    """

    key: str
    value: str
    parent: Placement | None
    inside: np.ndarray
    """int64[M], ascending: the nodes as positions within the parent's."""
    nodes: np.ndarray
    """int64[M], ascending: the same as indices into the node columns."""
    kept: bool = True
    """Whether there is one instance of it as long as the node columns live."""

    @property
    def path(self) -> tuple[tuple[str, str], ...]:
        """(key, value) from the widest domain to this one: what names it."""
        return (*(self.parent.path if self.parent else ()), (self.key, self.value))


class Domains:
    """The domains of one label key inside a placement, in the order of their first node. None is empty.

    Nodes without the label belong to none. A sum over every domain is one `np.add.reduceat`; where the domains are
    slices of the node order, nothing has to be gathered for it.
    """

    __slots__ = ("_made", "_order", "_starts", "codes", "key", "parent", "place", "trivial", "values")

    def __init__(self, nodes: NodeColumns, key: str, parent: Placement | None = None) -> None:
        self.key = key
        self.parent = parent
        column = nodes.label(key)
        codes = column.codes if parent is None else column.codes[parent.nodes]
        labelled = np.flatnonzero(codes >= 0)
        found, first, which = np.unique(codes[labelled], return_index=True, return_inverse=True)
        in_order = np.argsort(first, kind="stable")
        rank = np.empty(len(found), dtype=np.int64)
        rank[in_order] = np.arange(len(found))
        domain = rank[which.ravel()]
        self.values: tuple[str, ...] = tuple(column.values[code] for code in found[in_order].tolist())
        self.place: Mapping[str, int] = {value: d for d, value in enumerate(self.values)}
        self.codes = np.full(len(codes), -1, dtype=np.int64)
        """int64[N]: the domain of each node of the parent's placement, -1 without the label."""
        self.codes[labelled] = domain
        self.trivial = len(self.values) == 1 and len(labelled) == len(codes)
        """One domain, with every node in it: nothing to choose."""
        order = labelled[np.argsort(domain, kind="stable")]
        self._starts = np.searchsorted(self.codes[order], np.arange(len(self.values)))
        slices = len(order) > 0 and bool((np.diff(order) == 1).all())
        self._order: np.ndarray | slice = slice(int(order[0]), int(order[-1]) + 1) if slices else order
        self._made: dict[int, Placement] = {}

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, d: int) -> Placement:
        made = self._made.get(d)
        if made is None:
            if not 0 <= d < len(self.values):
                raise IndexError(d)
            inside = np.flatnonzero(self.codes == d)
            nodes = inside if self.parent is None else self.parent.nodes[inside]
            made = self._made[d] = Placement(self.key, self.values[d], self.parent, inside, nodes)
        return made

    def sums(self, columns: np.ndarray) -> np.ndarray:
        """int64[..., D] of int64[..., N]: the sum over the nodes of each domain."""
        if not self.values:
            return np.zeros((*columns.shape[:-1], 0), dtype=columns.dtype)
        total: np.ndarray = np.add.reduceat(columns[..., self._order], self._starts, axis=-1)
        return total


def domains_of(nodes: NodeColumns, key: str, parent: Placement | None = None) -> Domains:
    """The domains of a key inside a placement, made once and kept on the node columns."""
    cache_key = ("domains", key, parent.path if parent else ())
    known = nodes.cache.get(cache_key)
    if not isinstance(known, Domains):
        known = nodes.cache[cache_key] = Domains(nodes, key, parent)
    return known
